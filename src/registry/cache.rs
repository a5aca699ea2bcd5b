//! The last answers of the registry, as files. They are used while they are fresh, and if the registry cannot be reached.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use url::Url;

use super::client::MAX_BYTES;
use crate::model::Timestamp;
use crate::paths::{make_private_folder, read_file};

/// How long an answer is used without asking again: for the steps of one `add`.
const FRESH: i64 = 5 * 60 * 1000;
const MAX_FILES: usize = 50;

#[derive(Debug, Clone)]
pub struct Cache {
    folder: PathBuf,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CachedResponse {
    url: String,
    pub fetched: Timestamp,
    pub body: String,
}

impl CachedResponse {
    pub fn is_fresh(&self) -> bool {
        let age = Timestamp::now().unix_millis() - self.fetched.unix_millis();
        (0..FRESH).contains(&age)
    }
}

impl Cache {
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    pub async fn get(&self, url: &Url) -> Option<CachedResponse> {
        let (file, url) = (self.file(url), url.to_string());
        // JSON escapes can double the size.
        let read = move || read_file(&file, 2 * MAX_BYTES + 4096).ok().flatten();
        let bytes = tokio::task::spawn_blocking(read).await.ok()??;
        serde_json::from_slice::<CachedResponse>(&bytes).ok().filter(|kept| kept.url == url)
    }

    /// A cache that cannot be written is only slower.
    pub async fn put(&self, url: &Url, body: &str) {
        let kept = CachedResponse { url: url.to_string(), fetched: Timestamp::now(), body: body.to_owned() };
        let (folder, file) = (self.folder.clone(), self.file(url));
        let written = tokio::task::spawn_blocking(move || write(&folder, &file, &kept)).await;
        if let Ok(Err(error)) = written {
            tracing::debug!(%error, "cannot keep an answer of the registry");
        }
    }

    fn file(&self, url: &Url) -> PathBuf {
        let digest = Sha256::digest(url.as_str());
        let name: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        self.folder.join(format!("{name}.json"))
    }
}

fn write(folder: &Path, file: &Path, kept: &CachedResponse) -> std::io::Result<()> {
    make_private_folder(folder)?;
    let mut new = tempfile::NamedTempFile::new_in(folder)?;
    new.write_all(&serde_json::to_vec(kept)?)?;
    new.persist(file)?;
    let mut files: Vec<_> = fs::read_dir(folder)?
        .flatten()
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    files.sort();
    let surplus = files.len().saturating_sub(MAX_FILES);
    files.into_iter().take(surplus).for_each(|(_, path)| drop(fs::remove_file(path)));
    Ok(())
}
