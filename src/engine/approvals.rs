//! The one door for questions to the user: approvals of calls, trust, inputs, and the questions of servers.
//!
//! A question is asked by a future, which belongs to the question's owner: a call, the start of a server, the
//! connection of an agent. Dropping the future withdraws the question. Otherwise it ends in exactly one way: it is
//! answered, it expires, or there is no one left to ask. The code that removes it from the list decides how it ended.
//!
//! The list is behind a `std` lock that is private to this file and never held over an await. Each access takes
//! microseconds, so a channel would only add a queue.

mod answer;
mod groups;
mod moving_on;
mod origin;
mod outcome;
mod shown_arguments;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{broadcast, mpsc, oneshot, watch};

use super::asking::{AgentConnection, CallOrigin, RunningCalls};
use super::change::Change;
use super::editors::{Abilities, Editors, Identity};
use super::snapshot::OfferedTool;
use crate::model::{Annotations, CallId, Decision, Error, Requester, Result, ServerName, Timestamp};
use crate::settings::Settings;
pub use answer::{ALLOW_READ_ONLY, Reply};
pub use groups::{Group, GroupKey};
pub use origin::Origin;
pub use outcome::{Answer, Answered, AnsweredBy, ClosedQuestion, Ending, NoAnswer, Outcome, Saving, Withdrawal};
pub use shown_arguments::{MAX_LISTED, ShownArguments};

/// A question about trust blocks nothing, so it can stay open as long as the editor does.
const TRUST_TIMEOUT: Duration = Duration::from_secs(7 * 24 * 3_600);
/// How many ended questions a front can be late to read.
const CLOSED_QUEUE: usize = 1_024;

/// What kind of answer is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Tool,
    Trust,
    Elicitation,
    Input,
}

/// What a call asks for, if it is not a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum About {
    Resource {
        uri: String,
        template: Option<String>,
    },
    Prompt {
        name: String,
    },
    /// An agent's own tool.
    AgentTool {
        name: String,
        /// What an answer that lasts is about: a command, a file or a page.
        target: Option<String>,
    },
}

/// A question for the user, with everything needed to answer it.
#[derive(Debug, Clone, PartialEq)]
pub struct Approval {
    pub id: String,
    pub kind: Kind,
    /// Set when the question is opened.
    pub origin: Origin,
    /// Questions with the same key can be answered together.
    pub group: Option<GroupKey>,
    pub server: ServerName,
    pub tool: Option<String>,
    /// What the call asks for instead of a tool.
    pub about: Option<About>,
    /// Complete, as they will be sent.
    pub arguments: Option<ShownArguments>,
    pub title: String,
    /// What it is about, in one line, for a list.
    pub summary: String,
    pub detail: String,
    pub annotations: Option<Annotations>,
    pub requester: Requester,
    /// The valid answers: decisions, or `accept`, `decline`, `cancel`.
    pub options: Vec<&'static str>,
    pub diff: Option<String>,
    /// How the call would change a file in the workspace.
    pub change: Option<Arc<Change>>,
    pub schema: Option<Value>,
    pub url: Option<String>,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
}

impl Approval {
    /// Whether an editor with these abilities can show it. A form needs more than a message with buttons.
    pub fn fits(&self, abilities: &Abilities) -> bool {
        let is_form =
            matches!(self.kind, Kind::Elicitation | Kind::Input) && (self.schema.is_some() || self.url.is_some());
        abilities.elicitation || !is_form
    }
}

/// A question, and what it needs in addition to what is shown.
pub struct Question {
    /// Shared with the list of all questions, which is made again after each change.
    pub approval: Arc<Approval>,
    /// The calls that wait for the answer. Empty for a question that belongs to the start of a server.
    pub calls: Vec<CallId>,
    /// The connection of the agent whose call waits.
    pub agent: Option<AgentConnection>,
    /// The tool that would be called: its schema applies to arguments that the user changes.
    pub tool: Option<Arc<OfferedTool>>,
    /// The question of a server as it was sent, for an agent that asks its user.
    pub elicitation: Option<Value>,
    /// It is the same question in all workspaces, so only one of them asks it.
    pub is_common: bool,
    pub withdrawal: Withdrawal,
}

