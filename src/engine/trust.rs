//! Which definitions may start: judged against what the user said before, asked about where he said nothing yet.

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
use crate::policy::trust::{self, Fingerprint, Question, Remembered, TrustKey, Trusted};
use crate::policy::{Rules, SessionLevels};
use crate::store::{Saved, Store};

/// A question of trust holds nobody up, so it may wait as long as a person leaves an editor open.
const LIMIT: Duration = Duration::from_secs(7 * 24 * 3_600);

/// What becomes of a definition.
pub enum Verdict {
    May(Trusted),
    /// The user has to be asked; a running server may go on when only its levels are new.
    Ask(Box<Question>),
    /// The user said no to exactly this.
    Refused,
    /// The editor does not trust the workspace yet; it is not even asked about.
    Restricted,
    /// The policy does not let this program start, whatever the user trusts.
    Forbidden {
        reason: String,
    },
}

pub struct Judge {
    store: Store,
    approvals: Approvals,
    loaded: watch::Receiver<Arc<Loaded>>,
    folders: watch::Receiver<Vec<Arc<Path>>>,
    /// The editor has the workspace in its own restricted mode: nothing of a project starts, whatever was trusted, and
    /// no server of the user that touches the workspace.
    restricted: AtomicBool,
    /// Trusted for this session only. A `std` lock, private to this file and never held over an await.
    session: Mutex<BTreeMap<TrustKey, Arc<Fingerprint>>>,
    /// What trusted definitions are about to become by the user's own hand. A lock like the one above.
    expected: Mutex<BTreeMap<TrustKey, Arc<Fingerprint>>>,
}

impl Judge {
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

    /// Follows the editor's own trust in the workspace; answers whether that is news.
    pub fn restrict(&self, restricted: bool) -> bool {
        self.restricted.swap(restricted, Ordering::AcqRel) != restricted
    }

    pub async fn judge(&self, definition: Arc<Definition>) -> Verdict {
        if self.restricted.load(Ordering::Acquire) {
            let folders = self.folders.borrow().clone();
            let judged = definition.clone();
            let touches = tokio::task::spawn_blocking(move || trust::touches(&judged, &folders));
            if definition.scope.needs_trust() || touches.await.unwrap_or(true) {
                return Verdict::Restricted;
            }
        }
        let loaded = self.loaded.borrow().clone();
        let verdict = self.judge_in(definition.clone(), loaded.clone()).await;
        match verdict {
            Verdict::Ask(question) if self.expects(&question) => {
                let kept =
                    self.store.decisions().await.trust.get(&question.key).is_some_and(|kept| kept.trusted.is_some());
                let decision = if kept { Decision::AllowProject } else { Decision::AllowSession };
                self.decide(&question.key, &question.fingerprint, decision).await;
                self.judge_in(definition, loaded).await
            }
            verdict => verdict,
        }
    }

    /// The user himself is about to change the levels of a definition that he trusts: he need not be asked about his
    /// own words. What it runs must stay the same, as that is not what he speaks of.
    pub async fn expect(&self, definition: Arc<Definition>, loaded: Arc<Loaded>, trusted: &Fingerprint) {
        let Some(key) = TrustKey::of(&definition) else { return };
        let made = tokio::task::spawn_blocking(move || Arc::new(Fingerprint::of(&definition, &loaded.config)));
        if let Ok(fingerprint) = made.await
            && fingerprint.launch == trusted.launch
        {
            self.expected.lock().unwrap_or_else(PoisonError::into_inner).insert(key, fingerprint);
        }
    }

    fn expects(&self, question: &Question) -> bool {
        let expected = self.expected.lock().unwrap_or_else(PoisonError::into_inner);
        expected.get(&question.key).is_some_and(|expected| expected.covers(&question.fingerprint))
    }

    /// Whether the user would have to be asked about a definition, if the config were this one.
    pub async fn would_ask(&self, definition: Arc<Definition>, loaded: Arc<Loaded>) -> bool {
        match self.judge_in(definition, loaded).await {
            Verdict::Ask(question) => !self.expects(&question),
            _ => false,
        }
    }

