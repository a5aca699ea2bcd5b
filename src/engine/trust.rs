//! Decides which definitions may start, from the user's earlier answers. Asks the user if there is none.

mod own_launches;
mod questions;
mod session_trust;

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OnceCell, watch};
use tokio::task::JoinHandle;

use super::approvals::Approvals;
use super::keyring_consent::stored_sign_ins;
use super::vault::Vault;
use crate::config::expand::Values;
use crate::config::spec::Launch;
use crate::config::{Config, Definition, Environment, Environments, Loaded};
use crate::model::{Decision, Error, Result};
use crate::policy::trust::{self, Fingerprint, Question, TrustKey, TrustRecord, Trusted};
use crate::policy::{Rules, SessionLevels};
use crate::store::{Saved, Store};
pub use own_launches::record_launches;
pub use questions::AskedTrust;
pub use session_trust::SessionTrust;

/// How many versions of a definition are remembered, to say what changed since one was shown.
const MAX_SHOWN: usize = 8;

/// Whether a definition may start.
pub enum Verdict {
    Trusted(Trusted),
    /// The user must be asked. A running server continues if only its levels are new.
    Ask(Box<Question>),
    /// The user denied exactly this definition.
    Refused(Arc<Fingerprint>),
    /// The editor does not trust the workspace yet, so the user is not asked.
    Restricted(Option<Arc<Fingerprint>>),
    /// The policy forbids this program, even if the user trusts it.
    Forbidden {
        reason: String,
    },
}

/// Asks about a definition even if the user has refused it.
#[derive(Debug, Clone, Default)]
pub struct AskAgain {
    /// The definition that the user saw last, to show what changed since.
    pub shown: Option<Arc<Fingerprint>>,
}

pub struct TrustChecker {
    store: Store,
    approvals: Approvals,
    vault: Vault,
    loaded: watch::Receiver<Arc<Loaded>>,
    folders: watch::Receiver<Vec<Arc<Path>>>,
    environments: watch::Receiver<Arc<Environments>>,
    /// The editor has the workspace in restricted mode: no project server starts, even if trusted, and no user server
    /// that touches the workspace.
    restricted: AtomicBool,
    /// The editor says that the user trusts the workspace.
    workspace_trusted: AtomicBool,
    session: SessionTrust,
    /// Changes that the user is about to make to trusted definitions. The lock is like the one above.
    expected: Mutex<BTreeMap<TrustKey, Arc<Fingerprint>>>,
    /// The latest versions of each definition, newest last. The lock is like the one above.
    shown: Mutex<BTreeMap<TrustKey, VecDeque<Arc<Fingerprint>>>>,
    /// Set when the launches of the user's own config are recorded.
    known_launches: OnceCell<()>,
}

impl TrustChecker {
    pub fn new(
        store: Store,
        approvals: Approvals,
        vault: Vault,
        loaded: watch::Receiver<Arc<Loaded>>,
        folders: watch::Receiver<Vec<Arc<Path>>>,
        environments: watch::Receiver<Arc<Environments>>,
        session: SessionTrust,
    ) -> Self {
        Self {
            store,
            approvals,
            vault,
            session,
            loaded,
            folders,
            environments,
            restricted: AtomicBool::new(false),
            workspace_trusted: AtomicBool::new(false),
            expected: Mutex::default(),
            shown: Mutex::default(),
            known_launches: OnceCell::new(),
        }
    }

    /// Sets whether the editor trusts the workspace. Returns whether that changed anything.
    pub fn trust_workspace(&self, trusted: bool) -> bool {
        let agreed = self.workspace_trusted.swap(trusted, Ordering::AcqRel) != trusted;
        self.restricted.swap(!trusted, Ordering::AcqRel) == trusted || agreed
    }

    /// The environment that a definition would start with now.
    fn environment(&self, definition: &Definition) -> Environment {
        let environments = self.environments.borrow().clone();
        environments.of(definition)
    }

    pub async fn check(&self, definition: Arc<Definition>, ask: Option<AskAgain>) -> Verdict {
        let environment = self.environment(&definition);
        self.check_with(definition, environment, ask).await
    }

