//! Reads a small file that somebody else may have laid out: never waits, never reads more than asked.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

/// Why a file that is there cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    #[error("not a regular file")]
    NotRegular,
    #[error("larger than {}", size(*.0))]
    Large(usize),
    #[error("permission denied; its owner can allow reading by `chmod u+r`")]
    Denied,
    #[error("cannot be read: {0}")]
    Other(String),
}

/// The bytes of a file of at most `limit` bytes; `None` when there is no such file.
pub fn read_file(path: &Path, limit: usize) -> Result<Option<Vec<u8>>, Unreadable> {
    match open(path) {
        Ok(file) => read(file, limit).map(Some),
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(None),
            io::ErrorKind::PermissionDenied => Err(Unreadable::Denied),
            // A socket refuses to be opened at all.
            _ if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) => Err(Unreadable::NotRegular),
            _ => Err(Unreadable::Other(error.to_string())),
        },
    }
}

fn read(file: File, limit: usize) -> Result<Vec<u8>, Unreadable> {
    let other = |error: io::Error| Unreadable::Other(error.to_string());
    // Asked of the open file: between a look at the path and the opening, it may have become another.
    let metadata = file.metadata().map_err(other)?;
    if !metadata.is_file() {
        return Err(Unreadable::NotRegular);
    }
    if metadata.len() > limit as u64 {
        return Err(Unreadable::Large(limit));
    }
    let mut bytes = Vec::new();
    file.take(limit as u64 + 1).read_to_end(&mut bytes).map_err(other)?;
    // It may have grown since it was measured.
    if bytes.len() > limit { Err(Unreadable::Large(limit)) } else { Ok(bytes) }
}

/// Opens without waiting: a FIFO in place of the file would otherwise hold us up until somebody writes to it.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32);
    }
    options.open(path)
}

fn size(bytes: usize) -> String {
    match bytes {
        bytes if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        bytes if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        bytes => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_stops_at_the_limit_and_says_which() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        assert_eq!(read_file(&path, 4), Ok(None));
        std::fs::write(&path, "1234").unwrap();
        assert_eq!(read_file(&path, 4), Ok(Some(b"1234".to_vec())));
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(read_file(&path, 4), Err(Unreadable::Large(4)));
        assert_eq!(Unreadable::Large(1 << 20).to_string(), "larger than 1 MiB");
        assert_eq!(read_file(&path.join("below-a-file"), 4), Ok(None));
        assert_eq!(read_file(folder.path(), 4), Err(Unreadable::NotRegular));
    }

    #[cfg(unix)]
    #[test]
    fn a_fifo_or_socket_in_place_of_the_file_is_told_and_not_waited_for() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert_eq!(read_file(&fifo, 4), Err(Unreadable::NotRegular));
        let socket = folder.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        assert_eq!(read_file(&socket, 4), Err(Unreadable::NotRegular));
    }
}
