//! Commands for forms: of tools, of questions and of servers.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::model::ServerName;

/// Shows the fields of a tool's arguments.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ToolForm {
    /// The whole name: `mcp__server__tool`.
    pub tool: String,
}

/// Shows the form of a server: of a new one, from a template, a command line or a definition, or of one that is in a file.
/// What was entered goes through `mcp.form.check`, and its answer to the command that the form names.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerForm {
    /// The id of a template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// A command line or a URL, as the user typed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_line: Option<String>,
    /// A definition, as in a config file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Map<String, Value>>,
    /// A server of the registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registry: Option<RegistryServer>,
    /// The absolute path of a bundle (`.mcpb`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<PathBuf>,
    /// A server that is in a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerName>,
}

/// A server of the registry.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct RegistryServer {
    /// Its name there: `io.github.user/weather`.
    pub name: String,
    /// Without it, the newest version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// One of its `packages`, if it has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
}

/// Searches the registry.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct RegistrySearch {
    /// Words to look for in names, titles and descriptions.
    pub query: String,
}

/// Reads and checks what was entered so far in the form of a tool, a question or a server. Nothing is sent to a server.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct FormCheck {
    /// The whole name: `mcp__server__tool`.
    pub tool: Option<String>,
    /// The id of a question.
    pub approval: Option<String>,
    /// The params of `mcp.server.form`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerForm>,
    /// Values, or texts as the user typed them, by the names of the fields.
    pub values: Map<String, Value>,
}