    /// Whether a definition may start with this environment, which decides which programs are found.
    pub async fn check_with(
        &self,
        definition: Arc<Definition>,
        environment: Environment,
        ask: Option<AskAgain>,
    ) -> Verdict {
        if self.restricted.load(Ordering::Acquire) {
            let folders = self.folders.borrow().clone();
            let (checked, given) = (definition.clone(), environment.clone());
            let touches = tokio::task::spawn_blocking(move || trust::touches(&checked, &folders, &given));
            if definition.scope.needs_trust() || touches.await.unwrap_or(true) {
                return Verdict::Restricted(self.fingerprint(definition).await.ok());
            }
        }
        if let Some(verdict) = self.check_own_launch(&definition, &environment, ask.is_some()).await {
            return verdict;
        }
        if let Some(verdict) = self.check_folder(&definition, &environment, ask.is_some()).await {
            return verdict;
        }
        let loaded = self.loaded.borrow().clone();
        let verdict = self.check_in(definition.clone(), loaded.clone(), environment.clone(), ask.is_some()).await;
        match verdict {
            Verdict::Ask(question) if self.is_expected(&question.key, &question.fingerprint) => {
                let kept =
                    self.store.decisions().await.trust.get(&question.key).is_some_and(|kept| kept.trusted.is_some());
                let decision = if kept { Decision::AllowProject } else { Decision::AllowSession };
                self.decide(&question.key, &question.fingerprint, decision).await;
                self.check_in(definition, loaded, environment, false).await
            }
            Verdict::Ask(mut question) => {
                let since = ask.and_then(|ask| ask.shown).map(|shown| shown.difference(&question.fingerprint));
                question.difference = question.difference.or(since.filter(|lines| !lines.is_empty()));
                question.summary.gets.splice(0..0, stored_sign_ins(&definition, &self.vault).await);
                self.remember_shown(&question.key, &question.fingerprint);
                Verdict::Ask(question)
            }
            verdict => verdict,
        }
    }

    /// The user is about to change the levels of a definition that they trust, so they need not be asked about that.
    /// The launch must stay the same, because the change is only about levels.
    pub async fn expect_change(&self, definition: Arc<Definition>, loaded: Arc<Loaded>, trusted: &Fingerprint) {
        let Some(key) = TrustKey::of(&definition) else { return };
        let made = self.make_fingerprint(definition, loaded);
        if let Ok(fingerprint) = made.await
            && fingerprint.launch == trusted.launch
        {
            self.expected.lock().unwrap_or_else(PoisonError::into_inner).insert(key, fingerprint);
        }
    }

    fn is_expected(&self, key: &TrustKey, fingerprint: &Fingerprint) -> bool {
        let expected = self.expected.lock().unwrap_or_else(PoisonError::into_inner);
        expected.get(key).is_some_and(|expected| expected.covers(fingerprint))
    }

    /// Whether a definition would require a question if `loaded` were in effect.
    pub async fn would_ask(&self, definition: Arc<Definition>, loaded: Arc<Loaded>) -> bool {
        let environment = self.environment(&definition);
        match self.check_in(definition, loaded, environment, false).await {
            Verdict::Ask(question) => !self.is_expected(&question.key, &question.fingerprint),
            _ => false,
        }
    }

    async fn check_in(
        &self,
        definition: Arc<Definition>,
        loaded: Arc<Loaded>,
        environment: Environment,
        ask_again: bool,
    ) -> Verdict {
        let mut trust_record = match TrustKey::of(&definition) {
            Some(key) => self.trust_record(&key).await,
            None => None,
        };
        if let Some(record) = trust_record.as_mut().filter(|_| ask_again) {
            record.denied = None;
        }
        let (decisions, session) = (self.store.decisions().await, self.session.clone());
        // Reads files to resolve programs and hash scripts.
        let verdict = tokio::task::spawn_blocking(move || {
            if let Err(reason) = may_start(&definition, &loaded, &environment) {
                return Verdict::Forbidden { reason };
            }
            let elsewhere = |key: &TrustKey, fingerprint: &Fingerprint| {
                let is_denied = decisions.denies_anywhere(key, fingerprint);
                let is_trusted =
                    || decisions.trusts_anywhere(key, fingerprint) || session.trusts_anywhere(key, fingerprint);
                !is_denied && is_trusted()
            };
            match trust::check(&definition, &loaded.config, &environment, |_| trust_record, elsewhere) {
                trust::Verdict::Trusted(trusted) => Verdict::Trusted(trusted),
                trust::Verdict::Ask(question) => Verdict::Ask(question),
                trust::Verdict::Refused(fingerprint) => Verdict::Refused(fingerprint),
            }
        });
        verdict.await.unwrap_or_else(|_| Verdict::Forbidden {
            reason: "the trust check failed; see the log of mcp-sidecar".to_owned(),
        })
    }

