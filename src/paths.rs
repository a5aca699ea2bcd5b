//! The locations of our files: XDG folders on every Unix, each with an environment variable that overrides it.
//!
//! Determining the paths changes nothing on disk. Code that writes a file creates its folder with [`make_folder`], or
//! with [`make_private_folder`] if other users must not list it.

mod lock;
mod program;
mod reach;
mod read;
mod repository;

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use sha2::{Digest, Sha256};

pub use lock::lock_within;
pub use program::{FoundProgram, find_program, own_program};
pub use reach::{code_roots, leads_through};
pub use read::{Unreadable, read_file};
#[cfg(test)]
pub use repository::write_worktree;
pub use repository::{canonical, in_main_checkout, real_target, repository, target_inside};

const NAME: &str = "mcp-sidecar";
const MANAGED: &str = if cfg!(windows) { r"C:\ProgramData\mcp-sidecar\mcp.json" } else { "/etc/mcp-sidecar/mcp.json" };

/// For tests, and for machines without a managed config.
pub const MANAGED_VARIABLE: &str = "MCP_SIDECAR_MANAGED_CONFIG";
/// The variables that decide where our files are.
pub const VARIABLES: [&str; 9] = [
    "MCP_SIDECAR_CONFIG_DIR",
    "MCP_SIDECAR_STATE_DIR",
    "MCP_SIDECAR_RUNTIME_DIR",
    "MCP_SIDECAR_MANAGED_CONFIG",
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "TMPDIR",
];

/// The locations of our files on this machine.
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

/// Why the locations cannot be determined.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathsError {
    #[error("cannot find your home folder; set HOME, or MCP_SIDECAR_CONFIG_DIR and MCP_SIDECAR_STATE_DIR")]
    NoHome,
    #[error("{variable} must be an absolute path, not `{}`", value.display())]
    Relative { variable: &'static str, value: PathBuf },
}

impl Paths {
    /// Determines the locations from the environment.
    pub fn discover() -> Result<Self, PathsError> {
        Self::from_variables(&|name| std::env::var_os(name), Path::new(MANAGED))
    }

    /// All locations in one folder, apart from the user's own files.
    pub fn under(folder: &Path) -> Self {
        Self {
            config_dir: folder.join("config"),
            state_dir: folder.join("state"),
            runtime_dir: folder.join("run"),
            managed_config: folder.join("managed.json"),
        }
    }

    fn from_variables(variable: &dyn Fn(&str) -> Option<OsString>, managed: &Path) -> Result<Self, PathsError> {
        // Only require a home folder if there is no override: a container may have none.
        let strategy = || etcetera::base_strategy::Xdg::new().map_err(|_| PathsError::NoHome);
        let config_dir = match overridden(variable, "MCP_SIDECAR_CONFIG_DIR")? {
            Some(path) => path,
            None => strategy()?.config_dir().join(NAME),
        };
        let state_dir = match overridden(variable, "MCP_SIDECAR_STATE_DIR")? {
            Some(path) => path,
            None => {
                let strategy = strategy()?;
                strategy.state_dir().unwrap_or_else(|| strategy.data_dir()).join(NAME)
            }
        };
        let runtime_dir = match overridden(variable, "MCP_SIDECAR_RUNTIME_DIR")? {
            Some(path) => path,
            None => usual_runtime_dirs(variable).next().unwrap_or_default(),
        };
        // A variable cannot replace the rules of an administrator.
        let managed_config = overridden(variable, MANAGED_VARIABLE)?
            .filter(|_| !may_exist(managed))
            .unwrap_or_else(|| managed.to_path_buf());
        Ok(Self { config_dir, state_dir, runtime_dir, managed_config })
    }

    /// The folders in which an engine of this user may listen: ours first, then those that a program with another
    /// environment would use. Some agents start their servers without `XDG_RUNTIME_DIR`.
    pub fn runtime_dirs(&self) -> Vec<PathBuf> {
        let usual: Vec<PathBuf> = usual_runtime_dirs(&|name| std::env::var_os(name)).collect();
        let more = usual.iter().filter(|path| **path != self.runtime_dir && usual.contains(&self.runtime_dir));
        [&self.runtime_dir].into_iter().chain(more).cloned().collect()
    }

    /// Whether the user has chosen none of the locations for the sidecar alone.
    pub fn are_usual() -> bool {
        let mut own = VARIABLES.iter().filter(|name| name.starts_with("MCP_SIDECAR_") && **name != MANAGED_VARIABLE);
        own.all(|name| std::env::var_os(name).is_none_or(|value| value.is_empty()))
    }

    /// Why the managed config is not the one that the variable names.
    pub fn ignored_variable(&self, value: Option<&OsStr>) -> Option<String> {
        let value = Path::new(value.filter(|value| !value.is_empty())?);
        let managed = self.managed_config.display();
        (value != self.managed_config)
            .then(|| format!("{MANAGED_VARIABLE} is ignored, because this machine has {managed}"))
    }

