//! The user's earlier answers, and what is stored of a new one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::Engine;
use super::hub::HubCommand;
use super::snapshot::{OfferedTool, ServerView};
use crate::model::{Decision, Error, Level, Result, ServerName, Timestamp, ToolId};
use crate::policy::permit::OnceUsed;
use crate::policy::trust::real;
use crate::policy::{Grant, GrantMatch, GrantQuery, GrantScope, grants};
use crate::server::connection::Sent;
use crate::store::Saved;

/// The tools whose `allow-once` was used in this session, or is claimed by a call that is about to be sent. The `std`
/// lock is private to this file and held only for a lookup, never over an await.
#[derive(Clone, Default)]
pub struct OnceTracker(Arc<Mutex<BTreeSet<ToolId>>>);

/// Claims the one call of an `allow-once`. Dropping it releases the claim, unless the call was sent.
pub struct OnceClaim {
    once: OnceTracker,
    tool: ToolId,
    pub sent: Sent,
}

impl OnceTracker {
    pub fn used(&self, tool: &ToolId) -> OnceUsed {
        if self.lock().contains(tool) { OnceUsed::Yes } else { OnceUsed::No }
    }

    /// Claims the one call. `None` if another call has claimed it.
    pub fn claim(&self, tool: &ToolId) -> Option<OnceClaim> {
        let claimed = self.lock().insert(tool.clone());
        claimed.then(|| OnceClaim { once: self.clone(), tool: tool.clone(), sent: Sent::default() })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<ToolId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for OnceClaim {
    fn drop(&mut self) {
        if !self.sent.get() {
            self.once.lock().remove(&self.tool);
        }
    }
}

/// A grant, as `mcp.grants` lists it.
#[derive(Debug, Clone)]
pub struct GrantInfo {
    pub id: String,
    pub server: ServerName,
    pub tool: String,
    pub level: Level,
    pub scope: &'static str,
    pub since: Timestamp,
}

impl From<&Grant> for GrantInfo {
    fn from(grant: &Grant) -> Self {
        Self {
            id: grant.id.clone(),
            server: grant.server.clone(),
            tool: grant.tool.clone(),
            level: grant.level(),
            scope: match grant.scope {
                GrantScope::Disable => GrantScope::Project.as_str(),
                scope => scope.as_str(),
            },
            since: grant.since,
        }
    }
}

impl Engine {
    /// The user's answer to a question, from any front.
    pub fn resolve(&self, id: &str, decision: &str, note: Option<String>, content: Option<Value>) -> Result<()> {
        self.0.approvals.resolve(id, decision, note, content)
    }

    /// Finds an earlier answer that covers this tool as it is now.
    pub(super) async fn grant_for(&self, view: &ServerView, offered: &OfferedTool) -> GrantMatch {
        let project = self.project();
        let query = grant_query(view, offered, &project);
        self.0.store.find_grant(&query).await
    }

    /// Stores what an answer means for later calls: nothing for `allow-once` and `deny`.
    pub(super) async fn remember(&self, view: &ServerView, offered: &OfferedTool, decision: Decision) -> Result<()> {
        let project = self.project();
        let query = grant_query(view, offered, &project);
        if let Some(grant) = Grant::new(&query, decision, offered.pin().clone())
            && let Saved::InMemory(why) = self.0.store.add_grant(grant).await
        {
            tracing::warn!(tool = %offered.id, %why, "cannot save the answer; it is lost when the engine exits");
        }
        if decision == Decision::Disable {
            self.apply_disabled().await?;
        }
        Ok(())
    }

    pub async fn granted(&self) -> GrantLookup {
        GrantLookup { grants: self.0.store.grants().await, project: self.project() }
    }

    pub async fn grants(&self) -> Vec<GrantInfo> {
        self.0.store.grants().await.iter().map(|grant| GrantInfo::from(&**grant)).collect()
    }

    /// Revokes one grant or all of them. Returns how many.
    pub async fn revoke(&self, id: Option<&str>) -> Result<usize> {
        let revoked = match id {
            None => self.0.store.revoke_grants().await,
            Some(id) if self.0.store.revoke_grant(id).await => 1,
            Some(id) => return Err(Error::NotFound(format!("no grant has the id `{id}`"))),
        };
        self.apply_disabled().await?;
        Ok(revoked)
    }

    /// Sends the hub the tools that the user disabled in this project.
    pub(super) async fn apply_disabled(&self) -> Result<()> {
        let grants = self.0.store.grants().await;
        let disabled = grants.iter().filter(|grant| grant.scope == GrantScope::Disable);
        let tools = disabled.map(|grant| ToolId::new(grant.server.clone(), &grant.tool)).collect();
        self.send_command(|done| HubCommand::SetDisabledTools { tools, done }).await
    }

    /// Sets a level for this session only.
    pub async fn set_session_level(&self, server: ServerName, tool: &str, level: Option<Level>) -> Result<()> {
        self.send_command(|done| HubCommand::SetSessionLevel { server, tool: tool.to_owned(), level, done }).await
    }

    /// The canonical path of the workspace. Project grants are bound to it.
    fn project(&self) -> PathBuf {
        let folder = self.0.folders.borrow().first().cloned();
        folder.map_or_else(PathBuf::new, |folder| real(&folder))
    }
}

/// The user's grants, loaded once to check many tools.
pub struct GrantLookup {
    grants: Vec<Arc<Grant>>,
    project: PathBuf,
}

impl GrantLookup {
    pub fn find(&self, view: &ServerView, offered: &OfferedTool) -> GrantMatch {
        // A pin needs a digest, so it is computed only for tools that have a grant.
        let granted =
            self.grants.iter().any(|grant| grant.server == offered.id.server && *grant.tool == *offered.id.tool);
        if granted { grants::find(&self.grants, &grant_query(view, offered, &self.project)) } else { GrantMatch::None }
    }
}

fn grant_query<'a>(view: &'a ServerView, offered: &'a OfferedTool, project: &'a Path) -> GrantQuery<'a> {
    let bound = view.definition.scope.needs_trust();
    GrantQuery {
        tool: &offered.id,
        project,
        fingerprint: view.fingerprint.as_ref().filter(|_| bound).map(|fingerprint| fingerprint.digest.as_str()),
        pin: &offered.pin().digest,
    }
}
