//! What a user does with servers: start, stop, switch, set for this session, look at their logs.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::hub::Wish;
use super::snapshot::ServerView;
use super::turns::Turn;
use super::{Action, Engine};
use crate::config::layers;
use crate::model::{LogLine, Result, ServerName, Status};

/// What `mcp.servers.set` changed.
#[derive(Debug, Clone, Default, Serialize)]
pub struct SessionChange {
    pub added: Vec<String>,
    pub removed: Vec<String>,
    /// Server → why its definition cannot be used.
    pub errors: BTreeMap<String, String>,
}

impl Engine {
    /// Starts, stops or restarts one server or all; answered when they have settled.
    pub async fn act(&self, action: Action, server: Option<ServerName>, turn: Turn) -> Result<Vec<Arc<ServerView>>> {
        let chosen = server.clone();
        let settled = self.begin_wish(|done| Wish::Act { action, server: chosen, done }).await?;
        drop(turn);
        settled.await??;
        for view in self.now().select(server.as_ref())? {
            // It may have failed because what it starts is no longer what the user trusted: then it waits for that.
            if view.state.status == Status::Failed && view.definition.scope.needs_trust() {
                let name = view.definition.name.clone();
                self.wish(|done| Wish::Consider { server: name, done }).await.ok();
            }
        }
        Ok(self.now().select(server.as_ref())?.into_iter().cloned().collect())
    }

    /// Switches a server's tools on or off at run time; its connection stays.
    pub async fn toggle(&self, server: ServerName, on: bool) -> Result<Arc<ServerView>> {
        let chosen = server.clone();
        self.wish(|done| Wish::Toggle { server: chosen, on, done }).await??;
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
                    let told: Vec<String> = problems.into_iter().map(|problem| problem.message).collect();
                    errors.insert(name, told.join("; "));
                }
            }
        }
        let wanted: Vec<String> = good.keys().cloned().collect();
        let before = self.0.watcher.session_names();
        let loaded = self.0.watcher.set_session(good).await;
        self.wish(|done| Wish::Reloaded { loaded, done }).await?;
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

    /// The user's word on a definition: it starts, or it is stopped and stays so until it changes.
    pub async fn trust(&self, server: ServerName, trusted: bool) -> Result<Arc<ServerView>> {
        let definition = self.now().server(&server)?.definition.clone();
        self.0.judge.set(definition, trusted).await?;
        let name = server.clone();
        self.wish(|done| Wish::Consider { server: name, done }).await?;
        self.now().server(&server).cloned()
    }

    /// Has the hub publish what the servers say now.
    pub(super) async fn refresh(&self) -> Result<()> {
        self.wish(|done| Wish::Refresh { done }).await
    }

    /// The editor's own trust in the workspace: without it nothing of a project starts, whatever was trusted here.
    pub fn trust_workspace(&self, trusted: bool) {
        if self.0.judge.restrict(!trusted) {
            let wishes = self.0.wishes.clone();
            tokio::spawn(async move { wishes.send(Wish::ConsiderAll).await });
        }
    }
}
