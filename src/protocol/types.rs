//! The types that commands answer with and notifications carry. Each is written here once: the TypeScript and Lua types
//! and the tables of `docs/protocol.md` are generated from them.

mod agents;
mod questions;

pub use agents::{AgentCall, AgentFigures, AgentStatus};
pub use questions::{
    AnswerPlace, AnsweredIn, Approval, ApprovalAnswer, ApprovalGroup, ApprovalKind, ApprovalOutcome, ClosedApproval,
    FileChange, LargeArguments, ResourceQuestion,
};

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::actions::{Action, Remedy, Summary};
use super::mcp::{Content, RecordedResult, Schema};
use crate::model::{CallId, CallKind, Level, Requester, ServerName, Timestamp};

/// A JSON object whose keys are not part of this contract.
pub type Object = Map<String, Value>;

/// Shows enums as they are written on the wire.
macro_rules! shown_as_on_the_wire {
    ($($name:ty),*) => {
        $(impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.serialize(f)
            }
        })*
    };
}

shown_as_on_the_wire!(Status, Transport, ShownScope, LogSource, super::errors::ErrorKind);

/// What a server is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    Pending,
    Connected,
    Failed,
    NeedsAuth,
    Disabled,
    Stopped,
}

/// How a server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    Stdio,
    Tcp,
    Http,
    Sse,
    Sdk,
    #[serde(rename = "claudeai-proxy")]
    ClaudeAiProxy,
}

/// Where a definition comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Scope")]
pub enum ShownScope {
    Managed,
    Session,
    Local,
    Project,
    User,
    ClaudeAi,
}

/// A server: its definition, its state and what it offers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerStatus {
    pub name: ServerName,
    pub status: Status,
    /// Why a pending server is not connected yet: `starting`, `awaiting-trust`, `awaiting-input`, `retrying in 4 s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The state in a few words, for a list of servers.
    pub summary: Summary,
    /// The actions that are possible now. Those that the state calls for come first.
    pub actions: Vec<Action>,
    /// The action that makes it usable again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<Remedy>,
    pub enabled: bool,
    pub transport: Transport,
    /// The command that it runs or the address that it connects to, in one line, as written in the config file.
    pub launch: String,
    pub scope: ShownScope,
    /// The file that defines it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The zero-based line of its key in that file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Where the levels of its tools can be set. The first one is the default: the file that defines it.
    pub level_scopes: Vec<LevelScope>,
    /// Definitions of the same name that this one overrides.
    pub hides: Vec<HiddenDefinition>,
    /// Entries of other files that disable it or restrict its tools, in order of precedence.
    pub restrictions: Vec<ServerRestriction>,
    /// Why it failed, or what keeps it from starting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The same in one line, without output of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// Whether the user has to trust the definition before it starts.
    pub needs_trust: bool,
    /// What changed since the user last trusted the definition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust_diff: Option<String>,
    /// Names the definition as it is shown, for `mcp.server.trust`. Absent if the definition needs no trust.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust_digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_info: Option<ServerInfo>,
    /// The version of MCP that it uses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    pub capabilities: Vec<String>,
    pub tool_count: usize,
    pub resource_count: usize,
    pub prompt_count: usize,
    pub tools: Vec<ToolSummary>,
    /// The estimated tokens of a model's context that the definitions of its tools use.
    pub tokens: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// How long the last ping or call took at the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<f64>,
    pub restarts: u32,
    pub warnings: Vec<String>,
    /// The entry as written in its file. Nothing is expanded, and values of `env` and `headers` are shown as `•••` unless
    /// they are a plain `${…}`.
    #[schemars(with = "Object")]
    pub config: Value,
}

/// Where a level can be set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LevelScope {
    pub scope: ShownScope,
    /// A choice for the user: `in the project config`.
    pub title: String,
}

/// A definition that another one overrides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HiddenDefinition {
    pub scope: ShownScope,
    pub file: Option<String>,
}

/// An entry that defines no server, but disables the server of its name or restricts its tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServerRestriction {
    pub scope: ShownScope,
    pub file: Option<String>,
    /// The zero-based line of its key in that file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Whether it is the entry that disables the server.
    pub disables: bool,
    /// What it does, in a few words: `disables it`, `restricts its tools (2 rules)`.
    pub effect: String,
}

/// The name and version that a server reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServerInfo {
    pub name: String,
    pub version: String,
}

/// A tool in the status of its server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolSummary {
    pub name: String,
    pub description: String,
    pub annotations: Annotations,
    /// The estimated tokens of its definition.
    pub tokens: usize,
}

/// What a server claims about a tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Annotations {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
}

/// A tool with the level that applies to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolInfo {
    /// The whole name: `mcp__server__tool`.
    pub name: String,
    pub server: ServerName,
    pub tool: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    pub description: String,
    #[schemars(with = "Schema")]
    pub input_schema: Arc<Object>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Schema>")]
    pub output_schema: Option<Arc<Object>>,
    pub annotations: Annotations,
    pub level: Level,
    /// Whether it can be called: it is neither disabled nor denied.
    pub callable: bool,
    /// Where the level comes from.
    pub source: String,
    /// The tool has changed since the user allowed it, so the next call asks again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub changed: bool,
    /// The estimated tokens of a model's context that its definition uses.
    pub tokens: usize,
}

