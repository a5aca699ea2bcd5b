//! Finds the public MCP servers that `scripts/get-servers` installs, and installs them when they are missing.
//! Use it by `#[path = "support/servers.rs"] mod servers;`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The program of a public server, by the key that `scripts/get-servers` prints: `MCP_SERVER_EVERYTHING`, ….
/// `None` only when the user asked to go without (`MCP_SIDECAR_SKIP_SERVERS`), which continuous integration must not.
pub fn program(key: &str) -> Option<PathBuf> {
    static INSTALLED: OnceLock<Option<BTreeMap<String, PathBuf>>> = OnceLock::new();
    let installed = INSTALLED.get_or_init(|| {
        if std::env::var_os("MCP_SIDECAR_SKIP_SERVERS").is_some() {
            assert!(std::env::var_os("CI").is_none(), "continuous integration must not skip the public servers");
            return None;
        }
        Some(install())
    });
    let installed = installed.as_ref()?;
    Some(installed.get(key).unwrap_or_else(|| panic!("scripts/get-servers knows no {key}")).clone())
}

fn install() -> BTreeMap<String, PathBuf> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/get-servers");
    let output = Command::new(script).arg("--quiet").stderr(Stdio::inherit()).output().expect("bash runs the script");
    assert!(
        output.status.success(),
        "the public MCP servers could not be installed (see above); MCP_SIDECAR_SKIP_SERVERS=1 goes without them"
    );
    let list = String::from_utf8(output.stdout).expect("paths are UTF-8");
    list.lines().filter_map(|line| line.split_once('=')).map(|(key, path)| (key.to_owned(), path.into())).collect()
}
