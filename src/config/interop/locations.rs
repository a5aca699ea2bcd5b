//! The locations of other programs' config files. Nothing here accesses the disk.

use std::path::{Path, PathBuf};

use super::Dialect;

/// The folders in which other programs keep this user's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Homes {
    pub home: PathBuf,
    /// `XDG_CONFIG_HOME`.
    pub config: PathBuf,
    /// Settings of desktop programs: the same as `config` on Linux, a system folder elsewhere.
    pub desktop: PathBuf,
    pub codex: PathBuf,
}

impl Homes {
    /// Determines the folders from the environment; `None` without a home folder.
    pub fn discover() -> Option<Self> {
        let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let mut homes = Self::under(&etcetera::home_dir().ok()?);
        if let Some(config) = folder("XDG_CONFIG_HOME") {
            if homes.desktop == homes.config {
                homes.desktop.clone_from(&config);
            }
            homes.config = config;
        }
        if let Some(desktop) = folder("APPDATA").filter(|_| cfg!(windows)) {
            homes.desktop = desktop;
        }
        homes.codex = folder("CODEX_HOME").unwrap_or(homes.codex);
        Some(homes)
    }

    /// The usual folders below a home folder.
    pub fn under(home: &Path) -> Self {
        let config = home.join(".config");
        let desktop = match () {
            () if cfg!(target_os = "macos") => home.join("Library/Application Support"),
            () if cfg!(windows) => home.join("AppData/Roaming"),
            () => config.clone(),
        };
        Self { home: home.to_path_buf(), config, desktop, codex: home.join(".codex") }
    }
}

/// The config file of a project, if the program supports one.
pub fn project_file(dialect: Dialect, folder: &Path) -> Option<PathBuf> {
    let name = match dialect {
        Dialect::VsCode => ".vscode/mcp.json",
        Dialect::Claude => ".mcp.json",
        Dialect::Cursor => ".cursor/mcp.json",
        Dialect::Zed => ".zed/settings.json",
        Dialect::Codex => ".codex/config.toml",
        Dialect::McpHub => ".mcphub/servers.json",
        Dialect::ClaudeDesktop | Dialect::Windsurf | Dialect::Cline => return None,
    };
    Some(folder.join(name))
}

/// The user's own config files. New entries go into the first one.
pub fn user_files(dialect: Dialect, homes: &Homes) -> Vec<PathBuf> {
    let Homes { home, config, desktop, codex } = homes;
    let code = desktop.join("Code/User");
    match dialect {
        Dialect::VsCode => vec![code.join("mcp.json"), code.join("settings.json")],
        Dialect::Claude => vec![home.join(".claude.json")],
        Dialect::ClaudeDesktop => vec![desktop.join("Claude/claude_desktop_config.json")],
        Dialect::Cursor => vec![home.join(".cursor/mcp.json")],
        Dialect::Windsurf => vec![home.join(".codeium/windsurf/mcp_config.json")],
        Dialect::Zed if cfg!(windows) => vec![desktop.join("Zed/settings.json")],
        Dialect::Zed => vec![config.join("zed/settings.json")],
        Dialect::Cline => vec![
            code.join("globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"),
            home.join(".cline/mcp.json"),
        ],
        Dialect::Codex => vec![codex.join("config.toml")],
        Dialect::McpHub => vec![config.join("mcphub/servers.json")],
    }
}
