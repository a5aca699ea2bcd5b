//! The sockets of the engine of a repository, which only this user can access.

use std::fmt::Write;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::handshake::Front;
use crate::paths::{Paths, in_main_checkout, make_private_folder, repository};

/// The longest socket path. The kernel allows a little more.
const MAX_PATH: usize = 100;
/// How many characters of the repository's name are part of the socket's name.
const READABLE: usize = 16;
/// How much of the hash of the folder, and of the user's files, is part of the socket's name. Paths must stay short.
const ROOT_BYTES: usize = 7;
const FILES_BYTES: usize = 3;

/// The sockets for one repository and one set of files. Fronts of every version use the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineAddress {
    /// The folder of the front that uses the address.
    pub root: PathBuf,
    /// What decides about the address: the main checkout of the repository, or without a repository the folder itself.
    pub home: PathBuf,
    pub socket: PathBuf,
    /// Only for agents. It is alone in its folder, so that a sandbox can be given that folder and nothing else.
    pub agents: PathBuf,
    /// Held by the process that starts or stops the engine.
    pub lock: PathBuf,
}

impl EngineAddress {
    /// Computes the paths without changing anything on disk.
    pub fn of(root: &Path, paths: &Paths) -> io::Result<Self> {
        Self::within(&paths.runtime_dir, root, paths)
    }

    /// Where an engine for this folder may listen, our own address first. Only agents accept one with other files: they
    /// are often started without the variables that name those, and belong to the engine that the user has open.
    pub fn everywhere(root: &Path, paths: &Paths, front: Front) -> io::Result<Vec<Self>> {
        let folders = paths.runtime_dirs();
        let own = Self::of(root, paths)?;
        let same_files = folders.iter().filter_map(|folder| Self::within(folder, root, paths).ok());
        let mut found: Vec<Self> = same_files.collect();
        if matches!(front, Front::Agent | Front::Hook | Front::Url) && Paths::are_usual() {
            let part = format!("{}-", hash(ROOT_BYTES, [&own.home]));
            let files = folders.iter().filter_map(|folder| folder.read_dir().ok()).flatten().flatten();
            let sockets = files.map(|file| file.path()).filter(|path| path.extension() == Some("sock".as_ref()));
            let for_root =
                sockets.filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().contains(&part)));
            found.extend(for_root.map(|socket| Self::with(own.root.clone(), own.home.clone(), socket)));
        }
        found.retain(|address| *address != own);
        found.insert(0, own);
        Ok(found)
    }

    fn within(folder: &Path, root: &Path, paths: &Paths) -> io::Result<Self> {
        let root = root.canonicalize()?;
        let home = home(&root);
        // A front with other files, as in tests and portable installs, needs a separate engine.
        let files = hash(FILES_BYTES, [&paths.config_dir, &paths.state_dir, &paths.managed_config]);
        let hashes = format!("{}-{files}.sock", hash(ROOT_BYTES, [&home]));
        let long = folder.join(format!("{}-{hashes}", readable(&home)));
        let socket = if fits(&for_agents(&long)) { long } else { folder.join(hashes) };
        let address = Self::with(root, home, socket);
        if !fits(&address.agents) {
            let folder = folder.display();
            let message = format!(
                "the path of a socket in {folder} would be longer than {MAX_PATH} bytes; set MCP_SIDECAR_RUNTIME_DIR to a shorter path"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidFilename, message));
        }
        Ok(address)
    }

    fn with(root: PathBuf, home: PathBuf, socket: PathBuf) -> Self {
        Self { root, home, lock: socket.with_extension("lock"), agents: for_agents(&socket), socket }
    }

    /// The address of an engine of which only the socket for agents is known.
    pub fn at(agents: &Path) -> Self {
        let path = agents.to_path_buf();
        let (root, home, lock) = Default::default();
        Self { root, home, socket: path.clone(), agents: path, lock }
    }

    /// Whether a workspace with this canonical path is one of this engine: it is in the same repository, or below.
    pub fn covers(&self, root: &Path) -> bool {
        root.starts_with(&self.home) || home(root) == self.home
    }

    /// The socket that a front connects to.
    pub fn socket_for(&self, front: Front) -> &Path {
        if matches!(front, Front::Agent | Front::Hook) { &self.agents } else { &self.socket }
    }

    /// Removes both sockets.
    pub fn remove(&self) {
        for socket in [&self.socket, &self.agents] {
            std::fs::remove_file(socket).ok();
        }
        if let Some(folder) = self.agents.parent() {
            std::fs::remove_dir(folder).ok();
        }
    }

    /// Makes sure that no other user can have created the sockets.
    pub fn secure(&self) -> io::Result<()> {
        if let Some(folder) = self.socket.parent() {
            make_private_folder(folder)?;
        }
        for socket in [&self.socket, &self.agents] {
            if std::fs::symlink_metadata(socket).is_ok_and(|metadata| !metadata.file_type().is_socket()) {
                let message = format!("{} is not a socket; remove it", socket.display());
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
            }
        }
        Ok(())
    }
}

