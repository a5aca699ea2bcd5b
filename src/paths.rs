//! Where files live.

use std::path::PathBuf;

/// The places of SPEC-like files on this machine, after environment overrides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// `mcp.json` of the user and `config.toml`.
    pub config_dir: PathBuf,
    /// `state.db` and `logs/`.
    pub state_dir: PathBuf,
    /// Sockets; 0700.
    pub runtime_dir: PathBuf,
    pub managed_config: PathBuf,
}
