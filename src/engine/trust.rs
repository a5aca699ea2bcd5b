//! Decides which definitions may start, from the user's earlier answers. Asks the user if there is none.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::approvals::{Answer, Approval, Approvals, Kind};
use super::host::question;
use super::prompt;
use crate::config::spec::Launch;
use crate::config::{Config, Definition, Loaded};
use crate::model::{Decision, Error, Result};
use crate::policy::trust::{self, Fingerprint, Question, TrustKey, TrustRecord, Trusted};
use crate::policy::{Rules, SessionLevels};
use crate::store::{Saved, Store};

/// A trust question blocks nothing, so it can stay open as long as the editor does.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(7 * 24 * 3_600);

/// Whether a definition may start.
pub enum Verdict {
    Trusted(Trusted),
    /// The user must be asked. A running server continues if only its levels are new.
    Ask(Box<Question>),
    /// The user denied exactly this definition.
    Refused,
    /// The editor does not trust the workspace yet, so the user is not asked.
    Restricted,
    /// The policy forbids this program, even if the user trusts it.
    Forbidden {
        reason: String,
    },
}

pub struct TrustChecker {
    store: Store,
    approvals: Approvals,
    loaded: watch::Receiver<Arc<Loaded>>,
    folders: watch::Receiver<Vec<Arc<Path>>>,
    /// The editor has the workspace in restricted mode: no project server starts, even if trusted, and no user server
    /// that touches the workspace.
    restricted: AtomicBool,
    /// Trusted for this session only. The lock is private to this file and never held over an await.
    session: Mutex<BTreeMap<TrustKey, Arc<Fingerprint>>>,
    /// Changes that the user is about to make to trusted definitions. The lock is like the one above.
    expected: Mutex<BTreeMap<TrustKey, Arc<Fingerprint>>>,
}

impl TrustChecker {
    pub fn new(
        store: Store,
        approvals: Approvals,
        loaded: watch::Receiver<Arc<Loaded>>,
        folders: watch::Receiver<Vec<Arc<Path>>>,
    ) -> Self {
        Self {
            store,
            approvals,
            loaded,
            folders,
            restricted: AtomicBool::new(false),
            session: Mutex::default(),
            expected: Mutex::default(),
        }
    }

    /// Sets the editor's restricted mode. Returns whether it changed.
    pub fn restrict(&self, restricted: bool) -> bool {
        self.restricted.swap(restricted, Ordering::AcqRel) != restricted
    }

    pub async fn check(&self, definition: Arc<Definition>) -> Verdict {
        if self.restricted.load(Ordering::Acquire) {
            let folders = self.folders.borrow().clone();
            let checked = definition.clone();
            let touches = tokio::task::spawn_blocking(move || trust::touches(&checked, &folders));
            if definition.scope.needs_trust() || touches.await.unwrap_or(true) {
                return Verdict::Restricted;
            }
        }
        let loaded = self.loaded.borrow().clone();
        let verdict = self.check_in(definition.clone(), loaded.clone()).await;
        match verdict {
            Verdict::Ask(question) if self.is_expected(&question) => {
                let kept =
                    self.store.decisions().await.trust.get(&question.key).is_some_and(|kept| kept.trusted.is_some());
                let decision = if kept { Decision::AllowProject } else { Decision::AllowSession };
                self.decide(&question.key, &question.fingerprint, decision).await;
                self.check_in(definition, loaded).await
            }
            verdict => verdict,
        }
    }

    /// The user is about to change the levels of a definition that they trust, so they need not be asked about that.
    /// The launch must stay the same, because the change is only about levels.
    pub async fn expect_change(&self, definition: Arc<Definition>, loaded: Arc<Loaded>, trusted: &Fingerprint) {
        let Some(key) = TrustKey::of(&definition) else { return };
        let made = tokio::task::spawn_blocking(move || Arc::new(Fingerprint::of(&definition, &loaded.config)));
        if let Ok(fingerprint) = made.await
            && fingerprint.launch == trusted.launch
        {
            self.expected.lock().unwrap_or_else(PoisonError::into_inner).insert(key, fingerprint);
        }
    }

    fn is_expected(&self, question: &Question) -> bool {
        let expected = self.expected.lock().unwrap_or_else(PoisonError::into_inner);
        expected.get(&question.key).is_some_and(|expected| expected.covers(&question.fingerprint))
    }

    /// Whether a definition would require a question if `loaded` were in effect.
    pub async fn would_ask(&self, definition: Arc<Definition>, loaded: Arc<Loaded>) -> bool {
        match self.check_in(definition, loaded).await {
            Verdict::Ask(question) => !self.is_expected(&question),
            _ => false,
        }
    }

