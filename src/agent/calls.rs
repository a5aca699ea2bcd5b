//! Tool calls of an agent, with progress, cancellation and questions to the user.
#![allow(deprecated, reason = "logging is deprecated in MCP, but agents still use it")]

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ElicitRequest, ErrorData, InputRequest,
    InputRequiredResult, InputResponses, ProgressNotificationParam, ProgressToken,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData as McpError, RoleServer};
use serde_json::{Map, Value, json};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::asker::{AskByRequest, AskByResult, ElicitationModes, Question};
use super::byte_budget::{Reserved, memory_of_fields};
use super::callers::CallerGuard;
use super::catalog::Catalog;
use super::extensions::passed_meta;
use super::handler::{Handler, is_stateless};
use super::long_results::{self, PagePosition};
use super::session::AgentView;
use super::transport::over_budget;
use super::{notices, response, search, unknown_fields};
use crate::engine::Notice;
use crate::engine::approvals::AnsweredBy;
use crate::engine::asking::Asker;
use crate::engine::gate::{CallRequest, Outcome};
use crate::engine::snapshot::ServerView;
use crate::engine::turns::Turn;
use crate::model::{CallId, CallKind, Decision, Error, Result, ServerName, ToolId, UserDecision};
use crate::server::connection::Progress;
use crate::server::heavy;

/// The capacity of the queue of progress reports of one call.
const PROGRESS_QUEUE: usize = 64;
/// How long to wait for log messages that a server sent right before its response.
const LOG_GRACE: Duration = Duration::from_millis(50);
/// How much the progress grows with each report of a call that waits.
const WAITING_STEP: f64 = 1e-6;
/// How many calls of all agents may wait for an answer of the user.
const MAX_SUSPENDED: usize = 1_024;
/// The key of the question in the result of a call.
pub(super) const QUESTION: &str = "question";

/// A call that has been started.
pub struct RunningCall {
    pub(super) work: BoxFuture<'static, Result<Outcome>>,
    pub(super) progress: mpsc::Receiver<Progress>,
    pub(super) questions: mpsc::Receiver<Question>,
    server: ServerName,
    /// The greatest progress that was reported. What is reported while the call waits stays below the tool's own values.
    reported: f64,
    has_waited: bool,
    /// Log messages of servers, if the call asked for them. Since 2026-07-28, each request sets its own log level.
    logs: Option<Receiver<Notice>>,
    caller: CallerGuard,
    /// The memory of its arguments, and the reservation while no request holds one.
    pub(super) bytes: usize,
    pub(super) _reserved: Option<Reserved>,
}

impl RunningCall {
    /// Waits for the next notice. Never returns if the call did not ask for logs.
    async fn notice(logs: &mut Option<Receiver<Notice>>) -> Notice {
        while let Some(receiver) = logs {
            match receiver.recv().await {
                Ok(notice) => return notice,
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => *logs = None,
            }
        }
        std::future::pending().await
    }

    /// The progress with a value greater than all before it, if the call waits or has waited. A tool's values stay as
    /// they are unless they would go back.
    pub(super) fn in_order(&mut self, mut progress: Progress) -> Progress {
        if progress.is_waiting {
            self.has_waited = true;
            progress.progress = (self.reported + WAITING_STEP).max(self.reported.next_up());
        } else if self.has_waited && progress.progress <= self.reported {
            progress.progress = self.reported.next_up();
        }
        self.reported = self.reported.max(progress.progress);
        progress
    }

    /// Forwards log messages that the server sent right before its response: they take another path and may arrive later.
    async fn forward_last_logs(&mut self, context: &RequestContext<RoleServer>) {
        let deadline = Instant::now() + LOG_GRACE;
        while let Ok(notice) = tokio::time::timeout_at(deadline, Self::notice(&mut self.logs)).await {
            Self::log(&self.server, &self.caller, context, notice).await;
        }
    }

