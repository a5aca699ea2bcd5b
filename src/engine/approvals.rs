//! Questions that are waiting for the user. Any number can be pending; the first answer to each wins.
//!
//! The list is behind a `std` lock that is private to this file and never held over an await. Each access takes
//! microseconds, so a channel would only add a queue.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{oneshot, watch};

use super::arguments::Checker;
use super::change::Change;
use crate::model::{Annotations, Decision, Error, Requester, Result, ServerName, Timestamp};

/// What kind of answer is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Tool,
    Trust,
    Elicitation,
    Input,
}

/// A question for the user, with everything needed to answer it.
#[derive(Debug, Clone, PartialEq)]
pub struct Approval {
    pub id: String,
    pub kind: Kind,
    pub server: ServerName,
    pub tool: Option<String>,
    /// Complete, as they will be sent.
    pub arguments: Option<Value>,
    pub title: String,
    pub detail: String,
    pub annotations: Option<Annotations>,
    pub requester: Requester,
    /// The valid answers: decisions, or `accept`, `decline`, `cancel`.
    pub options: Vec<&'static str>,
    pub diff: Option<String>,
    /// How the call would change a file in the workspace.
    pub change: Option<Change>,
    pub schema: Option<Value>,
    pub url: Option<String>,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
}

/// The user's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    Decision { decision: Decision, note: Option<String> },
    Accept(Value),
    Decline,
    Cancel,
}

/// Why a question got no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoAnswer {
    /// No answer within this time.
    Expired(Duration),
    /// Withdrawn, with the reason: the editor was closed, or the policy or the tool changed.
    Withdrawn(String),
    /// This many approvals are already pending.
    Full(usize),
    /// There is no editor, and the caller cannot ask either.
    NobodyToAsk,
}

/// The pending questions. Cheap to clone; all clones share the list.
#[derive(Clone)]
pub struct Approvals {
    pending: Arc<Mutex<BTreeMap<u64, PendingApproval>>>,
    published: Arc<watch::Sender<Arc<Vec<Approval>>>>,
}

struct PendingApproval {
    approval: Approval,
    answer: oneshot::Sender<Result<Answer, NoAnswer>>,
}

impl Default for Approvals {
    fn default() -> Self {
        Self { pending: Arc::default(), published: Arc::new(watch::Sender::new(Arc::default())) }
    }
}

impl std::fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Expired(limit) => write!(f, "the approval timed out after {} s", limit.as_secs_f64()),
            Self::Withdrawn(reason) => f.write_str(reason),
            Self::NobodyToAsk => f.write_str("there is no editor to ask"),
            Self::Full(most) => {
                write!(f, "too many approvals are pending: the limit is {most} (`limits.approvals`)")
            }
        }
    }
}

impl Approvals {
    /// All pending questions, oldest first. The whole list is sent whenever it changes.
    pub fn subscribe(&self) -> watch::Receiver<Arc<Vec<Approval>>> {
        self.published.subscribe()
    }

    pub fn list(&self) -> Arc<Vec<Approval>> {
        self.published.borrow().clone()
    }

    /// Asks the question and waits for the answer. Dropping the future withdraws the question.
    pub async fn ask(&self, mut approval: Approval, limit: Duration, most: usize) -> Result<Answer, NoAnswer> {
        approval.created_at = Timestamp::now();
        approval.expires_at = approval.created_at.plus(limit);
        let (answer, answered) = oneshot::channel();
        let key = {
            let mut pending = self.lock();
            if pending.len() >= most {
                return Err(NoAnswer::Full(most));
            }
            let key = pending.last_key_value().map_or(0, |(last, _)| last + 1);
            pending.insert(key, PendingApproval { approval, answer });
            self.publish(&pending);
            key
        };
        let _remove = RemoveOnDrop { approvals: self, key };
        match tokio::time::timeout(limit, answered).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(NoAnswer::Withdrawn("the engine is shutting down".to_owned())),
            Err(_) => Err(NoAnswer::Expired(limit)),
        }
    }

    /// Answers a question for the user. The first answer wins; for a later one the question is unknown.
    pub fn resolve(&self, id: &str, decision: &str, note: Option<String>, content: Option<Value>) -> Result<()> {
        let unknown = || Error::NotFound(format!("unknown approval `{id}`: already answered, expired or withdrawn"));
        let asked = self.lock().values().map(|entry| &entry.approval).find(|approval| approval.id == id).cloned();
        // Parsed without the lock: validating a form takes a while.
        let answer = parse_answer(&asked.ok_or_else(unknown)?, decision, note, content)?;
        let mut pending = self.lock();
        let key = pending.iter().find(|(_, entry)| entry.approval.id == id).map(|(key, _)| *key);
        let entry = key.and_then(|key| pending.remove(&key)).ok_or_else(unknown)?;
        entry.answer.send(Ok(answer)).ok();
        self.publish(&pending);
        Ok(())
    }

    /// Withdraws every question for which `concerns` is true. That counts as a denial.
    pub fn withdraw(&self, reason: &str, concerns: impl Fn(&Approval) -> bool) {
        let mut pending = self.lock();
        let gone: Vec<u64> =
            pending.iter().filter(|(_, entry)| concerns(&entry.approval)).map(|(key, _)| *key).collect();
        for key in &gone {
            if let Some(entry) = pending.remove(key) {
                entry.answer.send(Err(NoAnswer::Withdrawn(reason.to_owned()))).ok();
            }
        }
        if !gone.is_empty() {
            self.publish(&pending);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, PendingApproval>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, pending: &BTreeMap<u64, PendingApproval>) {
        let list = pending.values().map(|entry| entry.approval.clone()).collect();
        self.published.send_replace(Arc::new(list));
    }
}

/// Removes the question from the list when its answer is no longer awaited.
struct RemoveOnDrop<'a> {
    approvals: &'a Approvals,
    key: u64,
}

impl Drop for RemoveOnDrop<'_> {
    fn drop(&mut self) {
        let mut pending = self.approvals.lock();
        if pending.remove(&self.key).is_some() {
            self.approvals.publish(&pending);
        }
    }
}

/// The answer to a form must match its schema, because the server may use it without checking it again.
fn validate_content(approval: &Approval, content: Value) -> Result<Value> {
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
            let field = first.path.trim_start_matches('/').replace('/', ".");
            let field = if field.is_empty() { "content".to_owned() } else { format!("content.{field}") };
            Err(Error::InvalidParams(format!("`{field}` does not match the form: {}", first.message)))
        }
    }
}

fn parse_answer(approval: &Approval, decision: &str, note: Option<String>, content: Option<Value>) -> Result<Answer> {
    let unknown = || {
        Error::InvalidParams(format!("`{decision}` is not an answer; expected one of: {}", approval.options.join(", ")))
    };
    // Trust has three answers: yes, yes for this session, and no. An editor may send any decision instead.
    let known = match approval.kind {
        Kind::Trust => Decision::parse(decision).is_some(),
        _ => approval.options.contains(&decision),
    };
    if !known {
        return Err(unknown());
    }
    match decision {
        "accept" => validate_content(approval, content.unwrap_or_default()).map(Answer::Accept),
        "decline" => Ok(Answer::Decline),
        "cancel" => Ok(Answer::Cancel),
        other => {
            let decision = Decision::parse(other).ok_or_else(unknown)?;
            Ok(Answer::Decision { decision, note: note.map(|note| crate::text::visible(&note, 2_000)) })
        }
    }
}
