//! Trust that lasts as long as this process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::policy::trust::{Fingerprint, TrustKey};

/// What is trusted for this session only, in all workspaces of this process. Cheap to clone; all clones share it. The
/// `std` lock is private to this file and never held over an await.
#[derive(Clone, Default)]
pub struct SessionTrust(Arc<Mutex<BTreeMap<TrustKey, Arc<Fingerprint>>>>);

impl SessionTrust {
    pub(super) fn lock(&self) -> MutexGuard<'_, BTreeMap<TrustKey, Arc<Fingerprint>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the same is trusted in any worktree of the repository.
    pub(super) fn trusts_anywhere(&self, key: &TrustKey, fingerprint: &Fingerprint) -> bool {
        self.lock().iter().any(|(other, known)| other.server == key.server && known.covers(fingerprint))
    }
}