    /// Whether a server of the user must wait, because it would run in a folder that the user has not agreed to.
    async fn check_folder(
        &self,
        definition: &Arc<Definition>,
        environment: &Environment,
        ask_again: bool,
    ) -> Option<Verdict> {
        let (key, fingerprint) = self.folder_subject(definition, environment).await?;
        let record = self.trust_record(&key).await.unwrap_or_default();
        if record.trusted.is_some_and(|trusted| trusted.covers(&fingerprint)) {
            return None;
        }
        if record.denied.as_deref() == Some(&*fingerprint.digest) && !ask_again {
            return Some(Verdict::Refused(fingerprint));
        }
        self.remember_shown(&key, &fingerprint);
        Some(Verdict::Ask(Box::new(Question::about_folder(key, fingerprint, definition, environment))))
    }

    /// The folder that a server of the user would run in, unless the editor says that the user trusts it.
    async fn folder_subject(
        &self,
        definition: &Arc<Definition>,
        environment: &Environment,
    ) -> Option<(TrustKey, Arc<Fingerprint>)> {
        if definition.scope.needs_trust() || self.workspace_trusted.load(Ordering::Acquire) {
            return None;
        }
        let (checked, folders, given) = (definition.clone(), self.folders.borrow().clone(), environment.clone());
        let inside = tokio::task::spawn_blocking(move || trust::runs_inside(&checked, &folders, &given)).await;
        let folder = inside.ok().flatten()?;
        Some((TrustKey::of_folder(&folder)?, Arc::new(Fingerprint::of_folder(&folder))))
    }

    /// Whether a server is the same in every workspace, so that they can share it.
    pub async fn is_independent(&self, definition: Arc<Definition>) -> bool {
        let folders = self.folders.borrow().clone();
        let environments = self.environments.borrow().clone();
        let checked = tokio::task::spawn_blocking(move || {
            trust::is_independent(&definition, &folders, &environments.of(&definition))
        });
        checked.await.unwrap_or(false)
    }

    /// What the user decides about: the definition, its launch in their own config, or the folder that it runs in. `None` if there is nothing to decide.
    async fn subject(&self, definition: Arc<Definition>) -> Result<Option<(TrustKey, Arc<Fingerprint>)>> {
        match TrustKey::of(&definition) {
            Some(key) => Ok(Some((key, self.fingerprint(definition).await?))),
            None => match self.undecided_launch(&definition).await {
                Some(launch) => Ok(Some(launch)),
                None => {
                    let environment = self.environment(&definition);
                    Ok(self.folder_subject(&definition, &environment).await)
                }
            },
        }
    }

    /// Trusts the definition with this digest. If the current one is another, says what the user saw instead, if that is
    /// known, and why it is not trusted.
    pub async fn trust(&self, definition: Arc<Definition>, digest: Option<&str>) -> Result<(), (AskAgain, Error)> {
        let server = definition.name.clone();
        let subject = self.subject(definition).await.map_err(|error| (AskAgain::default(), error))?;
        let Some((key, fingerprint)) = subject else { return Ok(()) };
        if digest == Some(&fingerprint.shown_digest()) {
            self.decide(&key, &fingerprint, Decision::AllowProject).await;
            return Ok(());
        }
        let shown = digest.and_then(|digest| self.find_shown(&key, digest));
        let message = match (digest, &shown) {
            (None, _) => format!("`{server}` is not trusted: the request does not say which definition was shown"),
            (Some(_), None) => format!("`{server}` is not trusted: its definition has changed since it was shown"),
            (Some(_), Some(shown)) => format!(
                "`{server}` is not trusted: its definition has changed since it was shown:\n{}",
                shown.difference(&fingerprint).join("\n")
            ),
        };
        Err((AskAgain { shown }, Error::Conflict(message)))
    }

    /// Withdraws the user's trust.
    pub async fn distrust(&self, definition: Arc<Definition>) -> Result<()> {
        let Some((key, fingerprint)) = self.subject(definition).await? else { return Ok(()) };
        self.decide(&key, &fingerprint, Decision::Deny).await;
        Ok(())
    }

