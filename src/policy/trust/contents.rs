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
    let mut file = open(path)?;
    let found = file.metadata().ok()?;
    if !found.is_file() {
        return None;
    }
    let mut digest = Sha256::new();
    let mut piece = vec![0u8; 64 << 10];
    let mut total = 0u64;
    while total < LONGEST {
        let read = file.read(&mut piece).ok()?;
        if read == 0 {
            break;
        }
        digest.update(piece.get(..read)?);
        total += read as u64;
    }
    if found.len() > LONGEST {
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
