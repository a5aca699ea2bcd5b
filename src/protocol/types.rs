//! What commands answer and notifications carry.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::config::{File, Launch, layers};
use crate::engine::gate::Outcome;
use crate::engine::snapshot::{Offered, ServerView, Trust};
use crate::model::{Annotations, CallId, Error, Result, ServerName, Timestamp, millis};
use crate::policy::Found;
use crate::text::{has_invisible, visible};

/// What a server is doing, with all that a person may want to know about it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerStatus {
    pub name: ServerName,
    pub status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub enabled: bool,
    pub transport: &'static str,
    pub scope: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    pub hides: Vec<Hides>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    pub needs_trust: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust_diff: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_info: Option<ServerInfo>,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<f64>,
    pub restarts: u32,
    pub warnings: Vec<String>,
    pub config: Value,
}

#[derive(Debug, Clone, Serialize)]
pub struct Hides {
    pub scope: &'static str,
    pub file: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
pub struct ServerInfo {
    pub name: String,
    pub version: String,
}

#[derive(Debug, Clone, Serialize)]
pub struct ToolSummary {
    pub name: String,
    pub description: String,
    pub annotations: Annotations,
}

impl From<&ServerView> for ServerStatus {
    fn from(view: &ServerView) -> Self {
        let definition = &view.definition;
        let state = &view.state;
        let peer = state.peer.as_deref();
        Self {
            name: definition.name.clone(),
            status: state.status.as_str(),
            reason: state.status.reason(),
            enabled: definition.spec.enabled && view.switched_on,
            transport: definition.spec.launch.transport(),
            scope: match definition.spec.launch {
                Launch::ClaudeAiProxy { .. } => "claudeai",
                _ => definition.scope.as_str(),
            },
            file: definition.file.as_ref().map(|file| file.display().to_string()),
            line: definition.file.as_ref().map(|_| definition.line),
            hides: definition
                .hides
                .iter()
                .map(|hidden| Hides {
                    scope: hidden.scope.as_str(),
                    file: hidden.file.as_ref().map(|file| file.display().to_string()),
                })
                .collect(),
            error: state.error.clone(),
            needs_trust: !matches!(view.trust, Trust::Given),
            trust_diff: match &view.trust {
                Trust::Needed { difference, .. } => difference.clone(),
                Trust::Given => None,
            },
            server_info: peer.map(|peer| ServerInfo { name: shown(&peer.name), version: shown(&peer.version) }),
            protocol_version: peer.map(|peer| peer.protocol_version.clone()),
            instructions: peer.and_then(|peer| peer.instructions.as_deref().map(shown)),
            capabilities: peer.map(|peer| peer.capabilities.clone()).unwrap_or_default(),
            tool_count: view.shown_tools().count(),
            resource_count: view.resources().len(),
            prompt_count: view.prompts().len(),
            tools: view
                .shown_tools()
                .map(|offered| ToolSummary {
                    name: offered.tool.name.to_string(),
                    description: shown(&offered.tool.description),
                    annotations: offered.tool.annotations,
                })
                .collect(),
            pid: state.pid,
            started_at: state.started_at,
            latency_ms: state.latency.map(millis),
            restarts: state.restarts,
            warnings: view.warnings(),
            config: layers::redacted(&definition.written),
        }
    }
}

/// A server's own words as an editor may show them: nothing in them acts on a terminal, and nothing is unseen.
fn shown(words: &str) -> String {
    if has_invisible(words) { visible(words, usize::MAX) } else { words.to_owned() }
}

/// A tool with the level that holds for it now.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolInfo {
    pub name: String,
    pub server: ServerName,
    pub tool: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    pub description: String,
    pub input_schema: Arc<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Arc<Map<String, Value>>>,
    pub annotations: Annotations,
    pub level: crate::model::Level,
    pub source: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub changed: bool,
}

impl ToolInfo {
    pub fn new(offered: &Offered, granted: &Found) -> Self {
        let tool = &offered.tool;
        let ruling = offered.ruling.clone().raised_by(granted);
        Self {
            name: offered.id.to_string(),
            server: offered.id.server.clone(),
            tool: tool.name.to_string(),
            title: tool.title.as_deref().map(shown),
            description: shown(&tool.description),
            input_schema: tool.input_schema.clone(),
            output_schema: tool.output_schema.clone(),
            annotations: tool.annotations,
            level: ruling.level,
            source: ruling.source.to_string(),
            changed: matches!(granted, Found::Suspended(_)),
        }
    }
}

/// What came of a call. Content is passed on as the server wrote it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult<'a> {
    pub call_id: CallId,
    pub content: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<&'a RawValue>,
    pub is_error: bool,
    pub duration_ms: f64,
    pub decision: &'static str,
    pub server: ServerName,
    pub tool: String,
}

impl<'a> ToolResult<'a> {
    pub fn new(outcome: &'a Outcome) -> Result<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Parts<'a> {
            #[serde(borrow)]
            content: &'a RawValue,
            #[serde(borrow, default)]
            structured_content: Option<&'a RawValue>,
        }
        // The connection has seen to it that there is a list of content, whatever the server sent.
        let parts: Parts<'a> = serde_json::from_str(outcome.result.raw.get()).map_err(|error| Error::Protocol {
            server: outcome.tool.server.clone(),
            message: format!("its result is not an object with content: {error}"),
        })?;
        Ok(Self {
            call_id: outcome.id.clone(),
            content: parts.content,
            structured_content: parts.structured_content,
            is_error: outcome.result.is_error,
            duration_ms: millis(outcome.duration),
            decision: outcome.decision,
            server: outcome.tool.server.clone(),
            tool: outcome.tool.tool.to_string(),
        })
    }
}

/// One config file, as `mcp.config` lists it.
#[derive(Debug, Clone, Serialize)]
pub struct ConfigFile {
    pub path: String,
    pub scope: &'static str,
    pub exists: bool,
    pub valid: bool,
    pub servers: Vec<String>,
}

impl From<&File> for ConfigFile {
    fn from(file: &File) -> Self {
        Self {
            path: file.source.path.display().to_string(),
            scope: file.source.scope.as_str(),
            exists: file.exists,
            valid: file.valid,
            servers: file.servers.clone(),
        }
    }
}