    /// The fingerprint of a definition as it is now.
    pub(super) async fn fingerprint(&self, definition: Arc<Definition>) -> Result<Arc<Fingerprint>> {
        let loaded = self.loaded.borrow().clone();
        let key = TrustKey::of(&definition);
        let made = self.make_fingerprint(definition, loaded);
        let fingerprint = made.await.map_err(|error| Error::Io(error.to_string()))?;
        if let Some(key) = key {
            self.remember_shown(&key, &fingerprint);
        }
        Ok(fingerprint)
    }

    /// Reads files, so it runs on another thread.
    fn make_fingerprint(&self, definition: Arc<Definition>, loaded: Arc<Loaded>) -> JoinHandle<Arc<Fingerprint>> {
        let environment = self.environment(&definition);
        tokio::task::spawn_blocking(move || Arc::new(Fingerprint::of(&definition, &loaded.config, &environment)))
    }

    fn remember_shown(&self, key: &TrustKey, fingerprint: &Arc<Fingerprint>) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let versions = shown.entry(key.clone()).or_default();
        versions.retain(|version| version != fingerprint);
        versions.push_back(fingerprint.clone());
        if versions.len() > MAX_SHOWN {
            versions.pop_front();
        }
    }

    fn find_shown(&self, key: &TrustKey, digest: &str) -> Option<Arc<Fingerprint>> {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.get(key)?.iter().find(|version| version.shown_digest() == digest).cloned()
    }

    /// Stores a decision about a definition.
    pub async fn decide(&self, key: &TrustKey, fingerprint: &Arc<Fingerprint>, decision: Decision) -> Saved {
        match decision.allows() {
            true => self.session.lock().insert(key.clone(), fingerprint.clone()),
            false => self.session.lock().remove(key),
        };
        self.expected.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
        let saved = match decision {
            Decision::AllowOnce | Decision::AllowSession => Saved::ToDisk,
            Decision::AllowProject | Decision::AllowAlways => self.store.trust(key.clone(), fingerprint.clone()).await,
            Decision::Deny | Decision::Disable => self.store.distrust(key.clone(), fingerprint).await,
        };
        if let Saved::InMemory(why) = &saved {
            tracing::warn!(server = %key.server, %why, "cannot save the trust decision; it is lost when the engine exits");
        }
        saved
    }

    /// The answers about a definition. What is trusted for this session does not change what was denied before; a version
    /// that was trusted before is found among the stored decisions.
    async fn trust_record(&self, key: &TrustKey) -> Option<TrustRecord> {
        let stored = self.store.decisions().await.trust.get(key).cloned();
        let Some(trusted) = self.session.lock().get(key).cloned() else { return stored };
        let denied = stored.and_then(|stored| stored.denied).filter(|denied| *denied != trusted.digest);
        Some(TrustRecord { trusted: Some(trusted), denied })
    }

    /// Whether a question is about content that is gone, and the current content is trusted.
    pub(super) async fn is_outdated(&self, definition: &Arc<Definition>, question: &Question) -> bool {
        let is_trusted_now = async || match self.check(definition.clone(), None).await {
            Verdict::Trusted(trusted) => *trusted.fingerprint() != question.fingerprint,
            _ => false,
        };
        !question.is_about_folder() && !question.is_about_own_launch() && is_trusted_now().await
    }
}

/// Whether the project folder exists and every `policy.commands` allows the program.
fn may_start(definition: &Definition, loaded: &Loaded, environment: &Environment) -> Result<(), String> {
    if let Some(folder) = definition.folder.as_ref().filter(|folder| loaded.config.gone.contains(*folder)) {
        return Err(format!("project gone: the folder {} no longer exists", folder.display()));
    }
    // Only the policies on programs matter here. Compiling the tool rules of all servers for each server would be
    // quadratic.
    let policies = Config { policies: loaded.config.policies.clone(), ..Config::default() };
    let rules = Rules::new(&policies, &SessionLevels::default(), &[]);
    let values = Values::in_folder(definition.folder.as_deref(), environment);
    for launch in [Some(&definition.spec.launch), definition.spec.fallback.as_ref()].into_iter().flatten() {
        if let Launch::Stdio(stdio) = launch {
            let resolved = trust::program(stdio, &values);
            let bare = trust::is_on_user_path(stdio, &values);
            rules
                .may_start(&stdio.command, bare, resolved.as_deref())
                .map_err(|list| format!("`{}` is not in the list of allowed programs ({list})", stdio.command))?;
        }
    }
    Ok(())
}
