//! Long-running tasks of servers, for callers that know nothing about them: a call that the server runs as a task is
//! followed until its result is there. Both forms are supported: tasks of revision 2025-11-25, which the caller requests,
//! and the extension `io.modelcontextprotocol/tasks`, where the server decides.

use std::time::Duration;

use rmcp::model::{ClientRequest, CustomRequest, ErrorData};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::answer::InputRequired;
use super::exchange::{RequestFailure, RequestLimits, describe_error};
use super::{CallOptions, Connection, Progress};
use crate::model::{CallId, Error, RawJson, Result};
use crate::server::transport::ledger::Slot;
use crate::text::{mask, one_line};

/// How often to ask for the status if the server does not say.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The limits of what the server may say.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(50);
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(60);
/// How long the cancellation of a task may take.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

/// A task as the server describes it, in both forms.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Task {
    task_id: String,
    status: String,
    status_message: Option<String>,
    /// Of 2025-11-25.
    poll_interval: Option<f64>,
    /// Of the extension.
    poll_interval_ms: Option<f64>,
    result: Option<Box<RawValue>>,
    error: Option<ErrorData>,
}

impl Task {
    /// The task that was created instead of a result, in the form of 2025-11-25.
    pub fn created(raw: &RawValue) -> Option<Self> {
        #[derive(Deserialize)]
        struct Created {
            task: Task,
        }
        serde_json::from_str::<Created>(raw.get()).ok().map(|created| created.task).filter(Self::is_valid)
    }

    /// The same in the form of the extension.
    pub fn of(raw: &RawValue) -> Option<Self> {
        serde_json::from_str::<Self>(raw.get()).ok().filter(Self::is_valid)
    }

    fn is_valid(&self) -> bool {
        !self.task_id.is_empty() && !self.status.is_empty()
    }

    fn interval(&self) -> Duration {
        let written =
            self.poll_interval_ms.or(self.poll_interval).and_then(|ms| Duration::try_from_secs_f64(ms / 1e3).ok());
        written.map_or(POLL_INTERVAL, |written| written.clamp(MIN_POLL_INTERVAL, MAX_POLL_INTERVAL))
    }
}

/// Which form of tasks a server uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Revision 2025-11-25: `tasks/result` waits for the result.
    Core,
    /// The extension: the status contains the result.
    Extension,
}

impl Connection {
    /// Waits for the result of a call that runs as a task. Dropping the future cancels the task at the server.
    pub(super) async fn follow_task(
        &self,
        mut task: Task,
        form: Form,
        what: &str,
        call: &CallId,
        limits: &RequestLimits,
        options: &CallOptions,
    ) -> Result<RawJson> {
        let mut abandoned = CancelTask { connection: self, id: Some(task.task_id.clone()) };
        let id = task.task_id.clone();
        let mut reported = 0.0;
        loop {
            let asked = self.0.questions.asked(Some(call)).total;
            let left = limits.total.saturating_add(asked).saturating_sub(limits.since.elapsed());
            match task.status.as_str() {
                "completed" | "failed" | "input_required" if form == Form::Core => {
                    // It also delivers the questions that the task waits for.
                    let result = self.ask_task("tasks/result", json!({ "taskId": id }), call, limits).await;
                    if result.is_ok() {
                        abandoned.id = None;
                    }
                    return result;
                }
                "completed" => {
                    abandoned.id = None;
                    let missing = || self.protocol(format!("the task of {what} is complete, but it has no result"));
                    return task.result.map(RawJson::from).ok_or_else(missing);
                }
                "failed" => {
                    abandoned.id = None;
                    let why = task.error.map_or_else(|| "the task failed".to_owned(), |error| describe_error(&error));
                    return Err(self.protocol(why));
                }
                "cancelled" => {
                    abandoned.id = None;
                    let why = task.status_message.map(|why| format!(": {}", one_line(&mask(&why), 500)));
                    return Err(
                        self.protocol(format!("the server cancelled the task of {what}{}", why.unwrap_or_default()))
                    );
                }
                _ if left.is_zero() => {
                    abandoned.cancel().await;
                    let (server, limit) = (self.0.name.clone(), options.max_timeout);
                    return Err(Error::Timeout {
                        server,
                        what: what.to_owned(),
                        limit,
                        setting: "servers.max-timeout",
                    });
                }
                _ => {}
            }
            reported += 1.0;
            if let Some(progress) = &options.progress {
                let message = task.status_message.as_deref().map(|message| one_line(&mask(message), 500));
                progress.try_send(Progress { progress: reported, message, ..Progress::default() }).ok();
            }
            tokio::time::sleep(task.interval().min(left)).await;
            let status = self.ask_task("tasks/get", json!({ "taskId": id }), call, limits).await?;
            let unclear = || self.protocol(format!("cannot parse the status of the task of {what}"));
            task = Task::of(&status).ok_or_else(unclear)?;
            if task.status == "input_required" && form == Form::Extension {
                let needed = InputRequired::of(&status).ok_or_else(unclear)?;
                let input = needed.ask(&self.0.questions, Some(call)).await;
                let params = json!({ "taskId": id, "inputResponses": input.responses.unwrap_or_default() });
                self.ask_task("tasks/update", params, call, limits).await?;
            }
        }
    }

