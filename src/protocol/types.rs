//! The types that commands answer with and notifications carry. Each is written here once: the TypeScript and Lua types
//! and the tables of `docs/protocol.md` are generated from them.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::mcp::{Content, RecordedResult, Schema};
use crate::model::{CallId, Level, Requester, ServerName, Timestamp};

/// A JSON object whose keys are not part of this contract.
pub type Object = Map<String, Value>;

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
    pub enabled: bool,
    pub transport: Transport,
    pub scope: ShownScope,
    /// The file that defines it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The zero-based line of its key in that file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Definitions of the same name that this one overrides.
    pub hides: Vec<HiddenDefinition>,
    /// Why it failed, or what keeps it from starting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether the user has to trust the definition before it starts.
    pub needs_trust: bool,
    /// What changed since the user last trusted the definition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust_diff: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_info: Option<ServerInfo>,
    /// The version of MCP that it speaks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    pub capabilities: Vec<String>,
    pub tool_count: usize,
    pub resource_count: usize,
    pub prompt_count: usize,
    pub tools: Vec<ToolSummary>,
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

/// A definition that another one overrides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HiddenDefinition {
    pub scope: ShownScope,
    pub file: Option<String>,
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
    /// Where the level comes from.
    pub source: String,
    /// The tool has changed since the user allowed it, so the next call asks again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub changed: bool,
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
    pub duration_ms: f64,
    /// The level or answer that allowed the call.
    pub decision: String,
    pub server: ServerName,
    pub tool: String,
}

/// What kind of answer a question takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ApprovalKind {
    Tool,
    Trust,
    Elicitation,
    Input,
}

/// A question that waits for the user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    pub id: String,
    pub kind: ApprovalKind,
    pub server: ServerName,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// In full, as they will be sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Object>")]
    pub arguments: Option<Value>,
    pub title: String,
    pub detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    pub requester: Requester,
    /// The possible answers: decisions, or `accept`, `decline` and `cancel`.
    pub options: Vec<String>,
    /// What changed since the user last agreed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// What the call would change in a file of the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<FileChange>,
    /// The form to fill in.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Schema>")]
    pub schema: Option<Value>,
    /// The page to open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
}

/// What a call would change in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileChange {
    /// The absolute path.
    pub file: String,
    /// The path as the call names it.
    pub path: String,
    pub is_new: bool,
    /// The text after the call.
    pub after: String,
    pub diff: String,
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
    pub time: Timestamp,
    pub server: ServerName,
    pub tool: String,
    pub requester: Requester,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// The level or answer that allowed or refused the call.
    pub decision: String,
    /// Where the decision came from: a rule, a grant, `user`, `timeout`, ….
    pub decided_by: String,
    pub success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    pub duration_ms: f64,
    /// Masked and cut. Absent in notifications.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// Masked and cut. Absent in notifications.
    #[serde(skip_serializing_if = "Option::is_none")]
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
    /// Whether it can be parsed. If not, the last good version stays in force.
    pub valid: bool,
    /// The names of the servers in it.
    pub servers: Vec<String>,
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
