//! Where the engine of a workspace is met: a socket that only this user can reach.

use std::fmt::Write;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::paths::{Paths, make_private_folder};

/// The kernel takes a little more; the rest is for its own sake.
const LONGEST: usize = 100;
/// How much of the workspace's own name is in the name of the socket, for people who look there.
const READABLE: usize = 32;

/// The meeting place of one workspace, one version and one set of files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub root: PathBuf,
    pub socket: PathBuf,
    /// Held by whoever starts or ends the engine.
    pub lock: PathBuf,
}

impl Place {
    /// Only names it; nothing on disk changes.
    pub fn of(root: &Path, paths: &Paths) -> io::Result<Self> {
        let root = root.canonicalize()?;
        let mut digest = Sha256::new();
        // A front that uses other files, as tests and portable installs do, needs an engine of its own.
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
                "a socket in {folder} would have a path of more than {LONGEST} bytes; set MCP_SIDECAR_RUNTIME_DIR to a shorter one"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidFilename, message));
        }
        Ok(Self { root, lock: socket.with_extension("lock"), socket })
    }

    /// Makes sure that nobody else can have laid anything out here.
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
    path.as_os_str().len() <= LONGEST
}

fn readable(root: &Path) -> String {
    let name = root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let plain = name.chars().map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' });
    let name: String = plain.take(READABLE).collect();
    // A hidden file would be looked for in vain.
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
    fn the_same_folder_is_one_place_however_it_is_spelled() {
        let home = tempfile::tempdir().unwrap();
        let paths = paths(home.path());
        std::fs::create_dir(home.path().join("my project")).unwrap();
        std::os::unix::fs::symlink(home.path().join("my project"), home.path().join("link")).unwrap();
        let place = Place::of(&home.path().join("my project"), &paths).unwrap();
        assert_eq!(Place::of(&home.path().join("link"), &paths).unwrap(), place);
        assert!(place.socket.file_name().unwrap().to_str().unwrap().starts_with("my_project-"));
        let other = Paths { config_dir: home.path().join("other"), ..paths };
        assert_ne!(Place::of(&home.path().join("link"), &other).unwrap(), place);
    }

    #[test]
    fn a_path_too_long_for_a_socket_is_shortened_or_refused() {
        let home = tempfile::tempdir().unwrap();
        let wide = "x".repeat(LONGEST - home.path().as_os_str().len() - 24);
        let mut paths = Paths { runtime_dir: home.path().join(wide), ..paths(home.path()) };
        let place = Place::of(home.path(), &paths).unwrap();
        assert!(place.socket.as_os_str().len() <= LONGEST);
        paths.runtime_dir = home.path().join("y".repeat(LONGEST));
        let error = Place::of(home.path(), &paths).unwrap_err();
        assert!(error.to_string().contains("MCP_SIDECAR_RUNTIME_DIR"), "{error}");
    }

    #[test]
    fn a_link_in_place_of_the_socket_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let place = Place::of(home.path(), &paths(home.path())).unwrap();
        place.secure().unwrap();
        std::os::unix::fs::symlink("/dev/null", &place.socket).unwrap();
        assert!(place.secure().unwrap_err().to_string().ends_with("is not a socket; remove it"));
    }
}
