//! Reads a small untrusted file: never blocks, and never reads more than the limit.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

use crate::text::io_reason;

/// Why an existing file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    #[error("not a regular file")]
    NotRegular,
    #[error("larger than {}", size(*.0))]
    Large(usize),
    #[error("permission denied; run `chmod u+r` on the file to make it readable")]
    Denied,
    #[error("cannot be read: {0}")]
    Other(String),
}

/// Reads a file of at most `limit` bytes; `None` if it does not exist.
pub fn read_file(path: &Path, limit: usize) -> Result<Option<Vec<u8>>, Unreadable> {
    match open(path) {
        Ok(file) => read(file, limit).map(Some),
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(None),
            io::ErrorKind::PermissionDenied => Err(Unreadable::Denied),
            // A socket cannot be opened.
            _ if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) => Err(Unreadable::NotRegular),
            _ => Err(Unreadable::Other(io_reason(&error))),
        },
    }
}

fn read(file: File, limit: usize) -> Result<Vec<u8>, Unreadable> {
    let other = |error: io::Error| Unreadable::Other(io_reason(&error));
    // Check the open file, because the path may have been replaced in the meantime.
    let metadata = file.metadata().map_err(other)?;
    if !metadata.is_file() {
        return Err(Unreadable::NotRegular);
    }
    if metadata.len() > limit as u64 {
        return Err(Unreadable::Large(limit));
    }
    let mut bytes = Vec::new();
    file.take(limit as u64 + 1).read_to_end(&mut bytes).map_err(other)?;
    // The file may have grown in the meantime.
    if bytes.len() > limit { Err(Unreadable::Large(limit)) } else { Ok(bytes) }
}

/// Opens the file without blocking: a FIFO would otherwise block until another process writes to it.
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
    fn reading_stops_at_the_limit() {
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
    fn a_fifo_or_socket_is_rejected_without_blocking() {
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
