//! Hashes programs and scripts in the project: a pull can replace them without changing the config.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::real;
use crate::policy::compile::in_folder;
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

/// The program and all arguments that name a file in the project: name → digest.
pub fn programs(
    program: Option<&Path>,
    args: &[String],
    cwd: Option<&Path>,
    folder: Option<&Path>,
    project: &Path,
) -> BTreeMap<String, String> {
    let mut found: BTreeSet<PathBuf> = program.into_iter().map(Path::to_path_buf).collect();
    for argument in args {
        // Also `--import=./hook.js` and scripts in `sh -c`.
        let words = argument.split([' ', '=', ';', '\'', '"', ',']).chain([argument.as_str()]);
        for word in words.filter(|word| !word.is_empty() && word.len() < 4_096) {
            let Some(word) = filled(word, folder) else { continue };
            let Some(path) = in_folder(&word, cwd) else { continue };
            if path.is_file() && !is_data(&path) {
                found.insert(path);
            }
        }
    }
    found.iter().filter_map(|path| content(path, folder, project)).collect()
}

/// The name and digest of a file in the project. For a link out of the project, its target instead.
fn content(path: &Path, folder: Option<&Path>, project: &Path) -> Option<(String, String)> {
    let target = real(path);
    if let Ok(name) = target.strip_prefix(project) {
        let digest = digest_file(&target).unwrap_or_else(|| "(not readable)".to_owned());
        return Some((name.display().to_string(), digest));
    }
    let name = path.strip_prefix(project).ok().or_else(|| path.strip_prefix(folder?).ok())?;
    Some((name.display().to_string(), format!("leads to {}", target.display())))
}

fn filled(word: &str, folder: Option<&Path>) -> Option<String> {
    match folder {
        Some(folder) => Some(word.replace("${workspaceFolder}", folder.to_str()?)),
        None => Some(word.to_owned()),
    }
}

fn is_data(path: &Path) -> bool {
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
