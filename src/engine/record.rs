//! Records calls in the call log. Every call is recorded, also a denied one.

use std::sync::Arc;

use serde_json::{Map, Value};
use tokio::task::JoinHandle;

use super::Engine;
use super::gate::{Outcome, Times};
use super::telemetry::Span;
use crate::model::{
    CallId, CallKind, CallRecord, CallResult, Error, Requester, Result, ResultSize, ServerName, Timestamp, ToolCall,
    ToolId, millis,
};
use crate::policy::permit::Permitted;
use crate::store::{FinishedCall, StartedRecord, Store};
use crate::text::one_line;

impl Engine {
    /// Records that an agent sent a request that agents may not send, such as an answer to an approval.
    pub async fn refuse_method(&self, requester: Requester, method: &str) {
        let Ok(server) = ServerName::new(SIDECAR_NAME) else { return };
        let tool = ToolId::new(server, method);
        let reason = "agents may only list, read and call".to_owned();
        let error = Error::Denied { tool: tool.clone(), reason, rule: None };
        self.record_refusal(requester, (CallKind::Tool, tool), Arc::default(), ("deny", "refused method"), error).await;
    }

    /// Records a call that never reached the gate: its tool is unknown, its request is invalid, or there are too many.
    /// `name` is the agent's name for the tool.
    pub async fn refuse_call(
        &self,
        requester: Requester,
        name: &str,
        arguments: Map<String, Value>,
        by: &str,
        reason: String,
    ) {
        let known = |(server, tool): (&str, &str)| {
            let server = ServerName::new(server).ok().filter(|server| self.now().servers.contains_key(server))?;
            Some(ToolId::new(server, &one_line(tool, MAX_NAME_LENGTH)))
        };
        let own =
            || ServerName::new(SIDECAR_NAME).ok().map(|server| ToolId::new(server, &one_line(name, MAX_NAME_LENGTH)));
        let Some(tool) = name.split_once("__").and_then(known).or_else(own) else { return };
        let decision = if by.starts_with("limits.") { "deny" } else { INVALID };
        let what = (CallKind::Tool, tool);
        self.record_refusal(requester, what, Arc::new(arguments), (decision, by), Error::InvalidParams(reason)).await;
    }

    /// Records a resource or prompt that an agent asked for and that it cannot find.
    pub async fn refuse_read(&self, requester: Requester, kind: CallKind, name: &str, by: &str, reason: String) {
        let Ok(server) = ServerName::new(SIDECAR_NAME) else { return };
        let tool = ToolId::new(server, &one_line(name, MAX_NAME_LENGTH));
        let error = Error::InvalidParams(reason);
        self.record_refusal(requester, (kind, tool), Arc::default(), (INVALID, by), error).await;
    }

    async fn record_refusal(
        &self,
        requester: Requester,
        (kind, tool): (CallKind, ToolId),
        arguments: Arc<Map<String, Value>>,
        (decision, by): (&str, &str),
        error: Error,
    ) {
        let id = CallId::random();
        let (meta, unknown_fields) = Default::default();
        let call =
            ToolCall { id, kind, tool, arguments, requester, workflow: None, timeout: None, meta, unknown_fields };
        let mut recording = Recording::new(self, &call);
        recording.refused(decision, by);
        recording.finish(&Err(error), Times::default()).await;
    }
}

/// With a strict audit log, no tool can run while the log cannot be written.
pub fn blocking_problem(store: &Store) -> Option<String> {
    let problem = store.health().borrow().problem.clone().filter(|_| store.is_strict())?;
    Some(format!("tools cannot be called because the audit log cannot be written: {problem}"))
}

/// The decision about a call that could not be made as it was requested. It is not a denial.
const INVALID: &str = "invalid";

/// How much of an unknown tool name is stored.
const MAX_NAME_LENGTH: usize = 200;

/// The server name for requests to the sidecar itself.
const SIDECAR_NAME: &str = "mcp-sidecar";

/// Is in the record next to the arguments of a call that had fields which MCP does not define.
pub const UNKNOWN_FIELDS: &str = "(unknown fields)";

