//! The gate to every tool, resource and prompt. Every call takes the same path, no matter who requests it: find →
//! validate the arguments → rule → ask → call → record.

pub mod agent_tool;
mod detach;
mod find;
mod pause;
mod question;
mod shown;

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Engine;
use super::approvals::Saving;
use super::arguments;
pub use super::asking::AgentConnection;
use super::asking::{Asker, CallOrigin, Waited};
use super::change;
use super::consent::OnceClaim;
use super::prompt;
use super::record::Recording;
use super::snapshot::{OfferedTool, ServerView};
use super::turns::Turn;
use crate::model::{
    CallId, CallKind, CallResult, Error, Level, Requester, Result, Subject, ToolCall, ToolId, UserDecision,
};
use crate::policy::permit::{Consent, OnceUsed, Permitted, Refusal, permit};
use crate::policy::{AgentAccess, GrantMatch, Ruling, expanded};
use crate::server::connection::{CallOptions, Progress, Sent};
use detach::Detach;
use question::QuestionOutcome;
use shown::Shown;

/// How often a question is asked again because the tool or its rule changed in between.
const MAX_QUESTIONS: u32 = 5;
/// How long the state of a server may be unknown after a call could not be sent to it.
const STATE_TIMEOUT: Duration = Duration::from_secs(5);

/// A request to run a tool, or to get something else from a server.
pub struct CallRequest {
    pub id: CallId,
    pub kind: CallKind,
    /// The tool, or the subject of another kind as rules name it.
    pub tool: ToolId,
    pub arguments: Map<String, Value>,
    /// The decision of a user who has just seen these arguments.
    pub decision: Option<UserDecision>,
    pub requester: Requester,
    /// The user is asked whatever the rules say, and sees this reason first.
    pub must_ask: Option<String>,
    /// The connection of the agent that requests it.
    pub connection: Option<AgentConnection>,
    pub workflow: Option<String>,
    pub timeout: Option<Duration>,
    /// The metadata of the caller that is passed on to the server.
    pub meta: Arc<Map<String, Value>>,
    /// Fields of the request that MCP does not define. A condition about arguments does not cover them.
    pub unknown_fields: Arc<Map<String, Value>>,
    pub progress: Option<mpsc::Sender<Progress>>,
    /// Held until the call is permitted or denied, or has to wait.
    pub turn: Turn,
}

/// The outcome of a call that was permitted and got a result.
#[derive(Debug, Clone)]
pub struct Outcome {
    pub id: CallId,
    pub tool: ToolId,
    pub result: CallResult,
    /// The level or decision that permitted it.
    pub decision: &'static str,
    /// Without the time that the call waited for the user.
    pub duration: Duration,
    pub waited: Duration,
    /// How the user changed the arguments before allowing the call.
    pub edited: Option<String>,
}

impl Engine {
    /// Runs a tool. The call outlives a cancelled caller just long enough to cancel the call at the server and record it.
    pub async fn call(&self, request: CallRequest) -> Result<Outcome> {
        self.call_for(request, None).await
    }

    /// The same for a caller that can ask the user itself if there is no editor.
    pub async fn call_for(&self, request: CallRequest, asker: Option<Arc<dyn Asker>>) -> Result<Outcome> {
        let gone = CancellationToken::new();
        let task = CallTask {
            engine: self.clone(),
            view: match request.must_ask {
                Some(_) => AgentAccess::asking(&self.view_of(&request.requester, request.connection.as_ref())),
                None => self.view_of(&request.requester, request.connection.as_ref()),
            },
            call: ToolCall {
                id: request.id,
                kind: request.kind,
                tool: match request.kind {
                    CallKind::Tool => self.now().resolve_tool(request.tool),
                    _ => request.tool,
                },
                arguments: Arc::new(request.arguments),
                requester: request.requester,
                workflow: request.workflow,
                timeout: request.timeout,
                meta: request.meta,
                unknown_fields: request.unknown_fields,
            },
            requested: None,
            must_ask: request.must_ask,
            decision: request.decision,
            progress: request.progress,
            connection: request.connection,
            asker,
            gone: gone.clone(),
        };
        match Detach::new(task.run(request.turn), gone).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Error::Io("the call failed with an internal error; see the log of mcp-sidecar".to_owned())),
        }
    }
}

