//! One agent's session: MCP in, one engine call across, MCP out.
#![allow(deprecated, reason = "logging and subscribe are what peers before 2026-07-28 know")]

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

use super::answer::{self, Shape};
use super::desk::Desk;
use super::session::{Session, Sight};
use super::{AgentOptions, Endpoint, notices};
use crate::model::{Error, Result, ServerName};
use crate::text::one_line;

pub struct Handler {
    pub(super) session: Arc<Session>,
    way: Way,
    /// Tells an agent of the older era what happens, from `initialized` on.
    telling: OnceLock<AbortOnDropHandle<()>>,
}

/// How results go out.
enum Way {
    /// As text, by a transport of our own, which bounds what is under way.
    Text(Desk),
    /// Through rmcp's types, by a transport of rmcp, with so many calls at once.
    Typed { calls: Arc<Semaphore>, _place: OwnedSemaphorePermit },
}

/// Whether this request is of the protocol that knows no session: 2026-07-28 and newer.
pub fn is_stateless(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| !version.has_initialize())
}

impl Handler {
    pub fn new(endpoint: Endpoint, desk: Desk, options: AgentOptions) -> Self {
        Self { session: Arc::new(Session::new(endpoint, options)), way: Way::Text(desk), telling: OnceLock::new() }
    }

    /// The same for a transport that does not carry text as it is. It takes one `place` while it is there.
    pub fn typed(
        endpoint: Endpoint,
        options: AgentOptions,
        calls: Arc<Semaphore>,
        place: OwnedSemaphorePermit,
    ) -> Self {
        let session = Arc::new(Session::new(endpoint, options));
        Self { session, way: Way::Typed { calls, _place: place }, telling: OnceLock::new() }
    }

    pub(super) fn endpoint(&self) -> &Endpoint {
        &self.session.endpoint
    }

    /// Who asks, and what he sees.
    pub(super) fn sight(&self, context: &RequestContext<RoleServer>) -> Sight {
        self.session.sight(context.client_info().map(|agent| agent.name))
    }

    /// Sends a result out in the shape that the agent's era asks for. Where text goes out as it is, rmcp gets an empty
    /// `stub` in its place.
    pub(super) fn deliver<T: DeserializeOwned>(
        &self,
        context: &RequestContext<RoleServer>,
        raw: Arc<RawValue>,
        shape: Shape,
        stub: T,
    ) -> Result<T, ErrorData> {
        let shape = if is_stateless(context) { shape } else { Shape::Plain };
        let raw = shape.apply(raw);
        match &self.way {
            Way::Text(desk) => {
                desk.lay(&context.id, raw);
                Ok(stub)
            }
            Way::Typed { .. } => answer::typed(&raw),
        }
    }

    /// Room for one more call; `None` where the transport sees to that.
    pub(super) fn room(&self) -> Result<Option<OwnedSemaphorePermit>, ErrorData> {
        let Way::Typed { calls, .. } = &self.way else { return Ok(None) };
        let full = |_| {
            let text = "too many calls wait at this URL already (`limits.agent-calls` sets this limit)";
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
            answer = answer => self.deliver(context, answer.map_err(|error| answer::error(&error))?, shape, stub),
            () = context.ct.cancelled() => Err(answer::error(&Error::Cancelled)),
        }
    }

    fn find_uri(&self, sight: &Sight, uri: &str) -> Result<(ServerName, String), ErrorData> {
        let unknown = || ErrorData::resource_not_found(format!("there is no resource {}", one_line(uri, 500)), None);
        self.endpoint().catalog(sight).find_uri(uri).ok_or_else(unknown)
    }

    fn find_prompt(&self, sight: &Sight, name: &str) -> Result<(ServerName, String), ErrorData> {
        let unknown = || ErrorData::invalid_params(format!("there is no prompt `{}`", one_line(name, 200)), None);
        self.endpoint().catalog(sight).prompt_names.get(name).cloned().ok_or_else(unknown)
    }

    /// What stands behind this endpoint for somebody, in words for a model.
    fn instructions(&self, sight: &Sight) -> Option<String> {
        let root = self.endpoint().engine.folders().first().map(|folder| folder.display().to_string());
        Some(self.endpoint().catalog(sight).instructions(root.as_deref()))
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
        result.instructions = self.instructions(&self.session.sight(Some(request.client_info.name)));
        Ok(result)
    }

    async fn discover(&self, context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let mut info = self.get_info();
        info.instructions = self.instructions(&self.sight(&context));
        Ok(DiscoverResult::from_server_info(self.supported_protocol_versions().into_owned(), info))
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let telling = tokio::spawn(notices::tell(self.session.clone(), context.peer));
        // The second time it is said, there is somebody already.
        self.telling.set(AbortOnDropHandle::new(telling)).ok();
    }

    async fn list_tools(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        first_page(page)?;
        let catalog = self.session.settled(&self.sight(&context)).await;
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
        let catalog = self.session.settled(&self.sight(&context)).await;
        self.deliver(&context, catalog.resources.0.clone(), Shape::Cacheable, ListResourcesResult::default())
    }

