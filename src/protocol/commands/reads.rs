//! Commands that list and read resources and prompts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::model::{Requester, ServerName};

/// Lists resources and resource templates.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Resources {
    pub server: Option<ServerName>,
}

/// Reads a resource.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ResourceRead {
    pub server: ServerName,
    pub uri: String,
    /// Send `mcp/resourceUpdated` when it changes.
    pub subscribe: Option<bool>,
    /// Without it, the user, who is not asked again.
    pub requester: Option<Requester>,
}

/// Lists prompts.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Prompts {
    pub server: Option<ServerName>,
}

/// Gets a prompt with its arguments filled in.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct PromptGet {
    pub server: ServerName,
    pub name: String,
    pub arguments: Option<Map<String, Value>>,
    /// Without it, the user, who is not asked again.
    pub requester: Option<Requester>,
}

/// Completes an argument, as MCP's `completion/complete` does.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Complete {
    pub server: ServerName,
    #[serde(rename = "ref")]
    pub reference: Value,
    pub argument: Value,
    pub context: Option<Value>,
}
