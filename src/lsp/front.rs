//! Routes the editor's messages: notifications to the buffers and the engine, commands to `commands`, and language
//! requests through tower-lsp's router to the backend.

use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use lsp_types::notification::ShowMessage;
use lsp_types::request::WorkspaceConfiguration;
use lsp_types::{
    ConfigurationItem, ConfigurationParams, DidChangeWorkspaceFoldersParams, DidSaveTextDocumentParams, MessageType,
    ShowMessageParams,
};
use serde::de::DeserializeOwned;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinSet;
use tower::Service;
use tower_lsp::LspService;
use tower_lsp::jsonrpc::{Error, Id, Request};

use super::attached::AttachedEditor;
use super::backend::Backend;
use super::documents::Document;
use super::editor::Editor;
use super::guard::{self, Reply};
use super::initialize_info::InitializeInfo;
use super::session::EditorSession;
use super::{
    Peer, approval_messages, commands, convert, diagnostics, form_messages, health, publish, raw_response, refresh,
    sdk, show,
};
use crate::engine::Engine;
use crate::engine::editors::{Attachment, Join};
use crate::engine::turns::Turns;
use crate::protocol::events::{Notification as _, Request as _, SdkClose, SdkMessage, WorkspaceTrust};

/// Reading a few settings takes an editor milliseconds.
const TIMEOUT: Duration = Duration::from_secs(30);

pub struct Front {
    session: Arc<EditorSession>,
    service: LspService<Backend>,
    /// The process at the other end.
    process: Option<u32>,
    state: State,
    /// Commands run in the order in which they arrive.
    turns: Turns,
    /// Registers the editor with the engine; set after `initialize`.
    attachment: Option<Attachment>,
    /// Tasks that run while the editor is connected.
    tasks: JoinSet<()>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Running,
    ShutDown,
}

impl Front {
    pub fn new(engine: Engine, editor: Editor, Peer { process, environment }: Peer) -> Self {
        let session = Arc::new(EditorSession::new(engine, editor, environment));
        // We use `Editor` instead of the socket of tower-lsp's transport.
        let (service, _socket) = LspService::new(|_| Backend::new(session.clone()));
        let (turns, tasks) = (Turns::default(), JoinSet::new());
        Self { session, service, process, state: State::New, turns, attachment: None, tasks }
    }
}

impl guard::Front for Front {
    fn request(&mut self, id: Id, method: String, params: Option<Value>) -> BoxFuture<'static, Reply> {
        let mut params = params;
        match (method.as_str(), self.state) {
            ("initialize", State::New) => {
                let mut info = InitializeInfo::read(&params.unwrap_or_default());
                info.identity = info.identity.checked(self.process);
                self.session.initialize(info);
                // We have read what we need. tower-lsp rejects parameters that it cannot parse, so it gets none.
                params = Some(json!({ "capabilities": {} }));
            }
            ("workspace/executeCommand", State::Running) => {
                let turn = self.turns.queue();
                let token = guard::progress_token(&id);
                return commands::run(self.session.clone(), params.unwrap_or_default(), token, turn).boxed();
            }
            (SdkMessage::METHOD, State::Running) => {
                return sdk::message(self.attachment.as_ref(), params.unwrap_or_default());
            }
            (SdkClose::METHOD, State::Running) => {
                let reply = sdk::close(self.attachment.as_ref(), params.unwrap_or_default());
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
        let documents = &self.session.documents;
        match method {
            "textDocument/didOpen" => handle(method, params, |params| {
                if let Some(path) = documents.open(params) {
                    self.session.adopt_folder(&path);
                }
            }),
            "textDocument/didChange" => {
                handle(method, params, |params| documents.change(params, self.session.info().encoding));
            }
            "textDocument/didClose" => handle(method, params, |params| documents.close(&params)),
            "textDocument/didSave" => handle(method, params, |params| self.saved(&params)),
            "workspace/didChangeConfiguration" => {
                match params.get("settings").filter(|settings| settings.is_object()) {
                    Some(settings) => self.apply_settings(settings),
                    None => self.pull_settings(),
                }
            }
            WorkspaceTrust::METHOD => handle(method, params, |WorkspaceTrust { trusted }| {
                if self.session.may_decide() {
                    self.session.engine.trust_workspace(trusted);
                }
            }),
            SdkClose::METHOD => drop(sdk::close(self.attachment.as_ref(), params)),
            "workspace/didChangeWorkspaceFolders" => handle(method, params, |params| self.change_folders(params)),
            _ => tracing::debug!(method, "ignored an unknown notification"),
        }
    }

    fn begin(&mut self) {
        if self.state != State::New || !self.session.is_initialized() {
            return;
        }
        self.state = State::Running;
        let info = self.session.info();
        let version = info.editor.as_deref().unwrap_or("unknown");
        tracing::info!(editor = version, identity = %info.identity, started_by = info.identity.started_by, "editor attached");
        let trusted = info.abilities.as_ref().and_then(|abilities| abilities.workspace_trusted);
        if let Some(trusted) = trusted.filter(|_| self.session.may_decide()) {
            self.session.engine.trust_workspace(trusted);
        }
        if let Some(settings) = info.settings.clone() {
            self.apply_settings(&settings);
        }
        self.pull_settings();
        self.attach();
        self.tasks.spawn(self.session.clone().keep_folders());
        self.tasks.spawn(diagnostics::publish(self.session.clone()));
        self.tasks.spawn(refresh::refresh(self.session.clone()));
    }
}

impl Front {
    /// Registers the editor with the engine, with the abilities that it announced.
    fn attach(&mut self) {
        let (engine, editor) = (self.session.engine.clone(), self.session.editor.clone());
        let abilities = self.session.info().abilities();
        if abilities.plugin {
            self.tasks.spawn(publish::publish(engine.clone(), editor.clone()));
        }
        self.tasks.spawn(health::report(engine.clone(), editor.clone(), self.session.info().editor.is_some()));
        let shows_approvals = abilities.approvals;
        let identity = self.session.info().identity.clone();
        let documents = self.session.documents.clone();
        let attached = AttachedEditor { abilities, identity: identity.clone(), editor: editor.clone(), documents };
        let joins = engine.editors().joins();
        let attachment = engine.editors().attach(Arc::new(attached));
        if !identity.is_shell() {
            self.tasks.spawn(show_joins(self.session.clone(), joins, attachment.id()));
        }
        let shown_in = approval_messages::ShownIn { id: attachment.id(), identity, editor };
        let shown_in = self.session.shown_in.get_or_init(|| shown_in).clone();
        if !shows_approvals && self.session.may_decide() {
            self.tasks.spawn(approval_messages::show_approvals(engine, shown_in));
            self.tasks.spawn(form_messages::show_forms(self.session.clone()));
        }
        self.attachment = Some(attachment);
    }

