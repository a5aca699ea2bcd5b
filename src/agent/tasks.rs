//! Tasks that agents start themselves: a call that continues after its request has been answered, in both forms of MCP.
//!
//! The task is ours, so it works for every server: its call passes the same gate, and cancelling the task cancels the call.
//! In the form of 2025-11-25, the agent requests a task (`task` in `tools/call`). In the form of the extension
//! `io.modelcontextprotocol/tasks`, we answer with a task if the tool may take long. rmcp only knows the extension, so the
//! transport passes the other requests on as custom ones ([`keep`]).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::{
    CallToolResponse, CallToolResult, ClientJsonRpcMessage, ClientRequest, CreateTaskResult, CustomRequest, ErrorCode,
    ErrorData, GetExtensions, GetMeta, JsonRpcMessage,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData as McpError, RoleServer};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::calls::{QUESTION, RunningCall, send_progress};
use super::handler::{Handler, is_stateless};
use super::long_results::ResultKeeper;
use super::response::{self, Shape};
use super::session::AgentView;
use super::transport::over_budget;
use super::unknown_fields;
use crate::engine::gate::Outcome;
use crate::model::{CallId, RawJson, Result, Timestamp, ToolId};

/// The key of `_meta` that keeps `task` of a call.
pub const REQUESTED: &str = "mcp-sidecar/task";
/// Stands before a method that rmcp would not pass on.
pub const PREFIX: &str = "mcp-sidecar/";
/// How often an agent should ask for the status.
const POLL_MS: u64 = 500;
/// How long a task is kept if the agent does not say, and at most.
const DEFAULT_TTL: Duration = Duration::from_secs(600);
const MAX_TTL: Duration = Duration::from_secs(24 * 3600);
/// How many tasks of all agents are kept.
const MAX_TASKS: usize = 256;
/// How much memory the results of all tasks may take, and those of one session. The oldest are dropped first.
const MAX_BYTES: usize = 64 << 20;
const MAX_BYTES_OF_SESSION: usize = 32 << 20;
pub const METHODS: [&str; 5] = ["tasks/get", "tasks/result", "tasks/list", "tasks/cancel", "tasks/update"];

/// Keeps what rmcp would drop or refuse: `task` and unknown fields of a call, and requests about tasks from agents that
/// do not declare the extension.
pub fn keep(line: &[u8], message: &mut ClientJsonRpcMessage) {
    #[derive(Deserialize)]
    struct Call {
        params: Params,
    }
    #[derive(Deserialize)]
    struct Params {
        task: Value,
    }
    let JsonRpcMessage::Request(request) = message else { return };
    let request = &mut request.request;
    let custom = match request {
        ClientRequest::CallToolRequest(_) => {
            if memchr::memmem::find(line, b"\"task\"").is_some()
                && let Ok(call) = serde_json::from_slice::<Call>(line)
            {
                request.get_meta_mut().insert(REQUESTED.to_owned(), call.params.task);
            }
            let unknown = unknown_fields::of_message(line);
            if !unknown.is_empty() {
                request.get_meta_mut().insert(unknown_fields::KEPT.to_owned(), Value::Object(unknown));
            }
            return;
        }
        ClientRequest::GetTaskRequest(get) => ("tasks/get", json!({ "taskId": get.params.task_id })),
        ClientRequest::CancelTaskRequest(cancel) => ("tasks/cancel", json!({ "taskId": cancel.params.task_id })),
        ClientRequest::UpdateTaskRequest(update) => {
            let responses = serde_json::to_value(&update.params.input_responses).unwrap_or_default();
            ("tasks/update", json!({ "taskId": update.params.task_id, "inputResponses": responses }))
        }
        _ => return,
    };
    let mut custom = ClientRequest::CustomRequest(CustomRequest::new(custom.0, Some(custom.1)));
    *custom.extensions_mut() = request.extensions().clone();
    *request = custom;
}

/// All tasks of an endpoint. Their ids cannot be guessed. The `std` lock is private to this file and held for a lookup.
#[derive(Default)]
pub struct Tasks(Mutex<BTreeMap<String, Arc<Task>>>);

struct Task {
    id: String,
    /// The session that started it, which alone can list it.
    session: u64,
    created: Timestamp,
    /// When it was created, for the clock of its timer.
    started: Instant,
    ttl: Duration,
    state: watch::Sender<State>,
    /// The answer that the call waits for. Locked like the list.
    answer: Mutex<Option<oneshot::Sender<Value>>>,
    cancel: CancellationToken,
}

#[derive(Clone)]
enum State {
    /// What the call does, or what it waits for.
    Working(Option<String>),
    /// The call waits for an answer of the user, which the agent has to get: the params of `elicitation/create`.
    Asking(Value),
    Done {
        raw: RawJson,
        is_error: bool,
    },
    Cancelled,
}