/// The outcome of a tool call.
// `Json` holds what the server sent: borrowed when it is sent on, owned when it is read.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ToolResult")]
pub struct ToolResult<Json = Box<RawValue>> {
    pub call_id: CallId,
    /// As the server sent it.
    #[schemars(with = "Vec<Content>")]
    pub content: Json,
    #[serde(skip_serializing_if = "Option::<Json>::is_none")]
    #[schemars(with = "Option<Value>")]
    pub structured_content: Option<Json>,
    /// The tool itself reported an error.
    pub is_error: bool,
    /// Without the time that the call waited for the user.
    pub duration_ms: f64,
    /// How long the call waited for the user.
    pub waited_ms: f64,
    /// The level or answer that allowed the call.
    pub decision: String,
    pub server: ServerName,
    pub tool: String,
}

impl ToolResult {
    /// The content blocks.
    pub fn blocks(&self) -> Vec<Value> {
        serde_json::from_str(self.content.get()).unwrap_or_default()
    }
}

/// An answer of the user that still applies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Grant {
    pub id: String,
    pub server: ServerName,
    pub tool: String,
    pub level: Level,
    /// `session`, `project` or `always`.
    pub scope: String,
    pub since: Timestamp,
}

/// An entry of the call log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Call {
    pub call_id: CallId,
    /// The workspace in which the call was made, if it is another worktree of the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    pub time: Timestamp,
    pub kind: CallKind,
    pub server: ServerName,
    /// The tool, or `resource:URI` or `prompt:NAME`, as rules name it.
    pub tool: String,
    pub requester: Requester,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// The level or answer that allowed or refused the call; `invalid` if it could not be made as requested.
    pub decision: String,
    /// Who decided: a rule, a grant, or the user and the editor, shell or agent in which they answered.
    pub decided_by: String,
    pub success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Without the time that the call waited for the user.
    pub duration_ms: f64,
    /// How long the call waited for the user.
    pub waited_ms: f64,
    /// The size of the whole result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_bytes: Option<usize>,
    /// The estimated tokens of the whole result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_tokens: Option<usize>,
    /// Masked and truncated. Absent in notifications.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// The arguments that were requested, if the user changed them. Masked and truncated. Absent in notifications.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested_arguments: Option<Value>,
    /// Masked and truncated. Absent in notifications.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<RecordedResult>")]
    pub result: Option<Value>,
}

/// What a reload of the config files changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reload {
    pub added: Vec<ServerName>,
    pub removed: Vec<ServerName>,
    /// Restarted, because their launch changed.
    pub changed: Vec<ServerName>,
    /// Only their levels changed; they keep running.
    pub policy_only: Vec<ServerName>,
    pub unchanged: usize,
    /// File → its errors.
    pub errors: BTreeMap<String, Vec<String>>,
}

/// A config file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigFile {
    pub path: String,
    pub scope: ShownScope,
    pub exists: bool,
    /// Whether it can be parsed. If not, the last valid version stays in effect.
    pub valid: bool,
    /// The names of the servers in it.
    pub servers: Vec<String>,
    /// What is wrong with it: only errors, in the order of the file.
    pub errors: Vec<ConfigError>,
}

/// An error in a config file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigError {
    /// Zero-based.
    pub line: u32,
    pub message: String,
}

/// Where a log line comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogSource {
    Stderr,
    Server,
    Sidecar,
}

/// A line of a server's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogLine {
    pub time: Timestamp,
    pub source: LogSource,
    pub level: String,
    pub text: String,
}

/// The level of a tool, where it comes from, and the rules that it overrides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Policy {
    pub tool: String,
    pub level: Level,
    pub source: String,
    pub hides: Vec<HiddenRule>,
    /// Levels of agents, where they differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentLevel>,
}

/// A rule that did not decide.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HiddenRule {
    pub level: Level,
    pub source: String,
    /// Why it does not count. Absent if an earlier rule simply came first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The level of a tool for one agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentLevel {
    pub agent: String,
    pub level: Level,
    pub source: String,
}

/// A definition to start from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Template {
    /// Also a good name for the server.
    pub id: String,
    pub title: String,
    pub description: String,
    pub config: Value,
    /// Entries for `inputs` that the definition needs.
    pub inputs: Vec<Value>,
}

/// Figures of a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerMetrics {
    pub server: ServerName,
    pub start_ms: Option<f64>,
    pub discover_ms: Option<f64>,
    pub restarts: u32,
    pub uptime_ms: Option<f64>,
    /// The estimated tokens of the definitions of its tools.
    pub tokens: usize,
    pub tools: Vec<ToolMetrics>,
}

/// Figures of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolMetrics {
    pub tool: String,
    pub calls: u64,
    pub errors: u64,
    pub p50_ms: f64,
    pub p95_ms: f64,
    pub p99_ms: f64,
    /// The median time that calls waited for the user, of those that did.
    pub waited_ms: f64,
    /// The median of the estimated tokens of a result.
    pub result_tokens: u64,
    /// The estimated tokens of all results.
    pub total_result_tokens: u64,
    /// The estimated tokens of its definition. Absent if the server does not offer it now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<usize>,
}

/// What a view of `config.toml` shows to its agents, and what that costs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ViewCost {
    /// The name of the section `[agents."NAME"]`. Empty for agents without one.
    pub agent: String,
    /// How many tools these agents can call.
    pub tools: usize,
    /// The estimated tokens of the definitions that they get in their list of tools.
    pub tokens: usize,
    /// They search tools instead of listing them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub search: bool,
}

/// A check of `mcp.doctor`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    pub name: String,
    pub ok: bool,
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

/// A `null` field is not the same as an absent one.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
