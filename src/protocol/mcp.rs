//! What servers send, as far as this contract knows it. Servers may send other fields, or other values: the
//! types below that only have a schema describe, they do not check.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::types::Object;
use crate::model::ServerName;

/// The part of JSON Schema that forms support. It comes from a server, so it may hold other keys, too.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is used: a server may send anything")]
pub struct Schema {
    #[serde(rename = "type")]
    kind: Option<SchemaType>,
    title: Option<String>,
    description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<Value>,
    #[serde(rename = "enum")]
    choices: Option<Vec<Value>>,
    enum_names: Option<Vec<String>>,
    #[serde(rename = "const", skip_serializing_if = "Option::is_none")]
    constant: Option<Value>,
    one_of: Option<Vec<Schema>>,
    any_of: Option<Vec<Schema>>,
    format: Option<String>,
    pattern: Option<String>,
    minimum: Option<f64>,
    maximum: Option<f64>,
    min_length: Option<u64>,
    max_length: Option<u64>,
    min_items: Option<u64>,
    max_items: Option<u64>,
    items: Option<Box<Schema>>,
    properties: Option<BTreeMap<String, Schema>>,
    required: Option<Vec<String>>,
    /// The value is a secret: do not show it.
    password: Option<bool>,
}

#[derive(JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum SchemaType {
    One(String),
    Several(Vec<String>),
}

/// A content block of MCP. Servers may send other fields, too.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Content {
    #[serde(rename = "type")]
    pub kind: String,
    pub text: Option<String>,
    /// Base64.
    pub data: Option<String>,
    pub mime_type: Option<String>,
    pub uri: Option<String>,
    pub name: Option<String>,
    pub title: Option<String>,
    pub description: Option<String>,
    pub resource: Option<ResourceContents>,
}

/// The content of a resource.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceContents {
    pub uri: String,
    pub mime_type: Option<String>,
    pub text: Option<String>,
    /// Base64.
    pub blob: Option<String>,
}

/// A tool, as its server sent it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SentTool(#[schemars(with = "KnownToolFields")] pub Object);

/// A resource, as its server sent it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SentResource(#[schemars(with = "KnownResourceFields")] pub Object);

/// A prompt, as its server sent it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SentPrompt(#[schemars(with = "KnownPromptFields")] pub Object);

#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
#[expect(dead_code, reason = "only its schema is used: a server may send anything")]
struct KnownToolFields {
    name: String,
    title: Option<String>,
    description: Option<String>,
    input_schema: Option<Schema>,
    output_schema: Option<Schema>,
    annotations: Option<Object>,
}

/// A resource or a resource template, as its server sent it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceInfo {
    #[serde(flatten)]
    #[schemars(with = "KnownResourceFields")]
    pub fields: Object,
    pub server: ServerName,
}

#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
#[expect(dead_code, reason = "only its schema is used: a server may send anything")]
struct KnownResourceFields {
    /// A template has a `uriTemplate` instead.
    uri: Option<String>,
    uri_template: Option<String>,
    name: String,
    title: Option<String>,
    description: Option<String>,
    mime_type: Option<String>,
}

/// A prompt, as its server sent it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PromptInfo {
    #[serde(flatten)]
    #[schemars(with = "KnownPromptFields")]
    pub fields: Object,
    pub server: ServerName,
}

#[derive(JsonSchema)]
#[schemars(inline)]
#[expect(dead_code, reason = "only its schema is used: a server may send anything")]
struct KnownPromptFields {
    name: String,
    title: Option<String>,
    description: Option<String>,
    arguments: Option<Vec<PromptArgument>>,
}

/// An argument of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PromptArgument {
    pub name: String,
    pub description: Option<String>,
    pub required: Option<bool>,
}

/// A message of a prompt.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct PromptMessage {
    pub role: String,
    pub content: Content,
}

/// The result of a call, as the log keeps it.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is used: a server may send anything")]
pub struct RecordedResult {
    content: Option<Vec<Content>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<Value>,
    is_error: Option<bool>,
}
