//! Holds the calls of an agent while the user has paused it.

use std::time::Duration;

use super::CallTask;
use crate::model::{Error, Result};

/// How often a call that waits reports this. Agents give up on a call that is silent for a minute.
const REPORT_INTERVAL: Duration = Duration::from_secs(3);
const PAUSED: &str = "the user has paused this agent";

impl CallTask {
    /// Waits until the agent may go on, as long as a question would wait for the user.
    pub(super) async fn wait_while_paused(&self) -> Result<()> {
        let Some(connection) = &self.connection else { return Ok(()) };
        let agents = self.engine.agents();
        if !agents.is_paused(connection.number) {
            return Ok(());
        }
        let (calls, own) = (&self.engine.0.shared.calls, [self.call.id.clone()]);
        let _waiting = calls.measure_wait(&own);
        let limit = self.engine.0.shared.settings.borrow().approvals.timeout;
        let mut interval = tokio::time::interval(REPORT_INTERVAL);
        let reports = async {
            loop {
                interval.tick().await;
                calls.report(&own, || format!("This call waits: {PAUSED}."));
            }
        };
        tokio::select! {
            () = agents.resumed(connection.number) => Ok(()),
            () = tokio::time::sleep(limit) => {
                let (tool, reason) = (self.call.tool.clone(), PAUSED.to_owned());
                Err(Error::Unanswered { tool, reason, asked: true })
            }
            never = reports => never,
        }
    }
}
