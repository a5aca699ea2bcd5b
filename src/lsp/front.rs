//! Where each message of the editor goes: notifications to the buffers and the engine, commands to `commands`, language
//! requests to tower-lsp's router and through it to the backend.

use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tower::Service;
use tower_lsp::LspService;
use tower_lsp::jsonrpc::{Error, Id, Request};
use tower_lsp::lsp_types::notification::ShowMessage;
use tower_lsp::lsp_types::request::WorkspaceConfiguration;
use tower_lsp::lsp_types::{
    ConfigurationItem, ConfigurationParams, DidChangeWorkspaceFoldersParams, MessageType, ShowMessageParams,
};

use super::attached::Attached;
use super::backend::Backend;
use super::editor::Editor;
use super::greeting::Greeting;
use super::guard::{self, Reply};
use super::seat::Seat;
use super::{aside, ask, commands, convert, diagnostics, health, publish, refresh, sdk};
use crate::engine::Engine;
use crate::engine::editors::Attachment;
use crate::engine::turns::Turns;

/// Looking up a few settings is a matter of milliseconds.
const PATIENCE: Duration = Duration::from_secs(30);

pub struct Front {
    seat: Arc<Seat>,
    service: LspService<Backend>,
    state: State,
    /// Commands take effect in the order in which they arrive.
    turns: Turns,
    /// The editor's place in the engine, from `initialized` on.
    attachment: Option<Attachment>,
    /// What runs for as long as the editor is there.
    tasks: JoinSet<()>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Running,
    ShutDown,
}

impl Front {
    pub fn new(engine: Engine, editor: Editor) -> Self {
        let seat = Arc::new(Seat::new(engine, editor));
        // The socket of tower-lsp's own transport is not used: `Editor` is the way to the editor.
        let (service, _socket) = LspService::new(|_| Backend::new(seat.clone()));
        Self { seat, service, state: State::New, turns: Turns::default(), attachment: None, tasks: JoinSet::new() }
    }
}

impl guard::Front for Front {
    fn request(&mut self, id: Id, method: String, params: Option<Value>) -> BoxFuture<'static, Reply> {
        let mut params = params;
        match (method.as_str(), self.state) {
            ("initialize", State::New) => {
                self.seat.greet(Greeting::read(&params.unwrap_or_default()));
                // All that matters has been read. What tower-lsp is strict about stays out of its way.
                params = Some(json!({ "capabilities": {} }));
            }
            ("workspace/executeCommand", State::Running) => {
                let turn = self.turns.queue();
                return commands::run(self.seat.clone(), params.unwrap_or_default(), turn).boxed();
            }
            ("mcp/sdk/message", State::Running) => {
                let reply = sdk::message(self.attachment.as_ref(), &params.unwrap_or_default());
                return std::future::ready(reply).boxed();
            }
            ("mcp/sdk/close", State::Running) => {
                let reply = sdk::close(self.attachment.as_ref(), &params.unwrap_or_default());
                return std::future::ready(reply).boxed();
            }
            ("shutdown", State::Running) => self.state = State::ShutDown,
            _ => {}
        }
        self.route(id, method, params)
    }

    fn notify(&mut self, method: &str, params: Value) {
        if self.state != State::Running {
            return;
        }
        let documents = &self.seat.documents;
        match method {
            "textDocument/didOpen" => read(method, params, |params| documents.open(params)),
            "textDocument/didChange" => {
                read(method, params, |params| documents.change(params, self.seat.greeting().encoding));
            }
            "textDocument/didClose" => read(method, params, |params| documents.close(&params)),
            "workspace/didChangeConfiguration" => match params.get("settings").filter(|words| words.is_object()) {
                Some(words) => self.apply_settings(words),
                None => self.pull_settings(),
            },
            "mcp/workspaceTrust" => {
                if let Some(trusted) = params.get("trusted").and_then(Value::as_bool) {
                    self.seat.engine.trust_workspace(trusted);
                }
            }
            "mcp/sdk/close" => drop(sdk::close(self.attachment.as_ref(), &params)),
            "workspace/didChangeWorkspaceFolders" => read(method, params, |params| self.change_folders(params)),
            _ => tracing::debug!(method, "notification left alone"),
        }
    }

    fn begin(&mut self) {
        if self.state != State::New || !self.seat.is_greeted() {
            return;
        }
        self.state = State::Running;
        let greeting = self.seat.greeting();
        tracing::info!(editor = greeting.editor.as_deref().unwrap_or("unknown"), "editor attached");
        if let Some(trusted) = greeting.abilities.as_ref().and_then(|abilities| abilities.workspace_trusted) {
            self.seat.engine.trust_workspace(trusted);
        }
        if let Some(settings) = greeting.settings.clone() {
            self.apply_settings(&settings);
        }
        self.pull_settings();
        self.attach();
        self.tasks.spawn(self.seat.clone().keep_folders());
        self.tasks.spawn(diagnostics::publish(self.seat.clone()));
        self.tasks.spawn(refresh::refresh(self.seat.clone()));
    }
}