fn home(root: &Path) -> PathBuf {
    in_main_checkout(&repository(root))
}

fn hash<const N: usize>(bytes: usize, paths: [&PathBuf; N]) -> String {
    let mut digest = Sha256::new();
    for path in paths {
        digest.update(path.as_os_str().as_bytes());
        digest.update([0]);
    }
    let mut hash = String::new();
    for byte in digest.finalize().iter().take(bytes) {
        write!(hash, "{byte:02x}").ok();
    }
    hash
}

fn for_agents(socket: &Path) -> PathBuf {
    socket.with_extension("agents").join("mcp")
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

    #[test]
    fn a_folder_and_a_link_to_it_have_the_same_socket() {
        let home = tempfile::tempdir().unwrap();
        let paths = Paths::under(home.path());
        std::fs::create_dir(home.path().join("my project")).unwrap();
        std::os::unix::fs::symlink(home.path().join("my project"), home.path().join("link")).unwrap();
        let address = EngineAddress::of(&home.path().join("my project"), &paths).unwrap();
        assert_eq!(EngineAddress::of(&home.path().join("link"), &paths).unwrap(), address);
        assert!(address.socket.file_name().unwrap().to_str().unwrap().starts_with("my_project-"));
        let other = Paths { config_dir: home.path().join("other"), ..paths };
        assert_ne!(EngineAddress::of(&home.path().join("link"), &other).unwrap(), address);
    }

    #[test]
    fn folders_of_one_repository_have_the_same_socket() {
        let home = tempfile::tempdir().unwrap();
        let paths = Paths::under(home.path());
        let below = home.path().join("repository/packages/one");
        std::fs::create_dir_all(&below).unwrap();
        let address = |folder: &Path| EngineAddress::of(folder, &paths).unwrap();
        let alone = address(&below);
        assert_eq!(alone.home, alone.root);
        std::fs::create_dir(home.path().join("repository/.git")).unwrap();
        let (inside, root) = (address(&below), address(&home.path().join("repository")));
        assert_eq!(inside.socket, root.socket);
        assert_ne!(alone.socket, root.socket);
        assert!(root.covers(&inside.root) && inside.covers(&root.root));
        assert!(!inside.covers(&home.path().canonicalize().unwrap()));
    }

    #[test]
    fn a_path_too_long_for_a_socket_is_shortened_or_refused() {
        let home = tempfile::tempdir().unwrap();
        let wide = "x".repeat(MAX_PATH - home.path().as_os_str().len() - 35);
        let mut paths = Paths { runtime_dir: home.path().join(wide), ..Paths::under(home.path()) };
        let address = EngineAddress::of(home.path(), &paths).unwrap();
        assert!(address.agents.as_os_str().len() <= MAX_PATH);
        paths.runtime_dir = home.path().join("y".repeat(MAX_PATH));
        let error = EngineAddress::of(home.path(), &paths).unwrap_err();
        assert!(error.to_string().contains("MCP_SIDECAR_RUNTIME_DIR"), "{error}");
    }

    #[test]
    fn a_link_instead_of_the_socket_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let address = EngineAddress::of(home.path(), &Paths::under(home.path())).unwrap();
        address.secure().unwrap();
        std::os::unix::fs::symlink("/dev/null", &address.socket).unwrap();
        assert!(address.secure().unwrap_err().to_string().ends_with("is not a socket; remove it"));
    }
}
