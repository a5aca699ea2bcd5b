//! What commands answer.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::mcp::{PromptInfo, PromptMessage, ResourceContents, ResourceInfo};
use super::types::{
    Approval, Call, Check, ConfigFile, Grant, LogLine, Policy, ServerInfo, ServerMetrics, ServerStatus, Template,
    ToolInfo,
};

/// Nothing but success.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Done {}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerList {
    pub servers: Vec<ServerStatus>,
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
    /// As the server sent them.
    pub tools: Vec<Value>,
    pub resources: Vec<Value>,
    pub prompts: Vec<Value>,
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

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolList {
    pub tools: Vec<ToolInfo>,
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
    pub values: Vec<Value>,
    pub has_more: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalList {
    /// Oldest first.
    pub approvals: Vec<Approval>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GrantList {
    pub grants: Vec<Grant>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Revoked {
    /// How many grants were revoked.
    pub revoked: usize,
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

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Exported {
    /// A whole file with these servers.
    pub text: String,
    /// The file that was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// Server → what could not be carried over.
    pub notes: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TemplateList {
    pub templates: Vec<Template>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallList {
    /// Newest first.
    pub calls: Vec<Call>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricsList {
    pub servers: Vec<ServerMetrics>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckList {
    pub checks: Vec<Check>,
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