    async fn ask_task(
        &self,
        method: &'static str,
        params: Value,
        call: &CallId,
        limits: &RequestLimits,
    ) -> Result<RawJson> {
        let request = ClientRequest::CustomRequest(CustomRequest::new(method, Some(params)));
        let slot = Slot::for_call(None, call, Default::default());
        let answer = self.exchange(request, &format!("`{method}`"), limits, slot).await;
        answer.map_err(|failure| match failure {
            RequestFailure::Local(error) => error,
            failure @ RequestFailure::Remote(_) => self.to_error(failure),
        })
    }
}

/// Cancels the task at the server when dropped with its id.
struct CancelTask<'a> {
    connection: &'a Connection,
    id: Option<String>,
}

impl CancelTask<'_> {
    async fn cancel(&mut self) {
        if let Some(cancel) = self.take_cancel() {
            cancel.await;
        }
    }

    fn take_cancel(&mut self) -> Option<impl Future<Output = ()> + Send + 'static> {
        let id = self.id.take()?;
        let connection = self.connection.clone();
        Some(async move {
            let request = CustomRequest::new("tasks/cancel", Some(json!({ "taskId": id })));
            let limits = RequestLimits {
                idle: CANCEL_TIMEOUT,
                total: CANCEL_TIMEOUT,
                since: Instant::now(),
                setting: "timeout",
            };
            let request = ClientRequest::CustomRequest(request);
            if let Err(error) = connection.ask(request, "`tasks/cancel`", &limits, None).await {
                tracing::debug!(server = %connection.0.name, %error, "cannot cancel a task");
            }
        })
    }
}

impl Drop for CancelTask<'_> {
    fn drop(&mut self) {
        if let (Some(cancel), Ok(runtime)) = (self.take_cancel(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(cancel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(value: Value) -> Box<RawValue> {
        serde_json::value::to_raw_value(&value).unwrap()
    }

    #[test]
    fn both_forms_of_a_task_are_read() {
        let core = raw(json!({ "task": { "taskId": "1", "status": "working", "ttl": null, "pollInterval": 250 } }));
        assert_eq!(Task::created(&core).unwrap().interval(), Duration::from_millis(250));
        let extension =
            raw(json!({ "resultType": "task", "taskId": "1", "status": "working", "pollIntervalMs": 90_000 }));
        assert_eq!(Task::of(&extension).unwrap().interval(), MAX_POLL_INTERVAL);
        assert!(Task::created(&raw(json!({ "content": [] }))).is_none());
        assert!(Task::of(&raw(json!({ "content": [] }))).is_none());
    }
}
