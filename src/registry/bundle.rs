//! Bundles: `.mcpb` files, which are zip archives with a `manifest.json` and the files of a server.

mod manifest;
mod unpack;

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use zip::ZipArchive;

use super::Offer;
use crate::model::{Error, Result};
use crate::text::{io_reason, one_line};

pub const MAX_FILE: u64 = 256 << 20;
const MAX_MANIFEST: u64 = 1 << 20;

/// A bundle as the user sees it before it is unpacked.
#[derive(Debug, Clone, PartialEq)]
pub struct Bundle {
    pub offer: Offer,
    /// Of the whole file, so that exactly this one is unpacked.
    pub sha256: String,
}

/// Reads the manifest. Nothing is unpacked: `folder` is where that would happen.
pub fn read(path: &Path, folder: &Path) -> Result<Bundle> {
    let (mut copy, sha256) = copied(path)?;
    let mut archive = open(&mut copy)?;
    let text = {
        let entry = archive.by_name("manifest.json").map_err(|_| invalid("it has no manifest.json"))?;
        let mut text = String::new();
        entry.take(MAX_MANIFEST + 1).read_to_string(&mut text).map_err(|_| invalid("its manifest.json is not text"))?;
        text
    };
    if text.len() as u64 > MAX_MANIFEST {
        return Err(invalid("its manifest.json is larger than 1 MiB"));
    }
    let has = |name: &str| archive.index_for_name(name).is_some();
    let offer = manifest::offer(&text, &place(folder, &sha256), has).map_err(|why| invalid(&why))?;
    Ok(Bundle { offer, sha256 })
}

/// Unpacks the file with this digest, unless that was done before.
pub fn unpack(path: &Path, folder: &Path, sha256: &str) -> Result<PathBuf> {
    let (mut copy, found) = copied(path)?;
    if found != sha256 {
        return Err(Error::Conflict("the bundle has changed since you saw what it runs".to_owned()));
    }
    let place = place(folder, &found);
    if !place.is_dir() {
        unpack::unpack(&mut open(&mut copy)?, folder, &place).map_err(|why| invalid(&why))?;
    }
    Ok(place)
}

/// The same file is always in the same place.
fn place(folder: &Path, sha256: &str) -> PathBuf {
    folder.join(sha256.get(..32).unwrap_or(sha256))
}

fn open(file: &mut File) -> Result<ZipArchive<&mut File>> {
    ZipArchive::new(file).map_err(|_| invalid("it is not a zip archive"))
}

/// A private copy and its digest: the file itself could change while it is read.
fn copied(path: &Path) -> Result<(File, String)> {
    let failed = |error: std::io::Error| {
        Error::Io(format!("cannot read {}: {}", one_line(&path.display().to_string(), 400), io_reason(&error)))
    };
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() || metadata.len() > MAX_FILE {
        return Err(invalid("it is not a file, or larger than 256 MiB"));
    }
    let mut source = file.take(MAX_FILE + 1);
    let mut copy = tempfile::tempfile().map_err(failed)?;
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        let count = source.read(&mut buffer).map_err(failed)?;
        let Some(bytes) = buffer.get(..count).filter(|bytes| !bytes.is_empty()) else { break };
        digest.update(bytes);
        copy.write_all(bytes).map_err(failed)?;
    }
    copy.seek(SeekFrom::Start(0)).map_err(failed)?;
    Ok((copy, digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()))
}

fn invalid(why: &str) -> Error {
    Error::InvalidParams(format!("this is not a usable bundle: {why}"))
}
