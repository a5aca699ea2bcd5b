//! The running calls, and the agents that can ask their user about them.
//!
//! A question to an agent is an MCP elicitation, whether it is our approval or a server's question.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::Engine;
use super::approvals::{Answer, Approval, Question};
use super::prompt::DEFINED_IN;
use super::snapshot::{OfferedTool, ServerView};
use crate::model::{Annotations, CallId, Decision, Requester, RequesterKind, Timestamp, ToolCall, ToolId};
use crate::server::connection::Progress;
use crate::text::{quoted, show_hidden, visible};

/// The decisions that an agent can pass on. They count for this once: a program could give them by itself.
const DECISIONS: [(Decision, &str); 2] = [(Decision::AllowOnce, "Allow once"), (Decision::Deny, "Deny")];

/// A front that can ask the user.
pub trait Asker: Send + Sync + 'static {
    /// Takes the params of MCP's `elicitation/create` and returns its result. `None` if the question could not be
    /// asked.
    fn elicit(&self, params: Value) -> BoxFuture<'static, Option<Value>>;

    /// Identifies the agent: the same for all its calls.
    fn session(&self) -> u64;
}

/// The connection of an agent that makes calls.
#[derive(Debug, Clone, Default)]
pub struct AgentConnection {
    /// Identifies it. Questions about its calls can be answered together.
    pub number: u64,
    /// The set of tools that it is limited to, if it cannot be switched.
    pub set: Option<Arc<str>>,
    /// Cancelled when the agent has disconnected.
    pub gone: CancellationToken,
}

impl AgentConnection {
    /// Why its calls and questions end.
    pub const GONE: &str = "the agent disconnected";

    pub fn is_gone(&self) -> bool {
        self.gone.is_cancelled()
    }
}

/// All calls that have not ended. The `std` lock is private to this file and held only for a lookup.
#[derive(Clone)]
pub struct RunningCalls {
    calls: Arc<Mutex<BTreeMap<CallId, RunningCall>>>,
    count: Arc<watch::Sender<usize>>,
}

struct RunningCall {
    asker: Option<Arc<dyn Asker>>,
    progress: Option<mpsc::Sender<Progress>>,
    waited: Arc<Waited>,
    since: Timestamp,
    origin: Option<CallOrigin>,
}

/// Which tool a call runs, and for whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallOrigin {
    pub tool: ToolId,
    pub requester: Requester,
    /// The connection of the agent that made it.
    pub agent: Option<u64>,
}

/// A call that has not ended.
#[derive(Debug, Clone)]
pub struct OpenCall {
    pub id: CallId,
    pub tool: ToolId,
    pub since: Timestamp,
    pub agent: Option<u64>,
}

/// How long a call has waited for the user.
#[derive(Debug, Default)]
pub struct Waited(AtomicU64);

impl Waited {
    pub fn get(&self) -> Duration {
        Duration::from_micros(self.0.load(Ordering::Acquire))
    }

    fn add(&self, time: Duration) {
        self.0.fetch_add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX), Ordering::AcqRel);
    }
}

/// Registers a running call until it is dropped.
pub struct CallGuard {
    calls: RunningCalls,
    call: CallId,
    pub waited: Arc<Waited>,
}

/// Measures how long a call waits, until it is dropped.
pub struct WaitGuard {
    waited: Option<Arc<Waited>>,
    since: Instant,
}

impl Default for RunningCalls {
    fn default() -> Self {
        Self { calls: Arc::default(), count: Arc::new(watch::Sender::new(0)) }
    }
}

impl RunningCalls {
    /// The number of running calls, sent whenever it changes.
    pub fn count(&self) -> watch::Receiver<usize> {
        self.count.subscribe()
    }

    pub fn register(
        &self,
        call: &CallId,
        asker: Option<Arc<dyn Asker>>,
        progress: Option<mpsc::Sender<Progress>>,
    ) -> CallGuard {
        let waited = Arc::<Waited>::default();
        let running = RunningCall { asker, progress, waited: waited.clone(), since: Timestamp::now(), origin: None };
        self.lock().insert(call.clone(), running);
        self.count.send_modify(|count| *count += 1);
        CallGuard { calls: self.clone(), call: call.clone(), waited }
    }

    /// The asker of the call that a question belongs to. If it can belong to several calls, they must all be from one
    /// agent: no agent sees a question that another agent's call caused.
    pub fn asker_of(&self, calls: &[CallId]) -> Option<Arc<dyn Asker>> {
        let running = self.lock();
        let found = calls.iter().map(|call| running.get(call)?.asker.as_ref()).collect::<Option<Vec<_>>>()?;
        let (first, others) = found.split_first()?;
        others.iter().all(|other| other.session() == first.session()).then(|| (*first).clone())
    }