impl Question {
    fn withdrawn(&self) -> Outcome {
        let is_alone = self.agent.as_ref().is_some_and(AgentConnection::is_gone);
        Err(NoAnswer::Withdrawn(self.withdrawal.reason().unwrap_or(match self.approval.kind {
            Kind::Tool if is_alone => AgentConnection::GONE,
            Kind::Tool => "the call was cancelled",
            Kind::Trust => "the definition was changed or removed",
            Kind::Elicitation | Kind::Input => "the server no longer asks",
        })))
    }
}

impl From<Approval> for Question {
    fn from(approval: Approval) -> Self {
        let (calls, agent, withdrawal) = Default::default();
        Self { approval: approval.into(), calls, agent, tool: None, elicitation: None, is_common: false, withdrawal }
    }
}

/// The pending questions of all workspaces. Cheap to clone; all clones share the list.
#[derive(Clone)]
pub struct Approvals {
    /// The workspace whose questions are asked through this handle, and its folders.
    workspace: u64,
    folders: watch::Receiver<Vec<Arc<Path>>>,
    pending: Arc<Mutex<BTreeMap<u64, Pending>>>,
    /// Counts questions. A key is never used again: the owner of an ended question may still drop it.
    last_key: Arc<AtomicU64>,
    published: Arc<watch::Sender<Arc<Vec<Arc<Approval>>>>>,
    closed: broadcast::Sender<ClosedQuestion>,
    editors: Editors,
    calls: RunningCalls,
    settings: watch::Receiver<Arc<Settings>>,
}

struct Pending {
    question: Arc<Question>,
    /// The editors in which the user closed the question.
    closed_in: BTreeSet<u64>,
    outcome: oneshot::Sender<Outcome>,
}

/// What became of an answer to several questions.
#[derive(Default)]
pub struct Resolved {
    pub resolved: Vec<Arc<Question>>,
    /// The ids of those that had ended before.
    pub gone: Vec<String>,
    /// Why answers could not be saved. Ends when all of them have taken effect.
    pub not_saved: Option<mpsc::UnboundedReceiver<String>>,
}

impl Approvals {
    pub fn new(editors: Editors, calls: RunningCalls, settings: watch::Receiver<Arc<Settings>>) -> Self {
        let published = Arc::new(watch::Sender::new(Arc::default()));
        let closed = broadcast::Sender::new(CLOSED_QUEUE);
        let (workspace, folders) = (0, watch::channel(Vec::new()).1);
        let (pending, last_key) = Default::default();
        Self { workspace, folders, pending, last_key, published, closed, editors, calls, settings }
    }

    /// The same list, for questions of this workspace.
    pub fn in_workspace(&self, workspace: u64, folders: watch::Receiver<Vec<Arc<Path>>>) -> Self {
        Self { workspace, folders, ..self.clone() }
    }

    /// All pending questions, oldest first. The whole list is sent whenever it changes.
    pub fn subscribe(&self) -> watch::Receiver<Arc<Vec<Arc<Approval>>>> {
        self.published.subscribe()
    }

    /// The questions that end from now on. Each is sent before the list without it.
    pub fn closed(&self) -> broadcast::Receiver<ClosedQuestion> {
        self.closed.subscribe()
    }

    /// Which call a question of a server belongs to, if it can only be one.
    pub fn origin_of(&self, calls: &[CallId]) -> Option<CallOrigin> {
        self.calls.origin_of(calls)
    }

    pub fn list(&self) -> Arc<Vec<Arc<Approval>>> {
        self.published.borrow().clone()
    }

    /// Asks the question and waits for its outcome. Dropping the future withdraws the question.
    pub async fn ask(&self, question: Question) -> Outcome {
        match self.open(vec![question]).pop() {
            Some(opened) => opened?.outcome().await,
            None => Err(NoAnswer::Stopping),
        }
    }

