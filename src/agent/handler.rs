//! Handles the MCP requests of one agent: each makes one engine call and returns its result.
#![allow(deprecated, reason = "agents before 2026-07-28 use logging and subscribe")]

use std::sync::{Arc, OnceLock};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams, CompleteResult, CustomRequest,
    CustomResult, DiscoverResult, ErrorCode, ErrorData, GetPromptRequestParams, GetPromptResponse, GetPromptResult,
    GetTaskParams, GetTaskResult, Implementation, InitializeRequestParams, InitializeResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProtocolVersion,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Reference, ServerCapabilities, ServerConfig,
    SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::asker::{AskByRequest, ElicitationModes};
use super::byte_budget::{ByteBudget, OverBudget, Reserved, memory_of_fields};
use super::extensions::passed_meta;
use super::http::raw_results;
use super::pending_responses::PendingResponses;
use super::response::{self, Shape, first_page, unknown_uri};
use super::session::{AgentView, Session};
use super::{AgentOptions, Endpoint, notices};
use crate::engine::asking::Asker;
use crate::engine::reads::Caller;
use crate::model::{CallKind, Error, RawJson, Result};
use crate::text::one_line;

pub struct Handler {
    pub(super) session: Arc<Session>,
    pub(super) delivery: Delivery,
    /// Sends notifications to an agent before 2026-07-28, after `initialized`.
    notifier: OnceLock<AbortOnDropHandle<()>>,
}

/// The keys of `_meta` that name the workflow of a call.
const WORKFLOW_KEYS: [&str; 2] = ["mcp-sidecar/workflow", "workflow"];

/// How results are sent.
pub(super) enum Delivery {
    /// As raw JSON, by our own transport, which limits the open requests.
    Text(PendingResponses),
    /// Inside rmcp's types, by a transport of rmcp. `calls` limits the open requests. `workflow` is for requests without a
    /// session.
    Typed { calls: Arc<Semaphore>, budget: Arc<ByteBudget>, workflow: String, _permit: OwnedSemaphorePermit },
}

/// Whether the request uses a protocol version without sessions: 2026-07-28 or newer.
pub fn is_stateless(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| !version.has_initialize())
}

impl Handler {
    /// `gone` is cancelled when the agent has disconnected.
    pub fn new(endpoint: Endpoint, pending: PendingResponses, options: AgentOptions, gone: CancellationToken) -> Self {
        Self {
            session: Arc::new(Session::new(endpoint, options, gone, CancellationToken::new())),
            delivery: Delivery::Text(pending),
            notifier: OnceLock::new(),
        }
    }

    /// For the transport of rmcp. Holds `permit` as long as it exists.
    pub fn typed(
        endpoint: Endpoint,
        options: AgentOptions,
        calls: Arc<Semaphore>,
        budget: Arc<ByteBudget>,
        workflow: String,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        // The transport of rmcp continues, but no call of the session runs any more.
        let gone = CancellationToken::new();
        let session = Arc::new(Session::new(endpoint, options, gone.clone(), gone));
        let delivery = Delivery::Typed { calls, budget, workflow, _permit: permit };
        Self { session, delivery, notifier: OnceLock::new() }
    }

    pub(super) fn endpoint(&self) -> &Endpoint {
        &self.session.endpoint
    }

    /// The view of the agent that sent this request.
    pub(super) fn agent_view(&self, context: &RequestContext<RoleServer>) -> AgentView {
        self.session.agent_view(context.client_info().map(|agent| agent.name))
    }

