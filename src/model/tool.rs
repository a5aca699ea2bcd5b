//! The tools, resources and prompts of a server. Each keeps the object that the server sent, so that fields of newer
//! protocol versions reach agents.

use std::sync::Arc;

use serde_json::{Map, Value};

/// What rules, questions and records are about. A resource, a prompt or an agent's own tool takes the place of a tool
/// there, with the name `resource:URI`, `prompt:NAME` or `agent:TOOL`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Subject {
    #[default]
    Tool,
    Resource {
        /// The server lists exactly this URI.
        listed: bool,
        /// The template that the URI is an instance of, or the URI itself if it is a template.
        template: Option<String>,
    },
    Prompt {
        listed: bool,
    },
    /// A tool of an agent itself, such as its shell. The agent takes the place of the server.
    Agent,
}

impl Subject {
    pub const RESOURCE: &str = "resource:";
    pub const PROMPT: &str = "prompt:";
    pub const AGENT: &str = "agent:";
}

/// One tool of a server, as the server describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    pub name: Arc<str>,
    pub subject: Subject,
    pub title: Option<String>,
    pub description: String,
    pub input_schema: Arc<Map<String, Value>>,
    pub output_schema: Option<Arc<Map<String, Value>>>,
    pub annotations: Annotations,
    /// The definition as sent. The schemas above are `null` here, so that they are in memory only once.
    pub raw: Arc<Value>,
}

impl Tool {
    /// The whole definition as sent.
    pub fn definition(&self) -> Value {
        let mut definition = self.raw.as_ref().clone();
        for (key, schema) in [("inputSchema", Some(&self.input_schema)), ("outputSchema", self.output_schema.as_ref())]
        {
            if let (Some(place @ Value::Null), Some(schema)) = (definition.get_mut(key), schema) {
                *place = Value::Object(schema.as_ref().clone());
            }
        }
        definition
    }

    /// Whether its server describes both in the same way.
    pub fn is_described_like(&self, other: &Self) -> bool {
        self.raw == other.raw && self.input_schema == other.input_schema && self.output_schema == other.output_schema
    }

    /// The name that the server knows: the URI of a resource, the name of a prompt.
    pub fn own_name(&self) -> &str {
        let prefix = match self.subject {
            Subject::Tool => "",
            Subject::Resource { .. } => Subject::RESOURCE,
            Subject::Prompt { .. } => Subject::PROMPT,
            Subject::Agent => Subject::AGENT,
        };
        self.name.strip_prefix(prefix).unwrap_or(&self.name)
    }

    /// Whether the server says that it may run as a task (revision 2025-11-25).
    pub fn may_be_task(&self) -> bool {
        let support = self.raw.pointer("/execution/taskSupport").and_then(Value::as_str);
        matches!(support, Some("required" | "optional"))
    }

    /// Whether the server runs it only as a task (revision 2025-11-25).
    pub fn needs_task(&self) -> bool {
        self.raw.pointer("/execution/taskSupport").and_then(Value::as_str) == Some("required")
    }

    /// Whether the server declares that it changes nothing.
    pub fn is_read_only(&self) -> bool {
        self.annotations.read_only == Some(true)
    }
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

impl Annotations {
    /// What the tool says that it does, as a sentence.
    pub fn describe(self) -> String {
        let effect = match self {
            Self { read_only: Some(true), .. } => "The tool says that it only reads",
            Self { destructive: Some(true), .. } => "The tool says that it may destroy data",
            Self { read_only: Some(false), .. } => "The tool says that it writes",
            _ => "The tool does not say whether it writes",
        };
        let outside = match self.open_world {
            Some(true) => " and accesses the network or other external systems",
            _ => "",
        };
        format!("{effect}{outside}.")
    }
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
