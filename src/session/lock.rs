//! One at a time may start or end the engine of a workspace.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The lock, while it is held. Whoever dies lets go of it.
pub struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// Waits for it. Nobody holds it for longer than an engine takes to start.
    pub fn take(path: &Path) -> io::Result<Self> {
        loop {
            let file = open(path)?;
            file.lock()?;
            // The one before us may have taken the file away while we waited for it.
            if is_current(&file, path) {
                return Ok(Self { file, path: path.to_owned() });
            }
        }
    }

    /// Takes it if nobody has it.
    pub fn try_take(path: &Path) -> io::Result<Option<Self>> {
        let file = open(path)?;
        match file.try_lock() {
            Ok(()) if is_current(&file, path) => Ok(Some(Self { file, path: path.to_owned() })),
            Ok(()) | Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Lets go of it and leaves nothing behind.
    pub fn remove(self) {
        std::fs::remove_file(&self.path).ok();
        drop(self.file);
    }
}

fn open(path: &Path) -> io::Result<File> {
    let no_links = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(no_links).open(path)
}

fn is_current(file: &File, path: &Path) -> bool {
    let identity = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    match (file.metadata(), std::fs::symlink_metadata(path)) {
        (Ok(held), Ok(named)) => identity(held) == identity(named),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_holds_it_and_nothing_stays_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.lock");
        let lock = Lock::take(&path).unwrap();
        assert!(Lock::try_take(&path).unwrap().is_none());
        lock.remove();
        assert!(!path.exists());
        assert!(Lock::try_take(&path).unwrap().is_some());
    }

    #[test]
    fn whoever_waited_for_a_file_that_is_gone_takes_the_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.lock");
        let first = Lock::take(&path).unwrap();
        let waiting = std::thread::spawn({
            let path = path.clone();
            move || Lock::take(&path).unwrap()
        });
        first.remove();
        let second = waiting.join().unwrap();
        assert!(is_current(&second.file, &path));
    }
}
