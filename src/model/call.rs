//! A request to run a tool, who made it, and its outcome.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{ServerName, Timestamp, ToolId};

/// Identifies a call in the log and in notifications; 128 random bits in hex.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(pub Arc<str>);

impl CallId {
    pub fn random() -> Self {
        let mut bits = [0u8; 16];
        if getrandom::fill(&mut bits).is_err() {
            // The id need not be secret, only unique.
            fastrand::fill(&mut bits);
        }
        Self(bits.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RequesterKind {
    User,
    Plugin,
    Agent,
}

/// Who requests a call.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Requester {
    pub kind: RequesterKind,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
}

impl Default for Requester {
    fn default() -> Self {
        Self { kind: RequesterKind::User, name: String::new() }
    }
}

/// A request to run a tool with these exact arguments.
#[derive(Debug, Clone)]
pub struct ToolCall {
    pub id: CallId,
    pub tool: ToolId,
    pub arguments: Arc<Map<String, Value>>,
    pub requester: Requester,
    pub workflow: Option<String>,
    pub timeout: Option<Duration>,
}

/// The result of a call, as the server sent it. Only its envelope is parsed, and large results are not copied.
#[derive(Debug, Clone)]
pub struct CallResult {
    pub raw: Arc<RawValue>,
    pub is_error: bool,
}

/// One record of the call log, as returned by `mcp.calls`.
#[derive(Debug, Clone, PartialEq)]
pub struct CallRecord {
    pub call_id: CallId,
    pub time: Timestamp,
    pub server: ServerName,
    pub tool: String,
    pub requester: Requester,
    pub workflow: Option<String>,
    /// The level or decision that allowed or denied the call.
    pub decision: String,
    /// The source of the decision: the location of a rule, a grant, `user`, `timeout`, ….
    pub decided_by: String,
    pub success: bool,
    pub error: Option<String>,
    pub duration_ms: f64,
    /// Masked and truncated; not part of notifications.
    pub arguments: Option<Value>,
    pub result: Option<Value>,
}
