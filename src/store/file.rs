//! The files of the database: private to the user, never overwritten if they are not ours, and restored if another program
//! deletes them while they are in use.
//!
//! SQLite does not notice that one of its files was deleted. Engines that open the database after that would use another
//! log than those that already have it open, which destroys it. So as long as the database is open, each of its files has a
//! second name (`.kept`), and every engine holds a shared lock that shows this.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::model::Timestamp;
use crate::paths::lock_within;

/// The database and the files next to it.
#[derive(Debug, Clone)]
pub struct Files {
    pub database: PathBuf,
    wal: PathBuf,
    shm: PathBuf,
    /// Grows by one byte with every decision of any engine.
    version: PathBuf,
    /// Held while a file is opened or moved, so that two engines never do that at once.
    lock: PathBuf,
    /// Every engine holds a shared lock on it while it has the database open.
    users: PathBuf,
}

/// Locks on the files of the database.
pub struct Prepared {
    /// Held until the database is open.
    _opening: File,
    pub in_use: InUse,
}

/// Held as long as the database is open.
pub struct InUse {
    _users: File,
}

/// Which files the names of the database stood for at some time; `None` if there was no file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identities {
    pub database: Option<Identity>,
    pub wal: Option<Identity>,
    pub shm: Option<Identity>,
}

/// Distinguishes a file from another one that replaced it under the same name.
type Identity = (u64, u64);

impl Identities {
    /// Whether another file now has one of the names.
    pub fn is_replaced_by(self, now: Self) -> bool {
        [(self.database, now.database), (self.wal, now.wal), (self.shm, now.shm)]
            .into_iter()
            .any(|(before, now)| now.is_some() && before != now)
    }
}

impl Files {
    pub fn new(database: &Path) -> Self {
        Self {
            database: database.to_path_buf(),
            wal: beside(database, "-wal"),
            shm: beside(database, "-shm"),
            version: beside(database, "-decisions"),
            lock: beside(database, "-lock"),
            users: beside(database, "-users"),
        }
    }

