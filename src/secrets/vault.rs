//! Small private files that are replaced as a whole under a lock: the list of names, and the values if there is no
//! keyring.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::text::Secret;

type Result<T> = std::result::Result<T, (PathBuf, io::Error)>;

/// The names of all saved values.
pub struct Names(JsonFile);

/// Values by name, readable by the user only. Used only if the user allows it.
pub struct FileVault(JsonFile);

impl Names {
    pub fn new(folder: &Path) -> Self {
        Self(JsonFile::new(folder, "secrets.names"))
    }

    pub fn list(&self) -> Result<Vec<String>> {
        Ok(self.0.read::<BTreeSet<String>>()?.into_iter().collect())
    }

    pub fn add(&self, name: &str) -> Result<()> {
        self.0.change(|names: &mut BTreeSet<String>| names.insert(name.to_owned()))
    }

    pub fn remove(&self, name: &str) -> Result<()> {
        self.0.change(|names: &mut BTreeSet<String>| names.remove(name))
    }
}

impl FileVault {
    pub fn new(folder: &Path) -> Self {
        Self(JsonFile::new(folder, "secrets.json"))
    }

    pub fn path(&self) -> &Path {
        &self.0.path
    }

    pub fn get(&self, name: &str) -> Result<Option<String>> {
        Ok(self.0.read::<BTreeMap<String, String>>()?.remove(name))
    }

    /// Saves or removes a value.
    pub fn set(&self, name: &str, value: Option<&Secret>) -> Result<()> {
        self.0.change(|values: &mut BTreeMap<String, String>| match value {
            Some(value) => values.insert(name.to_owned(), value.reveal().to_owned()).as_deref() != Some(value.reveal()),
            None => values.remove(name).is_some(),
        })
    }
}

/// A small JSON file that is replaced as a whole.
struct JsonFile {
    path: PathBuf,
    lock: PathBuf,
}

impl JsonFile {
    fn new(folder: &Path, name: &str) -> Self {
        Self { path: folder.join(name), lock: folder.join("secrets.lock") }
    }

    fn read<T: DeserializeOwned + Default>(&self) -> Result<T> {
        match fs::read(&self.path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| self.failed(error.into())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(T::default()),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Reads, changes and replaces the file while holding the lock. `change` returns whether it changed anything.
    fn change<T>(&self, change: impl FnOnce(&mut T) -> bool) -> Result<()>
    where
        T: DeserializeOwned + Serialize + Default,
    {
        let _lock = self.locked().map_err(|error| self.failed(error))?;
        let mut value = self.read::<T>()?;
        if !change(&mut value) {
            return Ok(());
        }
        self.replace(&value).map_err(|error| self.failed(error))
    }

    fn locked(&self) -> io::Result<File> {
        if let Some(folder) = self.path.parent() {
            crate::paths::make_folder(folder)?;
        }
        let mut options = OpenOptions::new();
        options.write(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let lock = options.open(&self.lock)?;
        lock.lock()?;
        Ok(lock)
    }

    /// Renames a new file over the old one, so that a reader never sees a partial file. The new file is private from
    /// the start and has a random name.
    fn replace<T: Serialize>(&self, value: &T) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(&serde_json::to_vec_pretty(value)?)?;
        file.as_file().sync_all()?;
        file.persist(&self.path)?;
        Ok(())
    }

    fn failed(&self, error: io::Error) -> (PathBuf, io::Error) {
        (self.path.clone(), error)
    }
}
