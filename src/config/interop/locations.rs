//! The locations of other programs' config files. Nothing here accesses the disk.

use std::collections::BTreeMap;
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
    /// The folders that programs take from a variable instead.
    moved: BTreeMap<&'static str, PathBuf>,
}

/// The variables that move the folder of one program.
const VARIABLES: [&str; 6] =
    ["CLAUDE_CONFIG_DIR", "CODEX_HOME", "CONTINUE_GLOBAL_DIR", "COPILOT_HOME", "GEMINI_CLI_HOME", "QWEN_HOME"];

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
        homes.moved = VARIABLES.into_iter().filter_map(|name| Some((name, folder(name)?))).collect();
        Some(homes)
    }

    /// The folder of a program that a variable can move, by its usual place below the home folder.
    pub fn folder(&self, variable: &str, usual: &str) -> PathBuf {
        self.moved.get(variable).cloned().unwrap_or_else(|| self.home.join(usual))
    }

    /// The user's settings of VS Code.
    pub fn vscode(&self) -> PathBuf {
        self.desktop.join("Code/User")
    }

    /// The usual folders below a home folder.
    pub fn under(home: &Path) -> Self {
        let config = home.join(".config");
        let desktop = match () {
            () if cfg!(target_os = "macos") => home.join("Library/Application Support"),
            () if cfg!(windows) => home.join("AppData/Roaming"),
            () => config.clone(),
        };
        Self { home: home.to_path_buf(), config, desktop, moved: BTreeMap::new() }
    }
}

/// The config files of a project. New entries go into the first one. A folder stands for the files in it.
pub fn project_files(dialect: Dialect, folder: &Path) -> Vec<PathBuf> {
    dialect.format().project_files.iter().map(|name| folder.join(name)).collect()
}

/// The user's own config files. New entries go into the first one that exists.
pub fn user_files(dialect: Dialect, homes: &Homes) -> Vec<PathBuf> {
    (dialect.format().user_files)(homes)
}

/// Every file of the user to import from. A folder stands for the files in it.
pub fn import_files(dialect: Dialect, homes: &Homes) -> Vec<PathBuf> {
    user_files(dialect, homes).into_iter().chain((dialect.format().other_files)(homes)).collect()
}