impl State {
    fn is_over(&self) -> bool {
        matches!(self, Self::Done { .. } | Self::Cancelled)
    }

    fn result_bytes(&self) -> usize {
        match self {
            Self::Done { raw, .. } => raw.get().len(),
            Self::Working(_) | Self::Asking(_) | Self::Cancelled => 0,
        }
    }
}

impl Tasks {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Task>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn insert(&self, task: Arc<Task>) -> Result<(), McpError> {
        let mut tasks = self.lock();
        if tasks.len() >= MAX_TASKS {
            let text = format!("too many tasks: the limit is {MAX_TASKS}");
            return Err(ErrorData::new(ErrorCode(-32_000), text, None));
        }
        tasks.insert(task.id.clone(), task);
        Ok(())
    }

    fn find(&self, params: &Value) -> Result<Arc<Task>, McpError> {
        let id = params.get("taskId").and_then(Value::as_str).unwrap_or_default();
        let found = self.lock().get(id).cloned();
        found.ok_or_else(|| ErrorData::invalid_params("no such task: it has ended or expired", None))
    }

    /// Drops the oldest results until the others fit. The newest one stays, whatever its size: the limit of a message bounds
    /// it.
    fn drop_oldest(&self, newest: &Task) {
        let mut tasks = self.lock();
        for (session, limit) in [(Some(newest.session), MAX_BYTES_OF_SESSION), (None, MAX_BYTES)] {
            let is_counted = |task: &&Arc<Task>| session.is_none_or(|session| task.session == session);
            let sizes = |task: &Arc<Task>| (task.started, task.state.borrow().result_bytes(), task.id.clone());
            let mut results: Vec<_> = tasks.values().filter(is_counted).map(sizes).collect();
            results.sort_unstable();
            let mut bytes: usize = results.iter().map(|(_, bytes, _)| bytes).sum();
            for (_, own, id) in results.into_iter().filter(|(_, own, id)| *own > 0 && *id != newest.id) {
                if bytes <= limit {
                    break;
                }
                bytes -= own;
                tasks.remove(&id);
            }
        }
    }
}

impl Task {
    fn take_answer(&self) -> MutexGuard<'_, Option<oneshot::Sender<Value>>> {
        self.answer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The task as an agent sees it.
    fn fields(&self, is_extension: bool) -> Map<String, Value> {
        let state = self.state.borrow().clone();
        let status = match &state {
            State::Working(_) => "working",
            State::Asking(_) => "input_required",
            // In the extension, a tool that reports an error has completed.
            State::Done { is_error: true, .. } if !is_extension => "failed",
            State::Done { .. } => "completed",
            State::Cancelled => "cancelled",
        };
        let ttl = u64::try_from(self.ttl.as_millis()).unwrap_or(u64::MAX);
        let mut fields = Map::from_iter([
            ("taskId".to_owned(), json!(self.id)),
            ("status".to_owned(), json!(status)),
            ("createdAt".to_owned(), json!(self.created)),
            ("lastUpdatedAt".to_owned(), json!(Timestamp::now())),
            (if is_extension { "ttlMs" } else { "ttl" }.to_owned(), json!(ttl)),
            (if is_extension { "pollIntervalMs" } else { "pollInterval" }.to_owned(), json!(POLL_MS)),
        ]);
        match state {
            State::Working(Some(message)) => {
                fields.insert("statusMessage".to_owned(), json!(message));
            }
            State::Done { raw, .. } if is_extension => {
                fields.insert("result".to_owned(), serde_json::from_str(raw.get()).unwrap_or_default());
            }
            State::Asking(params) if is_extension => {
                let question = json!({ "method": "elicitation/create", "params": params });
                fields.insert("inputRequests".to_owned(), json!({ QUESTION: question }));
            }
            State::Working(None) | State::Done { .. } | State::Asking(_) | State::Cancelled => {}
        }
        fields
    }
}

