//! Which workspace folders are in effect: those of all attached editors, or without an editor those of the agents, or
//! without an agent those of shell commands. When the last front disconnects, the folders stay until the engine exits.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Engine;
use crate::paths::canonical;

/// The kind of front that opened the folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimedBy {
    Editor,
    Agent,
    Shell,
}

/// The folders of each front. The `std` lock is private to this file and never held over an await.
#[derive(Default)]
pub struct Claims(Mutex<BTreeMap<u64, (ClaimedBy, Vec<PathBuf>)>>);

/// The folders of one front. Dropping it removes them.
pub struct Claim {
    engine: Engine,
    id: u64,
    claimed_by: ClaimedBy,
}

impl Claims {
    /// The folders of all claims without duplicates, compared by canonical path. `None` if there are no claims.
    fn union(&self) -> Option<Vec<PathBuf>> {
        let claims = self.lock();
        if claims.is_empty() {
            return None;
        }
        let of = |wanted: ClaimedBy| {
            let mut seen = Vec::new();
            let mut folders = Vec::new();
            let all = claims.values().filter(|(claimed_by, _)| *claimed_by == wanted).flat_map(|(_, folders)| folders);
            for folder in all {
                let place = canonical(folder);
                if !seen.contains(&place) {
                    seen.push(place);
                    folders.push(folder.clone());
                }
            }
            folders
        };
        let by_rank = [ClaimedBy::Editor, ClaimedBy::Agent, ClaimedBy::Shell].map(of);
        Some(by_rank.into_iter().find(|folders| !folders.is_empty()).unwrap_or_default())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, (ClaimedBy, Vec<PathBuf>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine {
    /// Registers a front, with no folders yet.
    pub fn claim(&self, claimed_by: ClaimedBy) -> Claim {
        let mut claims = self.0.claims.lock();
        let id = claims.last_key_value().map_or(0, |(last, _)| last + 1);
        claims.insert(id, (claimed_by, Vec::new()));
        Claim { engine: self.clone(), id, claimed_by }
    }

    /// Applies the claimed folders. If the claims change in between, applies them again.
    async fn settle_folders(&self) {
        while let Some(wanted) = self.0.claims.union() {
            self.set_folders(wanted.clone()).await;
            if self.0.claims.union().is_none_or(|union| union == wanted) {
                return;
            }
        }
    }
}

impl Claim {
    /// Sets the front's folders. Returns when the engine knows their servers.
    pub async fn set(&self, folders: Vec<PathBuf>) {
        self.engine.0.claims.lock().insert(self.id, (self.claimed_by, folders));
        self.engine.settle_folders().await;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.engine.0.claims.lock().remove(&self.id);
        let Some(union) = self.engine.0.claims.union() else { return };
        let settled: Vec<PathBuf> = self.engine.0.folders.borrow().iter().map(|folder| folder.to_path_buf()).collect();
        if let (true, Ok(runtime)) = (union != settled, tokio::runtime::Handle::try_current()) {
            let engine = self.engine.clone();
            runtime.spawn(async move { engine.settle_folders().await });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn union(claims: &[(ClaimedBy, &[&str])]) -> Option<Vec<String>> {
        let claims = claims
            .iter()
            .zip(0..)
            .map(|((claimed_by, folders), id)| (id, (*claimed_by, folders.iter().map(PathBuf::from).collect())));
        let union = Claims(Mutex::new(claims.collect())).union()?;
        Some(union.iter().map(|folder| folder.display().to_string()).collect())
    }

    #[test]
    fn editors_are_merged_and_agents_and_shells_count_only_without_them() {
        use ClaimedBy::{Agent, Editor, Shell};
        assert_eq!(union(&[]), None);
        assert_eq!(union(&[(Agent, &["/a"]), (Agent, &["/a"])]).unwrap(), ["/a"]);
        assert_eq!(union(&[(Agent, &["/a"]), (Editor, &[])]).unwrap(), ["/a"]);
        assert_eq!(union(&[(Shell, &["/b"]), (Agent, &["/a"])]).unwrap(), ["/a"]);
        assert_eq!(union(&[(Shell, &["/b"])]).unwrap(), ["/b"]);
        assert_eq!(union(&[(Agent, &["/a"]), (Editor, &["/b"]), (Editor, &["/b", "/c"])]).unwrap(), ["/b", "/c"]);
    }
}