/// A call on its way through the gate.
struct CallTask {
    engine: Engine,
    /// What the requester can see, and its highest level.
    view: Arc<AgentAccess>,
    call: ToolCall,
    /// The arguments that were requested, if the user changed them.
    requested: Option<Arc<Map<String, Value>>>,
    must_ask: Option<String>,
    decision: Option<UserDecision>,
    progress: Option<mpsc::Sender<Progress>>,
    connection: Option<AgentConnection>,
    asker: Option<Arc<dyn Asker>>,
    gone: CancellationToken,
}

impl CallTask {
    async fn run(mut self, turn: Turn) -> Result<Outcome> {
        let started = Instant::now();
        let registered = self.engine.0.shared.calls.register(&self.call.id, self.asker.clone(), self.progress.clone());
        let (tool, requester) = (self.call.tool.clone(), self.call.requester.clone());
        let agent = self.connection.as_ref().map(|connection| connection.number);
        registered.set_origin(CallOrigin { tool, requester, agent });
        let waited = registered.waited.clone();
        let mut recording = Recording::new(&self.engine, &self.call);
        self.call.meta = recording.meta_for_server(&self.call.meta);
        let gone = self.gone.clone();
        let outcome = tokio::select! {
            // First: a caller that has gone may have stopped the server, too.
            biased;
            () = gone.cancelled() => Err(self.cancelled()),
            outcome = self.execute(&mut recording, Some(turn)) => outcome,
        };
        let times = Times::of(started, &waited);
        let edited = self.requested.as_ref().map(|requested| shown::difference(requested, &self.call.arguments));
        let outcome = match (outcome, edited) {
            (Ok((result, decision)), edited) => {
                let (id, tool) = (self.call.id.clone(), self.call.tool.clone());
                Ok(Outcome { id, tool, result, decision, duration: times.ran, waited: times.waited, edited })
            }
            // The caller has to know that this is not about its own arguments.
            (Err(error), Some(difference)) => {
                Err(Error::Edited { tool: self.call.tool.clone(), difference, cause: Box::new(error) })
            }
            (Err(error), None) => Err(error),
        };
        recording.finish(&outcome, times).await;
        outcome
    }