    /// Opens questions, all in one change of the list.
    pub fn open(&self, questions: Vec<Question>) -> Vec<Result<OpenQuestion, NoAnswer>> {
        let (timeout, most) = {
            let settings = self.settings.borrow();
            (settings.approvals.timeout, settings.limits.approvals)
        };
        let nobody_to_ask = |question: &Question| {
            self.askable(question, &BTreeSet::new()).is_empty() && self.agent_for(question).is_none()
        };
        let origin =
            Origin { workspace: self.workspace, folder: self.folders.borrow().first().cloned(), is_elsewhere: false };
        let reachable: Vec<bool> = questions.iter().map(|question| !nobody_to_ask(question)).collect();
        let mut pending = self.lock();
        let opened = questions.into_iter().zip(reachable).map(|(mut question, is_reachable)| {
            if !is_reachable {
                return Err(NoAnswer::NobodyToAsk);
            }
            if pending.len() >= most {
                return Err(NoAnswer::Full(most));
            }
            let is_same = |other: &Pending| self.asks_elsewhere(&other.question.approval, &question.approval);
            if question.is_common && pending.values().any(is_same) {
                return Err(NoAnswer::AskedElsewhere);
            }
            let limit = if question.approval.kind == Kind::Trust { TRUST_TIMEOUT } else { timeout };
            let approval = Arc::make_mut(&mut question.approval);
            approval.origin = origin.clone();
            approval.created_at = Timestamp::now();
            approval.expires_at = approval.created_at.plus(limit);
            let (sender, outcome) = oneshot::channel();
            let question = Arc::new(question);
            let key = self.last_key.fetch_add(1, Ordering::Relaxed);
            pending.insert(key, Pending { question: question.clone(), closed_in: BTreeSet::new(), outcome: sender });
            Ok(OpenQuestion { approvals: self.clone(), key, question, limit, outcome })
        });
        let opened = opened.collect::<Vec<_>>();
        if opened.iter().any(Result::is_ok) {
            self.publish(&pending);
        }
        opened
    }

