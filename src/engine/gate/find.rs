//! Finds the server of a call, and its tool, resource or prompt.

use std::sync::Arc;

use super::CallTask;
use crate::engine::snapshot::{OfferedTool, ServerView};
use crate::engine::turns::Turn;
use crate::model::{CallKind, Error, PendingReason, Result, Status, ToolId};
use crate::text::one_line;

impl CallTask {
    /// Finds the server and the tool. Waits for a server that is starting, and starts one that starts on demand. The
    /// user can be asked while a server starts, but not `again` while it restarts.
    pub(super) async fn find(
        &self,
        turn: &mut Option<Turn>,
        again: bool,
    ) -> Result<(Arc<ServerView>, Arc<OfferedTool>)> {
        let ToolId { server, tool } = &self.call.tool;
        let is_tool = self.call.kind == CallKind::Tool;
        if is_tool && !self.view.shows(&self.call.tool) {
            return Err(Error::NoTool { server: server.clone(), tool: tool.to_string() });
        }
        if !self.view.shows_server(server) {
            return Err(Error::NoServer(server.to_string()));
        }
        let mut snapshots = self.engine.snapshot();
        let mut started_server = false;
        loop {
            let snapshot = snapshots.borrow_and_update().clone();
            let view = snapshot.server(server)?.clone();
            let status = view.state.status;
            let handle = view.usable();
            let restarts = again && status == Status::Pending(PendingReason::Starting);
            // Whether a resource is listed is known only while the server is connected.
            let is_known = handle.is_ok() && !restarts && (is_tool || status == Status::Connected);
            let offered = if is_known { snapshot.offered(&view, self.call.kind, tool) } else { None };
            if let Some(offered) = offered {
                if !is_tool && !self.view.shows_subject(server, &offered.tool) {
                    let message = format!("server `{server}` has no `{}`", one_line(tool, 200));
                    return Err(Error::Missing { server: server.clone(), message });
                }
                if view.trust_checked {
                    return Ok((view.clone(), offered));
                }
                // The definition has just changed. Its trust check takes milliseconds and always completes.
                snapshots.changed().await.map_err(|_| Error::Cancelled)?;
                continue;
            }
            match status {
                Status::Pending(PendingReason::Starting) => {
                    turn.take();
                    if let Ok(server) = handle {
                        server.hurry();
                    }
                    // The start has its own timeout, which ends in another status.
                    snapshots.changed().await.map_err(|_| Error::Cancelled)?;
                }
                // A server that the user stopped stays stopped: only they can start it again.
                Status::Stopped if !started_server && handle.as_ref().is_ok_and(|server| server.is_asleep()) => {
                    turn.take();
                    handle?.start().await?;
                    self.engine.refresh().await?;
                    started_server = true;
                }
                Status::Connected => {
                    handle?;
                    return Err(Error::NoTool { server: server.clone(), tool: tool.to_string() });
                }
                _ => {
                    // The server's own error, so that its kind is kept: a dead process is not a failed connection.
                    if let Some(error) = handle?.unavailable() {
                        return Err(error);
                    }
                    let error = view.state.error.as_ref().map(ToString::to_string);
                    let why = error.unwrap_or_else(|| match status {
                        Status::Pending(PendingReason::Input) => "it is waiting for the user's answer".to_owned(),
                        status => format!("it is {}", status.as_str()),
                    });
                    return Err(Error::Connection { server: server.clone(), message: why });
                }
            }
        }
    }
}