    /// Lets tower-lsp find the handler and check the parameters.
    fn route(&mut self, id: Id, method: String, params: Option<Value>) -> BoxFuture<'static, Reply> {
        // It is always ready, but `Service` requires the call.
        _ = self.service.poll_ready(&mut Context::from_waker(Waker::noop()));
        let request = Request::build(method).id(id);
        let request = match params {
            Some(params) => request.params(params).finish(),
            None => request.finish(),
        };
        let response = self.service.call(request);
        async move {
            let (response, raw) = raw_response::capture(response).await;
            match response {
                Ok(Some(response)) => match (response.into_parts().1?, raw) {
                    (_, Some(raw)) => Ok(raw),
                    (result, None) => to_raw_value(&result).map_err(|_| Error::internal_error()),
                },
                // Unknown methods that begin with `$/`.
                Ok(None) => Err(Error::method_not_found()),
                Err(_) => Err(Error::invalid_request()),
            }
        }
        .boxed()
    }

    fn apply_settings(&mut self, settings: &Value) {
        if !self.session.may_decide() {
            return;
        }
        let session = self.session.clone();
        let problems = session.apply_settings(settings);
        self.tasks.spawn(async move { show_setting_problems(&session, &problems).await });
    }

    /// Requests the user's settings from editors that support it. Our own plugins send them without a request.
    fn pull_settings(&mut self) {
        let info = self.session.info();
        if !info.supports.configuration || info.abilities.is_some() || !self.session.may_decide() {
            return;
        }
        let session = self.session.clone();
        self.tasks.spawn(async move {
            let item = ConfigurationItem { scope_uri: None, section: Some("mcpSidecar".to_owned()) };
            let params = ConfigurationParams { items: vec![item] };
            let request = session.editor.request::<WorkspaceConfiguration>(&params);
            let Ok(Ok(answer)) = tokio::time::timeout(TIMEOUT, request).await else { return };
            if let Some(settings) = answer.first().filter(|settings| settings.is_object()) {
                show_setting_problems(&session, &session.apply_settings(settings)).await;
            }
        });
    }

    /// What the user saves in an editor is their own change.
    fn saved(&self, params: &DidSaveTextDocumentParams) {
        let saved = self.session.documents.get(&params.text_document.uri).filter(|_| self.session.may_decide());
        if let Some(Document { path: Some(path), text, .. }) = saved {
            self.session.engine.saved_in_editor(&path, &text);
        }
    }

    fn change_folders(&self, params: DidChangeWorkspaceFoldersParams) {
        let paths = |folders: Vec<_>| -> Vec<_> {
            folders.iter().filter_map(|folder: &lsp_types::WorkspaceFolder| convert::path(&folder.uri)).collect()
        };
        self.session.change_folders(&paths(params.event.removed), paths(params.event.added));
    }
}

/// Shows which editors join after this one.
async fn show_joins(session: Arc<EditorSession>, mut joins: broadcast::Receiver<Join>, own: u64) {
    loop {
        match joins.recv().await {
            Ok(join) if join.id > own => show::message(&session, MessageType::INFO, &join.message).await,
            Ok(_) | Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return,
        }
    }
}

async fn show_setting_problems(session: &EditorSession, problems: &[String]) {
    if !problems.is_empty() {
        let message = format!("mcp-sidecar settings: {}", problems.join("; "));
        let params = ShowMessageParams { typ: MessageType::WARNING, message };
        session.editor.notify::<ShowMessage>(&params).await;
    }
}

/// Handles a notification. Notifications have no response, so bad parameters are only logged.
fn handle<T: DeserializeOwned>(method: &str, params: Value, handler: impl FnOnce(T)) {
    match serde_json::from_value(params) {
        Ok(params) => handler(params),
        Err(error) => tracing::warn!(method, %error, "ignored a notification with bad parameters"),
    }
}
