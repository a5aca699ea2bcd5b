//! The socket of the engine of a workspace, which only this user can access.

use std::fmt::Write;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::paths::{Paths, make_private_folder};

/// The longest socket path. The kernel allows a little more.
const MAX_PATH: usize = 100;
/// How many characters of the workspace's name are part of the socket's name.
const READABLE: usize = 32;

/// The socket for one workspace, one version and one set of files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineAddress {
    pub root: PathBuf,
    pub socket: PathBuf,
    /// Held by the process that starts or stops the engine.
    pub lock: PathBuf,
}

impl EngineAddress {
    /// Computes the paths without changing anything on disk.
    pub fn of(root: &Path, paths: &Paths) -> io::Result<Self> {
        let root = root.canonicalize()?;
        let mut digest = Sha256::new();
        // A front with other files, as in tests and portable installs, needs a separate engine.
        for part in [&root, &paths.config_dir, &paths.state_dir, &paths.managed_config] {
            digest.update(part.as_os_str().as_bytes());
            digest.update([0]);
        }
        digest.update(env!("CARGO_PKG_VERSION"));
        let mut hash = String::new();
        for byte in digest.finalize().iter().take(8) {
            write!(hash, "{byte:02x}").ok();
        }
        let long = paths.runtime_dir.join(format!("{}-{hash}.sock", readable(&root)));
        let socket = if fits(&long) { long } else { paths.runtime_dir.join(format!("{hash}.sock")) };
        if !fits(&socket) {
            let folder = paths.runtime_dir.display();
            let message = format!(
                "the path of a socket in {folder} would be longer than {MAX_PATH} bytes; set MCP_SIDECAR_RUNTIME_DIR to a shorter path"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidFilename, message));
        }
        Ok(Self { root, lock: socket.with_extension("lock"), socket })
    }

    /// Makes sure that no other user can have created the socket.
    pub fn secure(&self) -> io::Result<()> {
        if let Some(folder) = self.socket.parent() {
            make_private_folder(folder)?;
        }
        match std::fs::symlink_metadata(&self.socket) {
            Ok(metadata) if !metadata.file_type().is_socket() => {
                let message = format!("{} is not a socket; remove it", self.socket.display());
                Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
            }
            _ => Ok(()),
        }
    }
}

fn fits(path: &Path) -> bool {
    path.as_os_str().len() <= MAX_PATH
}

fn readable(root: &Path) -> String {
    let name = root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let plain = name.chars().map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' });
    let name: String = plain.take(READABLE).collect();
    // Not a hidden file.
    let name = name.trim_start_matches('.');
    if name.is_empty() { "root".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(folder: &Path) -> Paths {
        Paths {
            config_dir: folder.join("config"),
            state_dir: folder.join("state"),
            runtime_dir: folder.join("runtime"),
            managed_config: folder.join("managed.json"),
        }
    }

    #[test]
    fn a_folder_and_a_link_to_it_have_the_same_socket() {
        let home = tempfile::tempdir().unwrap();
        let paths = paths(home.path());
        std::fs::create_dir(home.path().join("my project")).unwrap();
        std::os::unix::fs::symlink(home.path().join("my project"), home.path().join("link")).unwrap();
        let address = EngineAddress::of(&home.path().join("my project"), &paths).unwrap();
        assert_eq!(EngineAddress::of(&home.path().join("link"), &paths).unwrap(), address);
        assert!(address.socket.file_name().unwrap().to_str().unwrap().starts_with("my_project-"));
        let other = Paths { config_dir: home.path().join("other"), ..paths };
        assert_ne!(EngineAddress::of(&home.path().join("link"), &other).unwrap(), address);
    }

    #[test]
    fn a_path_too_long_for_a_socket_is_shortened_or_refused() {
        let home = tempfile::tempdir().unwrap();
        let wide = "x".repeat(MAX_PATH - home.path().as_os_str().len() - 24);
        let mut paths = Paths { runtime_dir: home.path().join(wide), ..paths(home.path()) };
        let address = EngineAddress::of(home.path(), &paths).unwrap();
        assert!(address.socket.as_os_str().len() <= MAX_PATH);
        paths.runtime_dir = home.path().join("y".repeat(MAX_PATH));
        let error = EngineAddress::of(home.path(), &paths).unwrap_err();
        assert!(error.to_string().contains("MCP_SIDECAR_RUNTIME_DIR"), "{error}");
    }

    #[test]
    fn a_link_instead_of_the_socket_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let address = EngineAddress::of(home.path(), &paths(home.path())).unwrap();
        address.secure().unwrap();
        std::os::unix::fs::symlink("/dev/null", &address.socket).unwrap();
        assert!(address.secure().unwrap_err().to_string().ends_with("is not a socket; remove it"));
    }
}
