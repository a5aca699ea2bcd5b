//! The tools, resources and prompts of a server. Each keeps the object that the server sent, so that fields of newer
//! protocol versions reach agents.

use std::sync::Arc;

use serde_json::{Map, Value};

/// One tool of a server, as the server describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    pub name: Arc<str>,
    pub title: Option<String>,
    pub description: String,
    pub input_schema: Arc<Map<String, Value>>,
    pub output_schema: Option<Arc<Map<String, Value>>>,
    pub annotations: Annotations,
    /// The whole definition as sent.
    pub raw: Arc<Value>,
}

/// What a server claims about a tool. These claims are not trusted: they are shown, and rules only use them if the user
/// allows it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Annotations {
    pub read_only: Option<bool>,
    pub destructive: Option<bool>,
    pub idempotent: Option<bool>,
    pub open_world: Option<bool>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Resource {
    pub uri: String,
    pub name: String,
    pub raw: Arc<Value>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ResourceTemplate {
    pub uri_template: String,
    pub name: String,
    pub raw: Arc<Value>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    pub name: String,
    pub raw: Arc<Value>,
}
