//! The built-in MCP server: harmless, without network or files, with one example of each MCP feature. The demo, the
//! documentation and the tests use it, so that no other server has to be installed.
//!
//! It uses `rmcp` and no other part of the sidecar. To the engine it is a server like any other.

#![allow(deprecated, reason = "logging and subscribe are what peers before 2026-07-28 know")]

mod notes;
mod tools;

#[cfg(test)]
mod tests;

use std::io;
use std::sync::{Mutex, PoisonError};

use rmcp::model::{
    ArgumentInfo, CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, CompletionInfo,
    GetPromptRequestParams, GetPromptResponse, GetPromptResult, Implementation, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, LoggingLevel, LoggingMessageNotificationParam,
    PaginatedRequestParams, Prompt, PromptArgument, PromptMessage, ProtocolVersion, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, Reference, Resource, ResourceContents, ResourceTemplate,
    ResourceUpdatedNotificationParam, Role, ServerCapabilities, ServerConfig, SetLevelRequestParams,
    SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::json;

use notes::Notes;

/// Serves on stdin and stdout until stdin closes.
pub async fn run() -> io::Result<()> {
    let service = DemoServer::default().serve(rmcp::transport::stdio_pipes()).await.map_err(io::Error::other)?;
    service.waiting().await.map_err(io::Error::other)?;
    Ok(())
}

/// Languages that the prompt can greet in.
const LANGUAGES: [(&str, &str); 6] = [
    ("Danish", "Hej"),
    ("English", "Hello"),
    ("French", "Bonjour"),
    ("German", "Guten Tag"),
    ("Italian", "Buongiorno"),
    ("Spanish", "Hola"),
];

/// All state is in memory.
#[derive(Default)]
pub struct DemoServer {
    notes: Notes,
    /// The minimum severity of log messages. The lock is held for one read or write.
    log_level: Mutex<Option<LoggingLevel>>,
}

impl DemoServer {
    /// Sends a log message to a peer that wants messages of this severity.
    async fn log(&self, context: &RequestContext<RoleServer>, level: LoggingLevel, text: String) {
        let wanted = if is_stateless(context) {
            context.meta.log_level()
        } else {
            let kept = *self.log_level.lock().unwrap_or_else(PoisonError::into_inner);
            Some(kept.unwrap_or(LoggingLevel::Info))
        };
        if wanted.is_some_and(|wanted| level as u8 >= wanted as u8) {
            let message = LoggingMessageNotificationParam::new(level, json!(text)).with_logger("demo");
            // Fails if the peer has disconnected.
            context.peer.notify_logging_message(message).await.ok();
        }
    }

    /// Notifies a peer before 2026-07-28 that the notes have changed. Newer peers are notified in `listen`.
    async fn notes_changed(&self, context: &RequestContext<RoleServer>) {
        if is_stateless(context) {
            return;
        }
        context.peer.notify_resource_list_changed().await.ok();
        if self.notes.is_subscribed(notes::ALL) {
            context.peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(notes::ALL)).await.ok();
        }
    }
}

/// Whether the request uses a protocol version without sessions: 2026-07-28 or newer.
fn is_stateless(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| !version.has_initialize())
}

impl ServerHandler for DemoServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_logging()
            .enable_completions()
            .enable_prompts()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_resources_subscribe()
            .enable_tools()
            .build();
        ServerConfig::new(capabilities)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
            .with_server_info(
                Implementation::new("mcp-sidecar-demo", env!("CARGO_PKG_VERSION")).with_title("Demo of mcp-sidecar"),
            )
            .with_instructions("Harmless tools to try things out. Notes are kept in memory only.")
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::list()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        tools::call(self, request, &context).await
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let all = Resource::new(notes::ALL, "notes")
            .with_title("All notes")
            .with_description("All notes, one per line")
            .with_mime_type("text/plain");
        let each = self.notes.all().into_iter().enumerate().map(|(index, text)| {
            Resource::new(notes::uri(index + 1), format!("note {}", index + 1))
                .with_description(text)
                .with_mime_type("text/plain")
        });
        Ok(ListResourcesResult::with_all_items(std::iter::once(all).chain(each).collect()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template = ResourceTemplate::new(notes::TEMPLATE, "note")
            .with_title("One note")
            .with_description("A note by its number, starting at 1")
            .with_mime_type("text/plain");
        Ok(ListResourceTemplatesResult::with_all_items(vec![template]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let Some(text) = self.notes.read(&request.uri) else {
            return Err(ErrorData::resource_not_found(format!("no resource with the URI `{}`", request.uri), None));
        };
        let contents = ResourceContents::text(text, request.uri).with_mime_type("text/plain");
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn subscribe(&self, request: SubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.notes.subscribe(request.uri);
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.notes.unsubscribe(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.notes.changes();
        loop {
            tokio::select! {
                () = subscription.cancelled() => return Ok(()),
                changed = changes.changed() => {
                    if changed.is_err() {
                        return Ok(());
                    }
                    // The sink drops notifications that were not requested.
                    subscription.sink().notify_resource_list_changed().await.ok();
                    subscription.sink().notify_resource_updated(notes::ALL).await.ok();
                }
            }
        }
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let language = PromptArgument::new("language")
            .with_description("One of the languages that completion offers")
            .with_required(true);
        let prompt = Prompt::new("greet", Some("Asks for a greeting in a language"), Some(vec![language]))
            .with_title("A greeting");
        Ok(ListPromptsResult::with_all_items(vec![prompt]))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        if request.name != "greet" {
            return Err(ErrorData::invalid_params(format!("no prompt named `{}`", request.name), None));
        }
        let wanted = request.arguments.as_ref().and_then(|arguments| arguments.get("language")?.as_str());
        let Some((language, hello)) = LANGUAGES.iter().find(|(language, _)| Some(*language) == wanted) else {
            let known = LANGUAGES.map(|(language, _)| language).join(", ");
            return Err(ErrorData::invalid_params(format!("`language` must be one of {known}"), None));
        };
        let text = format!("Write a friendly greeting in {language} that begins with “{hello}”.");
        let message = PromptMessage::new_text(Role::User, text);
        Ok(GetPromptResult::new(vec![message]).with_description(format!("A greeting in {language}")).into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let candidates: Vec<String> = match (&request.r#ref, request.argument.name.as_str()) {
            (Reference::Prompt(prompt), "language") if prompt.name == "greet" => {
                LANGUAGES.iter().map(|(language, _)| (*language).to_owned()).collect()
            }
            (Reference::Resource(resource), "number") if resource.uri == notes::TEMPLATE => {
                (1..=self.notes.all().len()).map(|number| number.to_string()).collect()
            }
            _ => Vec::new(),
        };
        Ok(CompleteResult::new(beginning_with(&request.argument, candidates)?))
    }

    async fn set_level(&self, request: SetLevelRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        *self.log_level.lock().unwrap_or_else(PoisonError::into_inner) = Some(request.level);
        Ok(())
    }
}

fn beginning_with(argument: &ArgumentInfo, candidates: Vec<String>) -> Result<CompletionInfo, ErrorData> {
    let typed = argument.value.to_lowercase();
    let values = candidates.into_iter().filter(|value| value.to_lowercase().starts_with(&typed)).collect();
    CompletionInfo::with_all_values(values).map_err(|reason| ErrorData::internal_error(reason, None))
}
