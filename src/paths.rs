//! The locations of our files: XDG folders on every Unix, each with an environment variable that overrides it.
//!
//! Determining the paths does not access the disk. Code that writes a file creates its folder with [`make_folder`], or
//! with [`make_private_folder`] if other users must not list it.

mod read;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use sha2::{Digest, Sha256};

pub use read::{Unreadable, read_file};

const NAME: &str = "mcp-sidecar";
const MANAGED: &str = if cfg!(windows) { r"C:\ProgramData\mcp-sidecar\mcp.json" } else { "/etc/mcp-sidecar/mcp.json" };

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
        Self::from_variables(&|name| std::env::var_os(name))
    }

    fn from_variables(variable: &dyn Fn(&str) -> Option<OsString>) -> Result<Self, PathsError> {
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
            // The XDG standard says to ignore a relative value.
            None => match variable("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute()) {
                Some(path) => path.join(NAME),
                None => std::env::temp_dir().join(format!("{NAME}-{}", user())),
            },
        };
        let managed_config =
            overridden(variable, "MCP_SIDECAR_MANAGED_CONFIG")?.unwrap_or_else(|| PathBuf::from(MANAGED));
        Ok(Self { config_dir, state_dir, runtime_dir, managed_config })
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
                let real = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_path_buf());
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

fn overridden(variable: &dyn Fn(&str) -> Option<OsString>, name: &'static str) -> Result<Option<PathBuf>, PathsError> {
    let Some(value) = variable(name).filter(|value| !value.is_empty()) else { return Ok(None) };
    let value = PathBuf::from(value);
    // The meaning of a relative path would depend on the folder in which a front starts.
    if value.is_relative() { Err(PathsError::Relative { variable: name, value }) } else { Ok(Some(value)) }
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
        return refuse("belongs to another user; remove it, or set MCP_SIDECAR_RUNTIME_DIR to another folder");
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
        Paths::from_variables(&|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
        })
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
    fn without_a_runtime_folder_each_user_gets_a_separate_one() {
        let overrides = [("MCP_SIDECAR_CONFIG_DIR", "/c"), ("MCP_SIDECAR_STATE_DIR", "/s")];
        let paths = discover(&overrides).unwrap();
        assert_eq!(paths.runtime_dir, std::env::temp_dir().join(format!("mcp-sidecar-{}", user())));
        let paths = discover(&[overrides[0], overrides[1], ("XDG_RUNTIME_DIR", "/run/user/1")]).unwrap();
        assert_eq!(paths.runtime_dir, Path::new("/run/user/1/mcp-sidecar"));
        assert_eq!(paths.managed_config, Path::new(MANAGED));
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

        chmod(&folder, 0o755);
        make_private_folder(&folder).unwrap();
        assert_eq!(mode(&folder), 0o700);

        chmod(&folder, 0o777);
        assert!(make_private_folder(&folder).unwrap_err().to_string().ends_with("`chmod 700` on it"));

        let link = root.path().join("link");
        std::os::unix::fs::symlink(&folder, &link).unwrap();
        assert!(make_private_folder(&link).unwrap_err().to_string().contains("is not a folder"));
    }
}