    /// The sidecar's own settings.
    pub fn settings_file(&self) -> PathBuf {
        self.config_dir.join("config.toml")
    }

    /// The servers of the user, for all projects.
    pub fn user_config(&self) -> PathBuf {
        self.config_dir.join("mcp.json")
    }

    pub fn database(&self) -> PathBuf {
        self.state_dir.join("state.db")
    }

    pub fn logs_dir(&self) -> PathBuf {
        self.state_dir.join("logs")
    }

    /// The working folder of a user's server: one for each workspace and server. We never delete its contents.
    pub fn private_folder(&self, workspace: Option<&Path>, server: &str) -> PathBuf {
        let workspace = match workspace {
            Some(folder) => {
                let real = canonical(folder);
                let name: String = real.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
                let name: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || "-_".contains(*c)).collect();
                let digest = Sha256::digest(real.as_os_str().as_encoded_bytes());
                let digest: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
                format!("{name}-{digest}")
            }
            None => "no-workspace".to_owned(),
        };
        self.state_dir.join("servers").join(workspace).join(server)
    }
}

/// The folders for sockets, the best one first.
fn usual_runtime_dirs(variable: &dyn Fn(&str) -> Option<OsString>) -> impl Iterator<Item = PathBuf> + use<> {
    // The XDG standard says to ignore a relative value.
    let named = variable("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    let of_login = Path::new("/run/user").join(user());
    let of_login = Some(of_login).filter(|path| is_private(path));
    let temporary = std::env::temp_dir().join(format!("{NAME}-{}", user()));
    let inside = [named, of_login].into_iter().flatten().map(|path| path.join(NAME));
    let mut seen = Vec::new();
    inside.chain([temporary]).filter(move |path| {
        !seen.contains(path) && {
            seen.push(path.clone());
            true
        }
    })
}

/// Whether a folder belongs to this user, and no other user can open it.
#[cfg(unix)]
fn is_private(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let owner = rustix::process::geteuid().as_raw();
    std::fs::symlink_metadata(path)
        .is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == owner && metadata.mode() & 0o077 == 0)
}

#[cfg(not(unix))]
fn is_private(_path: &Path) -> bool {
    false
}

fn overridden(variable: &dyn Fn(&str) -> Option<OsString>, name: &'static str) -> Result<Option<PathBuf>, PathsError> {
    let Some(value) = variable(name).filter(|value| !value.is_empty()) else { return Ok(None) };
    let value = PathBuf::from(value);
    // The meaning of a relative path would depend on the folder in which a front starts.
    if value.is_relative() { Err(PathsError::Relative { variable: name, value }) } else { Ok(Some(value)) }
}

/// Whether there is a file, or we are not allowed to know.
fn may_exist(path: &Path) -> bool {
    let missing = [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory];
    std::fs::symlink_metadata(path).map_or_else(|error| !missing.contains(&error.kind()), |_| true)
}

