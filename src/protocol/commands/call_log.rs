//! Commands for the log of tool calls.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::absent_when_null;
use crate::model::{ServerName, Timestamp};

/// Lists calls, newest first.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Calls {
    pub server: Option<ServerName>,
    pub tool: Option<String>,
    pub workflow: Option<String>,
    pub since: Option<Timestamp>,
    #[serde(default, deserialize_with = "absent_when_null")]
    pub failed: bool,
    /// Only calls that a rule or the user refused.
    #[serde(default, deserialize_with = "absent_when_null", skip_serializing_if = "std::ops::Not::not")]
    pub denied: bool,
    /// Only calls of the agent with this name.
    pub agent: Option<String>,
    /// Only calls that contain this text: in a name, the arguments, the result or the error.
    pub text: Option<String>,
    pub limit: Option<usize>,
}

/// Checks whether another program has changed the call log.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct CallsVerify {}

/// Reports figures of servers and tools.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Metrics {
    pub server: Option<ServerName>,
}