impl Handler {
    /// How long the agent wants to keep a task that it requests with a call, or that we may start for it; `None` if the
    /// call is not a task.
    pub(super) fn wanted_task(
        &self,
        tool: &ToolId,
        context: &RequestContext<RoleServer>,
    ) -> Result<Option<Duration>, McpError> {
        let snapshot = self.endpoint().engine.now();
        let offered = snapshot.servers.get(&tool.server).and_then(|view| view.tools.get(&tool.tool).cloned());
        let supports = offered.is_some_and(|offered| offered.tool.may_be_task());
        if is_stateless(context) {
            let declared = context.client_capabilities().is_some_and(|capabilities| capabilities.supports_tasks());
            return Ok((declared && supports).then_some(DEFAULT_TTL));
        }
        let Some(requested) = context.meta.get(REQUESTED) else { return Ok(None) };
        if !supports {
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "this tool cannot run as a task", None));
        }
        let ttl = requested.get("ttl").and_then(Value::as_u64).map(Duration::from_millis);
        Ok(Some(ttl.unwrap_or(DEFAULT_TTL).min(MAX_TTL)))
    }

    /// Starts a call as a task, and answers with the task.
    pub(super) fn start_task(
        &self,
        tool: ToolId,
        arguments: Map<String, Value>,
        agent: &AgentView,
        context: RequestContext<RoleServer>,
        ttl: Duration,
    ) -> Result<CallToolResponse, McpError> {
        let mut running = self.start(tool, arguments, agent, &context);
        running._reserved = Some(self.reserve_suspended(running.bytes).map_err(|over| over_budget(&over))?);
        let task = Arc::new(Task {
            id: CallId::random().0.to_string(),
            session: self.session.number,
            created: Timestamp::now(),
            started: Instant::now(),
            ttl,
            state: watch::Sender::new(State::Working(None)),
            answer: Mutex::default(),
            cancel: CancellationToken::new(),
        });
        self.endpoint().tasks.insert(task.clone())?;
        let is_extension = is_stateless(&context);
        let created = Value::Object(task.fields(is_extension));
        let answer = match is_extension {
            true => {
                let task = serde_json::from_value(created);
                let task = task.map_err(|_| ErrorData::internal_error("cannot describe the task", None))?;
                Ok(CallToolResponse::Task(CreateTaskResult::new(task)))
            }
            false => {
                let raw = to_raw_value(&json!({ "task": created })).unwrap_or_else(|_| RawValue::NULL.to_owned());
                self.deliver(&context, RawJson::from(raw), Shape::Plain, CallToolResult::default()).map(Into::into)
            }
        };
        let keeper = self.result_keeper(&context);
        let (tasks, gone) = (self.endpoint().tasks.clone(), self.session.gone.clone());
        tokio::spawn(async move {
            run(&task, running, context, &gone, keeper).await;
            tasks.drop_oldest(&task);
            // Only the list keeps the result.
            let (id, expires) = (task.id.clone(), task.started + task.ttl);
            drop(task);
            // An agent that has left cannot get the result, and a result is kept for some time only.
            tokio::select! {
                () = tokio::time::sleep_until(expires) => {}
                () = gone.cancelled() => {}
            }
            tasks.lock().remove(&id);
        });
        answer
    }

    /// Answers a request about tasks; `None` for another method.
    pub(super) async fn task_request(
        &self,
        request: &CustomRequest,
        context: &RequestContext<RoleServer>,
    ) -> Option<Result<Value, McpError>> {
        let name = request.method.strip_prefix(PREFIX).unwrap_or(&request.method);
        let method = *METHODS.iter().find(|method| **method == name)?;
        let params = request.params.clone().unwrap_or_default();
        Some(self.answer_task_request(method, params, is_stateless(context)).await)
    }

    /// The same for a transport of rmcp, which knows the extension.
    pub(super) async fn typed_task_request<T: DeserializeOwned>(
        &self,
        method: &str,
        params: Value,
        context: &RequestContext<RoleServer>,
    ) -> Result<T, McpError> {
        let answer = self.answer_task_request(method, params, is_stateless(context)).await?;
        serde_json::from_value(answer).map_err(|_| ErrorData::internal_error("cannot describe the task", None))
    }

    async fn answer_task_request(&self, method: &str, params: Value, is_extension: bool) -> Result<Value, McpError> {
        let tasks = &self.endpoint().tasks;
        let complete = |mut fields: Map<String, Value>| {
            if is_extension {
                fields.insert("resultType".to_owned(), json!("complete"));
            }
            Ok(Value::Object(fields))
        };
        match method {
            "tasks/get" => complete(tasks.find(&params)?.fields(is_extension)),
            "tasks/cancel" => {
                let task = tasks.find(&params)?;
                if task.state.borrow().is_over() && !is_extension {
                    return Err(ErrorData::invalid_params("this task has already ended", None));
                }
                task.cancel.cancel();
                task.state.subscribe().wait_for(State::is_over).await.ok();
                complete(if is_extension { Map::new() } else { task.fields(false) })
            }
            "tasks/result" if !is_extension => self.task_result(tasks.find(&params)?).await,
            "tasks/list" if !is_extension => {
                let own = |task: &&Arc<Task>| task.session == self.session.number;
                let list: Vec<_> = tasks.lock().values().filter(own).map(|task| task.fields(false)).collect();
                Ok(json!({ "tasks": list }))
            }
            "tasks/update" if is_extension => {
                let task = tasks.find(&params)?;
                let response = params.pointer(&format!("/inputResponses/{QUESTION}")).cloned();
                let answer = task.take_answer().take();
                if let Some(answer) = answer {
                    task.state.send_replace(State::Working(None));
                    // No answer means no.
                    answer.send(response.unwrap_or_else(|| json!({ "action": "cancel" }))).ok();
                }
                complete(Map::new())
            }
            _ => Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("method not found: {method}"), None)),
        }
    }

    /// Waits for the result of a task.
    async fn task_result(&self, task: Arc<Task>) -> Result<Value, McpError> {
        let mut state = task.state.subscribe();
        let ended = tokio::select! {
            ended = state.wait_for(State::is_over) => ended.map(|state| state.clone()),
            () = self.session.gone.cancelled() => return Err(ErrorData::internal_error("cancelled", None)),
        };
        match ended {
            Ok(State::Done { raw, .. }) => {
                let mut result: Map<String, Value> = serde_json::from_str(raw.get()).unwrap_or_default();
                let meta = result.entry("_meta").or_insert_with(|| json!({}));
                if let Some(meta) = meta.as_object_mut() {
                    meta.insert(RELATED.to_owned(), json!({ "taskId": task.id }));
                }
                Ok(Value::Object(result))
            }
            _ => Err(ErrorData::new(ErrorCode(-32_000), "the task was cancelled", None)),
        }
    }
}