    async fn judge_in(&self, definition: Arc<Definition>, loaded: Arc<Loaded>) -> Verdict {
        let remembered = match TrustKey::of(&definition) {
            Some(key) => self.remembered(&key).await,
            None => None,
        };
        // Resolving programs and digesting scripts reads files.
        let judged = tokio::task::spawn_blocking(move || {
            if let Err(reason) = may_start(&definition, &loaded) {
                return Verdict::Forbidden { reason };
            }
            match trust::judge(&definition, &loaded.config, |_| remembered) {
                trust::Verdict::Trusted(trusted) => Verdict::May(trusted),
                trust::Verdict::Ask(question) => Verdict::Ask(question),
                trust::Verdict::Refused(_) => Verdict::Refused,
            }
        });
        judged
            .await
            .unwrap_or_else(|_| Verdict::Forbidden { reason: "it could not be judged; the log tells more".to_owned() })
    }

    /// Puts the question and carries the answer out. Answers whether anything was decided.
    pub async fn ask(&self, definition: Arc<Definition>, question: Box<Question>) -> bool {
        let approval = self.prompt(&definition, &question);
        let answer = self.approvals.ask(approval, LIMIT, usize::MAX).await;
        let Ok(Answer::Decision { decision, .. }) = answer else { return false };
        self.decide(&question.key, &question.fingerprint, decision).await;
        true
    }

    fn prompt(&self, definition: &Definition, asked: &Question) -> Approval {
        let title = match asked.difference {
            Some(_) => format!("The definition of {} has changed. Trust it again?", definition.name),
            None => format!("Trust {} of this project?", definition.name),
        };
        Approval {
            detail: prompt::definition(definition, &asked.summary),
            diff: asked.difference.as_ref().map(|lines| lines.join("\n")),
            ..question(&definition.name, Kind::Trust, title, &["allow-project", "allow-session", "deny"])
        }
    }

    /// The answer by hand, without a question: `mcp.server.trust`.
    pub async fn set(&self, definition: Arc<Definition>, trusted: bool) -> Result<()> {
        let Some(key) = TrustKey::of(&definition) else { return Ok(()) };
        let loaded = self.loaded.borrow().clone();
        let server = definition.name.clone();
        let made = tokio::task::spawn_blocking(move || Arc::new(Fingerprint::of(&definition, &loaded.config)));
        let fingerprint = made.await.map_err(|error| Error::Io(error.to_string()))?;
        let decision = if trusted { Decision::AllowProject } else { Decision::Deny };
        self.decide(&key, &fingerprint, decision).await;
        self.withdraw("decided by hand", &server);
        Ok(())
    }

    /// Takes back a question that is no longer the right one.
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
            tracing::warn!(server = %key.server, %why, "the answer about trust holds only until the engine ends");
        }
    }

    async fn remembered(&self, key: &TrustKey) -> Option<Remembered> {
        let for_session = self.session.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned();
        match for_session {
            Some(fingerprint) => Some(Remembered { trusted: Some(fingerprint), denied: None }),
            None => self.store.decisions().await.trust.get(key).cloned(),
        }
    }
}

/// Whether there is a project to run it in, and `policy.commands` of every file that has one lets its programs start.
fn may_start(definition: &Definition, loaded: &Loaded) -> Result<(), String> {
    if let Some(folder) = definition.folder.as_ref().filter(|folder| loaded.config.gone.contains(*folder)) {
        return Err(format!("project gone: the folder {} is not there any more", folder.display()));
    }
    // Only what policies say about programs counts here. With the rules of every server's tools, judging all servers
    // would take the square of their number.
    let policies = Config { policies: loaded.config.policies.clone(), ..Config::default() };
    let rules = Rules::new(&policies, &SessionLevels::default(), definition.folder.as_deref());
    for launch in [Some(&definition.spec.launch), definition.spec.fallback.as_ref()].into_iter().flatten() {
        if let Launch::Stdio(stdio) = launch {
            let resolved = trust::program(stdio, definition.folder.as_deref());
            rules
                .may_start(&stdio.command, resolved.as_deref())
                .map_err(|list| format!("`{}` is not among the programs that {list} lets start", stdio.command))?;
        }
    }
    Ok(())
}
