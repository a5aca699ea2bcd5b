//! The user's earlier answers, and what is stored of a new one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use super::Engine;
use super::approvals::{Reply, Resolved};
use super::editors::Identity;
use super::hub::HubCommand;
use super::snapshot::{OfferedTool, ServerView};
use crate::model::{Decision, Error, HookAgent, Level, Requester, Result, ServerName, Timestamp, ToolCall, ToolId};
use crate::paths::in_main_checkout;
use crate::policy::permit::OnceUsed;
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
    is_used: bool,
}

impl OnceClaim {
    /// The call is made by another program.
    pub fn used(mut self) {
        self.is_used = true;
    }
}

impl OnceTracker {
    pub fn used(&self, tool: &ToolId) -> OnceUsed {
        if self.lock().contains(tool) { OnceUsed::Yes } else { OnceUsed::No }
    }

    /// Claims the one call. `None` if another call has claimed it.
    pub fn claim(&self, tool: &ToolId) -> Option<OnceClaim> {
        let claimed = self.lock().insert(tool.clone());
        claimed.then(|| OnceClaim { once: self.clone(), tool: tool.clone(), sent: Sent::default(), is_used: false })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<ToolId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for OnceClaim {
    fn drop(&mut self) {
        if !self.sent.get() && !self.is_used {
            self.once.lock().remove(&self.tool);
        }
    }
}

/// How long an answer waits until it is known whether it could be saved. Longer than a locked database is waited for.
const SAVE_TIMEOUT: Duration = Duration::from_secs(15);
/// How long a denied call is refused without asking again.
const DENIAL_TIME: Duration = Duration::from_secs(60);
/// How many denials are remembered.
const MAX_DENIALS: usize = 1_024;

/// The calls that the user has just denied. The `std` lock is like the one above.
#[derive(Default)]
pub struct RecentDenials(Mutex<Vec<Denial>>);

/// A call that the user denied.
#[derive(Debug, Clone)]
pub struct Denial {
    requester: Requester,
    tool: ToolId,
    pin: String,
    arguments: Arc<Map<String, Value>>,
    unknown_fields: Arc<Map<String, Value>>,
    at: Instant,
    pub reason: String,
    pub by: Arc<str>,
}

impl Denial {
    pub fn new(call: &ToolCall, offered: &OfferedTool, reason: &str, by: Arc<str>) -> Self {
        Self {
            requester: call.requester.clone(),
            tool: call.tool.clone(),
            pin: offered.pin().digest.clone(),
            arguments: call.arguments.clone(),
            unknown_fields: call.unknown_fields.clone(),
            at: Instant::now(),
            reason: reason.to_owned(),
            by,
        }
    }

    fn is_about(&self, call: &ToolCall, offered: &OfferedTool) -> bool {
        self.requester == call.requester
            && self.tool == call.tool
            && self.arguments == call.arguments
            && self.unknown_fields == call.unknown_fields
            && self.pin == offered.pin().digest
    }
}

impl RecentDenials {
    pub fn add(&self, denial: Denial) {
        let mut denials = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        denials.retain(|denial| denial.at.elapsed() < DENIAL_TIME);
        if denials.len() < MAX_DENIALS {
            denials.push(denial);
        }
    }

    pub fn find(&self, call: &ToolCall, offered: &OfferedTool) -> Option<Denial> {
        let denials = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        denials.iter().find(|denial| denial.at.elapsed() < DENIAL_TIME && denial.is_about(call, offered)).cloned()
    }
}

/// The commands and changes of files that an agent was just allowed. Some agents ask before they use a tool, and once more when
/// they need a permission for it. The `std` lock is like the one above.
#[derive(Clone, Default)]
pub struct AllowedActions(Arc<Mutex<Vec<(AllowedAction, Instant)>>>);

/// What two questions must have in common: the answer counts neither for another tool or folder, nor for another change of the
/// same file.
#[derive(Debug, Clone, PartialEq)]
pub struct AllowedAction {
    pub agent: HookAgent,
    pub session: Option<String>,
    /// `None` if the agent does not name the same tool in both.
    pub tool: Option<String>,
    pub folder: PathBuf,
    pub arguments: Arc<Map<String, Value>>,
}

impl AllowedActions {
    pub fn add(&self, action: AllowedAction) {
        let mut allowed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        allowed.retain(|(_, at)| at.elapsed() < DENIAL_TIME);
        if allowed.len() < MAX_DENIALS {
            allowed.push((action, Instant::now()));
        }
    }

    /// Whether the second question was expected. It is, once.
    pub fn take(&self, action: &AllowedAction) -> bool {
        let mut allowed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        allowed.retain(|(_, at)| at.elapsed() < DENIAL_TIME);
        let found = allowed.iter().position(|(known, _)| known == action);
        found.map(|place| allowed.swap_remove(place)).is_some()
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
    /// The user's answer to questions, from any front. Also returns why it could not be saved, if so.
    pub async fn resolve(
        &self,
        ids: &[String],
        reply: &Reply<'_>,
        editor: &Identity,
    ) -> Result<(Resolved, Option<String>)> {
        let mut resolved = self.0.approvals.resolve(ids, reply, editor)?;
        let not_saved = match resolved.not_saved.take() {
            Some(mut reports) => match tokio::time::timeout(SAVE_TIMEOUT, reports.recv()).await {
                Ok(report) => report,
                Err(_) => Some(format!("the state database did not answer within {} s", SAVE_TIMEOUT.as_secs())),
            },
            None => None,
        };
        Ok((resolved, not_saved))
    }

    /// Finds an earlier answer that covers this tool as it is now.
    pub(super) async fn grant_for(&self, view: &ServerView, offered: &OfferedTool) -> GrantMatch {
        self.grant_of(bound_to(view), offered).await
    }

    /// The same for a definition with this fingerprint, or an agent's own tool, which has none.
    pub(super) async fn grant_of(&self, fingerprint: Option<&str>, offered: &OfferedTool) -> GrantMatch {
        let project = self.project();
        self.0.store.find_grant(&grant_query(fingerprint, offered, &project)).await
    }

    /// Stores what an answer means for later calls: nothing for `allow-once` and `deny`.
    pub(super) async fn remember(&self, view: &ServerView, offered: &OfferedTool, decision: Decision) -> Result<Saved> {
        self.remember_for(bound_to(view), offered, decision).await
    }

    /// The same for a definition with this fingerprint, or an agent's own tool, which has none.
    pub(super) async fn remember_for(
        &self,
        fingerprint: Option<&str>,
        offered: &OfferedTool,
        decision: Decision,
    ) -> Result<Saved> {
        let project = self.project();
        let query = grant_query(fingerprint, offered, &project);
        let saved = match Grant::new(&query, decision, offered.pin().clone()) {
            Some(grant) => self.0.store.add_grant(grant).await,
            None => Saved::ToDisk,
        };
        if let Saved::InMemory(why) = &saved {
            tracing::warn!(tool = %offered.id, %why, "cannot save the answer; it is lost when the engine exits");
        }
        if decision == Decision::Disable {
            self.apply_disabled().await?;
        }
        Ok(saved)
    }

    pub async fn granted(&self) -> GrantLookup {
        GrantLookup { grants: self.0.store.grants().await, project: self.project() }
    }

    pub async fn grants(&self) -> Vec<GrantInfo> {
        self.0.store.grants().await.iter().map(|grant| GrantInfo::from(&**grant)).collect()
    }

    /// Revokes one grant or all of them. Returns how many, and whether that is saved.
    pub async fn revoke(&self, id: Option<&str>) -> Result<(usize, Saved)> {
        let revoked = match id {
            None => self.0.store.revoke_grants().await,
            Some(id) => {
                let saved = self.0.store.revoke_grant(id).await;
                (1, saved.ok_or_else(|| Error::NoGrant(id.to_owned()))?)
            }
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

    /// The canonical path of the workspace, in the main checkout. Project grants are bound to it.
    fn project(&self) -> PathBuf {
        let folder = self.0.folders.borrow().first().cloned();
        folder.map_or_else(PathBuf::new, |folder| in_main_checkout(&folder))
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
        if granted {
            grants::find(&self.grants, &grant_query(bound_to(view), offered, &self.project))
        } else {
            GrantMatch::None
        }
    }
}

/// The definition that a grant is bound to, if it is from a project.
fn bound_to(view: &ServerView) -> Option<&str> {
    let bound = view.definition.scope.needs_trust();
    view.fingerprint.as_ref().filter(|_| bound).map(|fingerprint| fingerprint.digest.as_str())
}

fn grant_query<'a>(fingerprint: Option<&'a str>, offered: &'a OfferedTool, project: &'a Path) -> GrantQuery<'a> {
    GrantQuery { tool: &offered.id, project, fingerprint, pin: &offered.pin().digest }
}
