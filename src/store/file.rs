//! The files of the database: private to the user, made with care, and never overwritten when they are not ours.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::model::Timestamp;

/// The database and what stands beside it.
#[derive(Debug, Clone)]
pub struct Files {
    pub database: PathBuf,
    pub wal: PathBuf,
    shm: PathBuf,
    /// Grows by one byte with every decision of any engine.
    version: PathBuf,
    /// Held while a file is opened or set aside, so that two engines never do that at once.
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

    /// Makes folder and file, readable by nobody else, before SQLite would make them its own way.
    pub fn prepare(&self) -> io::Result<File> {
        if let Some(folder) = self.database.parent() {
            crate::paths::make_folder(folder)?;
        }
        self.make_private()?;
        let lock = private(OpenOptions::new().write(true).create(true)).open(&self.lock)?;
        lock.lock()?;
        Ok(lock)
    }

    /// Makes the file, empty, where there is none.
    pub fn make_private(&self) -> io::Result<()> {
        keep_private(&private(OpenOptions::new().write(true).create(true)).open(&self.database)?)
    }

    pub fn version(&self) -> u64 {
        fs::metadata(&self.version).map(|found| found.len()).unwrap_or(0)
    }

    /// Tells the other engines that there is a new decision.
    pub fn announce(&self) -> io::Result<()> {
        private(OpenOptions::new().append(true).create(true)).open(&self.version)?.write_all(b".")
    }

    /// Renames a file that cannot be used, with its log, and says where it went.
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

/// A file from elsewhere (a backup, an older tool) may have been left readable for others.
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