    async fn execute(
        &mut self,
        recording: &mut Recording,
        mut turn: Option<Turn>,
    ) -> Result<(CallResult, &'static str)> {
        self.check_unknown_fields()?;
        self.wait_while_paused().await?;
        let mut decision = self.decision.take().or_else(|| self.engine.0.absence.allowed(&self.call));
        // It is about a call without them.
        decision = decision.filter(|_| self.call.unknown_fields.is_empty());
        let mut before: Option<Shown> = None;
        let mut saving = Saving::default();
        for _ in 0..MAX_QUESTIONS {
            let (view, offered) = self.find(&mut turn, before.is_some()).await?;
            self.check(&offered).await?;
            let shown = Shown::of(&view, &offered);
            // An answer counts only for what the user saw.
            let is_same = before.as_ref().is_none_or(|before| before.covers(&shown));
            decision = decision.filter(|_| is_same);
            if decision.is_none() {
                saving = Saving::default();
            }
            let (ruling, once) = self.rule(&view, &offered);
            let grant_match = match ruling.level {
                Level::RequireApproval => self.engine.grant_for(&view, &offered).await,
                _ => GrantMatch::None,
            };
            let grant_match = match grant_match {
                // A grant never raises an agent above its ceiling.
                GrantMatch::Active(grant) if !self.view.accepts(grant.level()) => GrantMatch::None,
                grant_match => grant_match,
            };
            let consent = match (&decision, &grant_match) {
                (Some(given), _) if self.requested.is_some() => Consent::Edit(given.decision, given.by.clone()),
                (Some(given), _) => Consent::Answer(given.decision, given.by.clone()),
                (None, GrantMatch::Active(grant)) => Consent::Grant(grant),
                (None, _) => Consent::None,
            };
            match permit(self.call.clone(), &ruling, consent) {
                Ok(permitted) => {
                    if let Some(given) = &decision {
                        let saved = Box::pin(self.engine.remember(&view, &offered, given.decision)).await?;
                        std::mem::take(&mut saving).report(saved);
                    }
                    turn.take();
                    recording.permitted(&permitted);
                    recording.before_sending().await?;
                    let connection = shown.connection.filter(|_| before.is_some());
                    let sent = once.as_ref().map(|claim| claim.sent.clone()).unwrap_or_default();
                    match self.send(&view, permitted, sent.clone(), connection).await {
                        // The server restarts. The answer of the user is not lost: it counts for what they saw, or they
                        // are asked again.
                        Err(error) if before.is_some() && !sent.get() => {
                            Box::pin(self.state_changed(&view)).await.map_err(|_| error)?;
                            continue;
                        }
                        result => return result,
                    }
                }
                Err(Refusal::Denied { decision: refused, decided_by, error, .. }) => {
                    match decision.filter(|_| self.requested.is_some()) {
                        Some(UserDecision { by, .. }) => {
                            recording.refused(refused, &format!("{decided_by}, after the {by} changed the arguments"));
                        }
                        None => recording.refused(refused, &decided_by),
                    }
                    return Err(error);
                }
                Err(Refusal::Ask(_)) => {}
            }
            turn.take();
            self.check_recent_denial(&offered, recording)?;
            decision = match Box::pin(self.ask(&view, &offered, &grant_match, before.as_ref(), &shown)).await {
                QuestionOutcome::Answered(mut answered) => {
                    saving = std::mem::take(&mut answered.saving);
                    Some(Box::pin(self.read_answer(answered, &mut saving, &view, &offered, recording)).await?)
                }
                QuestionOutcome::NoAnswer(no_answer) => {
                    recording.refused("deny", &no_answer.to_string());
                    return Err(self.unanswered(&no_answer, &view, &offered));
                }
                // The server, the tool or its rule is not what the user saw: start over.
                QuestionOutcome::Changed => None,
            };
            before = Some(shown);
        }
        let reason = "the server, the tool or its rules kept changing while the user was being asked".to_owned();
        recording.refused("deny", &reason);
        Err(Error::Conflict(reason))
    }

    /// The ruling for this call. For `allow-once` this also claims its one call; if that fails, the user is asked.
    fn rule(&self, view: &ServerView, offered: &OfferedTool) -> (Ruling, Option<OnceClaim>) {
        let snapshot = self.engine.now();
        let ruling = |offered: &OfferedTool, arguments| {
            self.view.narrow(snapshot.rules.rule(&offered.id.server, &offered.tool, arguments, view.trust_state()))
        };
        if self.call.kind == CallKind::Completion {
            let whole = ruling(offered, None).in_session(OnceUsed::Yes);
            // What is typed into a template must not list what could not be read.
            let typed = self.typed_uri(offered).and_then(|uri| snapshot.offered_subject(view, &uri));
            let typed = typed.map(|typed| ruling(&typed, None));
            // The same for a prompt with these arguments.
            let with_arguments = ruling(offered, Some(&self.typed_arguments()));
            return (typed.into_iter().chain([with_arguments]).fold(whole, Ruling::stricter), None);
        }
        let with_arguments = ruling(offered, Some(&self.call.arguments));
        let ruling = match self.call.unknown_fields.is_empty() {
            true => with_arguments,
            // A condition that allows these arguments says nothing about the other fields.
            false => with_arguments.stricter(ruling(offered, None)),
        };
        if ruling.level != Level::AllowOnce {
            return (ruling, None);
        }
        match self.engine.0.once.claim(&offered.id) {
            Some(claim) => (ruling, Some(claim)),
            None => (ruling.in_session(OnceUsed::Yes), None),
        }
    }

