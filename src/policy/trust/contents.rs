//! Reads and hashes files of the project: a pull can replace them without changing the config.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::policy::pin::hex;

/// Of a larger file, only this much is hashed, plus its length and modification time.
const LONGEST: u64 = 256 << 20;
/// The size limit of an env file.
const SMALL: u64 = 1 << 20;

/// Files that a server writes, such as databases. They change with every use, so they cannot be pinned.
const DATA: [&str; 18] = [
    "db", "db3", "sqlite", "sqlite3", "duckdb", "log", "csv", "tsv", "jsonl", "ndjson", "parquet", "txt", "md", "pid",
    "sock", "lock", "png", "pdf",
];

/// The digest to show for a file.
pub fn content_of(path: &Path) -> String {
    digest_file(path).unwrap_or_else(|| "(not readable)".to_owned())
}

pub fn is_data(path: &Path) -> bool {
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase());
    extension.is_some_and(|extension| DATA.contains(&extension.as_str())) && !executable(path)
}

#[cfg(unix)]
fn executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|found| found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn executable(_path: &Path) -> bool {
    false
}

/// Reads a small text file, such as an env file.
pub fn read_small(path: &Path) -> Option<String> {
    let file = open(path)?;
    let small = file.metadata().ok().filter(|found| found.is_file() && found.len() <= SMALL)?;
    let mut text = String::with_capacity(usize::try_from(small.len()).ok()?);
    file.take(SMALL).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Digest of a regular file. `None` if it cannot be read.
pub fn digest_file(path: &Path) -> Option<String> {
    digest_start(path, LONGEST)
}

fn digest_start(path: &Path, longest: u64) -> Option<String> {
    let mut file = open(path)?;
    let found = file.metadata().ok()?;
    if !found.is_file() {
        return None;
    }
    let mut digest = Sha256::new();
    let mut piece = vec![0u8; 64 << 10];
    let mut total = 0u64;
    while total < longest {
        let read = file.read(&mut piece).ok()?;
        if read == 0 {
            break;
        }
        digest.update(piece.get(..read)?);
        total += read as u64;
    }
    if found.len() > longest {
        digest.update(format!("{} {:?}", found.len(), found.modified().ok()));
    }
    Some(format!("sha256 {}", hex(&digest.finalize())))
}

/// Non-blocking, because the file could be a FIFO.
#[cfg(unix)]
fn open(path: &Path) -> Option<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    File::options().read(true).custom_flags(flags).open(path).ok()
}

#[cfg(not(unix))]
fn open(path: &Path) -> Option<File> {
    File::open(path).ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn a_small_file_is_read_whole_and_a_large_one_not_at_all() {
        let keep = tempfile::tempdir().unwrap();
        let with = |size: u64| {
            let path = keep.path().join("file");
            fs::write(&path, "x".repeat(usize::try_from(size).unwrap())).unwrap();
            read_small(&path).map(|text| text.len() as u64)
        };
        assert_eq!((with(SMALL), with(SMALL + 1)), (Some(SMALL), None));
        assert_eq!((read_small(keep.path()), read_small(&keep.path().join("none"))), (None, None));
    }

    #[test]
    fn of_a_large_file_the_start_the_length_and_the_time_count() {
        let keep = tempfile::tempdir().unwrap();
        let path = keep.path().join("file");
        let digest = |text: &str, time: SystemTime| {
            fs::write(&path, text).unwrap();
            File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
            digest_start(&path, 64 << 10).unwrap()
        };
        let (start, time) = ("x".repeat(64 << 10), SystemTime::UNIX_EPOCH);
        let later = time + std::time::Duration::from_secs(1);
        assert_eq!(digest(&start, time), digest(&start, later), "a file that is not larger");
        let large = digest(&format!("{start}a"), time);
        assert_eq!(large, digest(&format!("{start}b"), time));
        assert_ne!(large, digest(&format!("{start}ab"), time));
        assert_ne!(large, digest(&format!("{start}a"), later));
        assert_eq!(digest_file(keep.path()), None);
    }

    #[cfg(unix)]
    #[test]
    fn data_is_recognized_by_its_ending_unless_it_is_executable() {
        use std::os::unix::fs::PermissionsExt;
        let keep = tempfile::tempdir().unwrap();
        let path = keep.path().join("notes.TXT");
        fs::write(&path, "").unwrap();
        assert!(is_data(&path) && !is_data(Path::new("txt")) && !is_data(Path::new("a.py")));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(!is_data(&path));
    }
}