/// The arguments as the log has them, with the unknown fields of the request.
fn recorded(arguments: &Arc<Map<String, Value>>, unknown: &Arc<Map<String, Value>>) -> Arc<Map<String, Value>> {
    if unknown.is_empty() {
        return arguments.clone();
    }
    let mut recorded = arguments.as_ref().clone();
    recorded.insert(UNKNOWN_FIELDS.to_owned(), Value::Object(unknown.as_ref().clone()));
    Arc::new(recorded)
}

pub struct Recording {
    engine: Engine,
    /// Boxed, because it is moved several times.
    row: Box<CallRecord>,
    arguments: Arc<Map<String, Value>>,
    unknown_fields: Arc<Map<String, Value>>,
    /// The arguments that were requested, if the user changed them.
    requested: Option<Arc<Map<String, Value>>>,
    /// Writes the row before the call is sent. It is a task, because a caller that leaves before it ends must not leave
    /// behind a row without an outcome.
    starting: Option<JoinHandle<Result<StartedRecord>>>,
    started: Option<StartedRecord>,
    span: Span,
}

impl Recording {
    pub fn new(engine: &Engine, call: &ToolCall) -> Self {
        Self {
            engine: engine.clone(),
            row: Box::new(CallRecord {
                call_id: call.id.clone(),
                folder: None,
                time: Timestamp::now(),
                kind: call.kind,
                server: call.tool.server.clone(),
                tool: call.tool.tool.to_string(),
                requester: call.requester.clone(),
                workflow: call.workflow.clone(),
                // Until there is a decision. A call that ends before that was denied by the error that ended it.
                decision: String::new(),
                decided_by: String::new(),
                success: false,
                error: None,
                duration_ms: 0.0,
                waited_ms: 0.0,
                result_size: None,
                arguments: None,
                requested_arguments: None,
                result: None,
            }),
            arguments: recorded(&call.arguments, &call.unknown_fields),
            unknown_fields: call.unknown_fields.clone(),
            requested: None,
            starting: None,
            started: None,
            span: Span::of(&call.id, &call.meta),
        }
    }

    /// The metadata that the server gets: those of the caller, with our span in the trace if calls are exported.
    pub fn meta_for_server(&self, meta: &Arc<Map<String, Value>>) -> Arc<Map<String, Value>> {
        match self.engine.0.shared.telemetry.is_on() {
            true => Arc::new(self.span.child_meta(meta)),
            false => meta.clone(),
        }
    }

    pub fn permitted(&mut self, permitted: &Permitted) {
        self.row.decision = permitted.decision().to_owned();
        self.row.decided_by = permitted.decided_by().to_string();
    }

    pub fn refused(&mut self, decision: &str, by: &str) {
        self.row.decision = decision.to_owned();
        self.row.decided_by = by.to_owned();
    }

    /// The user changed the arguments.
    pub fn edited(&mut self, requested: Arc<Map<String, Value>>, arguments: Arc<Map<String, Value>>) {
        self.requested.get_or_insert_with(|| recorded(&requested, &self.unknown_fields));
        self.arguments = recorded(&arguments, &self.unknown_fields);
    }

    /// In strict mode, writes the row before the call is sent. If that fails, the call is not sent.
    pub async fn before_sending(&mut self) -> Result<()> {
        let store = &self.engine.0.store;
        if self.row.kind == CallKind::Completion || self.started.is_some() || !store.is_strict() {
            return Ok(());
        }
        if self.starting.is_none() {
            let (arguments, requested) = (self.arguments.clone(), self.requested.clone());
            let call = FinishedCall { record: Arc::from(self.row.clone()), arguments, requested, result: None };
            let store = store.clone();
            self.starting = Some(tokio::spawn(async move { store.begin_call(call).await }));
        }
        self.started().await
    }

    /// Waits until the row is written, if it is being written.
    async fn started(&mut self) -> Result<()> {
        if let Some(starting) = &mut self.starting {
            let started = starting.await;
            self.starting = None;
            let failed = |_| Err(Error::Io("cannot write the audit log: see the log of mcp-sidecar".to_owned()));
            self.started = Some(started.unwrap_or_else(failed)?);
        }
        Ok(())
    }

