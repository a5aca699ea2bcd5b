//! Handles the MCP requests of one agent: each makes one engine call and returns its result.
#![allow(deprecated, reason = "agents before 2026-07-28 use logging and subscribe")]

use std::sync::{Arc, OnceLock};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, CustomRequest, CustomResult,
    DiscoverResult, ErrorCode, ErrorData, GetPromptRequestParams, GetPromptResponse, GetPromptResult, Implementation,
    InitializeRequestParams, InitializeResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, Reference, ServerCapabilities, ServerConfig, SetLevelRequestParams, SubscribeRequestParams,
    SubscriptionFilter, UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::AbortOnDropHandle;

use super::pending_responses::PendingResponses;
use super::response::{self, Shape};
use super::session::{AgentView, Session};
use super::{AgentOptions, Endpoint, notices};
use crate::model::{Error, Result, ServerName};
use crate::text::one_line;

pub struct Handler {
    pub(super) session: Arc<Session>,
    delivery: Delivery,
    /// Sends notifications to an agent before 2026-07-28, after `initialized`.
    notifier: OnceLock<AbortOnDropHandle<()>>,
}

/// How results are sent.
enum Delivery {
    /// As raw JSON, by our own transport, which limits the open requests.
    Text(PendingResponses),
    /// In rmcp's types, by a transport of rmcp. `calls` limits the open requests.
    Typed { calls: Arc<Semaphore>, _permit: OwnedSemaphorePermit },
}

/// Whether the request uses a protocol version without sessions: 2026-07-28 or newer.
pub fn is_stateless(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| !version.has_initialize())
}

impl Handler {
    pub fn new(endpoint: Endpoint, pending: PendingResponses, options: AgentOptions) -> Self {
        Self {
            session: Arc::new(Session::new(endpoint, options)),
            delivery: Delivery::Text(pending),
            notifier: OnceLock::new(),
        }
    }

    /// For a transport that cannot send raw JSON. Holds `permit` as long as it exists.
    pub fn typed(
        endpoint: Endpoint,
        options: AgentOptions,
        calls: Arc<Semaphore>,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        let session = Arc::new(Session::new(endpoint, options));
        Self { session, delivery: Delivery::Typed { calls, _permit: permit }, notifier: OnceLock::new() }
    }

    pub(super) fn endpoint(&self) -> &Endpoint {
        &self.session.endpoint
    }

    /// The view of the agent that sent this request.
    pub(super) fn agent_view(&self, context: &RequestContext<RoleServer>) -> AgentView {
        self.session.agent_view(context.client_info().map(|agent| agent.name))
    }

    /// Returns a result with the fields that the agent's protocol version requires. If raw JSON is sent, rmcp gets an empty
    /// `stub` instead.
    pub(super) fn deliver<T: DeserializeOwned>(
        &self,
        context: &RequestContext<RoleServer>,
        raw: Arc<RawValue>,
        shape: Shape,
        stub: T,
    ) -> Result<T, ErrorData> {
        let shape = if is_stateless(context) { shape } else { Shape::Plain };
        let raw = shape.apply(raw);
        match &self.delivery {
            Delivery::Text(pending) => {
                pending.set_result(&context.id, raw);
                Ok(stub)
            }
            Delivery::Typed { .. } => response::typed(&raw),
        }
    }

    /// A permit for one more call; `None` if the transport limits calls.
    pub(super) fn acquire_permit(&self) -> Result<Option<OwnedSemaphorePermit>, ErrorData> {
        let Delivery::Typed { calls, .. } = &self.delivery else { return Ok(None) };
        let full = |_| {
            let text = "too many calls are running at this URL (the limit is `limits.agent-calls`)";
            ErrorData::new(ErrorCode(-32_000), text, None)
        };
        calls.clone().try_acquire_owned().map(Some).map_err(full)
    }