    /// Waits until there is room for another question.
    pub async fn room(&self) {
        let mut list = self.subscribe();
        let has_room = |list: &Arc<Vec<Arc<Approval>>>| list.len() < self.settings.borrow().limits.approvals;
        if list.wait_for(has_room).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Answers questions for the user. The first answer wins; for a later one the question is gone. It is an error if
    /// all of them are gone.
    pub fn resolve(&self, ids: &[String], reply: &Reply<'_>, editor: &Identity) -> Result<Resolved> {
        let mut resolved = Resolved::default();
        let mut found: Vec<(u64, Arc<Question>)> = Vec::new();
        for id in ids {
            match self.find(id) {
                Ok((key, _)) if found.iter().any(|(other, _)| *other == key) => {}
                Ok(question) => found.push(question),
                Err(_) => resolved.gone.push(id.clone()),
            }
        }
        if ids.len() > 1 {
            reply.check_shared(&found.iter().map(|(_, question)| &*question.approval).collect::<Vec<_>>())?;
        }
        let (saving, not_saved) = Saving::reported();
        resolved.not_saved = Some(not_saved);
        // Parsed without the lock: validating a form takes a while.
        let parse = |(key, question): &(u64, Arc<Question>)| {
            let answer = reply.clone().parse(question)?;
            let by = AnsweredBy::Editor(editor.clone());
            let choices = question.approval.answers();
            let lasts = choices.iter().any(|choice| choice.lasts && choice.decision == answer.as_str());
            let saving = if lasts { saving.clone() } else { Saving::default() };
            Ok((*key, Ok(Answered { answer, by, saving })))
        };
        let ended = self.end_all(found.iter().map(parse).collect::<Result<_>>()?);
        for (key, question) in found {
            match ended.contains(&key) {
                true => resolved.resolved.push(question),
                false => resolved.gone.push(question.approval.id.clone()),
            }
        }
        match resolved.gone.first().filter(|_| resolved.resolved.is_empty()) {
            Some(gone) => Err(unknown(gone)),
            None => Ok(resolved),
        }
    }

    /// The user decided about the trust in a server of this workspace with a command, so the question about it is
    /// answered, too.
    pub fn trust_decided(&self, server: &ServerName, decision: Decision, editor: &Identity) {
        let is_about = |approval: &Approval| {
            let Approval { kind, origin, server: asked, .. } = approval;
            *kind == Kind::Trust && asked == server && origin.workspace == self.workspace
        };
        let keys: Vec<u64> = {
            let pending = self.lock();
            let about = pending.iter().filter(|(_, pending)| is_about(&pending.question.approval));
            about.map(|(key, _)| *key).collect()
        };
        let by = AnsweredBy::Editor(editor.clone());
        self.end_all(keys.into_iter().map(|key| (key, Err(NoAnswer::Decided { decision, by: by.clone() }))).collect());
    }

    /// The user closed a question in this editor. That is a no if no other editor can still show it.
    pub fn close(&self, id: &str, editor: u64, identity: &Identity) {
        let Ok((key, question)) = self.find(id) else { return };
        let closed_in = match self.lock().get_mut(&key) {
            Some(pending) => {
                pending.closed_in.insert(editor);
                pending.closed_in.clone()
            }
            None => return,
        };
        // Closing a question about trust decides nothing: the user can still trust the server later.
        if question.approval.kind != Kind::Trust && self.askable(&question, &closed_in).is_empty() {
            self.end(key, Err(NoAnswer::Closed(identity.clone())));
        }
    }

    /// The editor shows a question again that the user closed there.
    pub fn show_again(&self, id: &str, editor: u64) {
        if let Ok((key, _)) = self.find(id)
            && let Some(pending) = self.lock().get_mut(&key)
        {
            pending.closed_in.remove(&editor);
        }
    }

    /// The editors that can show a question, except those in which the user closed it.
    fn askable(&self, question: &Question, closed_in: &BTreeSet<u64>) -> Vec<Identity> {
        self.editors.askable(|id, abilities| !closed_in.contains(&id) && question.approval.fits(abilities))
    }

    /// Ends a question. Returns false if it has ended before.
    fn end(&self, key: u64, outcome: Outcome) -> bool {
        !self.end_all(vec![(key, outcome)]).is_empty()
    }

    /// Ends questions, all in one change of the list. Returns those that had not ended before.
    fn end_all(&self, outcomes: Vec<(u64, Outcome)>) -> BTreeSet<u64> {
        let mut pending = self.lock();
        let mut ended = Vec::new();
        for (key, outcome) in outcomes {
            if let Some(question) = pending.remove(&key) {
                self.closed.send(ClosedQuestion::new(&question.question.approval, &outcome)).ok();
                ended.push((key, question, outcome));
            }
        }
        if !ended.is_empty() {
            self.publish(&pending);
        }
        let sent = ended
            .into_iter()
            .filter_map(|(key, question, outcome)| question.outcome.send(outcome).is_ok().then_some(key));
        sent.collect()
    }

    fn find(&self, id: &str) -> Result<(u64, Arc<Question>)> {
        let pending = self.lock();
        let found = pending.iter().find(|(_, pending)| pending.question.approval.id == id);
        found.map(|(key, pending)| (*key, pending.question.clone())).ok_or_else(|| unknown(id))
    }

    fn closed_in(&self, key: u64) -> BTreeSet<u64> {
        self.lock().get(&key).map(|pending| pending.closed_in.clone()).unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Pending>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, pending: &BTreeMap<u64, Pending>) {
        let list = pending.values().map(|pending| pending.question.approval.clone()).collect();
        self.published.send_replace(Arc::new(list));
    }
}

/// The error about a question that is not pending.
pub fn unknown(id: &str) -> Error {
    Error::NotFound(format!("unknown approval `{id}`: already answered, expired or withdrawn"))
}

/// A question that waits. Dropping it withdraws the question.
pub struct OpenQuestion {
    approvals: Approvals,
    key: u64,
    question: Arc<Question>,
    limit: Duration,
    outcome: oneshot::Receiver<Outcome>,
}

impl OpenQuestion {
    pub async fn outcome(mut self) -> Outcome {
        let (approvals, question) = (self.approvals.clone(), self.question.clone());
        let _waiting = approvals.calls.measure_wait(&question.calls);
        let other = tokio::select! {
            biased;
            outcome = &mut self.outcome => return outcome.unwrap_or(Err(NoAnswer::Stopping)),
            other = approvals.move_on(self.key, &question) => other,
            () = tokio::time::sleep(self.limit) => Err(NoAnswer::Expired(self.limit)),
            () = question.withdrawal.requested() => question.withdrawn(),
            never = approvals.report_waiting(self.key, &question) => match never {},
        };
        // An answer that was given in between counts.
        approvals.end(self.key, other);
        (&mut self.outcome).await.unwrap_or(Err(NoAnswer::Stopping))
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        self.approvals.end(self.key, self.question.withdrawn());
    }
}