    /// Forwards a log message of the called server, if it is severe enough for the request, or a notification that we do not
    /// know.
    async fn log(own: &ServerName, caller: &CallerGuard, context: &RequestContext<RoleServer>, notice: Notice) {
        if let Notice::Unknown { server, notification, calls } = &notice
            && server == own
            && caller.made_all(calls)
        {
            notices::pass_on(&context.peer, notification).await;
        }
        if let (Notice::Log { server, line, calls }, Some(minimum)) = (notice, context.meta.log_level())
            && server == *own
            && caller.made_all(&calls)
            && let Some(message) = notices::message(&server, line, minimum)
        {
            context.peer.notify_logging_message(message).await.ok();
        }
    }
}

/// Calls that wait until the agent calls again with an answer, by their request state. The `std` lock is private to this
/// file and held for a lookup.
#[derive(Default)]
pub struct SuspendedCalls(Mutex<HashMap<String, SuspendedCall>>);

struct SuspendedCall {
    running: RunningCall,
    answer: oneshot::Sender<Value>,
    /// Ends the call when its agent has disconnected.
    _ends_with_agent: AbortOnDropHandle<()>,
}

impl SuspendedCalls {
    fn insert(
        self: &Arc<Self>,
        running: RunningCall,
        answer: oneshot::Sender<Value>,
        gone: &CancellationToken,
    ) -> Result<String, McpError> {
        let state = CallId::random().0.to_string();
        let end = {
            let (suspended, gone, state) = (Arc::downgrade(self), gone.clone(), state.clone());
            async move {
                gone.cancelled().await;
                let ended = suspended.upgrade().and_then(|suspended| suspended.lock().remove(&state));
                drop(ended);
            }
        };
        let mut suspended = self.lock();
        // Remove calls whose question has expired because the agent did not call again.
        suspended.retain(|_, call| !call.answer.is_closed());
        if suspended.len() >= MAX_SUSPENDED {
            return Err(ErrorData::internal_error(
                format!("too many calls are waiting for the user's answer (at most {MAX_SUSPENDED})"),
                None,
            ));
        }
        let _ends_with_agent = AbortOnDropHandle::new(tokio::spawn(end));
        suspended.insert(state.clone(), SuspendedCall { running, answer, _ends_with_agent });
        Ok(state)
    }