    async fn check_in(&self, definition: Arc<Definition>, loaded: Arc<Loaded>) -> Verdict {
        let trust_record = match TrustKey::of(&definition) {
            Some(key) => self.trust_record(&key).await,
            None => None,
        };
        // Reads files to resolve programs and hash scripts.
        let verdict = tokio::task::spawn_blocking(move || {
            if let Err(reason) = may_start(&definition, &loaded) {
                return Verdict::Forbidden { reason };
            }
            match trust::check(&definition, &loaded.config, |_| trust_record) {
                trust::Verdict::Trusted(trusted) => Verdict::Trusted(trusted),
                trust::Verdict::Ask(question) => Verdict::Ask(question),
                trust::Verdict::Refused(_) => Verdict::Refused,
            }
        });
        verdict.await.unwrap_or_else(|_| Verdict::Forbidden {
            reason: "the trust check failed; see the log of mcp-sidecar".to_owned(),
        })
    }

    /// Asks the user and stores the answer. Returns whether there was a decision.
    pub async fn ask(&self, definition: Arc<Definition>, question: Box<Question>) -> bool {
        let approval = self.prompt(&definition, &question);
        let answer = self.approvals.ask(approval, QUESTION_TIMEOUT, usize::MAX).await;
        let Ok(Answer::Decision { decision, .. }) = answer else { return false };
        self.decide(&question.key, &question.fingerprint, decision).await;
        true
    }

    fn prompt(&self, definition: &Definition, asked: &Question) -> Approval {
        let title = match asked.difference {
            Some(_) => format!("The definition of the server `{}` has changed. Trust it again?", definition.name),
            None => format!("Trust the server `{}`?", definition.name),
        };
        Approval {
            detail: prompt::definition(definition, &asked.summary),
            diff: asked.difference.as_ref().map(|lines| lines.join("\n")),
            ..question(&definition.name, Kind::Trust, title, &["allow-project", "allow-session", "deny"])
        }
    }

    /// Sets the answer without a question, for `mcp.server.trust`.
    pub async fn set(&self, definition: Arc<Definition>, trusted: bool) -> Result<()> {
        let Some(key) = TrustKey::of(&definition) else { return Ok(()) };
        let loaded = self.loaded.borrow().clone();
        let server = definition.name.clone();
        let made = tokio::task::spawn_blocking(move || Arc::new(Fingerprint::of(&definition, &loaded.config)));
        let fingerprint = made.await.map_err(|error| Error::Io(error.to_string()))?;
        let decision = if trusted { Decision::AllowProject } else { Decision::Deny };
        self.decide(&key, &fingerprint, decision).await;
        self.withdraw("the user has decided", &server);
        Ok(())
    }

    /// Withdraws a question that is out of date.
    pub fn withdraw(&self, reason: &str, server: &crate::model::ServerName) {
        self.approvals.withdraw(reason, |approval| approval.kind == Kind::Trust && approval.server == *server);
    }

    async fn decide(&self, key: &TrustKey, fingerprint: &Arc<Fingerprint>, decision: Decision) {
        {
            let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
            match decision.allows() {
                true => session.insert(key.clone(), fingerprint.clone()),
                false => session.remove(key),
            };
        }
        self.expected.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
        let saved = match decision {
            Decision::AllowOnce | Decision::AllowSession => return,
            Decision::AllowProject | Decision::AllowAlways => self.store.trust(key.clone(), fingerprint.clone()).await,
            Decision::Deny | Decision::Disable => self.store.distrust(key.clone(), fingerprint).await,
        };
        if let Saved::InMemory(why) = saved {
            tracing::warn!(server = %key.server, %why, "cannot save the trust decision; it is lost when the engine exits");
        }
    }

    async fn trust_record(&self, key: &TrustKey) -> Option<TrustRecord> {
        let for_session = self.session.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned();
        match for_session {
            Some(fingerprint) => Some(TrustRecord { trusted: Some(fingerprint), denied: None }),
            None => self.store.decisions().await.trust.get(key).cloned(),
        }
    }
}

/// Whether the project folder exists and every `policy.commands` allows the program.
fn may_start(definition: &Definition, loaded: &Loaded) -> Result<(), String> {
    if let Some(folder) = definition.folder.as_ref().filter(|folder| loaded.config.gone.contains(*folder)) {
        return Err(format!("project gone: the folder {} no longer exists", folder.display()));
    }
    // Only the policies on programs matter here. Compiling the tool rules of all servers for each server would be
    // quadratic.
    let policies = Config { policies: loaded.config.policies.clone(), ..Config::default() };
    let rules = Rules::new(&policies, &SessionLevels::default(), definition.folder.as_deref());
    for launch in [Some(&definition.spec.launch), definition.spec.fallback.as_ref()].into_iter().flatten() {
        if let Launch::Stdio(stdio) = launch {
            let resolved = trust::program(stdio, definition.folder.as_deref());
            rules
                .may_start(&stdio.command, resolved.as_deref())
                .map_err(|list| format!("`{}` is not in the list of allowed programs ({list})", stdio.command))?;
        }
    }
    Ok(())
}