/// Creates a folder and its parents, readable by this user only. An existing folder stays unchanged.
pub fn make_folder(path: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Creates a folder that only this user can open. Rejects an existing one that belongs to another user, is a symlink or
/// is writable by others: in a shared temporary folder, it may be a trap.
pub fn make_private_folder(path: &Path) -> io::Result<()> {
    make_folder(path)?;
    check_private(path)
}

#[cfg(unix)]
fn check_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    let refuse = |why: &str| Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("{} {why}", path.display())));
    let metadata = std::fs::symlink_metadata(path)?;
    if !metadata.is_dir() {
        return refuse("is not a folder; remove it");
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return refuse(
            "belongs to another user; remove it, or use another folder (MCP_SIDECAR_RUNTIME_DIR, MCP_SIDECAR_STATE_DIR)",
        );
    }
    if metadata.mode() & 0o022 != 0 {
        return refuse("is writable by other users; run `chmod 700` on it");
    }
    if metadata.mode() & 0o077 != 0 {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn check_private(_path: &Path) -> io::Result<()> {
    Ok(()) // On other systems, each user has their own temporary folder.
}

#[cfg(unix)]
fn user() -> String {
    rustix::process::geteuid().as_raw().to_string()
}

#[cfg(not(unix))]
fn user() -> String {
    "user".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn discover(variables: &[(&str, &str)]) -> Result<Paths, PathsError> {
        discover_with(variables, Path::new("/none/mcp.json"))
    }

    fn discover_with(variables: &[(&str, &str)], managed: &Path) -> Result<Paths, PathsError> {
        let find =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value));
        Paths::from_variables(&find, managed)
    }

    #[test]
    fn every_path_can_be_overridden() {
        let paths = discover(&[
            ("MCP_SIDECAR_CONFIG_DIR", "/c"),
            ("MCP_SIDECAR_STATE_DIR", "/s"),
            ("MCP_SIDECAR_RUNTIME_DIR", "/r"),
            ("MCP_SIDECAR_MANAGED_CONFIG", "/m/mcp.json"),
            ("XDG_RUNTIME_DIR", "/run/user/1"),
        ])
        .unwrap();
        assert_eq!(paths.settings_file(), Path::new("/c/config.toml"));
        assert_eq!(paths.user_config(), Path::new("/c/mcp.json"));
        assert_eq!(paths.database(), Path::new("/s/state.db"));
        assert_eq!(paths.logs_dir(), Path::new("/s/logs"));
        assert_eq!(paths.runtime_dir, Path::new("/r"));
        assert_eq!(paths.managed_config, Path::new("/m/mcp.json"));
    }

    #[test]
    fn every_variable_that_is_read_is_listed() {
        let read = std::cell::RefCell::new(Vec::new());
        Paths::from_variables(
            &|name| {
                read.borrow_mut().push(name.to_owned());
                None
            },
            Path::new(MANAGED),
        )
        .unwrap();
        let read = read.into_inner();
        assert!(read.iter().any(|name| name == "XDG_RUNTIME_DIR"), "{read:?}");
        assert!(read.iter().all(|name| VARIABLES.contains(&name.as_str())), "{read:?}");
    }

    #[test]
    fn without_a_runtime_folder_each_user_gets_a_separate_one() {
        let overrides = [("MCP_SIDECAR_CONFIG_DIR", "/c"), ("MCP_SIDECAR_STATE_DIR", "/s")];
        let folder = discover(&overrides).unwrap().runtime_dir;
        let of_login = Path::new("/run/user").join(user());
        assert_eq!(folder == of_login.join("mcp-sidecar"), is_private(&of_login), "{folder:?}");
        assert!(folder.starts_with(&of_login) || folder.ends_with(format!("mcp-sidecar-{}", user())), "{folder:?}");
        let paths = discover(&[overrides[0], overrides[1], ("XDG_RUNTIME_DIR", "/run/user/1")]).unwrap();
        assert_eq!(paths.runtime_dir, Path::new("/run/user/1/mcp-sidecar"));
        assert_eq!(paths.managed_config, Path::new("/none/mcp.json"));
    }

    #[cfg(unix)]
    #[test]
    fn a_variable_cannot_replace_the_managed_config_of_a_machine_that_has_one() {
        let folder = tempfile::tempdir().unwrap();
        let managed = folder.path().join("mcp.json");
        let variables =
            [("MCP_SIDECAR_CONFIG_DIR", "/c"), ("MCP_SIDECAR_STATE_DIR", "/s"), (MANAGED_VARIABLE, "/m/mcp.json")];
        let value = Some(OsStr::new("/m/mcp.json"));
        let paths = discover_with(&variables, &managed).unwrap();
        assert_eq!((paths.managed_config.as_path(), paths.ignored_variable(value)), (Path::new("/m/mcp.json"), None));

        // Even a file that is not valid, or a link to nothing, is the administrator's.
        std::os::unix::fs::symlink("/none", &managed).unwrap();
        let paths = discover_with(&variables, &managed).unwrap();
        assert_eq!(paths.managed_config, managed);
        assert_eq!(
            paths.ignored_variable(value).unwrap(),
            format!("MCP_SIDECAR_MANAGED_CONFIG is ignored, because this machine has {}", managed.display())
        );
        assert_eq!((paths.ignored_variable(None), paths.ignored_variable(Some(managed.as_os_str()))), (None, None));
    }

    #[test]
    fn a_relative_override_is_rejected_by_name() {
        let error = discover(&[("MCP_SIDECAR_CONFIG_DIR", "here")]).unwrap_err();
        assert_eq!(error.to_string(), "MCP_SIDECAR_CONFIG_DIR must be an absolute path, not `here`");
    }

    #[cfg(unix)]
    #[test]
    fn a_private_folder_is_created_and_a_shared_one_rejected() {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let chmod = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("a/b");
        make_private_folder(&folder).unwrap();
        assert_eq!(mode(&folder), 0o700);
        assert_eq!(mode(folder.parent().unwrap()), 0o700);

        assert!(is_private(&folder));
        chmod(&folder, 0o755);
        assert!(!is_private(&folder));
        make_private_folder(&folder).unwrap();
        assert_eq!(mode(&folder), 0o700);

        chmod(&folder, 0o777);
        assert!(make_private_folder(&folder).unwrap_err().to_string().ends_with("`chmod 700` on it"));

        let link = root.path().join("link");
        std::os::unix::fs::symlink(&folder, &link).unwrap();
        assert!(make_private_folder(&link).unwrap_err().to_string().contains("is not a folder"));
    }
}
