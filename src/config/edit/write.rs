//! Atomic writes.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::EditError;
use crate::paths::{lock_within, read_file, real_target, target_inside};

/// How often to retry if another program writes the same file.
const ATTEMPTS: usize = 3;
/// How long another engine may take to change a file in the same folder.
const LOCK_LIMIT: Duration = Duration::from_secs(5);
/// The config files of other programs can contain much more than servers.
const MAX_BYTES: usize = 64 << 20;

#[derive(Debug, thiserror::Error)]
pub enum UpdateError {
    #[error("{0}")]
    Edit(#[from] EditError),
    #[error("cannot write {}: {cause}", path.display())]
    Io { path: PathBuf, cause: io::Error },
    #[error("cannot edit {}: it is not UTF-8", .0.display())]
    NotText(PathBuf),
    #[error("cannot edit {}: another program keeps changing it; try again", .0.display())]
    Busy(PathBuf),
}

/// Changes a config file. A missing file counts as empty, an unchanged file is not written, and concurrent changes by
/// others are not lost. A file of a project is only changed inside of its `repository`.
pub fn update(
    path: &Path,
    repository: Option<&Path>,
    change: impl Fn(&str) -> Result<String, EditError>,
) -> Result<(), UpdateError> {
    let failed = |cause| UpdateError::Io { path: path.to_path_buf(), cause };
    for _ in 0..ATTEMPTS {
        let target = match repository {
            Some(repository) => target_inside(path, repository),
            None => real_target(path),
        };
        let target = target.map_err(failed)?;
        let _lock = lock_folder_of(&target).map_err(failed)?;
        let before = read(&target).map_err(failed)?;
        let text = match &before {
            Some(bytes) => str::from_utf8(bytes).map_err(|_| UpdateError::NotText(path.to_path_buf()))?,
            None => "",
        };
        let after = change(text)?;
        if after == text {
            return Ok(());
        }
        let unchanged = || Ok(read(&target)? == before);
        if write_if(&target, &after, unchanged).map_err(failed)? {
            return Ok(());
        }
    }
    Err(UpdateError::Busy(path.to_path_buf()))
}

/// Held while a file is read, changed and replaced, so that two engines do not overwrite each other's change. The folder is
/// locked, because the file is replaced. `None` if there is no folder yet, or its file system cannot lock folders.
fn lock_folder_of(target: &Path) -> io::Result<Option<File>> {
    let Some(folder) = target.parent().and_then(|folder| File::open(folder).ok()) else { return Ok(None) };
    match lock_within(LOCK_LIMIT, target, || folder.try_lock()) {
        Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(error),
        locked => Ok(locked.ok().map(|()| folder)),
    }
}

/// Replaces the text of a file: writes a temporary file, syncs it, and renames it. Keeps the mode and symlinks, and
/// creates a missing folder.
pub fn write_atomically(path: &Path, text: &str) -> io::Result<()> {
    write_if(&real_target(path)?, text, || Ok(true)).map(|_| ())
}

fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    read_file(path, MAX_BYTES).map_err(io::Error::other)
}

/// Writes the file, unless `still` returns `false` right before the rename.
fn write_if(target: &Path, text: &str, still: impl Fn() -> io::Result<bool>) -> io::Result<bool> {
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(".mcp-sidecar-").suffix(".tmp");
    new_file_mode(&mut builder);
    let mut file = builder.tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    if let Ok(existing) = fs::metadata(target) {
        file.as_file().set_permissions(existing.permissions())?;
    }
    file.as_file().sync_all()?;
    if !still()? {
        return Ok(false);
    }
    file.persist(target).map_err(|error| error.error)?;
    sync_folder(folder)?;
    Ok(true)
}

/// A new file gets the default mode, reduced by the user's umask.
#[cfg(unix)]
fn new_file_mode(builder: &mut tempfile::Builder<'_, '_>) {
    use std::os::unix::fs::PermissionsExt;
    builder.permissions(fs::Permissions::from_mode(0o666));
}

#[cfg(not(unix))]
fn new_file_mode(_builder: &mut tempfile::Builder<'_, '_>) {}

/// Syncs the folder, so that the rename survives a power failure.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_folder: &Path) -> io::Result<()> {
    let _: Option<File> = None;
    Ok(())
}