    /// All calls that have not ended, oldest first.
    pub fn open(&self) -> Vec<OpenCall> {
        let running = self.lock();
        let open = running.iter().filter_map(|(id, call)| {
            let CallOrigin { tool, agent, .. } = call.origin.clone()?;
            Some(OpenCall { id: id.clone(), tool, since: call.since, agent })
        });
        let mut open: Vec<OpenCall> = open.collect();
        open.sort_by_key(|call| call.since);
        open
    }

    /// Which call a question belongs to, if it can only be one.
    pub fn origin_of(&self, calls: &[CallId]) -> Option<CallOrigin> {
        match calls {
            [only] => self.lock().get(only)?.origin.clone(),
            _ => None,
        }
    }

    /// Adds the time until the result is dropped to the time that the call has waited. Of several calls, it is unknown
    /// which one waits.
    pub fn measure_wait(&self, calls: &[CallId]) -> WaitGuard {
        let waited = match calls {
            [only] => self.lock().get(only).map(|call| call.waited.clone()),
            _ => None,
        };
        WaitGuard { waited, since: Instant::now() }
    }

    /// Reports that these calls wait. `message` is called only if one of them wants reports.
    pub fn report(&self, calls: &[CallId], message: impl Fn() -> String) {
        let listening: Vec<_> = {
            let running = self.lock();
            calls.iter().filter_map(|call| running.get(call)?.progress.clone()).collect()
        };
        for progress in listening {
            // A report that finds no room is not missed: there are others before it.
            progress.try_send(Progress { message: Some(message()), is_waiting: true, ..Progress::default() }).ok();
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<CallId, RunningCall>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallGuard {
    pub fn set_origin(&self, origin: CallOrigin) {
        if let Some(call) = self.calls.lock().get_mut(&self.call) {
            call.origin = Some(origin);
        }
    }
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        self.calls.lock().remove(&self.call);
        self.calls.count.send_modify(|count| *count = count.saturating_sub(1));
    }
}

impl Drop for WaitGuard {
    fn drop(&mut self) {
        if let Some(waited) = &self.waited {
            waited.add(self.since.elapsed());
        }
    }
}

impl Engine {
    /// Why a call is refused when there was no one to ask. An agent does not learn what only a user may do, which
    /// would do it itself.
    pub(super) fn nobody_to_ask(&self, call: &ToolCall, view: &ServerView, offered: &OfferedTool) -> String {
        if call.requester.kind != RequesterKind::User {
            return format!("there was no one to ask. The user can allow this {}.", self.where_to_allow());
        }
        let file = match &view.definition.file {
            Some(file) => file.display().to_string(),
            None => "mcp.json".to_owned(),
        };
        let tool = visible(&offered.tool.name, 200);
        format!(
            "it requires the user's approval, and there is no editor to ask. To allow it, open this workspace in an \
             editor with mcp-sidecar and call again, or add \"tools\": {{ \"{tool}\": \"allow-session\" }} to the \
             definition of `{}` in {file}",
            view.definition.name
        )
    }

    /// Why a call is refused whose question the agent declined: by its user, or without asking them.
    pub(super) fn declined(&self) -> String {
        format!(
            "there was no one to ask, or the user declined in the agent's dialog. The user can allow this {}.",
            self.where_to_allow()
        )
    }

    /// Where a user can answer. Agents get no path.
    fn where_to_allow(&self) -> String {
        let folder = self.folders().first().and_then(|folder| Some(quoted(folder.file_name()?.to_str()?, 80)));
        format!("in an editor that has {} open", folder.as_deref().unwrap_or("this workspace"))
    }
}

/// A question as the params of MCP's `elicitation/create`.
pub fn elicitation_of(question: &Question) -> Value {
    let Some(mut params) = question.elicitation.clone() else { return as_form(&question.approval) };
    let url = params.get("url").and_then(Value::as_str).and_then(|url| url::Url::parse(url).ok());
    show_hidden(&mut params);
    if let (Some(url), Some(fields)) = (url, params.as_object_mut()) {
        // A parsed URL has no hidden characters.
        fields.insert("url".to_owned(), json!(url.as_str()));
    }
    params
}

/// An approval as a form. Its message contains everything that an editor would show.
fn as_form(approval: &Approval) -> Value {
    let mut message = approval.title.clone();
    let arguments = approval.arguments.as_ref().map(|arguments| arguments.text(&approval.id));
    // Where the server is defined is not for agents. It comes after the words of the tool, which stay complete.
    let mut lines: Vec<&str> = approval.detail.lines().collect();
    if let Some(place) = lines.iter().rposition(|line| line.starts_with(DEFINED_IN) && line.ends_with(" scope).")) {
        lines.remove(place);
    }
    let detail = lines.join("\n");
    let claims = approval.annotations.map(Annotations::describe);
    for part in [claims.as_ref(), Some(&detail), approval.diff.as_ref(), arguments.as_ref()].into_iter().flatten() {
        if !part.is_empty() {
            message.push('\n');
            message.push_str(&visible(part, usize::MAX));
        }
    }
    let options: Vec<Value> =
        DECISIONS.iter().map(|(decision, label)| json!({ "const": decision.as_str(), "title": label })).collect();
    let decision = json!({ "type": "string", "title": "Decision", "oneOf": options });
    let schema = json!({ "type": "object", "properties": { "decision": decision }, "required": ["decision"] });
    json!({ "mode": "form", "message": message, "requestedSchema": schema })
}

/// What the dialog of an agent returned.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentAnswer {
    Answer(Answer),
    /// The approval was declined. Programs without a user also do that by themselves.
    Declined,
    /// The dialog was closed, or never shown.
    Cancelled,
}

/// Reads the result of the dialog of an agent. What was accepted without one of the choices is not an answer of a user.
pub fn parse_answer(question: &Question, answer: &Value) -> AgentAnswer {
    let action = answer.get("action").and_then(Value::as_str);
    if question.elicitation.is_some() {
        return AgentAnswer::Answer(match action {
            Some("accept") => Answer::Accept(answer.get("content").cloned().unwrap_or_default()),
            Some("cancel") => Answer::Cancel,
            _ => Answer::Decline,
        });
    }
    let chosen = answer.pointer("/content/decision").and_then(Value::as_str);
    let known = DECISIONS.iter().find(|(decision, _)| Some(decision.as_str()) == chosen);
    match (action, known) {
        (Some("accept"), Some((decision, _))) => AgentAnswer::Answer(Answer::Decision {
            decision: *decision,
            note: None,
            arguments: None,
            read_only_tools: false,
        }),
        (Some("decline"), _) => AgentAnswer::Declined,
        _ => AgentAnswer::Cancelled,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::approvals::Kind;
    use crate::engine::host::question;
    use crate::model::ServerName;

    struct TestAsker(u64);

    impl Asker for TestAsker {
        fn elicit(&self, _params: Value) -> BoxFuture<'static, Option<Value>> {
            Box::pin(std::future::ready(None))
        }

        fn session(&self) -> u64 {
            self.0
        }
    }

    #[test]
    fn a_question_goes_to_the_caller_or_to_no_one_if_the_caller_is_ambiguous() {
        let calls = RunningCalls::default();
        let call = |name: &str| CallId(name.into());
        let asker = |session| -> Arc<dyn Asker> { Arc::new(TestAsker(session)) };
        let register = |name: &str, session| calls.register(&call(name), Some(asker(session)), None);
        let asked = |names: &[&str]| {
            let names: Vec<CallId> = names.iter().map(|name| call(name)).collect();
            calls.asker_of(&names).map(|asker| asker.session())
        };
        let (_a, _b, c) = (register("a", 1), register("b", 2), register("c", 1));
        let _of_an_editor = calls.register(&call("of an editor"), None, None);
        assert_eq!((asked(&["a"]), asked(&["b"])), (Some(1), Some(2)));
        assert_eq!(asked(&["a", "c"]), Some(1), "both belong to one agent");
        assert_eq!(asked(&["a", "b"]), None);
        assert_eq!(asked(&["a", "of an editor"]), None);
        assert_eq!(asked(&[]), None);
        drop(c);
        assert_eq!(asked(&["c"]), None);
    }

    #[test]
    fn only_a_clear_yes_allows_and_a_closed_dialog_is_no_answer() {
        let server = ServerName::new("demo").unwrap();
        let asked = Question::from(question(&server, Kind::Tool, String::new(), &["allow-once", "allow-always"]));
        let decided = |answer: Value| match parse_answer(&asked, &answer) {
            AgentAnswer::Answer(Answer::Decision { decision, .. }) => Ok(decision),
            other => Err(other),
        };
        assert_eq!(
            decided(json!({ "action": "accept", "content": { "decision": "allow-once" } })),
            Ok(Decision::AllowOnce)
        );
        assert_eq!(decided(json!({ "action": "accept", "content": { "decision": "deny" } })), Ok(Decision::Deny));
        for (closed, expected) in [
            (json!({ "action": "accept" }), AgentAnswer::Cancelled),
            (json!({ "action": "accept", "content": { "decision": "allow-always" } }), AgentAnswer::Cancelled),
            (json!({ "action": "decline", "content": { "decision": "allow-once" } }), AgentAnswer::Declined),
            (json!({ "action": "cancel" }), AgentAnswer::Cancelled),
            (json!({}), AgentAnswer::Cancelled),
        ] {
            assert_eq!(decided(closed), Err(expected));
        }
    }
}
