//! Managing servers: start, stop, toggle, session servers, logs, trust.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::editors::Identity;
use super::hub::HubCommand;
use super::slot::TrustCheck;
use super::snapshot::ServerView;
use super::trust::AskAgain;
use super::turns::Turn;
use super::{Action, Engine};
use crate::config::layers;
use crate::model::{Decision, LogLine, Result, ServerName, Status};

/// What `mcp.servers.set` changed.
#[derive(Debug, Clone, Default)]
pub struct SessionChange {
    pub added: Vec<String>,
    pub removed: Vec<String>,
    /// Server → why its definition is invalid.
    pub errors: BTreeMap<String, String>,
}

/// What the user wants about the trust in a definition.
#[derive(Debug, Clone)]
pub enum TrustRequest {
    /// To be asked, even about a definition that they refused.
    Ask,
    /// To trust the definition with this digest, which they have seen.
    Trust { digest: Option<String> },
    /// To withdraw their trust.
    Distrust,
}

impl Engine {
    /// Starts, stops, restarts or refreshes one server or all. Returns when they have settled.
    pub async fn act(&self, action: Action, server: Option<ServerName>, turn: Turn) -> Result<Vec<Arc<ServerView>>> {
        if let Some(name) = &server {
            self.now().server(name)?.accepts(action)?;
        }
        let chosen = server.clone();
        let settled = self.queue_command(|done| HubCommand::Act { action, server: chosen, done }).await?;
        drop(turn);
        settled.await??;
        for view in self.now().select(server.as_ref())? {
            // It may have failed because its program is not the one that the user trusted. Then it waits for trust.
            if view.state.status == Status::Failed && view.definition.scope.needs_trust() {
                let name = view.definition.name.clone();
                self.send_command(|done| HubCommand::CheckTrust { server: name, check: TrustCheck::Again, done })
                    .await
                    .ok();
            }
        }
        Ok(self.now().select(server.as_ref())?.into_iter().cloned().collect())
    }

    /// Asks all running servers for their lists again, without waiting for the answers.
    pub async fn begin_refresh(&self) -> Result<()> {
        let refresh = |done| HubCommand::Act { action: Action::Refresh, server: None, done };
        self.queue_command(refresh).await.map(drop)
    }

    /// Turns a server's tools on or off for this session. Its connection stays open.
    pub async fn toggle(&self, server: ServerName, on: bool) -> Result<Arc<ServerView>> {
        let chosen = server.clone();
        self.send_command(|done| HubCommand::Toggle { server: chosen, on, done }).await??;
        self.now().server(&server).cloned()
    }

    /// Replaces the definitions of the session scope.
    pub async fn set_session(&self, servers: BTreeMap<String, Value>) -> Result<SessionChange> {
        let mut errors = BTreeMap::new();
        let mut good = BTreeMap::new();
        for (name, config) in servers {
            match layers::session_entry(&name, &config) {
                Ok(_) => {
                    good.insert(name, config);
                }
                Err(problems) => {
                    let messages: Vec<String> = problems.into_iter().map(|problem| problem.message).collect();
                    errors.insert(name, messages.join("; "));
                }
            }
        }
        let wanted: Vec<String> = good.keys().cloned().collect();
        let before = self.0.watcher.session_names();
        self.0.watcher.set_session(good).await;
        self.send_command(|done| HubCommand::ApplyConfig { done }).await?;
        Ok(SessionChange {
            added: wanted.iter().filter(|name| !before.contains(name)).cloned().collect(),
            removed: before.into_iter().filter(|name| !wanted.contains(name)).collect(),
            errors,
        })
    }

    /// The newest lines of a server's log, oldest first.
    pub fn logs(&self, server: &ServerName, limit: usize) -> Result<Vec<LogLine>> {
        let snapshot = self.now();
        let view = snapshot.server(server)?;
        Ok(view.server.as_ref().map(|server| server.logs(limit)).unwrap_or_default())
    }

    /// The user's decision about a definition: it starts, or it stops until it changes.
    pub async fn trust(&self, server: ServerName, request: TrustRequest, by: &Identity) -> Result<Arc<ServerView>> {
        let definition = self.now().server(&server)?.definition.clone();
        let own = !definition.scope.needs_trust();
        let checker = &self.0.trust_checker;
        let (decided, error) = match request {
            TrustRequest::Ask => (Err(AskAgain::default()), None),
            TrustRequest::Distrust => (Ok(Decision::Deny), checker.distrust(definition).await.err()),
            TrustRequest::Trust { digest } => match checker.trust(definition, digest.as_deref()).await {
                Ok(()) => (Ok(Decision::AllowProject), None),
                Err((ask, error)) => (Err(ask), Some(error)),
            },
        };
        let check = match decided {
            Ok(decision) => {
                self.0.approvals.trust_decided(&server, decision, by);
                TrustCheck::Decided { round: None }
            }
            Err(ask) => TrustCheck::Ask(ask),
        };
        let name = server.clone();
        self.send_command(|done| HubCommand::CheckTrust { server: name, check, done }).await?;
        if own {
            // The decision is about the folder, and so about all servers that run in it.
            self.0.commands.send(HubCommand::CheckAllTrust { own }).await.ok();
        }
        match error {
            Some(error) => Err(error),
            None => self.now().server(&server).cloned(),
        }
    }

    /// Makes the hub publish the current state of all servers.
    pub(super) async fn refresh(&self) -> Result<()> {
        self.send_command(|done| HubCommand::Refresh { done }).await
    }

    /// The editor's trust in the workspace. Without it no project server starts, even if it is trusted here.
    pub fn trust_workspace(&self, trusted: bool) {
        if self.0.trust_checker.trust_workspace(trusted) {
            let commands = self.0.commands.clone();
            tokio::spawn(async move { commands.send(HubCommand::CheckAllTrust { own: false }).await });
        }
    }
}