    /// Creates the folder and the file, readable only by the user, before SQLite does. Restores what was deleted while
    /// another engine uses it. Waits up to `wait` for another engine that is about to open the file.
    pub fn prepare(&self, wait: Duration) -> io::Result<Prepared> {
        if let Some(folder) = self.database.parent() {
            crate::paths::make_folder(folder)?;
            // The folder may be a link, but no one else may replace what is in it.
            crate::paths::make_private_folder(&folder.canonicalize()?)?;
        }
        let opening = open(&self.lock, OpenOptions::new().write(true).create(true))?;
        lock_within(wait, &self.lock, || opening.try_lock())?;
        let users = open(&self.users, OpenOptions::new().write(true).create(true))?;
        match users.try_lock() {
            // No one uses the database, so what is missing was not deleted while in use.
            Ok(()) => self.forget_kept(),
            Err(TryLockError::WouldBlock) => self.restore_deleted(),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // Only an engine that holds the lock above takes this one alone.
        lock_within(wait, &self.users, || users.try_lock_shared())?;
        self.make_private()?;
        Ok(Prepared { _opening: opening, in_use: InUse { _users: users } })
    }

    /// Creates an empty file if there is none.
    pub fn make_private(&self) -> io::Result<()> {
        keep_private(&open(&self.database, OpenOptions::new().write(true).create(true))?)
    }

    /// Writes a new database to the disk. There is no log where the file system cannot share one.
    pub fn flush(&self) -> io::Result<()> {
        [&self.wal, &self.database]
            .into_iter()
            .filter(|file| file.exists())
            .try_for_each(|file| OpenOptions::new().write(true).open(file)?.sync_data())
    }

    pub fn version(&self) -> u64 {
        fs::metadata(&self.version).map(|found| found.len()).unwrap_or(0)
    }

    /// Notifies other engines of a new decision.
    pub fn announce(&self) -> io::Result<()> {
        open(&self.version, OpenOptions::new().append(true).create(true))?.write_all(b".")
    }

    pub fn identities(&self) -> Identities {
        Identities { database: identity(&self.database), wal: identity(&self.wal), shm: identity(&self.shm) }
    }

    /// Gives the files of an open database second names, so that they can be restored.
    pub fn keep(&self) {
        for file in [&self.database, &self.wal, &self.shm] {
            let kept = kept(file);
            let is_link = fs::symlink_metadata(file).is_ok_and(|found| found.is_symlink());
            if is_link || identity(file) == identity(&kept) {
                continue;
            }
            fs::remove_file(&kept).ok();
            if let Err(error) = fs::hard_link(file, &kept) {
                tracing::debug!(%error, file = %file.display(), "it cannot be restored if it is deleted while in use");
            }
        }
    }

    /// Restores files of an open database that were deleted.
    pub fn restore_deleted(&self) {
        for file in [&self.database, &self.wal, &self.shm] {
            if fs::symlink_metadata(file).is_err() && fs::hard_link(kept(file), file).is_ok() {
                tracing::warn!(file = %file.display(), "restored a file that was deleted while it was in use");
            }
        }
    }

    fn forget_kept(&self) {
        for file in [&self.database, &self.wal, &self.shm] {
            fs::remove_file(kept(file)).ok();
        }
    }

    /// Removes the second names, unless another engine still uses the database. To be called after it was closed.
    pub fn release(&self, in_use: InUse) {
        drop(in_use);
        if let Ok(opening) = open(&self.lock, OpenOptions::new().write(true))
            && opening.try_lock().is_ok()
            && let Ok(users) = open(&self.users, OpenOptions::new().write(true))
            && users.try_lock().is_ok()
        {
            self.forget_kept();
        }
    }

    /// Removes the log of a database that was deleted or replaced: it must not be applied to another one.
    pub fn remove_log(&self, of: Identities) {
        for (file, known) in [(&self.wal, of.wal), (&self.shm, of.shm)] {
            if known.is_some() && identity(file) == known {
                fs::remove_file(file).ok();
            }
        }
    }

    /// Renames an unusable file and its log. Returns the new path.
    pub fn set_aside(&self) -> io::Result<PathBuf> {
        let aside = Self::new(&beside(&self.database, &format!(".broken-{}", Timestamp::now().unix_millis())));
        fs::rename(&self.database, &aside.database)?;
        for (from, to) in [(&self.wal, &aside.wal), (&self.shm, &aside.shm)] {
            match fs::rename(from, to) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        self.forget_kept();
        Ok(aside.database)
    }
}

fn beside(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// The second name of a file.
fn kept(file: &Path) -> PathBuf {
    beside(file, ".kept")
}

/// Opens one of our files, readable only by the user. Never blocks: another program may have put a FIFO there.
fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let odd = || io::Error::other(format!("{} is not a regular file; remove it", path.display()));
    let file = match private(options).open(path) {
        Ok(file) => file,
        Err(_) if fs::metadata(path).is_ok_and(|found| !found.is_file()) => return Err(odd()),
        Err(error) => return Err(error),
    };
    if file.metadata()?.is_file() { Ok(file) } else { Err(odd()) }
}

#[cfg(unix)]
fn identity(path: &Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

/// Where an open file cannot be deleted, it is enough to know whether there is one.
#[cfg(not(unix))]
fn identity(path: &Path) -> Option<Identity> {
    fs::metadata(path).ok().map(|_| (0, 0))
}

#[cfg(unix)]
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    options.mode(0o600).custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
}

/// A file from a backup or an older tool may be readable for others.
#[cfg(unix)]
fn keep_private(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let found = file.metadata()?.permissions().mode();
    if found & 0o077 == 0 { Ok(()) } else { file.set_permissions(fs::Permissions::from_mode(0o600)) }
}

#[cfg(not(unix))]
fn keep_private(_file: &File) -> io::Result<()> {
    Ok(())
}

#[cfg(not(unix))]
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_without_a_log_can_be_written_to_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let files = Files::new(&folder.path().join("state.db"));
        files.make_private().unwrap();
        files.flush().unwrap();
    }
}
