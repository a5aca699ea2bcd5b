//! Unpacks an archive of a stranger: only files and folders, only below one folder, and not more than fits.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

use zip::ZipArchive;

use crate::paths::{make_folder, make_private_folder};
use crate::text::{io_reason, one_line};

const MAX_ENTRIES: usize = 50_000;
/// Counted while unpacking: an archive can lie about sizes.
pub const MAX_BYTES: u64 = 1 << 30;

/// Everything or nothing: the folder gets its name at the end.
pub fn unpack(archive: &mut ZipArchive<&mut File>, folder: &Path, place: &Path) -> Result<(), String> {
    let failed = |error: io::Error| io_reason(&error);
    make_private_folder(folder).map_err(failed)?;
    let new = tempfile::Builder::new().prefix("new-").tempdir_in(folder).map_err(failed)?;
    all(archive, new.path(), MAX_BYTES)?;
    match fs::rename(new.path(), place) {
        Ok(()) => {
            // It has moved, so there is nothing to remove.
            let _ = new.keep();
            Ok(())
        }
        Err(_) if place.is_dir() => Ok(()),
        Err(error) => Err(failed(error)),
    }
}

pub(super) fn all(archive: &mut ZipArchive<&mut File>, to: &Path, limit: u64) -> Result<(), String> {
    if archive.len() > MAX_ENTRIES {
        return Err(format!("it has more than {MAX_ENTRIES} files"));
    }
    let too_large = || format!("it unpacks to more than {} MiB", limit >> 20);
    // What it says itself, so that nothing is written in vain.
    if archive.decompressed_size().is_some_and(|size| size > u128::from(limit)) {
        return Err(too_large());
    }
    let mut left = limit;
    for index in 0..archive.len() {
        let entry = archive.by_index(index).map_err(|_| "one of its files cannot be read".to_owned())?;
        let name = entry.name().map(|name| name.into_owned()).unwrap_or_default();
        let shown = one_line(&name, 100);
        let is_odd = name.starts_with('/') || name.contains('\\') || name.chars().any(char::is_control);
        let inside = entry.enclosed_name().filter(|path| !is_odd && path.components().next().is_some());
        let Some(inside) = inside else { return Err(format!("`{shown}` is outside of its folder")) };
        if entry.is_symlink() {
            return Err(format!("`{shown}` is a link"));
        }
        let path = to.join(inside);
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::InvalidData => format!("`{shown}` is damaged, or larger than declared"),
            _ => format!("`{shown}`: {}", io_reason(&error)),
        };
        if entry.is_dir() {
            make_folder(&path).map_err(failed)?;
            continue;
        }
        if let Some(parent) = path.parent() {
            make_folder(parent).map_err(failed)?;
        }
        let is_program = entry.unix_mode().is_some_and(|mode| mode & 0o111 != 0);
        // An entry never replaces another one.
        let mut file = options(is_program).open(&path).map_err(failed)?;
        let written = io::copy(&mut entry.take(left + 1), &mut file).map_err(failed)?;
        left = left.checked_sub(written).ok_or_else(too_large)?;
    }
    Ok(())
}

fn options(is_program: bool) -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, if is_program { 0o755 } else { 0o644 });
    #[cfg(not(unix))]
    let _ = is_program;
    options
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, Write};

    use super::*;

    /// A file of zeros. A stream does not say its size at the beginning.
    fn zeros(size: usize) -> File {
        let mut file = tempfile::tempfile().unwrap();
        let mut zip = zip::ZipWriter::new_stream(&mut file);
        zip.start_file("zeros", zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(&vec![0; size]).unwrap();
        zip.finish().unwrap();
        file.rewind().unwrap();
        file
    }

    /// The same, but it says everywhere that it has only one byte.
    fn liar(size: usize) -> File {
        let mut file = zeros(size);
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        let size = u32::try_from(size).unwrap().to_le_bytes();
        for at in 0..bytes.len() - 4 {
            if bytes[at..at + 4] == size {
                bytes[at..at + 4].copy_from_slice(&1u32.to_le_bytes());
            }
        }
        file.rewind().unwrap();
        file.write_all(&bytes).unwrap();
        file.rewind().unwrap();
        file
    }

    #[test]
    fn an_archive_that_lies_about_its_size_is_stopped_at_the_limit() {
        for (mut file, expected) in [(zeros(8 << 20), "more than 1 MiB"), (liar(8 << 20), "")] {
            let folder = tempfile::tempdir().unwrap();
            let error = all(&mut ZipArchive::new(&mut file).unwrap(), folder.path(), 1 << 20).unwrap_err();
            assert!(error.contains(expected), "{error}");
            let written = std::fs::metadata(folder.path().join("zeros")).unwrap().len();
            assert!(written <= (1 << 20) + 1, "{written}");
        }
    }
}
