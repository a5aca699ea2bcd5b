//! The agents that are connected, as an editor shows them.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::{CallId, ServerName, Timestamp};

/// An agent that is connected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentStatus {
    /// Names this connection in commands.
    pub id: String,
    /// The name that it reports, or that its user chose. Empty until it is known.
    pub name: String,
    /// The workspace or worktree that it works in.
    pub folder: PathBuf,
    pub since: Timestamp,
    /// The set of tools that it is limited to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
    /// Why it has no tools, if its set is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Its calls wait until the user resumes it.
    pub paused: bool,
    /// The state in a few words: `idle`, `runs git/log`, `waits for you: git/push`, `paused`.
    pub doing: String,
    /// Its calls that have not ended, oldest first.
    pub calls: Vec<AgentCall>,
    /// What agents of this name did in this workspace in the last 24 hours.
    pub today: AgentFigures,
}

/// A call of an agent that has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentCall {
    pub call_id: CallId,
    pub server: ServerName,
    pub tool: String,
    pub since: Timestamp,
    /// The id of the question that it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
}

/// What agents of one name did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentFigures {
    pub calls: u64,
    /// Calls that a rule or the user refused.
    pub denied: u64,
    /// The estimated tokens of all results.
    pub tokens: u64,
}
