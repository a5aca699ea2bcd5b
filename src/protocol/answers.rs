//! What commands answer.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::actions::Remedy;
use super::errors::Violation;
use super::form::Field;
use super::mcp::{PromptInfo, PromptMessage, ResourceContents, ResourceInfo, SentPrompt, SentResource, SentTool};
use super::types::{
    AgentFigures, AgentStatus, Approval, ApprovalGroup, Call, Check, ConfigFile, Grant, LogLine, Object, Policy,
    ServerInfo, ServerMetrics, ServerStatus, ShownScope, Template, ToolInfo, ViewCost,
};
use crate::model::Timestamp;

/// What was entered in a form.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckedForm {
    /// As they would be sent.
    pub arguments: Object,
    /// What keeps them from being sent.
    pub problems: Vec<Violation>,
    /// What the user should know before they are sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Violation>,
    /// For a new server: what it runs or connects to, one `word value` per line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preview: Vec<String>,
}

/// A form with its first values.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FilledForm {
    pub title: String,
    /// What the last step does.
    pub verb: String,
    pub fields: Vec<Field>,
    pub values: Object,
    /// The command that takes the `arguments` of the checked form.
    pub command: String,
}

/// An entry of the menu for a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ActionEntry {
    pub title: String,
    /// The id for `mcp.action.run`. Without it, the user is asked which tool gets the selection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// Whether the editor may announce it, for example with a light bulb. Otherwise it is offered only on request.
    pub automatic: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ActionList {
    pub actions: Vec<ActionEntry>,
}

/// Nothing but success.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Done {}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerList {
    pub servers: Vec<ServerStatus>,
    /// Problems of mcp-sidecar itself, for example a state folder that it refuses to use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OneServer {
    pub server: ServerStatus,
}

/// A server after its file was changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EditedServer {
    pub server: ServerStatus,
    /// Files that were changed in the editor and take effect when they are saved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsaved: Vec<PathBuf>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EditedFiles {
    /// Files that were changed in the editor and take effect when they are saved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsaved: Vec<PathBuf>,
}

/// The tools that a new level applies to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EditedTools {
    pub tools: Vec<ToolInfo>,
    /// Where the level was set.
    pub scope: ShownScope,
    /// Files that were changed in the editor and take effect when they are saved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsaved: Vec<PathBuf>,
}

/// The outcome of a test. Nothing stays running.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TestReport {
    pub success: bool,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_info: Option<ServerInfo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    pub tools: Vec<SentTool>,
    pub resources: Vec<SentResource>,
    pub prompts: Vec<SentPrompt>,
    pub latency_ms: f64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogLines {
    /// Oldest first.
    pub lines: Vec<LogLine>,
}

/// What changed in the session scope.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionChange {
    pub added: Vec<String>,
    pub removed: Vec<String>,
    /// Server → why its definition cannot be used.
    pub errors: BTreeMap<String, String>,
}

// `Info` is rendered when the list is sent, and parsed when it is read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ToolList")]
pub struct ToolList<Info = ToolInfo> {
    pub tools: Vec<Info>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyList {
    pub policies: Vec<Policy>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceList {
    pub resources: Vec<ResourceInfo>,
    pub templates: Vec<ResourceInfo>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ReadResource {
    pub contents: Vec<ResourceContents>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PromptList {
    pub prompts: Vec<PromptInfo>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Prompt {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub messages: Vec<PromptMessage>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Completion {
    pub values: Vec<String>,
    pub has_more: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalList {
    /// Oldest first.
    pub approvals: Vec<Approval>,
    pub groups: Vec<ApprovalGroup>,
}

/// The effect of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Resolved {
    /// The ids of the questions that this answered.
    pub resolved: Vec<String>,
    /// The ids of those that had ended before, for example because they were answered elsewhere.
    pub gone: Vec<String>,
    /// What has changed for later questions, as a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<String>,
    /// The same without what the question has just said, for one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short_effect: Option<String>,
    /// How to undo it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<Remedy>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GrantList {
    pub grants: Vec<Grant>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Revoked {
    /// How many grants were revoked.
    pub revoked: usize,
    /// What to say if this could not be saved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigFiles {
    pub files: Vec<ConfigFile>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Imported {
    pub imported: Vec<String>,
    /// Server → why it was not imported.
    pub skipped: BTreeMap<String, String>,
    /// Server → what to know about it.
    pub notes: BTreeMap<String, Vec<String>>,
    /// The file that was written, or would be.
    pub path: PathBuf,
}

/// A language for config files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FileSyntax {
    Json,
    Toml,
    Yaml,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Exported {
    /// A whole file with these servers.
    pub text: String,
    /// The language of the file.
    pub syntax: FileSyntax,
    /// The file that was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// Server → what could not be exported.
    pub notes: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TemplateList {
    pub templates: Vec<Template>,
}

/// What the registry has found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistryList {
    pub servers: Vec<RegistryEntry>,
    /// What the user should know: an old answer, a long list, or entries that were left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A server of the registry. Its publisher wrote the texts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistryEntry {
    pub name: String,
    pub title: Option<String>,
    pub description: String,
    pub version: String,
    /// How it can be used: `npm`, `pypi`, `oci`, `nuget`, `mcpb`, `http` or `sse`.
    pub packages: Vec<String>,
    /// Such as that it is deprecated, or that its name looks like another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallList {
    /// Newest first.
    pub calls: Vec<Call>,
}

/// Whether the call log is as mcp-sidecar wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallLogCheck {
    pub whole: bool,
    /// The outcome as sentences: which record breaks the chain, if one does.
    pub message: String,
    /// How many records were compared with the chain.
    pub checked: usize,
    /// How many records were written before the chain began.
    pub unchecked: usize,
    /// The newest link of the chain. It changes if any record is changed, so a copy elsewhere proves that none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricsList {
    pub servers: Vec<ServerMetrics>,
    /// What agents get in their list of tools, by the sections of `config.toml`. The last one is for all other agents.
    pub views: Vec<ViewCost>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckList {
    pub checks: Vec<Check>,
}

/// The agents that are connected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentList {
    /// In the order in which they connected.
    pub agents: Vec<AgentStatus>,
    /// The sets of tools in `config.toml`.
    pub sets: Vec<String>,
}

/// What agents did while no editor was open.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AwayReport {
    /// When the last editor closed. Absent if none was open before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// When the next one connected. Absent if there is still none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// All of it in a sentence. Absent if agents did nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The name of the agent → what it did.
    pub agents: BTreeMap<String, AgentFigures>,
    /// Calls that were refused because there was no one to ask, newest first. `mcp.away.allow` allows one for next
    /// time.
    pub refused: Vec<Call>,
}

/// The name under which a secret is kept in the keyring.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeptSecret {
    pub name: String,
}

/// The name of the server that was inserted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InsertedServer {
    pub server: String,
}