    /// The arguments of a prompt that are typed or chosen so far.
    fn typed_arguments(&self) -> Map<String, Value> {
        let chosen = self.call.arguments.get("context").and_then(|context| context.get("arguments"));
        let mut arguments = chosen.and_then(Value::as_object).cloned().unwrap_or_default();
        let typed = self.call.arguments.get("argument");
        let name = typed.and_then(|typed| typed.get("name")).and_then(Value::as_str);
        if let Some((name, value)) = name.zip(typed.and_then(|typed| typed.get("value"))) {
            arguments.insert(name.to_owned(), value.clone());
        }
        arguments
    }

    /// The URI of a template with the values that are typed so far, as rules name it.
    fn typed_uri(&self, offered: &OfferedTool) -> Option<String> {
        let Subject::Resource { .. } = offered.tool.subject else { return None };
        let (argument, context) = (self.call.arguments.get("argument"), self.call.arguments.get("context"));
        let text = |value: Option<&'_ Value>, key: &str| Some(value?.get(key)?.as_str()?.to_owned());
        let value = |name: &str| match text(argument, "name").is_some_and(|typed| typed == name) {
            true => text(argument, "value"),
            false => text(context.and_then(|context| context.get("arguments")), name),
        };
        Some(format!("{}{}", Subject::RESOURCE, expanded(offered.tool.own_name(), value)))
    }

    /// The user has to see all of them.
    fn check_unknown_fields(&self) -> Result<()> {
        let fields = &self.call.unknown_fields;
        if fields.is_empty() || serde_json::to_string(&**fields).is_ok_and(|text| text.len() <= prompt::MAX_UNKNOWN) {
            return Ok(());
        }
        Err(Error::InvalidParams(format!(
            "the fields of the request that MCP does not define are longer than {} bytes: use `arguments` or `_meta`",
            prompt::MAX_UNKNOWN
        )))
    }

    async fn check(&self, offered: &Arc<OfferedTool>) -> Result<()> {
        if self.call.kind != CallKind::Tool {
            return Ok(());
        }
        let violations = arguments::check(offered, &self.call.arguments).await;
        if violations.is_empty() {
            return Ok(());
        }
        Err(Error::InvalidArguments { tool: self.call.tool.clone(), violations })
    }

    /// Waits until the snapshot shows another state of the server: it is behind for a moment.
    async fn state_changed(&self, view: &Arc<ServerView>) -> Result<(), tokio::time::error::Elapsed> {
        let mut snapshots = self.engine.snapshot();
        let is_other = snapshots.wait_for(|snapshot| {
            snapshot.servers.get(&self.call.tool.server).is_none_or(|now| !Arc::ptr_eq(now, view))
        });
        tokio::time::timeout(STATE_TIMEOUT, is_other).await.map(drop)
    }

    /// Sends a permitted call. If the user allowed it for one `connection`, it is sent on no other.
    async fn send(
        &self,
        view: &ServerView,
        permitted: Permitted,
        sent: Sent,
        connection: Option<u64>,
    ) -> Result<(CallResult, &'static str)> {
        let decision = permitted.decision();
        let options = CallOptions {
            timeout: self.engine.time_limit(view, self.call.timeout),
            max_timeout: self.engine.0.shared.settings.borrow().servers.max_timeout,
            progress: self.progress.clone(),
            sent,
            connection,
            as_task: view.tools.get(&self.call.tool.tool).is_some_and(|offered| offered.tool.needs_task()),
        };
        let result = view.usable()?.call(permitted, options).await?;
        Ok((result, decision))
    }

    fn cancelled(&self) -> Error {
        match self.connection.as_ref().is_some_and(AgentConnection::is_gone) {
            true => Error::CallerGone(AgentConnection::GONE),
            false => Error::Cancelled,
        }
    }
}

/// How long a call took: at the server and until then, and waiting for the user.
#[derive(Debug, Clone, Copy, Default)]
pub struct Times {
    pub ran: Duration,
    pub waited: Duration,
}

impl Times {
    fn of(started: Instant, waited: &Waited) -> Self {
        let waited = waited.get();
        Self { ran: started.elapsed().saturating_sub(waited), waited }
    }
}
