//! A wish to run a tool, who wishes it, and what came of it.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{ServerName, Timestamp, ToolId};

/// Names one call in the log and in notifications; 128 random bits in hex.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(pub Arc<str>);

impl CallId {
    pub fn random() -> Self {
        let mut bits = [0u8; 16];
        if getrandom::fill(&mut bits).is_err() {
            // Without the system's randomness the id only has to be unique.
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

/// Who wishes a call.
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

/// A wish to run a tool with these very arguments.
#[derive(Debug, Clone)]
pub struct ToolCall {
    pub id: CallId,
    pub tool: ToolId,
    pub arguments: Arc<Map<String, Value>>,
    pub requester: Requester,
    pub workflow: Option<String>,
    pub timeout: Option<Duration>,
}

/// What a server answered to a call: the result object as it was sent, not parsed into types. A result of megabytes
/// passes through without being copied or understood further than its envelope.
#[derive(Debug, Clone)]
pub struct CallResult {
    pub raw: Arc<RawValue>,
    pub is_error: bool,
}

/// One row of the call log; what `mcp.calls` lists.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CallRecord {
    pub call_id: CallId,
    pub time: Timestamp,
    pub server: ServerName,
    pub tool: String,
    pub requester: Requester,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// What let the call pass or stopped it: a level or a decision.
    pub decision: String,
    /// Where that came from: a rule's place, a grant, `user`, `timeout`, ….
    pub decided_by: String,
    pub success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    pub duration_ms: f64,
    /// Masked and cut; absent in notifications.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
}
