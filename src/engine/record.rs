//! Records calls in the call log. Every call is recorded, also a denied one.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use super::gate::Outcome;
use super::{Engine, Notice};
use crate::model::{CallId, CallRecord, Error, Requester, Result, ServerName, Timestamp, ToolCall, ToolId, millis};
use crate::policy::permit::Permitted;
use crate::store::{FinishedCall, StartedRecord, Store};
use crate::text::one_line;

impl Engine {
    /// Records that an agent sent a request that agents may not send, such as an answer to an approval.
    pub async fn refuse_method(&self, requester: Requester, method: &str) {
        let Ok(server) = ServerName::new(SIDECAR_NAME) else { return };
        let tool = ToolId::new(server, method);
        let reason = "agents may only list, read and call".to_owned();
        let error = Error::Denied { tool: tool.clone(), reason };
        self.record_refusal(requester, tool, Arc::default(), "refused method", error).await;
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
        self.record_refusal(requester, tool, Arc::new(arguments), by, Error::InvalidParams(reason)).await;
    }

    async fn record_refusal(
        &self,
        requester: Requester,
        tool: ToolId,
        arguments: Arc<Map<String, Value>>,
        by: &str,
        error: Error,
    ) {
        let id = CallId::random();
        let call = ToolCall { id, tool, arguments, requester, workflow: None, timeout: None };
        let mut recording = Recording::new(self, &call);
        recording.refused("deny", by);
        recording.finish(&Err(error), Duration::ZERO).await;
    }
}

/// With a strict audit log, no tool can run while the log cannot be written.
pub fn blocking_problem(store: &Store) -> Option<String> {
    let problem = store.health().borrow().problem.clone().filter(|_| store.is_strict())?;
    Some(format!("tools cannot be called because the audit log cannot be written: {problem}"))
}

/// How much of an unknown tool name is stored.
const MAX_NAME_LENGTH: usize = 200;

/// The server name for requests to the sidecar itself.
const SIDECAR_NAME: &str = "mcp-sidecar";

pub struct Recording {
    engine: Engine,
    row: CallRecord,
    arguments: Arc<Map<String, Value>>,
    started: Option<StartedRecord>,
}

impl Recording {
    pub fn new(engine: &Engine, call: &ToolCall) -> Self {
        Self {
            engine: engine.clone(),
            row: CallRecord {
                call_id: call.id.clone(),
                time: Timestamp::now(),
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
                arguments: None,
                result: None,
            },
            arguments: call.arguments.clone(),
            started: None,
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

    /// In strict mode, writes the row before the call is sent. If that fails, the call is not sent.
    pub async fn before_sending(&mut self) -> Result<()> {
        let call = FinishedCall { record: self.row.clone(), arguments: self.arguments.clone(), result: None };
        self.started = Some(self.engine.0.store.begin_call(call).await?);
        Ok(())
    }

    pub async fn finish(mut self, outcome: &Result<Outcome>, duration: Duration) {
        self.row.duration_ms = millis(duration);
        match outcome {
            Ok(outcome) => {
                self.row.success = !outcome.result.is_error;
                self.row.error = outcome.result.is_error.then(|| "the tool reported an error".to_owned());
            }
            Err(error) => {
                self.row.error = Some(error.to_string());
                if self.row.decision.is_empty() {
                    self.refused("deny", error.kind());
                }
            }
        }
        self.engine.0.notices.send(Notice::CallFinished(Arc::new(self.row.clone()))).ok();
        let result = outcome.as_ref().ok().map(|outcome| outcome.result.raw.clone());
        let call = FinishedCall { record: self.row, arguments: self.arguments, result };
        self.engine.0.store.finish_call(self.started.unwrap_or_default(), call).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Options;

    #[tokio::test]
    async fn an_unwritable_log_blocks_tools_only_in_strict_mode() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("no-folder");
        std::fs::write(&file, "").unwrap();
        let options = |strict| Options { project: folder.path().into(), strict, keep_days: 30, record_bytes: 200 };
        let strict = Store::open(&file.join("state.db"), options(true)).await;
        let problem = blocking_problem(&strict).unwrap_or_default();
        assert!(problem.starts_with("tools cannot be called because the audit log cannot be written: "), "{problem}");
        assert_eq!(blocking_problem(&Store::open(&file.join("state.db"), options(false)).await), None);
    }
}
