//! A lock between processes for one saved value: an empty file in the state folder.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::model::{Error, Result};

/// How long to wait for another process. It holds the lock for one exchange with a server.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Held until it is dropped, or until the process ends.
#[derive(Debug)]
pub struct EntryLock(#[expect(dead_code, reason = "only its end matters")] File);

/// Takes the lock of a name. `None` if the folder cannot hold a lock: then there is nothing to coordinate with.
pub async fn lock(folder: &Path, name: &str) -> Result<Option<EntryLock>> {
    let path = path(folder, name);
    // The wait may outlast the caller: the file is closed as soon as the thread has it.
    let waiting = tokio::task::spawn_blocking(move || take(&path));
    match tokio::time::timeout(TIMEOUT, waiting).await {
        Ok(Ok(Ok(file))) => Ok(Some(EntryLock(file))),
        Ok(Ok(Err(error))) => {
            tracing::warn!(%error, "cannot lock a saved value; another process may change it at the same time");
            Ok(None)
        }
        Ok(Err(_)) => Ok(None),
        Err(_) => {
            let seconds = TIMEOUT.as_secs();
            Err(Error::Io(format!("another mcp-sidecar process has used this sign-in for {seconds} s; try again")))
        }
    }
}

/// The name may contain a URL, so it is not the name of the file.
fn path(folder: &Path, name: &str) -> PathBuf {
    let digest = Sha256::digest(name);
    let digest: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    folder.join("locks").join(format!("{digest}.lock"))
}

fn take(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        crate::paths::make_folder(folder)?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    file.lock()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[tokio::test]
    async fn a_name_is_locked_for_others_until_the_lock_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let held = lock(folder.path(), "oauth https://a.example").await.unwrap().unwrap();
        assert!(lock(folder.path(), "oauth https://b.example").await.unwrap().is_some(), "another name is free");
        let mut waiting = Box::pin(lock(folder.path(), "oauth https://a.example"));
        assert!((&mut waiting).now_or_never().is_none());
        drop(held);
        assert!(waiting.await.unwrap().is_some());
    }
}
