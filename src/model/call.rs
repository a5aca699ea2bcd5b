//! A request to run a tool, who made it, and its outcome.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::raw_json::RawJson;
use super::{Decision, ServerName, Timestamp, ToolId};

/// Identifies a call in the log and in notifications; 128 random bits in hex.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(pub Arc<str>);

impl CallId {
    pub fn random() -> Self {
        // The system is asked for several at once: each question takes as long as the rest of an id.
        thread_local!(static SPARE: RefCell<Vec<[u8; 16]>> = const { RefCell::new(Vec::new()) });
        let bits = SPARE.with_borrow_mut(|spare| {
            if spare.is_empty() {
                let mut bits = [[0; 16]; 32];
                if getrandom::fill(bits.as_flattened_mut()).is_err() {
                    // The id need not be secret, only unique.
                    fastrand::fill(bits.as_flattened_mut());
                }
                spare.extend(bits);
            }
            spare.pop().unwrap_or_default()
        });
        Self(format!("{:032x}", u128::from_be_bytes(bits)).into())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RequesterKind {
    User,
    Plugin,
    Agent,
}

impl std::fmt::Display for RequesterKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.serialize(f)
    }
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

/// What a call asks the server for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CallKind {
    #[default]
    Tool,
    /// To read a resource.
    Resource,
    /// To report changes of a resource.
    Subscription,
    Prompt,
    /// Values for an argument of a prompt or a template.
    Completion,
    /// A question of an agent about one of its built-in tools. The agent runs the tool, not we.
    Hook,
}

impl CallKind {
    pub const ALL: [Self; 6] =
        [Self::Tool, Self::Resource, Self::Subscription, Self::Prompt, Self::Completion, Self::Hook];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Resource => "resource",
            Self::Subscription => "subscription",
            Self::Prompt => "prompt",
            Self::Completion => "completion",
            Self::Hook => "hook",
        }
    }
}

/// A request to run a tool with these exact arguments, or to get something else from a server.
#[derive(Debug, Clone)]
pub struct ToolCall {
    pub id: CallId,
    pub kind: CallKind,
    /// For other kinds, the name of their subject: `resource:URI`, `prompt:NAME` or `agent:TOOL`.
    pub tool: ToolId,
    pub arguments: Arc<Map<String, Value>>,
    pub requester: Requester,
    pub workflow: Option<String>,
    pub timeout: Option<Duration>,
    /// The metadata of the caller that is passed on to the server, such as `traceparent`.
    pub meta: Arc<Map<String, Value>>,
    /// Fields of the request that MCP does not define. The server gets them, too.
    pub unknown_fields: Arc<Map<String, Value>>,
}

/// A decision of the user, and where it was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserDecision {
    pub decision: Decision,
    pub by: Arc<str>,
}

/// The result of a call, as the server sent it. Only its envelope is parsed, and large results are not copied.
#[derive(Debug, Clone)]
pub struct CallResult {
    pub raw: RawJson,
    pub is_error: bool,
}

/// How large a result is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResultSize {
    pub bytes: usize,
    /// See [`tokens`](super::tokens).
    pub tokens: usize,
}

impl ResultSize {
    pub fn of(raw: &RawJson) -> Self {
        Self { bytes: raw.get().len(), tokens: super::tokens::of_result(raw) }
    }
}

/// One record of the call log, as returned by `mcp.calls`.
#[derive(Debug, Clone, PartialEq)]
pub struct CallRecord {
    pub call_id: CallId,
    /// The workspace, if it is not that of the reader but another worktree of its repository.
    pub folder: Option<PathBuf>,
    pub time: Timestamp,
    pub kind: CallKind,
    pub server: ServerName,
    /// The tool, or the subject of another kind: `resource:URI`, `prompt:NAME` or `agent:TOOL`.
    pub tool: String,
    pub requester: Requester,
    pub workflow: Option<String>,
    /// The level or decision that allowed or denied the call.
    pub decision: String,
    /// Who decided: the location of a rule, a grant, or the user and where they answered.
    pub decided_by: String,
    pub success: bool,
    pub error: Option<String>,
    /// Without the time that the call waited for the user.
    pub duration_ms: f64,
    pub waited_ms: f64,
    /// How large the result is, if there is one.
    pub result_size: Option<ResultSize>,
    /// Masked and truncated; not part of notifications.
    pub arguments: Option<Value>,
    /// The arguments that were requested, if the user changed them.
    pub requested_arguments: Option<Value>,
    pub result: Option<Value>,
}
