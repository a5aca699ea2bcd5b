//! Which workspace folders count: those of all attached editors together; while there is no editor, those of the
//! agents. When the last front has gone, everything stays as it is until the engine leaves, too.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Engine;
use crate::policy::trust::real;

/// Whose folders they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claimant {
    Editor,
    Agent,
}

/// What each front says about its folders. Behind a `std` lock that is private to this file and never held over an
/// await.
#[derive(Default)]
pub struct Claims(Mutex<BTreeMap<u64, (Claimant, Vec<PathBuf>)>>);

/// One front's claim; dropping it takes the folders back.
pub struct Claim {
    engine: Engine,
    id: u64,
    claimant: Claimant,
}

impl Claims {
    /// The folders of all claims together, each once however it is spelled; `None` without a claim.
    fn union(&self) -> Option<Vec<PathBuf>> {
        let claims = self.lock();
        if claims.is_empty() {
            return None;
        }
        let of = |wanted: Claimant| {
            let mut seen = Vec::new();
            let mut folders = Vec::new();
            let all = claims.values().filter(|(claimant, _)| *claimant == wanted).flat_map(|(_, folders)| folders);
            for folder in all {
                let place = real(folder);
                if !seen.contains(&place) {
                    seen.push(place);
                    folders.push(folder.clone());
                }
            }
            folders
        };
        let of_editors = of(Claimant::Editor);
        Some(if of_editors.is_empty() { of(Claimant::Agent) } else { of_editors })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, (Claimant, Vec<PathBuf>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine {
    /// A front's place among those whose folders count.
    pub fn claim(&self, claimant: Claimant) -> Claim {
        let mut claims = self.0.claims.lock();
        let id = claims.last_key_value().map_or(0, |(last, _)| last + 1);
        claims.insert(id, (claimant, Vec::new()));
        Claim { engine: self.clone(), id, claimant }
    }

    /// Makes the folders those that are claimed. Claims may change meanwhile; whoever comes last sees the last ones.
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
    /// These are the front's folders now; answered when the engine knows their servers.
    pub async fn set(&self, folders: Vec<PathBuf>) {
        self.engine.0.claims.lock().insert(self.id, (self.claimant, folders));
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

    fn union(claims: &[(Claimant, &[&str])]) -> Option<Vec<String>> {
        let claims = claims
            .iter()
            .zip(0..)
            .map(|((claimant, folders), id)| (id, (*claimant, folders.iter().map(PathBuf::from).collect())));
        let union = Claims(Mutex::new(claims.collect())).union()?;
        Some(union.iter().map(|folder| folder.display().to_string()).collect())
    }

    #[test]
    fn editors_add_up_and_agents_count_only_without_them() {
        use Claimant::{Agent, Editor};
        assert_eq!(union(&[]), None);
        assert_eq!(union(&[(Agent, &["/a"]), (Agent, &["/a"])]).unwrap(), ["/a"]);
        assert_eq!(union(&[(Agent, &["/a"]), (Editor, &[])]).unwrap(), ["/a"]);
        assert_eq!(union(&[(Agent, &["/a"]), (Editor, &["/b"]), (Editor, &["/b", "/c"])]).unwrap(), ["/b", "/c"]);
    }
}