/// The key of `_meta` that names the task of a result.
const RELATED: &str = "io.modelcontextprotocol/related-task";

/// Follows the call of a task until it ends, is cancelled, or its agent disconnects.
async fn run(
    task: &Task,
    mut running: RunningCall,
    context: RequestContext<RoleServer>,
    gone: &CancellationToken,
    keeper: ResultKeeper,
) {
    let token = context.meta.get_progress_token();
    loop {
        tokio::select! {
            biased;
            Some(progress) = running.progress.recv() => {
                let progress = running.in_order(progress);
                task.state.send_replace(State::Working(progress.message.clone()));
                send_progress(&context, token.clone(), progress).await;
            }
            outcome = &mut running.work => {
                let (raw, is_error) = result_of(outcome, &keeper);
                task.state.send_replace(State::Done { raw, is_error });
                return;
            }
            Some(question) = running.questions.recv() => {
                *task.take_answer() = Some(question.answer);
                task.state.send_replace(State::Asking(question.params));
            }
            // Dropping the work cancels the call.
            () = task.cancel.cancelled() => break,
            () = gone.cancelled() => break,
        }
    }
    drop(running);
    task.state.send_replace(State::Cancelled);
}

fn result_of(outcome: Result<Outcome>, keeper: &ResultKeeper) -> (RawJson, bool) {
    match outcome {
        Ok(outcome) => {
            let is_error = outcome.result.is_error;
            (keeper.result(outcome), is_error)
        }
        Err(error) => {
            let refusal = to_raw_value(&response::refusal(&error)).unwrap_or_else(|_| RawValue::NULL.to_owned());
            (RawJson::from(refusal), true)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(tasks: &Tasks, session: u64, megabytes: usize) -> Arc<Task> {
        let raw = RawValue::from_string(format!("\"{}\"", "x".repeat(megabytes << 20))).unwrap();
        let task = Arc::new(Task {
            id: CallId::random().0.to_string(),
            session,
            created: Timestamp::now(),
            started: Instant::now(),
            ttl: MAX_TTL,
            state: watch::Sender::new(State::Done { raw: raw.into(), is_error: false }),
            answer: Mutex::default(),
            cancel: CancellationToken::new(),
        });
        tasks.insert(task.clone()).unwrap();
        tasks.drop_oldest(&task);
        task
    }

    #[test]
    fn the_oldest_results_are_dropped_and_one_agent_does_not_displace_another() {
        let tasks = Tasks::default();
        let is_kept = |task: &Arc<Task>| tasks.lock().contains_key(&task.id);
        let other = done(&tasks, 1, 1);
        let results: Vec<_> = (0..4).map(|_| done(&tasks, 2, 10)).collect();
        assert_eq!(results.iter().map(is_kept).collect::<Vec<_>>(), [false, true, true, true]);
        assert!(is_kept(&other));
        let huge = done(&tasks, 2, 33);
        assert!(is_kept(&huge) && !is_kept(&results[3]), "the newest one stays");
        let third = done(&tasks, 3, 30);
        assert!(is_kept(&third) && is_kept(&huge) && !is_kept(&other), "all together");
    }
}
