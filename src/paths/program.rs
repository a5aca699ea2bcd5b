//! Where a command leads to, and where our own program is.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use super::NAME;

/// A program that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundProgram {
    /// A path, or a name on the PATH.
    File(PathBuf),
    /// Our own name, which the PATH does not have: an editor may have installed us in its own folder.
    Own(PathBuf),
}

impl FoundProgram {
    pub fn into_path(self) -> PathBuf {
        match self {
            Self::File(path) | Self::Own(path) => path,
        }
    }
}

/// The program of a command. A path, or a relative entry of the PATH, starts at `folder`. The PATH always comes first,
/// so a command never leads to ourselves where it has led to another file.
pub fn find_program(command: &str, path: Option<impl AsRef<OsStr>>, folder: &Path) -> Option<FoundProgram> {
    match which::which_in(command, path, folder) {
        Ok(found) => Some(FoundProgram::File(folder.join(found))),
        Err(_) if command == NAME => own_program().ok().map(FoundProgram::Own),
        Err(_) => None,
    }
}

/// Our program: the file that has replaced it after an update, or the binary that is running if there is none.
pub fn own_program() -> io::Result<PathBuf> {
    let running = std::env::current_exe()?;
    if !cfg!(target_os = "linux") || running.is_file() {
        return Ok(running);
    }
    let name = running.to_string_lossy();
    let replaced = name.strip_suffix(" (deleted)").map(PathBuf::from).filter(|path| path.is_file());
    Ok(replaced.unwrap_or_else(|| PathBuf::from("/proc/self/exe")))
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn our_own_name_is_ourselves_unless_the_path_has_it() {
        let folder = tempfile::tempdir().unwrap();
        let find = |command: &str, path: Option<&Path>| find_program(command, path, folder.path());
        let own = Some(FoundProgram::Own(std::env::current_exe().unwrap()));
        assert_eq!(find("mcp-sidecar", Some(folder.path())), own);
        assert_eq!(find("mcp-sidecar", None), own);
        assert_eq!(find("./mcp-sidecar", Some(folder.path())), None, "a path is only what it names");
        assert_eq!(find("mcp-sidecar2", Some(folder.path())), None);
        let file = folder.path().join("mcp-sidecar");
        std::fs::write(&file, "").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find("mcp-sidecar", Some(folder.path())), Some(FoundProgram::File(file)));
    }
}
