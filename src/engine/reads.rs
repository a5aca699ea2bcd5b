//! Resources, prompts and completion. They pass the same gate as tools.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::Engine;
use super::asking::{AgentConnection, Asker};
use super::gate::CallRequest;
use super::turns::Turn;
use crate::model::{
    CallId, CallKind, Decision, Error, RawJson, Requester, Result, ServerName, Subject, ToolId, UserDecision,
};
use crate::text::one_line;

/// Who asks for something other than a tool.
#[derive(Clone, Default)]
pub struct Caller {
    pub requester: Requester,
    /// Where the user asked for exactly this. They are not asked again.
    pub opened_in: Option<Arc<str>>,
    /// The connection of the agent.
    pub connection: Option<AgentConnection>,
    pub asker: Option<Arc<dyn Asker>>,
    pub workflow: Option<String>,
    /// The metadata that is passed on to the server.
    pub meta: Arc<Map<String, Value>>,
}

impl Engine {
    pub async fn read_resource(&self, caller: Caller, server: &ServerName, uri: &str) -> Result<RawJson> {
        self.read(caller, CallKind::Resource, server, Subject::RESOURCE, uri, Map::new()).await
    }

    pub async fn get_prompt(
        &self,
        caller: Caller,
        server: &ServerName,
        name: &str,
        arguments: Map<String, Value>,
    ) -> Result<RawJson> {
        match self.read(caller, CallKind::Prompt, server, Subject::PROMPT, name, arguments).await {
            Err(Error::Protocol { message, .. }) if !self.now().server(server)?.has_prompt(name) => {
                let message = format!("server `{server}` has no prompt `{}`: {message}", one_line(name, 80));
                Err(Error::Missing { server: server.clone(), message })
            }
            answer => answer,
        }
    }

    /// Subscribes to changes of a resource.
    pub async fn subscribe(&self, caller: Caller, server: &ServerName, uri: &str) -> Result<()> {
        self.read(caller, CallKind::Subscription, server, Subject::RESOURCE, uri, Map::new()).await.map(drop)
    }

    /// Ends a subscription. That needs no permission.
    pub async fn unsubscribe(&self, server: &ServerName, uri: String) -> Result<()> {
        let snapshot = self.now();
        let view = snapshot.server(server)?;
        view.usable()?.unsubscribe(uri, self.time_limit(view, None)).await
    }

    /// Completes an argument of a prompt or a template. `params` are those of MCP. It never asks: it happens on every
    /// key.
    pub async fn complete(
        &self,
        caller: Caller,
        server: &ServerName,
        mut params: Map<String, Value>,
    ) -> Result<RawJson> {
        let reference = params.get_mut("ref").and_then(Value::as_object_mut);
        let kind = reference.as_ref().and_then(|reference| reference.get("type")).and_then(Value::as_str);
        let (prefix, key, other) = match kind {
            Some("ref/prompt") => (Subject::PROMPT, "name", "uri"),
            Some("ref/resource") => (Subject::RESOURCE, "uri", "name"),
            _ => return Err(Error::InvalidParams("`ref` must be a `ref/prompt` or a `ref/resource`".to_owned())),
        };
        let missing = || Error::InvalidParams(format!("`ref` has no `{key}`"));
        let reference = reference.ok_or_else(missing)?;
        // The rules are about one of them, so the server gets only that one.
        reference.shift_remove(other);
        let name = reference.get(key).and_then(Value::as_str).ok_or_else(missing)?.to_owned();
        check_context(&mut params)?;
        let caller = Caller { opened_in: Some("completion never asks".into()), ..caller };
        self.read(caller, CallKind::Completion, server, prefix, &name, params).await
    }

    async fn read(
        &self,
        caller: Caller,
        kind: CallKind,
        server: &ServerName,
        prefix: &str,
        name: &str,
        arguments: Map<String, Value>,
    ) -> Result<RawJson> {
        let Caller { requester, opened_in, connection, asker, workflow, meta } = caller;
        let request = CallRequest {
            id: CallId::random(),
            kind,
            tool: ToolId::new(server.clone(), &format!("{prefix}{name}")),
            arguments,
            decision: opened_in.map(|by| UserDecision { decision: Decision::AllowOnce, by }),
            requester,
            must_ask: None,
            connection,
            workflow,
            timeout: None,
            meta,
            unknown_fields: Default::default(),
            progress: None,
            turn: Turn::default(),
        };
        Ok(self.call_for(request, asker).await?.result.raw)
    }
}

/// The rules read the values that are chosen already, so they must be texts, and the server gets one value of each.
fn check_context(params: &mut Map<String, Value>) -> Result<()> {
    let typed = params.get("argument").and_then(|argument| argument.get("name")).and_then(Value::as_str);
    let typed = typed.unwrap_or_default().to_owned();
    let Some(chosen) = params.get_mut("context").and_then(|context| context.get_mut("arguments")) else {
        return Ok(());
    };
    match chosen.as_object_mut().filter(|chosen| chosen.values().all(Value::is_string)) {
        Some(chosen) => drop(chosen.shift_remove(&typed)),
        None => return Err(Error::InvalidParams("`context.arguments` must be an object of texts".to_owned())),
    }
    Ok(())
}