    /// Writes the record. Completion happens on every key, so only a denial of it is recorded.
    pub async fn finish(self, outcome: &Result<Outcome>, times: Times) {
        if self.row.kind == CallKind::Completion && !matches!(outcome, Err(Error::Denied { .. })) {
            return;
        }
        self.write(outcome.as_ref().map(|outcome| Some(&outcome.result)), times).await;
    }

    /// The same for a call that another program makes, so its result is unknown.
    pub async fn finish_answer(self, answer: Result<()>, times: Times) {
        self.write(answer.as_ref().map(|()| None), times).await;
    }

    async fn write(mut self, outcome: Result<Option<&CallResult>, &Error>, times: Times) {
        self.row.duration_ms = millis(times.ran);
        self.row.waited_ms = millis(times.waited);
        match outcome {
            Ok(result) => {
                let is_error = result.is_some_and(|result| result.is_error);
                self.row.success = !is_error;
                self.row.result_size = result.map(|result| ResultSize::of(&result.raw));
                self.row.error = is_error.then(|| "the tool reported an error".to_owned());
            }
            Err(error) => {
                self.row.error = Some(error.to_string());
                if self.row.decision.is_empty() {
                    let is_invalid = matches!(error, Error::InvalidParams(_) | Error::InvalidArguments { .. });
                    let by = match error {
                        Error::CallerGone(reason) => reason,
                        error => error.kind(),
                    };
                    self.refused(if is_invalid { INVALID } else { "deny" }, by);
                }
            }
        }
        if let Err(error) = self.started().await {
            tracing::error!(%error, "the row of a call was not written before its outcome");
        }
        let error = match outcome {
            Ok(Some(result)) if result.is_error => Some("tool_error"),
            Ok(_) => None,
            Err(error) => Some(error.kind()),
        };
        self.engine.0.shared.telemetry.record(&self.row, &self.span, error);
        let result = outcome.ok().flatten().map(|result| result.raw.clone());
        let Self { engine, row, arguments, requested, started, .. } = self;
        let record = Arc::from(row);
        engine.report_finished(&record);
        let call = FinishedCall { record, arguments, requested, result };
        engine.0.store.finish_call(started.unwrap_or_default(), call).await;
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;
    use crate::paths::Paths;
    use crate::settings::Settings;
    use crate::store::{CallQuery, Options};

    #[tokio::test]
    async fn a_call_that_is_cancelled_while_its_row_is_written_has_one_record() {
        let folder = tempfile::tempdir().unwrap();
        let paths = Paths::under(folder.path());
        let mut settings = Settings::default();
        settings.audit.strict = true;
        let engine = Engine::start(paths, settings);
        // Without this, the first row waits for the file.
        engine.0.store.calls(CallQuery::default()).await.unwrap();
        let call = ToolCall {
            id: CallId::random(),
            kind: CallKind::Tool,
            tool: ToolId::new(ServerName::new("demo").unwrap(), "echo"),
            arguments: Arc::default(),
            requester: Requester::default(),
            workflow: None,
            timeout: None,
            meta: Arc::default(),
            unknown_fields: Arc::default(),
        };
        let mut recording = Recording::new(&engine, &call);
        assert!(recording.before_sending().now_or_never().is_none(), "the row is being written");
        recording.finish(&Err(Error::Cancelled), Times::default()).await;
        let records = engine.0.store.calls(CallQuery::default()).await.unwrap();
        let outcomes: Vec<_> = records.iter().map(|record| record.error.as_deref()).collect();
        assert_eq!(outcomes, [Some("cancelled")]);
    }

    #[tokio::test]
    async fn an_unwritable_log_blocks_tools_only_in_strict_mode() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("no-folder");
        std::fs::write(&file, "").unwrap();
        let options = |strict| Options { strict, ..Options::new(folder.path(), &Settings::default()) };
        let strict = Store::open(&file.join("state.db"), options(true)).await;
        let problem = blocking_problem(&strict).unwrap_or_default();
        assert!(problem.starts_with("tools cannot be called because the audit log cannot be written: "), "{problem}");
        assert_eq!(blocking_problem(&Store::open(&file.join("state.db"), options(false)).await), None);
    }
}
