//! A lock, so that only one process starts or stops the engine of a workspace at a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::paths::lock_within;

/// Longer than an engine takes to start on a busy machine.
const LIMIT: Duration = Duration::from_secs(20);

/// A lock that is held. It is released if the process ends.
pub struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// Waits for the lock. Another front holds it no longer than an engine takes to start.
    pub fn take(path: &Path) -> io::Result<Self> {
        Self::take_within(path, LIMIT)
    }

    fn take_within(path: &Path, limit: Duration) -> io::Result<Self> {
        loop {
            let file = open(path)?;
            lock_within(limit, path, || file.try_lock())?;
            // The previous owner may have removed the file while we waited.
            if is_current(&file, path) {
                return Ok(Self { file, path: path.to_owned() });
            }
        }
    }

    /// Takes the lock if it is free.
    pub fn try_take(path: &Path) -> io::Result<Option<Self>> {
        let file = open(path)?;
        match file.try_lock() {
            Ok(()) if is_current(&file, path) => Ok(Some(Self { file, path: path.to_owned() })),
            Ok(()) | Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Releases the lock and removes its file.
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
    fn the_lock_is_exclusive_and_its_file_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.lock");
        let lock = Lock::take(&path).unwrap();
        assert!(Lock::try_take(&path).unwrap().is_none());
        lock.remove();
        assert!(!path.exists());
        assert!(Lock::try_take(&path).unwrap().is_some());
    }

    #[test]
    fn a_lock_that_is_never_released_is_not_waited_for_without_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.lock");
        let _held = Lock::take(&path).unwrap();
        let error = Lock::take_within(&path, Duration::from_millis(30)).err().unwrap().to_string();
        assert!(error.contains("another program has locked") && error.contains("x.lock"), "{error}");
    }

    #[test]
    fn a_waiter_for_a_removed_file_locks_the_new_one() {
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
