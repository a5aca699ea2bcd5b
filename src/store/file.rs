//! The files of the database: private to the user, and never overwritten if they are not ours.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::model::Timestamp;

/// The database and the files next to it.
#[derive(Debug, Clone)]
pub struct Files {
    pub database: PathBuf,
    pub wal: PathBuf,
    shm: PathBuf,
    /// Grows by one byte with every decision of any engine.
    version: PathBuf,
    /// Held while a file is opened or moved, so that two engines never do that at once.
    lock: PathBuf,
}

impl Files {
    pub fn new(database: &Path) -> Self {
        let beside = |suffix: &str| {
            let mut name = database.as_os_str().to_owned();
            name.push(suffix);
            PathBuf::from(name)
        };
        Self {
            database: database.to_path_buf(),
            wal: beside("-wal"),
            shm: beside("-shm"),
            version: beside("-decisions"),
            lock: beside("-lock"),
        }
    }

    /// Creates the folder and the file, readable only by the user, before SQLite does.
    pub fn prepare(&self) -> io::Result<File> {
        if let Some(folder) = self.database.parent() {
            crate::paths::make_folder(folder)?;
            // The folder may be a link, but no one else may replace what is in it.
            crate::paths::make_private_folder(&folder.canonicalize()?)?;
        }
        self.make_private()?;
        let lock = private(OpenOptions::new().write(true).create(true)).open(&self.lock)?;
        lock.lock()?;
        Ok(lock)
    }

    /// Creates an empty file if there is none.
    pub fn make_private(&self) -> io::Result<()> {
        keep_private(&private(OpenOptions::new().write(true).create(true)).open(&self.database)?)
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
        private(OpenOptions::new().append(true).create(true)).open(&self.version)?.write_all(b".")
    }

    /// Renames an unusable file and its log. Returns the new path.
    pub fn set_aside(&self) -> io::Result<PathBuf> {
        let aside = Self::new(&{
            let mut name = self.database.as_os_str().to_owned();
            name.push(format!(".broken-{}", Timestamp::now().unix_millis()));
            PathBuf::from(name)
        });
        fs::rename(&self.database, &aside.database)?;
        for (from, to) in [(&self.wal, &aside.wal), (&self.shm, &aside.shm)] {
            match fs::rename(from, to) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(aside.database)
    }
}

#[cfg(unix)]
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    options.mode(0o600)
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
