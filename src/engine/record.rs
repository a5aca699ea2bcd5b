//! One row of the call log in the making. Every call leaves one, refused ones too.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use super::gate::Outcome;
use super::{Engine, Notice};
use crate::model::{CallId, CallRecord, Error, Requester, Result, ServerName, Timestamp, ToolCall, ToolId, millis};
use crate::policy::permit::Permitted;
use crate::store::{Begun, FinishedCall, Store};
use crate::text::one_line;

impl Engine {
    /// Records that an agent asked for something that is not for agents, such as an answer to an approval.
    pub async fn refuse_method(&self, requester: Requester, method: &str) {
        let Ok(server) = ServerName::new(OURSELVES) else { return };
        let tool = ToolId::new(server, method);
        let reason = "refused method: agents can list, read and call, and nothing else".to_owned();
        let error = Error::Denied { tool: tool.clone(), reason };
        self.record_refusal(requester, tool, Arc::default(), "refused method", error).await;
    }

    /// Records a call that a front could not bring to the door: its tool is not there, it makes no sense, or there are too
    /// many. `name` is what the agent calls the tool.
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
            Some(ToolId::new(server, &one_line(tool, LONGEST_NAME)))
        };
        let own = || ServerName::new(OURSELVES).ok().map(|server| ToolId::new(server, &one_line(name, LONGEST_NAME)));
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

/// Where nothing may run without a record, a log that cannot be written is the trouble of every server.
pub fn trouble(store: &Store) -> Option<String> {
    let problem = store.health().borrow().problem.clone().filter(|_| store.is_strict())?;
    Some(format!("no tool can be called, because calls are recorded first: {problem}"))
}

/// How much is kept of a name that nobody has.
const LONGEST_NAME: usize = 200;

/// Under which name stands what was asked of us and not of a server.
const OURSELVES: &str = "mcp-sidecar";

pub struct Recording {
    engine: Engine,
    row: CallRecord,
    arguments: Arc<Map<String, Value>>,
    begun: Option<Begun>,
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
                // Until somebody decides; a call that ends before it gets that far was refused by what ended it.
                decision: String::new(),
                decided_by: String::new(),
                success: false,
                error: None,
                duration_ms: 0.0,
                arguments: None,
                result: None,
            },
            arguments: call.arguments.clone(),
            begun: None,
        }
    }

    pub fn let_pass(&mut self, permitted: &Permitted) {
        self.row.decision = permitted.decision().to_owned();
        self.row.decided_by = permitted.decided_by().to_string();
    }

    pub fn refused(&mut self, decision: &str, by: &str) {
        self.row.decision = decision.to_owned();
        self.row.decided_by = by.to_owned();
    }

    /// In strict mode the row is on disk before the call is sent, or the call is not sent.
    pub async fn before_sending(&mut self) -> Result<()> {
        let call = FinishedCall { record: self.row.clone(), arguments: self.arguments.clone(), result: None };
        self.begun = Some(self.engine.0.store.begin_call(call).await?);
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
        self.engine.0.store.finish_call(self.begun.unwrap_or_default(), call).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Options;

    #[tokio::test]
    async fn a_log_that_cannot_be_written_is_trouble_where_nothing_runs_without_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("no-folder");
        std::fs::write(&file, "").unwrap();
        let options = |strict| Options { project: folder.path().into(), strict, keep_days: 30, record_bytes: 200 };
        let strict = Store::open(&file.join("state.db"), options(true)).await;
        let told = trouble(&strict).unwrap_or_default();
        assert!(told.starts_with("no tool can be called, because calls are recorded first: "), "{told}");
        assert_eq!(trouble(&Store::open(&file.join("state.db"), options(false)).await), None);
    }
}
