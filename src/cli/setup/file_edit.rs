//! A planned change of one file, with a backup of what was there.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;

use crate::config::edit::write_atomically;
use crate::config::interop::setup::SetupError;
use crate::config::{Content, watch};

/// The largest config file that is read. Settings of other programs contain more than servers.
const LARGEST: usize = 32 << 20;
/// More backups than anyone keeps.
const MAX_BACKUPS: usize = 1000;

pub(super) struct FileEdit {
    pub path: PathBuf,
    before: Option<Arc<str>>,
    after: String,
}

/// The text of a file, if it exists.
pub(super) fn read(path: &Path) -> anyhow::Result<Option<Arc<str>>> {
    match watch::read(path, LARGEST) {
        Content::Text(text) => Ok(Some(text)),
        Content::Absent | Content::Gone => Ok(None),
        Content::Unreadable(reason) => anyhow::bail!("cannot read {}: {reason}", path.display()),
    }
}

impl FileEdit {
    pub fn plan(path: &Path, change: impl FnOnce(&str) -> Result<String, SetupError>) -> anyhow::Result<Self> {
        let before = read(path)?;
        let after = change(before.as_deref().unwrap_or_default());
        let after = after.with_context(|| format!("cannot edit {}", path.display()))?;
        Ok(Self { path: path.to_path_buf(), before, after })
    }

    pub fn changes(&self) -> bool {
        self.after != self.text()
    }

    fn text(&self) -> &str {
        self.before.as_deref().unwrap_or_default()
    }

    /// Writes the file if it changes. Returns the backup.
    pub fn write(&self) -> anyhow::Result<Option<PathBuf>> {
        if !self.changes() {
            return Ok(None);
        }
        let backup = self.before.as_ref().map(|text| back_up(&self.path, text)).transpose()?;
        write_atomically(&self.path, &self.after).with_context(|| format!("cannot write {}", self.path.display()))?;
        Ok(backup)
    }

    /// The changed text, without context: the rest of the file belongs to other servers and may contain their secrets, even
    /// on the same line.
    pub fn diff(&self) -> String {
        if !self.changes() {
            return String::new();
        }
        let (before, after) = (self.text(), self.after.as_str());
        let start = before.bytes().zip(after.bytes()).take_while(|(old, new)| old == new).count();
        let start = before.floor_char_boundary(start);
        let (old, new) = (before.get(start..).unwrap_or_default(), after.get(start..).unwrap_or_default());
        let end = old.bytes().rev().zip(new.bytes().rev()).take_while(|(old, new)| old == new).count();
        let mut shown = format!("--- {0}\n+++ {0}\n", self.path.display());
        for (sign, text) in [('-', old), ('+', new)] {
            let changed = text.get(..text.ceil_char_boundary(text.len() - end)).unwrap_or_default();
            for line in changed.lines() {
                shown.push_str(&format!("{sign}{line}\n"));
            }
        }
        shown
    }
}

/// Saves a backup next to the file, as `.bak`, or as `.bak.1` and so on. An existing backup is never replaced: the first
/// one is what the user had before mcp-sidecar.
fn back_up(path: &Path, text: &str) -> anyhow::Result<PathBuf> {
    let folder = path.parent().context("the config file has no parent folder")?;
    let write = |backup: &Path| -> io::Result<()> {
        // Readable only for the user at first: the file may contain secrets.
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(text.as_bytes())?;
        file.as_file().set_permissions(std::fs::metadata(path)?.permissions())?;
        file.as_file().sync_all()?;
        file.persist_noclobber(backup).map(|_| ()).map_err(|error| error.error)
    };
    for number in 0..MAX_BACKUPS {
        let mut name: OsString = path.file_name().unwrap_or_default().to_os_string();
        name.push(if number == 0 { ".bak".to_owned() } else { format!(".bak.{number}") });
        let backup = path.with_file_name(name);
        match write(&backup) {
            Ok(()) => return Ok(backup),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).with_context(|| format!("cannot write {}", backup.display())),
        }
    }
    anyhow::bail!("{} has too many backups; remove some", path.display())
}
