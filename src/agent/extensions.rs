//! What passes between agents and servers beyond the core of MCP: metadata of requests, extensions, and the declaration of
//! tasks.

use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{
    ClientCapabilities, ErrorData, ExtensionCapabilities, InitializeResult, ProtocolVersion, TASKS_EXTENSION_ID,
};
use rmcp::service::RequestContext;
use serde_json::value::to_raw_value;
use serde_json::{Map, Value, json};

use super::handler::Handler;
use super::response::Shape;
use super::session::AgentView;
use crate::model::RawJson;

/// The metadata of a request that the server gets, too: everything that is not about the connection to us.
pub fn passed_meta(context: &RequestContext<RoleServer>) -> Arc<Map<String, Value>> {
    let is_own = |key: &str| {
        key == "progressToken" || key.starts_with("io.modelcontextprotocol/") || key.starts_with("mcp-sidecar/")
    };
    let passed = context.meta.iter().filter(|(key, _)| !is_own(key));
    Arc::new(passed.map(|(key, value)| (key.clone(), value.clone())).collect())
}

impl Handler {
    /// The extensions that both the agent and a server declare, and those that we support ourselves.
    pub(super) fn extensions(
        &self,
        agent: &AgentView,
        declared: Option<&ClientCapabilities>,
    ) -> Option<ExtensionCapabilities> {
        let known = declared?.extensions.as_ref()?;
        let mut extensions = ExtensionCapabilities::new();
        if known.contains_key(TASKS_EXTENSION_ID) {
            extensions.insert(TASKS_EXTENSION_ID.to_owned(), Map::new());
        }
        let snapshot = self.endpoint().engine.now();
        for view in snapshot.servers.values().filter(|view| agent.view.shows_server(&view.definition.name)) {
            let capabilities = view.state.peer.as_ref().and_then(|peer| peer.raw.get("capabilities"));
            let own = capabilities.and_then(|capabilities| capabilities.get("extensions")).and_then(Value::as_object);
            for (name, settings) in own.into_iter().flatten().filter(|(name, _)| known.contains_key(*name)) {
                let settings = settings.as_object().cloned().unwrap_or_default();
                extensions.entry(name.clone()).or_insert(settings);
            }
        }
        (!extensions.is_empty()).then_some(extensions)
    }

    /// Declares the tasks of 2025-11-25. rmcp does not know them, but both transports pass them on.
    pub(super) fn with_core_tasks(
        &self,
        result: InitializeResult,
        context: &RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let has_tasks = result.protocol_version == ProtocolVersion::V_2025_11_25;
        let Some(mut written) = serde_json::to_value(&result).ok().filter(|_| has_tasks) else { return Ok(result) };
        let tasks = json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } });
        if let Some(capabilities) = written.get_mut("capabilities").and_then(Value::as_object_mut) {
            capabilities.insert("tasks".to_owned(), tasks);
        }
        let raw = to_raw_value(&written).map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        self.deliver(context, RawJson::from(raw), Shape::Plain, result)
    }
}
