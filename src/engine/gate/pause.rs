//! Holds the calls of an agent, and the questions of its hooks, while the user has paused it.

use std::time::Duration;

use super::CallTask;
use crate::engine::Engine;
use crate::model::{CallId, Error, Result};

/// How often a call that waits reports this. Agents give up on a call that is silent for a minute.
const REPORT_INTERVAL: Duration = Duration::from_secs(3);
const PAUSED: &str = "the user has paused this agent";

impl CallTask {
    /// Waits until the agent is resumed, as long as a question would wait for the user.
    pub(super) async fn wait_while_paused(&self) -> Result<()> {
        let Some(connection) = &self.connection else { return Ok(()) };
        self.engine.wait_while_paused(&[connection.number], &self.call.id).await.map_err(|Paused(reason)| {
            let tool = self.call.tool.clone();
            Error::Unanswered { tool, reason: reason.to_owned(), asked: true }
        })
    }
}

/// Why a call may not continue: its agent is still paused.
pub(super) struct Paused(pub(super) &'static str);

impl Engine {
    /// Waits until none of these agents is paused, as long as a question would wait for the user.
    pub(super) async fn wait_while_paused(&self, numbers: &[u64], call: &CallId) -> Result<(), Paused> {
        let agents = self.agents();
        if !agents.is_paused(numbers) {
            return Ok(());
        }
        let (calls, own) = (&self.0.shared.calls, [call.clone()]);
        let _waiting = calls.measure_wait(&own);
        let limit = self.0.shared.settings.borrow().approvals.timeout;
        let mut interval = tokio::time::interval(REPORT_INTERVAL);
        let reports = async {
            loop {
                interval.tick().await;
                calls.report(&own, || format!("This call waits: {PAUSED}."));
            }
        };
        tokio::select! {
            () = agents.resumed(numbers) => Ok(()),
            () = tokio::time::sleep(limit) => Err(Paused(PAUSED)),
            never = reports => never,
        }
    }
}
