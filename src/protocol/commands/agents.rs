//! Commands about the agents that are connected.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::CallId;

/// Lists the agents that are connected, and what they are doing.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Agents {}

/// Limits running agents to a set of tools of `config.toml`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct AgentSet {
    /// The name of the set. `null` ends the limit.
    pub set: Option<String>,
    /// The `id` or the name of an agent. Without it, all agents of this workspace.
    pub agent: Option<String>,
}

/// Pauses or resumes an agent. The calls of a paused agent wait.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AgentPause {
    /// The `id` or the name of the agent.
    pub agent: String,
    pub paused: bool,
}

/// Disconnects an agent. Its calls end.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AgentDisconnect {
    /// The `id` or the name of the agent.
    pub agent: String,
}

/// Reads the whole result of a call that an agent got only in part. It is kept for a while.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallResult {
    pub call_id: CallId,
}

/// Reports what agents did while no editor was open.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Away {}

/// Allows a call that was refused because there was no one to ask: the same call of the same agent, once.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AwayAllow {
    pub call_id: CallId,
}