    fn take(&self, state: &str) -> Option<SuspendedCall> {
        self.lock().remove(state)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, SuspendedCall>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Handler {
    /// Makes a call. What few calls need is boxed, because the future of each call has room for everything else.
    pub(super) async fn call(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, McpError> {
        let _permit = match self.acquire_permit() {
            Ok(permit) => permit,
            Err(full) => {
                let requester = self.agent_view(&context).requester;
                let arguments = request.arguments.unwrap_or_default();
                let by = "limits.agent-calls";
                Box::pin(self.endpoint().record_rejected(requester, &request.name, arguments, by, &full)).await;
                return Err(full);
            }
        };
        let _reserved = match self.reserve(request.arguments.as_ref()) {
            Ok(reserved) => reserved,
            Err(over) => {
                let requester = self.agent_view(&context).requester;
                let error = over_budget(&over);
                let by = over.setting;
                Box::pin(self.endpoint().record_rejected(requester, &request.name, Map::new(), by, &error)).await;
                return Err(error);
            }
        };
        if let Some(state) = request.request_state.as_deref() {
            let running = self.resume(state, request.input_responses)?;
            return self.follow(running, context).await;
        }
        let agent = self.agent_view(&context);
        let arguments = request.arguments.unwrap_or_default();
        match &*request.name {
            long_results::READ if agent.view.result_limit.is_some() => {
                Ok(long_results::page_result(self.next_page(&agent, &arguments)).into())
            }
            search::FIND if agent.search => Ok(Box::pin(self.find(&agent, &arguments)).await.into()),
            search::CALL if agent.search => match Box::pin(self.parse_call(&agent, arguments)).await {
                Ok((tool, arguments)) => self.follow(self.start(tool, arguments, &agent, &context), context).await,
                Err(text) => Ok(CallToolResult::error(vec![ContentBlock::text(text)]).into()),
            },
            name => {
                let tool = match self.find_tool(&agent, name).await {
                    Ok(tool) => tool,
                    Err(names) => {
                        let text = search::unknown(name, names.tool_names.keys(), "tools/list");
                        let unknown = ErrorData::invalid_params(text, None);
                        let (by, requester) = ("unknown tool", agent.requester);
                        Box::pin(self.endpoint().record_rejected(requester, name, arguments, by, &unknown)).await;
                        return Err(unknown);
                    }
                };
                match self.wanted_task(&tool, &context)? {
                    Some(ttl) => self.start_task(tool, arguments, &agent, context, ttl),
                    None => self.follow(self.start(tool, arguments, &agent, &context), context).await,
                }
            }
        }
    }

    /// The tool with this name; otherwise the catalog that does not contain it.
    async fn find_tool(&self, agent: &AgentView, name: &str) -> Result<ToolId, Arc<Catalog>> {
        self.find_offered(agent, |catalog| catalog.tool_names.get(name).cloned()).await
    }

    /// The next page of a long result of this agent.
    fn next_page(&self, agent: &AgentView, arguments: &Map<String, Value>) -> Result<String, String> {
        let place = PagePosition::of_arguments(arguments)?;
        let kept = self.endpoint().engine.large_results().of_agent(self.session.number, &place.id);
        let kept = kept.ok_or("the result with this id is no longer available; call the tool again")?;
        let limit = agent.view.result_limit.unwrap_or(usize::MAX);
        heavy(kept.get().len(), || long_results::page(&kept, &place, limit))
    }

    async fn find(&self, agent: &AgentView, arguments: &Map<String, Value>) -> CallToolResult {
        let catalog = self.session.settled_catalog(agent).await;
        match search::find(&catalog.searched, arguments) {
            Ok(found) => CallToolResult::structured(found),
            Err(text) => CallToolResult::error(vec![ContentBlock::text(text)]),
        }
    }

    /// The tool and the arguments that `call_tool` should call; otherwise an error for the model.
    async fn parse_call(
        &self,
        agent: &AgentView,
        arguments: Map<String, Value>,
    ) -> Result<(ToolId, Map<String, Value>), String> {
        let (name, arguments) = search::parse_call(arguments)?;
        match self.find_tool(agent, &name).await {
            Ok(tool) => Ok((tool, arguments)),
            Err(names) => {
                let text = search::unknown(&name, names.tool_names.keys(), search::FIND);
                let unknown = ErrorData::invalid_params(text.clone(), None);
                self.endpoint()
                    .record_rejected(agent.requester.clone(), &name, arguments, "unknown tool", &unknown)
                    .await;
                Err(text)
            }
        }
    }

    pub(super) fn start(
        &self,
        tool: ToolId,
        arguments: Map<String, Value>,
        agent: &AgentView,
        context: &RequestContext<RoleServer>,
    ) -> RunningCall {
        let (progress_sender, progress) = mpsc::channel(PROGRESS_QUEUE);
        let (question_sender, questions) = mpsc::channel(1);
        let asker = ElicitationModes::of(context).map(|modes| -> Arc<dyn Asker> {
            match is_stateless(context) {
                true => Arc::new(AskByResult { questions: question_sender, modes, session: self.session.number }),
                false => Arc::new(AskByRequest { peer: context.peer.clone(), modes, session: self.session.number }),
            }
        });
        let server = tool.server.clone();
        let bytes = memory_of_fields(&arguments);
        let logs =
            (is_stateless(context) && context.meta.log_level().is_some()).then(|| self.endpoint().engine.notices());
        let id = CallId::random();
        let caller = self.endpoint().callers.begin(&id, self.session.number);
        let request = CallRequest {
            kind: CallKind::Tool,
            id,
            arguments,
            decision: self.host_has_asked(&tool).then(|| UserDecision {
                decision: Decision::AllowOnce,
                by: AnsweredBy::Agent(agent.requester.name.clone()).to_string().into(),
            }),
            tool,
            requester: agent.requester.clone(),
            must_ask: None,
            connection: Some(self.session.connection()),
            workflow: Some(self.workflow(context)),
            timeout: None,
            meta: passed_meta(context),
            unknown_fields: unknown_fields::kept(&context.meta),
            progress: context.meta.get_progress_token().map(|_| progress_sender),
            // Calls of an agent are independent of each other.
            turn: Turn::default(),
        };
        let engine = self.endpoint().engine.clone();
        let work = async move { engine.call_for(request, asker).await }.boxed();
        RunningCall {
            work,
            progress,
            questions,
            server,
            reported: 0.0,
            has_waited: false,
            logs,
            caller,
            bytes,
            _reserved: None,
        }
    }

    /// Whether the agent's host has asked its user about this call. Hosts do not ask about read-only tools.
    fn host_has_asked(&self, tool: &ToolId) -> bool {
        let snapshot = self.endpoint().engine.now();
        let own = |view: &Arc<ServerView>| view.tools.get(&tool.tool).cloned();
        let offered = snapshot.servers.get(&tool.server).and_then(own);
        self.session.host_asks() && offered.is_some_and(|offered| offered.tool.annotations.read_only != Some(true))
    }

    /// Continues a call that waited for an answer.
    fn resume(&self, state: &str, responses: Option<InputResponses>) -> Result<RunningCall, McpError> {
        let Some(SuspendedCall { running, answer, .. }) = self.endpoint().suspended.take(state) else {
            return Err(ErrorData::invalid_params("this call has ended; call the tool again", None));
        };
        let response = responses.unwrap_or_default().remove(QUESTION);
        // No answer means no.
        answer.send(response.unwrap_or_else(|| json!({ "action": "cancel" }))).ok();
        Ok(running)
    }

    /// Waits until a call ends or asks a question.
    async fn follow(
        &self,
        mut running: RunningCall,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, McpError> {
        let token = context.meta.get_progress_token();
        loop {
            tokio::select! {
                biased;
                Some(progress) = running.progress.recv() => {
                    let progress = running.in_order(progress);
                    Box::pin(send_progress(&context, token.clone(), progress)).await;
                }
                outcome = &mut running.work => {
                    if running.logs.is_some() {
                        Box::pin(running.forward_last_logs(&context)).await;
                    }
                    return self.finish(outcome, &context).map(Into::into);
                }
                notice = RunningCall::notice(&mut running.logs) => {
                    Box::pin(RunningCall::log(&running.server, &running.caller, &context, notice)).await;
                }
                Some(question) = running.questions.recv() => {
                    // Dropping an invalid question answers it with no.
                    let Ok(params) = serde_json::from_value(question.params) else { continue };
                    let request = InputRequest::Elicitation(ElicitRequest::new(params));
                    let requests = BTreeMap::from([(QUESTION.to_owned(), request)]);
                    if running._reserved.is_none() {
                        let reserved = self.reserve_suspended(running.bytes).map_err(|over| over_budget(&over))?;
                        running._reserved = Some(reserved);
                    }
                    let state = self.endpoint().suspended.insert(running, question.answer, &self.session.gone)?;
                    return Ok(InputRequiredResult::new(Some(requests), Some(state)).into());
                }
                // Dropping the work cancels the call.
                () = context.ct.cancelled() => return Err(response::error(&Error::Cancelled)),
                () = self.session.gone.cancelled() => return Err(response::error(&Error::Cancelled)),
            }
        }
    }

    fn finish(
        &self,
        outcome: Result<Outcome>,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, McpError> {
        match outcome {
            Ok(outcome) => {
                let raw = self.result_keeper(context).result(outcome);
                self.deliver(context, raw, response::Shape::Typed, CallToolResult::default())
            }
            Err(error) => Ok(response::refusal(&error)),
        }
    }
}

pub(super) async fn send_progress(
    context: &RequestContext<RoleServer>,
    token: Option<ProgressToken>,
    progress: Progress,
) {
    let Some(token) = token else { return };
    let mut params = ProgressNotificationParam::new(token, progress.progress);
    params.total = progress.total;
    params.message = progress.message;
    // Fails if the agent has disconnected.
    context.peer.notify_progress(params).await.ok();
}
