//! A tripwire for the user's own config: a launch that was changed neither through us nor in an attached editor starts
//! only after the user was asked whether they changed it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::super::Engine;
use super::{TrustChecker, Verdict};
use crate::config::{Definition, Environment, Loaded};
use crate::model::Decision;
use crate::policy::trust::{self, Fingerprint, Question, TrustKey, TrustRecord};
use crate::store::Store;

/// How long a new launch waits before the user is asked. An editor reports that it has saved a file after the file has
/// changed, and the engine of another workspace may record the change.
const GRACE: Duration = Duration::from_secs(1);
const GRACE_STEP: Duration = Duration::from_millis(50);
/// How often to check whether the user has answered in another workspace.
const ELSEWHERE_INTERVAL: Duration = Duration::from_secs(1);
/// How long an answer in another workspace may take to be noticed.
pub(super) const ELSEWHERE_GRACE: Duration = Duration::from_secs(3);

type Launches = BTreeMap<TrustKey, Arc<Fingerprint>>;

impl TrustChecker {
    /// Whether a server of the user must wait, because its launch is not known. `None` if it may start.
    pub(super) async fn check_own_launch(
        &self,
        definition: &Arc<Definition>,
        environment: &Environment,
        ask_again: bool,
    ) -> Option<Verdict> {
        let (key, fingerprint) = trust::own_launch(definition)?;
        self.known_launches.get_or_init(|| self.record_existing_launches()).await;
        let end = Instant::now() + GRACE;
        let record = loop {
            if self.is_expected(&key, &fingerprint) {
                self.decide(&key, &fingerprint, Decision::AllowProject).await;
                return None;
            }
            let record = self.trust_record(&key).await.unwrap_or_default();
            if record.trusted.as_ref().is_some_and(|known| known.covers(&fingerprint)) {
                return None;
            }
            let is_denied = record.denied.as_deref() == Some(&*fingerprint.digest);
            if is_denied && !ask_again {
                return Some(Verdict::Refused(fingerprint));
            }
            if ask_again || self.find_shown(&key, &fingerprint.shown_digest()).is_some() || Instant::now() >= end {
                break record;
            }
            tokio::time::sleep(GRACE_STEP).await;
        };
        self.remember_shown(&key, &fingerprint);
        let question = Question::about_own_launch(key, fingerprint, &record, definition, environment);
        Some(Verdict::Ask(Box::new(question)))
    }

    /// The launch that the user must still decide about.
    pub(super) async fn undecided_launch(&self, definition: &Definition) -> Option<(TrustKey, Arc<Fingerprint>)> {
        let (key, fingerprint) = trust::own_launch(definition)?;
        let record = self.trust_record(&key).await.unwrap_or_default();
        let is_known = record.trusted.is_some_and(|known| known.covers(&fingerprint));
        (!is_known).then_some((key, fingerprint))
    }

    /// A file of which nothing was ever recorded is new on this machine, or from a version that recorded nothing. Asking
    /// about each of its servers would teach the user to agree without reading, so all of them count as known.
    async fn record_existing_launches(&self) {
        let loaded = self.loaded.borrow().clone();
        for file in &loaded.files {
            record_launches(&self.store, &loaded, &file.source.path, &file.text, &Launches::new()).await;
        }
    }

    /// The user makes this change, so it asks nothing. A launch that they were asked about is not answered by this: it
    /// may be in the file because another program wrote it.
    fn expect_launches(&self, mut launches: Launches) {
        launches.retain(|key, new| self.find_shown(key, &new.shown_digest()).is_none());
        self.expected.lock().unwrap_or_else(PoisonError::into_inner).extend(launches);
    }

    /// Waits until the user has decided about a launch in another workspace.
    pub(super) fn answered_elsewhere(&self, question: &Question) -> impl Future<Output = Decision> + use<> {
        let (store, key, fingerprint) = (self.store.clone(), question.key.clone(), question.fingerprint.clone());
        let was_denied = question.was_denied;
        async move {
            // The answer may have come between the check and this question.
            loop {
                let TrustRecord { trusted, denied } =
                    store.decisions().await.trust.get(&key).cloned().unwrap_or_default();
                if trusted.is_some_and(|known| known.covers(&fingerprint)) {
                    return Decision::AllowProject;
                }
                if !was_denied && denied.as_deref() == Some(&*fingerprint.digest) {
                    return Decision::Deny;
                }
                tokio::time::sleep(ELSEWHERE_INTERVAL).await;
            }
        }
    }
}

impl Engine {
    /// The user has saved a config file with this text in an editor.
    pub fn saved_in_editor(&self, path: &Path, text: &str) {
        let loaded = self.loaded().borrow().clone();
        if let Some(file) = loaded.file(path) {
            self.0.trust_checker.expect_launches(trust::own_launches(&file.source, text));
        }
    }

    /// The user changes a config file through us.
    pub(in crate::engine) fn expect_change(&self, path: &Path, before: &str, after: &str) {
        let loaded = self.loaded().borrow().clone();
        if let Some(file) = loaded.file(path) {
            self.0.trust_checker.expect_launches(trust::changed_launches(&file.source, before, after));
        }
    }
}

/// Records launches of the user's own config as known: these, or all of the file if nothing of it is recorded yet.
pub async fn record_launches(store: &Store, loaded: &Loaded, path: &Path, text: &str, changed: &Launches) {
    let Some(file) = loaded.file(path) else { return };
    let is_recorded = store.decisions().await.trust.keys().any(|key| key.is_in(path));
    let launches = if is_recorded { changed.clone() } else { trust::own_launches(&file.source, text) };
    if !launches.is_empty() {
        store.trust_all(launches.into_iter().collect()).await;
    }
}