    async fn request<T: DeserializeOwned>(
        &self,
        context: &RequestContext<RoleServer>,
        shape: Shape,
        answer: impl Future<Output = Result<Arc<RawValue>>>,
        stub: T,
    ) -> Result<T, ErrorData> {
        tokio::select! {
            answer = answer => self.deliver(context, answer.map_err(|error| response::error(&error))?, shape, stub),
            () = context.ct.cancelled() => Err(response::error(&Error::Cancelled)),
        }
    }

    fn find_uri(&self, agent: &AgentView, uri: &str) -> Result<(ServerName, String), ErrorData> {
        let unknown =
            || ErrorData::resource_not_found(format!("no resource with the URI `{}`", one_line(uri, 500)), None);
        self.endpoint().catalog(agent).find_uri(uri).ok_or_else(unknown)
    }

    fn find_prompt(&self, agent: &AgentView, name: &str) -> Result<(ServerName, String), ErrorData> {
        let unknown = || ErrorData::invalid_params(format!("no prompt named `{}`", one_line(name, 200)), None);
        self.endpoint().catalog(agent).prompt_names.get(name).cloned().ok_or_else(unknown)
    }

    /// The instructions for the model.
    fn instructions(&self, agent: &AgentView) -> Option<String> {
        let root = self.endpoint().engine.folders().first().map(|folder| folder.display().to_string());
        Some(self.endpoint().catalog(agent).instructions(root.as_deref()))
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_logging()
            .enable_completions()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_resources_subscribe()
            .enable_tools()
            .enable_tool_list_changed()
            .build();
        ServerConfig::new(capabilities)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
            .with_server_info(Implementation::new("mcp-sidecar", env!("CARGO_PKG_VERSION")).with_title("mcp-sidecar"))
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        let mut result = self.negotiate_initialize(&request)?;
        result.instructions = self.instructions(&self.session.agent_view(Some(request.client_info.name)));
        Ok(result)
    }

    async fn discover(&self, context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let mut info = self.get_info();
        info.instructions = self.instructions(&self.agent_view(&context));
        Ok(DiscoverResult::from_server_info(self.supported_protocol_versions().into_owned(), info))
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let notifier = tokio::spawn(notices::notify(self.session.clone(), context.peer));
        // Ignored if `initialized` is sent again.
        self.notifier.set(AbortOnDropHandle::new(notifier)).ok();
    }

    async fn list_tools(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        first_page(page)?;
        let catalog = self.session.settled_catalog(&self.agent_view(&context)).await;
        self.deliver(&context, catalog.tools.0.clone(), Shape::Cacheable, ListToolsResult::default())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.call(request, context).await
    }

    async fn list_resources(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        first_page(page)?;
        let catalog = self.session.settled_catalog(&self.agent_view(&context)).await;
        self.deliver(&context, catalog.resources.0.clone(), Shape::Cacheable, ListResourcesResult::default())
    }

    async fn list_resource_templates(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        first_page(page)?;
        let catalog = self.session.settled_catalog(&self.agent_view(&context)).await;
        self.deliver(&context, catalog.templates.0.clone(), Shape::Cacheable, ListResourceTemplatesResult::default())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let agent = self.agent_view(&context);
        let (server, own) = self.find_uri(&agent, &request.uri)?;
        let read = async {
            let raw = self.endpoint().engine.read_resource(&agent.requester, &server, own.clone()).await?;
            Ok(if own == request.uri { raw } else { with_shown_uri(raw, &own, &request.uri) })
        };
        let stub = ReadResourceResult::new(Vec::new());
        self.request(&context, Shape::Cacheable, read, stub).await.map(Into::into)
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let agent = self.agent_view(&context);
        let (server, own) = self.find_uri(&agent, &request.uri)?;
        self.session.subscribe(&agent, server, own).await.map_err(|error| response::error(&error))
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let (server, own) = self.find_uri(&self.agent_view(&context), &request.uri)?;
        self.session.unsubscribe(server, own);
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let agent = self.agent_view(subscription.request_context());
        notices::listen(self.endpoint(), &agent, &subscription).await;
        Ok(())
    }

