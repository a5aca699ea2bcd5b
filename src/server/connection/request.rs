//! All requests other than tool calls and lists, as messages.
#![allow(
    deprecated,
    reason = "levels and subscriptions of the older era are on their way out of MCP, but servers of today use them"
)]

use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, ClientRequest, CustomRequest, GetPromptRequest, GetPromptRequestParams, LoggingLevel,
    ReadResourceRequest, ReadResourceRequestParams, RequestMetaObject, SetLevelRequest, SetLevelRequestParams,
    SubscribeRequest, SubscribeRequestParams, UnsubscribeRequest, UnsubscribeRequestParams,
};
use serde_json::{Map, Value};

use super::answer::Input;
use crate::model::{CallKind, Subject, ToolCall};

/// A request other than a tool call or a list.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    ReadResource { uri: String },
    GetPrompt { name: String, arguments: Option<Map<String, Value>> },
    Complete { r#ref: Value, argument: Value, context: Option<Value> },
    Subscribe { uri: String },
    Unsubscribe { uri: String },
    SetLevel { level: String },
}

impl Request {
    /// The request for a call. `None` for a tool call.
    pub(super) fn of(call: &ToolCall) -> Option<Self> {
        let name = |prefix: &str| call.tool.tool.strip_prefix(prefix).unwrap_or(&call.tool.tool).to_owned();
        let value = |key: &str| call.arguments.get(key).cloned();
        Some(match call.kind {
            CallKind::Tool | CallKind::Hook => return None,
            CallKind::Resource => Self::ReadResource { uri: name(Subject::RESOURCE) },
            CallKind::Subscription => Self::Subscribe { uri: name(Subject::RESOURCE) },
            CallKind::Prompt => {
                Self::GetPrompt { name: name(Subject::PROMPT), arguments: Some(call.arguments.as_ref().clone()) }
            }
            CallKind::Completion => Self::Complete {
                r#ref: value("ref").unwrap_or_default(),
                argument: value("argument").unwrap_or_default(),
                context: value("context"),
            },
        })
    }

    /// The MCP method.
    pub fn method(&self) -> &'static str {
        match self {
            Self::ReadResource { .. } => "resources/read",
            Self::GetPrompt { .. } => "prompts/get",
            Self::Complete { .. } => "completion/complete",
            Self::Subscribe { .. } => "resources/subscribe",
            Self::Unsubscribe { .. } => "resources/unsubscribe",
            Self::SetLevel { .. } => "logging/setLevel",
        }
    }

    pub(super) fn to_message(&self, input: &mut Input) -> ClientRequest {
        match self {
            Self::ReadResource { uri } => {
                let mut params = ReadResourceRequestParams::new(uri.clone());
                params.input_responses = input.responses.take();
                params.request_state = input.state.take();
                ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params))
            }
            Self::GetPrompt { name, arguments } => {
                let mut params = GetPromptRequestParams::new(name.clone());
                params.arguments.clone_from(arguments);
                params.input_responses = input.responses.take();
                params.request_state = input.state.take();
                ClientRequest::GetPromptRequest(GetPromptRequest::new(params))
            }
            // Forwarded unchanged: the editor and the server know what a reference may contain.
            Self::Complete { r#ref, argument, context } => {
                let mut params = serde_json::json!({ "ref": r#ref, "argument": argument });
                if let (Some(context), Some(params)) = (context, params.as_object_mut()) {
                    params.insert("context".to_owned(), context.clone());
                }
                ClientRequest::CustomRequest(CustomRequest::new(self.method(), Some(params)))
            }
            Self::Subscribe { uri } => {
                ClientRequest::SubscribeRequest(SubscribeRequest::new(SubscribeRequestParams::new(uri.clone())))
            }
            Self::Unsubscribe { uri } => {
                ClientRequest::UnsubscribeRequest(UnsubscribeRequest::new(UnsubscribeRequestParams::new(uri.clone())))
            }
            Self::SetLevel { level } => {
                let level = logging_level(level).unwrap_or(LoggingLevel::Info);
                ClientRequest::SetLevelRequest(SetLevelRequest::new(SetLevelRequestParams::new(level)))
            }
        }
    }
}

/// A call with fields that rmcp does not know. With `keep`, the server runs it as a task (revision 2025-11-25), and keeps it
/// as long as we may wait for it.
pub(super) fn custom_call(
    params: &CallToolRequestParams,
    keep: Option<Duration>,
    unknown: &Map<String, Value>,
) -> ClientRequest {
    let mut fields = unknown.clone();
    if let Ok(Value::Object(defined)) = serde_json::to_value(params) {
        fields.extend(defined);
    }
    if let Some(keep) = keep {
        let keep = u64::try_from(keep.as_millis()).unwrap_or(u64::MAX);
        fields.insert("task".to_owned(), serde_json::json!({ "ttl": keep }));
    }
    ClientRequest::CustomRequest(CustomRequest::new("tools/call", Some(Value::Object(fields))))
}

/// The metadata that requests a log level with each request.
pub(super) fn level_meta(level: &str) -> Option<RequestMetaObject> {
    let mut meta = RequestMetaObject::new();
    meta.set_log_level(logging_level(level)?);
    Some(meta)
}

/// MCP's name of a level; two of ours differ.
fn logging_level(level: &str) -> Option<LoggingLevel> {
    let level = match level {
        "trace" => "debug",
        "warn" => "warning",
        level => level,
    };
    serde_json::from_value(Value::from(level)).ok()
}