    /// Returns a result with the fields that the agent's protocol version requires. rmcp gets an empty
    /// `stub` instead.
    pub(super) fn deliver<T: Serialize + DeserializeOwned>(
        &self,
        context: &RequestContext<RoleServer>,
        raw: RawJson,
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
            Delivery::Typed { .. } => raw_results::carry(stub, &raw),
        }
    }

    /// A permit for one more call; `None` if the transport limits calls.
    pub(super) fn acquire_permit(&self) -> Result<Option<OwnedSemaphorePermit>, ErrorData> {
        let Delivery::Typed { calls, .. } = &self.delivery else { return Ok(None) };
        let full = |_| {
            let text = "too many calls are running at this URL";
            ErrorData::new(ErrorCode(-32_000), text, None)
        };
        calls.clone().try_acquire_owned().map(Some).map_err(full)
    }

    /// Reserves memory for the arguments of a call, unless the transport has done that.
    pub(super) fn reserve(&self, arguments: Option<&Map<String, Value>>) -> Result<Option<Reserved>, OverBudget> {
        let Delivery::Typed { budget, .. } = &self.delivery else { return Ok(None) };
        Reserved::new(budget, arguments.map_or(0, memory_of_fields)).map(Some)
    }

    /// Reserves memory for a call that waits although its request has ended.
    pub(super) fn reserve_suspended(&self, bytes: usize) -> Result<Reserved, OverBudget> {
        match &self.delivery {
            Delivery::Text(pending) => Reserved::new(pending.budget(), bytes),
            Delivery::Typed { budget, .. } => Reserved::new(budget, bytes),
        }
    }

    async fn request<T: Serialize + DeserializeOwned>(
        &self,
        context: &RequestContext<RoleServer>,
        shape: Shape,
        answer: impl Future<Output = Result<RawJson>>,
        stub: T,
    ) -> Result<T, ErrorData> {
        let _permit = self.acquire_permit()?;
        tokio::select! {
            answer = answer => {
                let raw = response::with_visible_titles(answer.map_err(|error| response::error(&error))?);
                self.deliver(context, raw, shape, stub)
            }
            () = context.ct.cancelled() => Err(response::error(&Error::Cancelled)),
            () = self.session.gone.cancelled() => Err(response::error(&Error::Cancelled)),
        }
    }

    /// The agent, and how it can ask its user. Since 2026-07-28 it cannot: the question would be the result.
    fn caller(&self, agent: &AgentView, context: &RequestContext<RoleServer>) -> Caller {
        let session = self.session.number;
        let modes = ElicitationModes::of(context).filter(|_| !is_stateless(context));
        let asker = modes
            .map(|modes| -> Arc<dyn Asker> { Arc::new(AskByRequest { peer: context.peer.clone(), modes, session }) });
        let workflow = Some(self.workflow(context));
        let connection = Some(self.session.connection());
        let meta = passed_meta(context);
        Caller { requester: agent.requester.clone(), opened_in: None, connection, asker, workflow, meta }
    }

    /// The workflow of a request: the one that it names, else its trace, else one for the session. Over HTTP, there are no
    /// sessions since 2026-07-28, so there is one for all such requests.
    pub(super) fn workflow(&self, context: &RequestContext<RoleServer>) -> String {
        let text = |key: &str| context.meta.get(key).and_then(Value::as_str).map(str::trim);
        let named = WORKFLOW_KEYS.iter().filter_map(|key| text(key)).find(|name| !name.is_empty());
        let trace = || text("traceparent").and_then(|parent| parent.split('-').nth(1)).filter(|id| id.len() == 32);
        match (named.or_else(trace), &self.delivery) {
            (Some(named), _) => one_line(named, 200),
            (None, Delivery::Typed { workflow, .. }) if is_stateless(context) => workflow.clone(),
            (None, _) => self.session.workflow.clone(),
        }
    }

    /// The instructions for the model.
    fn instructions(&self, agent: &AgentView) -> Option<String> {
        let folder = self.endpoint().engine.folders().first().cloned();
        let name = folder.as_ref().and_then(|folder| folder.file_name()).map(|name| name.to_string_lossy());
        Some(self.endpoint().catalog(agent).instructions(name.as_deref()))
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
            .enable_tasks()
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
        self.session.register();
        let mut result = self.negotiate_initialize(&request)?;
        let agent = self.session.agent_view(Some(request.client_info.name));
        self.session.first_offers.initializing(self.endpoint(), &agent);
        result.instructions = self.instructions(&agent);
        result.capabilities.extensions = self.extensions(&agent, Some(&request.capabilities));
        self.with_core_tasks(result, &context)
    }

    async fn discover(&self, context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let mut info = self.get_info();
        let agent = self.agent_view(&context);
        info.instructions = self.instructions(&agent);
        info.capabilities.extensions = self.extensions(&agent, context.client_capabilities().as_ref());
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
        if let Some(page) = self.read_page(&agent, &request.uri) {
            return self
                .deliver(&context, page?, Shape::Cacheable, ReadResourceResult::new(Vec::new()))
                .map(Into::into);
        }
        let (server, own) = self.find_uri(&agent, CallKind::Resource, &request.uri).await?;
        let read = async {
            let raw = self.endpoint().engine.read_resource(self.caller(&agent, &context), &server, &own).await?;
            Ok(if own == request.uri { raw } else { response::with_shown_uri(raw, &own, &request.uri) })
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
        self.check_subscription(&agent, &request.uri).await?;
        let (server, own) = self.find_uri(&agent, CallKind::Subscription, &request.uri).await?;
        let _permit = self.acquire_permit()?;
        tokio::select! {
            subscribed = self.session.subscribe(self.caller(&agent, &context), server, own) => {
                subscribed.map_err(|error| response::error(&error))
            }
            () = context.ct.cancelled() => Err(response::error(&Error::Cancelled)),
            () = self.session.gone.cancelled() => Err(response::error(&Error::Cancelled)),
        }
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let found = self.endpoint().catalog(&self.agent_view(&context)).find_uri(&request.uri);
        let (server, own) = found.ok_or_else(|| unknown_uri(&request.uri))?;
        self.session.unsubscribe(server, own);
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        self.session.first_offers.subscribing(self.endpoint());
        Some(requested.clone())
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let view = || self.agent_view(subscription.request_context());
        notices::listen(&self.session, view, &subscription).await;
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
        let (server, name) = self.find_prompt(&agent, CallKind::Prompt, &request.name).await?;
        let arguments = request.arguments.unwrap_or_default();
        let prompt = self.endpoint().engine.get_prompt(self.caller(&agent, &context), &server, &name, arguments);
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
                let (server, name) = self.find_prompt(&agent, CallKind::Completion, &prompt.name).await?;
                (server, json!({ "type": "ref/prompt", "name": name }))
            }
            Reference::Resource(resource) => {
                let (server, uri) = self.find_uri(&agent, CallKind::Completion, &resource.uri).await?;
                (server, json!({ "type": "ref/resource", "uri": uri }))
            }
            _ => return Err(ErrorData::invalid_params("only prompts and resources can be completed", None)),
        };
        let invalid = |_| ErrorData::invalid_params("invalid completion argument", None);
        let argument = serde_json::to_value(&request.argument).map_err(invalid)?;
        let known = request.context.as_ref().map(serde_json::to_value).transpose().map_err(invalid)?;
        let fields = [("ref", Some(reference)), ("argument", Some(argument)), ("context", known)];
        let fields = fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect();
        let completed = self.endpoint().engine.complete(self.caller(&agent, &context), &server, fields);
        self.request(&context, Shape::Typed, completed, CompleteResult::default()).await
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.typed_task_request("tasks/get", json!({ "taskId": request.task_id }), &context).await
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let params = json!({ "taskId": request.task_id, "inputResponses": request.input_responses });
        self.typed_task_request::<Value>("tasks/update", params, &context).await.map(drop)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let params = json!({ "taskId": request.task_id });
        self.typed_task_request::<Value>("tasks/cancel", params, &context).await.map(drop)
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
        if let Some(answer) = self.task_request(&request, &context).await {
            return answer.map(CustomResult);
        }
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

/// Methods that are treated as unknown only if their parameters are invalid.
const KNOWN: [&str; 6] =
    ["tools/call", "resources/read", "prompts/get", "completion/complete", "logging/setLevel", "resources/subscribe"];