    async fn list_prompts(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        first_page(page)?;
        let catalog = self.session.settled_catalog(&self.agent_view(&context)).await;
        self.deliver(&context, catalog.prompts.0.clone(), Shape::Cacheable, ListPromptsResult::default())
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let agent = self.agent_view(&context);
        let (server, name) = self.find_prompt(&agent, &request.name)?;
        let arguments = request.arguments.unwrap_or_default();
        let prompt = self.endpoint().engine.get_prompt(&agent.requester, &server, name, arguments);
        self.request(&context, Shape::Typed, prompt, GetPromptResult::new(Vec::new())).await.map(Into::into)
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let agent = self.agent_view(&context);
        let (server, reference) = match &request.r#ref {
            Reference::Prompt(prompt) => {
                let (server, name) = self.find_prompt(&agent, &prompt.name)?;
                (server, json!({ "type": "ref/prompt", "name": name }))
            }
            Reference::Resource(resource) => {
                let (server, uri) = self.find_uri(&agent, &resource.uri)?;
                (server, json!({ "type": "ref/resource", "uri": uri }))
            }
            _ => return Err(ErrorData::invalid_params("only prompts and resources can be completed", None)),
        };
        let invalid = |_| ErrorData::invalid_params("invalid completion argument", None);
        let argument = serde_json::to_value(&request.argument).map_err(invalid)?;
        let known = request.context.as_ref().map(serde_json::to_value).transpose().map_err(invalid)?;
        let completed = self.endpoint().engine.complete(&agent.requester, &server, reference, argument, known);
        self.request(&context, Shape::Typed, completed, CompleteResult::default()).await
    }

    async fn set_level(&self, request: SetLevelRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.session.set_log_level(request.level);
        Ok(())
    }

    /// Rejects methods that are not part of MCP, such as the commands that editors use to answer approvals.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = one_line(&request.method, 100);
        let requester = self.agent_view(&context).requester;
        tracing::warn!(agent = %requester.name, %method, "rejected method");
        if KNOWN.contains(&request.method.as_str()) {
            let invalid = ErrorData::invalid_params(format!("invalid parameters for {method}"), None);
            if request.method == "tools/call" {
                let name = request.params.as_ref().and_then(|params| params.get("name")).and_then(Value::as_str);
                let name = name.unwrap_or(&request.method);
                self.endpoint().record_rejected(requester, name, Map::new(), "invalid params", &invalid).await;
            }
            return Err(invalid);
        }
        self.endpoint().engine.refuse_method(requester, &method).await;
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("method not found: {method}"), None))
    }
}

/// Rejects cursors: every list has one page, so we never return a cursor.
fn first_page(requested: Option<PaginatedRequestParams>) -> Result<(), ErrorData> {
    match requested.and_then(|page| page.cursor).filter(|cursor| !cursor.is_empty()) {
        Some(_) => Err(ErrorData::invalid_params("unknown cursor: the first page contains the whole list", None)),
        None => Ok(()),
    }
}

/// Methods that are treated as unknown only if their parameters are invalid.
const KNOWN: [&str; 6] =
    ["tools/call", "resources/read", "prompts/get", "completion/complete", "logging/setLevel", "resources/subscribe"];

/// Replaces the URI in a result with the one that the agent requested.
fn with_shown_uri(raw: Arc<RawValue>, own: &str, shown: &str) -> Arc<RawValue> {
    let Ok(mut value) = serde_json::from_str::<Value>(raw.get()) else { return raw };
    for content in value.get_mut("contents").and_then(Value::as_array_mut).into_iter().flatten() {
        if content.get("uri").and_then(Value::as_str) == Some(own) {
            content["uri"] = Value::from(shown);
        }
    }
    to_raw_value(&value).map_or(raw, Arc::from)
}