impl Front {
    /// Takes the editor's place in the engine: it can be asked, and told, what its greeting says.
    fn attach(&mut self) {
        let (engine, editor) = (self.seat.engine.clone(), self.seat.editor.clone());
        let abilities = self.seat.greeting().abilities();
        if abilities.plugin {
            self.tasks.spawn(publish::publish(engine.clone(), editor.clone()));
        }
        self.tasks.spawn(health::tell(engine.clone(), editor.clone(), self.seat.greeting().editor.is_some()));
        if !abilities.approvals {
            self.tasks.spawn(ask::ask(engine.clone(), editor.clone()));
        }
        self.attachment = Some(engine.editors().attach(Arc::new(Attached { abilities, editor })));
    }

    /// Lets tower-lsp find the handler and check the parameters.
    fn route(&mut self, id: Id, method: String, params: Option<Value>) -> BoxFuture<'static, Reply> {
        // Always ready; asking is part of the contract.
        _ = self.service.poll_ready(&mut Context::from_waker(Waker::noop()));
        let request = Request::build(method).id(id);
        let request = match params {
            Some(params) => request.params(params).finish(),
            None => request.finish(),
        };
        let response = self.service.call(request);
        async move {
            let (response, laid) = aside::collect(response).await;
            match response {
                Ok(Some(response)) => match (response.into_parts().1?, laid) {
                    (_, Some(laid)) => Ok(laid),
                    (result, None) => to_raw_value(&result).map_err(|_| Error::internal_error()),
                },
                // Unknown methods that begin with `$/`.
                Ok(None) => Err(Error::method_not_found()),
                Err(_) => Err(Error::invalid_request()),
            }
        }
        .boxed()
    }

    fn apply_settings(&mut self, words: &Value) {
        let (seat, words) = (self.seat.clone(), words.clone());
        let problems = seat.apply_settings(&words);
        self.tasks.spawn(async move { complain(&seat, &problems).await });
    }

    /// Asks for the user's settings an editor that would rather be asked. Our own plugins say theirs by themselves.
    fn pull_settings(&mut self) {
        let greeting = self.seat.greeting();
        if !greeting.supports.configuration || greeting.abilities.is_some() {
            return;
        }
        let seat = self.seat.clone();
        self.tasks.spawn(async move {
            let item = ConfigurationItem { scope_uri: None, section: Some("mcpSidecar".to_owned()) };
            let params = ConfigurationParams { items: vec![item] };
            let asked = seat.editor.request::<WorkspaceConfiguration>(&params);
            let Ok(Ok(answer)) = tokio::time::timeout(PATIENCE, asked).await else { return };
            if let Some(words) = answer.first().filter(|words| words.is_object()) {
                complain(&seat, &seat.apply_settings(words)).await;
            }
        });
    }

    fn change_folders(&self, params: DidChangeWorkspaceFoldersParams) {
        let paths = |folders: Vec<_>| -> Vec<_> {
            folders
                .iter()
                .filter_map(|folder: &tower_lsp::lsp_types::WorkspaceFolder| convert::path(&folder.uri))
                .collect()
        };
        self.seat.change_folders(&paths(params.event.removed), paths(params.event.added));
    }
}

/// What is wrong with the user's settings is for the user to see.
async fn complain(seat: &Seat, problems: &[String]) {
    if !problems.is_empty() {
        let message = format!("settings of mcp-sidecar: {}", problems.join("; "));
        let params = ShowMessageParams { typ: MessageType::WARNING, message };
        seat.editor.notify::<ShowMessage>(&params).await;
    }
}

/// Takes in the parameters of a notification. There is nobody to answer to when they make no sense.
fn read<T: DeserializeOwned>(method: &str, params: Value, take: impl FnOnce(T)) {
    match serde_json::from_value(params) {
        Ok(params) => take(params),
        Err(error) => tracing::warn!(method, %error, "notification not understood"),
    }
}
