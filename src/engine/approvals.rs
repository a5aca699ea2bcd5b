//! Questions that wait for the user. Any number may wait at once; each is answered once, by whoever comes first.
//!
//! The list is behind a `std` lock that is private to this file and never held over an await: a question is put in,
//! taken out or read in microseconds, and a channel in front of it would only add a queue.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use tokio::sync::{oneshot, watch};

use super::arguments::Checker;
use crate::model::{Annotations, Decision, Error, Requester, Result, ServerName, Timestamp};

/// What kind of answer is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Tool,
    Trust,
    Elicitation,
    Input,
}

/// A question for the user, with everything needed to answer it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    pub id: String,
    pub kind: Kind,
    pub server: ServerName,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// In full, as they will be sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    pub title: String,
    pub detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    pub requester: Requester,
    /// What may be answered: decisions, or `accept`, `decline`, `cancel`.
    pub options: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
}

/// What the user said.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    Decision { decision: Decision, note: Option<String> },
    Accept(Value),
    Decline,
    Cancel,
}

/// Why a question got no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Silence {
    /// Nobody answered in this time.
    Expired(Duration),
    /// Taken back, with the reason: the editor left, the policy changed, the tool changed.
    Withdrawn(String),
    /// So many wait already.
    Full(usize),
    /// There is nobody to ask.
    Nobody,
}

/// The questions that wait now. Cheap to clone; all clones share the list.
#[derive(Clone)]
pub struct Approvals {
    waiting: Arc<Mutex<BTreeMap<u64, Waiting>>>,
    published: Arc<watch::Sender<Arc<Vec<Approval>>>>,
}

struct Waiting {
    approval: Approval,
    answer: oneshot::Sender<Result<Answer, Silence>>,
}

impl Default for Approvals {
    fn default() -> Self {
        Self { waiting: Arc::default(), published: Arc::new(watch::Sender::new(Arc::default())) }
    }
}

impl std::fmt::Display for Silence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Expired(limit) => write!(f, "approval timed out: nobody answered within {} s", limit.as_secs_f64()),
            Self::Withdrawn(reason) => f.write_str(reason),
            Self::Nobody => f.write_str("there is no editor to ask"),
            Self::Full(most) => write!(f, "{most} approvals wait already (`limits.approvals` sets this limit)"),
        }
    }
}

impl Approvals {
    /// All that wait now, oldest first; whole each time it changes.
    pub fn subscribe(&self) -> watch::Receiver<Arc<Vec<Approval>>> {
        self.published.subscribe()
    }

    pub fn list(&self) -> Arc<Vec<Approval>> {
        self.published.borrow().clone()
    }

    /// Puts the question and waits. Dropping the future takes the question back.
    pub async fn ask(&self, mut approval: Approval, limit: Duration, most: usize) -> Result<Answer, Silence> {
        approval.created_at = Timestamp::now();
        approval.expires_at = approval.created_at.plus(limit);
        let (answer, answered) = oneshot::channel();
        let key = {
            let mut waiting = self.lock();
            if waiting.len() >= most {
                return Err(Silence::Full(most));
            }
            let key = waiting.last_key_value().map_or(0, |(last, _)| last + 1);
            waiting.insert(key, Waiting { approval, answer });
            self.publish(&waiting);
            key
        };
        let _removal = Removal { approvals: self, key };
        match tokio::time::timeout(limit, answered).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(Silence::Withdrawn("the engine is leaving".to_owned())),
            Err(_) => Err(Silence::Expired(limit)),
        }
    }

    /// Gives the answer of the user. The first one counts; a later one finds nothing.
    pub fn resolve(&self, id: &str, decision: &str, note: Option<String>, content: Option<Value>) -> Result<()> {
        let unknown = || Error::NotFound(format!("unknown approval `{id}`: already answered, expired or withdrawn"));
        let asked = self.lock().values().map(|entry| &entry.approval).find(|approval| approval.id == id).cloned();
        // Looked at without the lock: checking a form takes a while.
        let answer = read_answer(&asked.ok_or_else(unknown)?, decision, note, content)?;
        let mut waiting = self.lock();
        let key = waiting.iter().find(|(_, entry)| entry.approval.id == id).map(|(key, _)| *key);
        let entry = key.and_then(|key| waiting.remove(&key)).ok_or_else(unknown)?;
        entry.answer.send(Ok(answer)).ok();
        self.publish(&waiting);
        Ok(())
    }

    /// Takes back every question that `concerns`, which counts as no.
    pub fn withdraw(&self, reason: &str, concerns: impl Fn(&Approval) -> bool) {
        let mut waiting = self.lock();
        let gone: Vec<u64> =
            waiting.iter().filter(|(_, entry)| concerns(&entry.approval)).map(|(key, _)| *key).collect();
        for key in &gone {
            if let Some(entry) = waiting.remove(key) {
                entry.answer.send(Err(Silence::Withdrawn(reason.to_owned()))).ok();
            }
        }
        if !gone.is_empty() {
            self.publish(&waiting);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, waiting: &BTreeMap<u64, Waiting>) {
        let list = waiting.values().map(|entry| entry.approval.clone()).collect();
        self.published.send_replace(Arc::new(list));
    }
}

/// Takes the question off the list when nobody waits for its answer any more.
struct Removal<'a> {
    approvals: &'a Approvals,
    key: u64,
}

impl Drop for Removal<'_> {
    fn drop(&mut self) {
        let mut waiting = self.approvals.lock();
        if waiting.remove(&self.key).is_some() {
            self.approvals.publish(&waiting);
        }
    }
}

/// What a server asked for in a form must have the form's shape: it may act on it without another look.
fn fitting(approval: &Approval, content: Value) -> Result<Value> {
    let Some(schema) =
        approval.schema.as_ref().and_then(Value::as_object).filter(|_| approval.kind == Kind::Elicitation)
    else {
        return Ok(content);
    };
    let fields = content.as_object().cloned().unwrap_or_default();
    let violations = Checker::compile(schema).check(&fields);
    match violations.first() {
        None => Ok(content),
        Some(first) => {
            let place = first.path.trim_start_matches('/').replace('/', ".");
            let place = if place.is_empty() { "content".to_owned() } else { format!("content.{place}") };
            Err(Error::InvalidParams(format!("`{place}` does not fit what was asked for: {}", first.message)))
        }
    }
}

fn read_answer(approval: &Approval, decision: &str, note: Option<String>, content: Option<Value>) -> Result<Answer> {
    let unknown = || {
        Error::InvalidParams(format!("`{decision}` is no answer here; possible are: {}", approval.options.join(", ")))
    };
    // Trust knows only yes, yes for now, and no; an editor may say each of these in the words it uses for tools.
    let known = match approval.kind {
        Kind::Trust => Decision::parse(decision).is_some(),
        _ => approval.options.contains(&decision),
    };
    if !known {
        return Err(unknown());
    }
    match decision {
        "accept" => fitting(approval, content.unwrap_or_default()).map(Answer::Accept),
        "decline" => Ok(Answer::Decline),
        "cancel" => Ok(Answer::Cancel),
        other => {
            let decision = Decision::parse(other).ok_or_else(unknown)?;
            Ok(Answer::Decision { decision, note: note.map(|note| crate::text::visible(&note, 2_000)) })
        }
    }
}