    async fn list_resource_templates(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        first_page(page)?;
        let catalog = self.session.settled(&self.sight(&context)).await;
        self.deliver(&context, catalog.templates.0.clone(), Shape::Cacheable, ListResourceTemplatesResult::default())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let sight = self.sight(&context);
        let (server, own) = self.find_uri(&sight, &request.uri)?;
        let read = async {
            let raw = self.endpoint().engine.read_resource(&sight.who, &server, own.clone()).await?;
            Ok(if own == request.uri { raw } else { under_its_shown_uri(raw, &own, &request.uri) })
        };
        let stub = ReadResourceResult::new(Vec::new());
        self.request(&context, Shape::Cacheable, read, stub).await.map(Into::into)
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let sight = self.sight(&context);
        let (server, own) = self.find_uri(&sight, &request.uri)?;
        self.session.watch(&sight, server, own).await.map_err(|error| answer::error(&error))
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let (server, own) = self.find_uri(&self.sight(&context), &request.uri)?;
        self.session.watch_no_longer(server, own);
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let sight = self.sight(subscription.request_context());
        notices::listen(self.endpoint(), &sight, &subscription).await;
        Ok(())
    }

    async fn list_prompts(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        first_page(page)?;
        let catalog = self.session.settled(&self.sight(&context)).await;
        self.deliver(&context, catalog.prompts.0.clone(), Shape::Cacheable, ListPromptsResult::default())
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let sight = self.sight(&context);
        let (server, name) = self.find_prompt(&sight, &request.name)?;
        let arguments = request.arguments.unwrap_or_default();
        let prompt = self.endpoint().engine.get_prompt(&sight.who, &server, name, arguments);
        self.request(&context, Shape::Typed, prompt, GetPromptResult::new(Vec::new())).await.map(Into::into)
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let sight = self.sight(&context);
        let (server, reference) = match &request.r#ref {
            Reference::Prompt(prompt) => {
                let (server, name) = self.find_prompt(&sight, &prompt.name)?;
                (server, json!({ "type": "ref/prompt", "name": name }))
            }
            Reference::Resource(resource) => {
                let (server, uri) = self.find_uri(&sight, &resource.uri)?;
                (server, json!({ "type": "ref/resource", "uri": uri }))
            }
            _ => return Err(ErrorData::invalid_params("only prompts and resources can be completed", None)),
        };
        let odd = |error: serde_json::Error| ErrorData::invalid_params(error.to_string(), None);
        let argument = serde_json::to_value(&request.argument).map_err(odd)?;
        let known = request.context.as_ref().map(serde_json::to_value).transpose().map_err(odd)?;
        let completed = self.endpoint().engine.complete(&sight.who, &server, reference, argument, known);
        self.request(&context, Shape::Typed, completed, CompleteResult::default()).await
    }

    async fn set_level(&self, request: SetLevelRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.session.set_log_level(request.level);
        Ok(())
    }

    /// Whatever is not MCP: above all the commands by which an editor starts servers or answers approvals.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = one_line(&request.method, 100);
        let who = self.sight(&context).who;
        tracing::warn!(agent = %who.name, %method, "refused method");
        if KNOWN.contains(&request.method.as_str()) {
            let odd = ErrorData::invalid_params(format!("the parameters of {method} make no sense"), None);
            if request.method == "tools/call" {
                let name = request.params.as_ref().and_then(|params| params.get("name")).and_then(Value::as_str);
                let name = name.unwrap_or(&request.method);
                self.endpoint().refused(who, name, Map::new(), "invalid params", &odd).await;
            }
            return Err(odd);
        }
        self.endpoint().engine.refuse_method(who, &method).await;
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("there is no method {method} here"), None))
    }
}

/// Every list is one page: a cursor is one that we never gave.
fn first_page(asked: Option<PaginatedRequestParams>) -> Result<(), ErrorData> {
    match asked.and_then(|page| page.cursor).filter(|cursor| !cursor.is_empty()) {
        Some(_) => Err(ErrorData::invalid_params("no such cursor: the whole list is on its first page", None)),
        None => Ok(()),
    }
}

/// Methods that come here only when their parameters could not be read.
const KNOWN: [&str; 6] =
    ["tools/call", "resources/read", "prompts/get", "completion/complete", "logging/setLevel", "resources/subscribe"];

/// What was read, under the address by which it was asked for.
fn under_its_shown_uri(raw: Arc<RawValue>, own: &str, shown: &str) -> Arc<RawValue> {
    let Ok(mut value) = serde_json::from_str::<Value>(raw.get()) else { return raw };
    for content in value.get_mut("contents").and_then(Value::as_array_mut).into_iter().flatten() {
        if content.get("uri").and_then(Value::as_str) == Some(own) {
            content["uri"] = Value::from(shown);
        }
    }
    to_raw_value(&value).map_or(raw, Arc::from)
}
