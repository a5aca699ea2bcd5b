//! What the user said earlier, what he is asked now, and what is kept of the answer.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde_json::Value;

use super::Engine;
use super::hub::Wish;
use super::snapshot::{Offered, ServerView};
use crate::model::{Decision, Error, Level, Result, ServerName, Timestamp, ToolId};
use crate::policy::permit::OnceUsed;
use crate::policy::trust::real;
use crate::policy::{Asked, Found, Grant, GrantScope, grants};
use crate::server::connection::Sent;
use crate::store::Saved;

/// The tools whose `allow-once` in a file has been used in this session, or is claimed by a call that is about to be
/// sent. A `std` lock for the same reason as the one of the approvals: private to this file, held for a look-up, never
/// over an await.
#[derive(Clone, Default)]
pub struct Once(Arc<Mutex<BTreeSet<ToolId>>>);

/// The one call of an `allow-once`. Dropping it gives the call back, unless the call was sent.
pub struct OnceClaim {
    once: Once,
    tool: ToolId,
    pub sent: Sent,
}

impl Once {
    pub fn used(&self, tool: &ToolId) -> OnceUsed {
        if self.lock().contains(tool) { OnceUsed::Yes } else { OnceUsed::No }
    }

    /// Claims the one call; `None` when another call has it.
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
#[derive(Debug, Clone, Serialize)]
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
    /// The user's answer to a question, from whichever front.
    pub fn resolve(&self, id: &str, decision: &str, note: Option<String>, content: Option<Value>) -> Result<()> {
        self.0.approvals.resolve(id, decision, note, content)
    }

    /// What an earlier answer says about this tool, as it is now.
    pub(super) async fn grant_for(&self, view: &ServerView, offered: &Offered) -> Found {
        let project = self.project();
        let asked = asked(view, offered, &project);
        self.0.store.find_grant(&asked).await
    }

    /// Keeps what an answer says about calls to come: nothing after `allow-once` and `deny`.
    pub(super) async fn remember(&self, view: &ServerView, offered: &Offered, decision: Decision) -> Result<()> {
        let project = self.project();
        let asked = asked(view, offered, &project);
        if let Some(grant) = Grant::new(&asked, decision, offered.pin().clone())
            && let Saved::InMemory(why) = self.0.store.add_grant(grant).await
        {
            tracing::warn!(tool = %offered.id, %why, "the answer holds only until the engine ends");
        }
        if decision == Decision::Disable {
            self.apply_disabled().await?;
        }
        Ok(())
    }

    pub async fn granted(&self) -> Granted {
        Granted { grants: self.0.store.grants().await, project: self.project() }
    }

    pub async fn grants(&self) -> Vec<GrantInfo> {
        self.0.store.grants().await.iter().map(|grant| GrantInfo::from(&**grant)).collect()
    }

    /// Takes one grant back, or all of them; how many those were.
    pub async fn revoke(&self, id: Option<&str>) -> Result<usize> {
        let revoked = match id {
            None => self.0.store.revoke_grants().await,
            Some(id) if self.0.store.revoke_grant(id).await => 1,
            Some(id) => return Err(Error::NotFound(format!("no grant has the id `{id}`"))),
        };
        self.apply_disabled().await?;
        Ok(revoked)
    }

    /// Hands the hub the tools that the user disabled in this project.
    pub(super) async fn apply_disabled(&self) -> Result<()> {
        let grants = self.0.store.grants().await;
        let disabled = grants.iter().filter(|grant| grant.scope == GrantScope::Disable);
        let tools = disabled.map(|grant| ToolId::new(grant.server.clone(), &grant.tool)).collect();
        self.wish(|done| Wish::Disabled { tools, done }).await
    }

    /// Sets a level for this session only.
    pub async fn set_session_level(&self, server: ServerName, tool: &str, level: Option<Level>) -> Result<()> {
        self.wish(|done| Wish::Level { server, tool: tool.to_owned(), level, done }).await
    }

    /// The real path of the workspace: what project grants are bound to.
    fn project(&self) -> PathBuf {
        let folder = self.0.folders.borrow().first().cloned();
        folder.map_or_else(PathBuf::new, |folder| real(&folder))
    }
}

/// The user's earlier answers, to be held against many tools.
pub struct Granted {
    grants: Vec<Arc<Grant>>,
    project: PathBuf,
}

impl Granted {
    pub fn find(&self, view: &ServerView, offered: &Offered) -> Found {
        // Pinning costs a digest: only what was granted once is looked at.
        let granted =
            self.grants.iter().any(|grant| grant.server == offered.id.server && *grant.tool == *offered.id.tool);
        if granted { grants::find(&self.grants, &asked(view, offered, &self.project)) } else { Found::Nothing }
    }
}

fn asked<'a>(view: &'a ServerView, offered: &'a Offered, project: &'a Path) -> Asked<'a> {
    let bound = view.definition.scope.needs_trust();
    Asked {
        tool: &offered.id,
        project,
        fingerprint: view.fingerprint.as_ref().filter(|_| bound).map(|fingerprint| fingerprint.digest.as_str()),
        pin: &offered.pin().digest,
    }
}
