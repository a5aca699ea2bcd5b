//! An editor for tests. Every message must be expected: by a wait of the test, by a handler, or by `ignore`. The test
//! fails if unexpected messages are left when the editor quits.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::time::Duration;

use futures::FutureExt;
use mcp_sidecar::lsp_client::{CommandError, Event, Events, IncomingNotification, LspClient, Response};
use mcp_sidecar::protocol::commands::Command;
use mcp_sidecar::protocol::events::Notification;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};

/// Fails tests that would hang.
const PATIENCE: Duration = Duration::from_secs(60);

type Handler = Box<dyn FnMut(&Value) -> Result<Value, Value> + Send>;

/// One editor on one connection.
pub struct TestEditor {
    pub client: LspClient,
    events: Events,
    /// Received, but not yet requested by the test.
    notifications: VecDeque<IncomingNotification>,
    handlers: BTreeMap<String, Handler>,
    ignored: Vec<String>,
    /// What `initialize` was answered with.
    pub greeting: Value,
}

impl TestEditor {
    /// Speaks to whatever is at the other end of these streams.
    pub fn on<R, W>(reader: R, writer: W) -> Self
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let (client, events) = LspClient::connect(reader, writer);
        Self {
            client,
            events,
            notifications: VecDeque::new(),
            handlers: BTreeMap::new(),
            ignored: Vec::new(),
            greeting: Value::Null,
        }
    }

    /// Greets as a plain editor of today in these folders would. `more` is put over the params.
    pub async fn initialize(&mut self, folders: &[&Path], more: Value) -> &Value {
        let folders: Vec<Value> =
            folders.iter().map(|folder| json!({ "uri": uri(folder), "name": "folder" })).collect();
        let capabilities =
            json!({ "textDocument": { "documentSymbol": { "hierarchicalDocumentSymbolSupport": true } } });
        let mut params = json!({ "processId": null, "capabilities": capabilities, "workspaceFolders": folders });
        merge(&mut params, more);
        let answer = self.request("initialize", params).await.expect("initialize is answered");
        self.notify("initialized", json!({}));
        self.greeting = answer;
        &self.greeting
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        self.client.send_notification(method, &params);
    }

    /// Sends a request and waits for its result.
    pub async fn request(&mut self, method: &str, params: Value) -> Result<Value, CommandError> {
        let response = self.client.send_request(method, &params);
        self.answer(response).await
    }

    /// Runs a command.
    pub async fn call<C: Command>(&mut self, command: C) -> Result<C::Answer, CommandError> {
        let response = self.start(command);
        self.answer(response).await
    }

    /// Starts a command without waiting for its answer.
    pub fn start<C: Command>(&mut self, command: C) -> Response<C::Answer> {
        self.client.start(command, None)
    }

    /// Runs a command by name, for tests of the wire itself.
    pub async fn raw_command(&mut self, name: &str, params: Value) -> Result<Value, CommandError> {
        self.request("workspace/executeCommand", json!({ "command": name, "arguments": [params] })).await
    }

    /// Waits for a response, and handles the messages that arrive before it.
    pub async fn answer<T: DeserializeOwned>(&mut self, mut response: Response<T>) -> Result<T, CommandError> {
        loop {
            tokio::select! {
                biased;
                event = self.events.recv() => match event {
                    Some(event) => self.handle_event(event),
                    None => match response.now_or_never() {
                        Some(Ok(answer)) => return Ok(answer),
                        other => panic!("the other side hung up: {:?}", other.map(|answer| answer.err())),
                    },
                },
                answer = &mut response => return answer,
                () = tokio::time::sleep(PATIENCE) => panic!("no response; there is only {:#?}", self.notifications),
            }
        }
    }

    pub fn open(&mut self, path: &Path, text: &str) {
        self.open_uri(&uri(path), text);
    }

    pub fn open_uri(&mut self, uri: &str, text: &str) {
        let document = json!({ "uri": uri, "languageId": "json", "version": 1, "text": text });
        self.notify("textDocument/didOpen", json!({ "textDocument": document }));
    }

    pub fn change(&mut self, path: &Path, version: i32, text: &str) {
        let document = json!({ "uri": uri(path), "version": version });
        let params = json!({ "textDocument": document, "contentChanges": [{ "text": text }] });
        self.notify("textDocument/didChange", params);
    }

    pub fn close(&mut self, path: &Path) {
        self.notify("textDocument/didClose", json!({ "textDocument": { "uri": uri(path) } }));
    }

    /// Asks for a language feature of a whole file, such as `textDocument/foldingRange`.
    pub async fn ask_about(&mut self, method: &str, path: &Path) -> Value {
        let params = json!({ "textDocument": { "uri": uri(path) } });
        self.request(method, params).await.unwrap_or_else(|error| panic!("{method} failed: {error:#}"))
    }

    /// Waits for the next diagnostics of this file.
    pub async fn diagnostics(&mut self, path: &Path) -> Value {
        let wanted = uri(path);
        self.notification_where("textDocument/publishDiagnostics", |params| params["uri"] == wanted).await
    }

    /// Waits for the next notification of this type.
    pub async fn event<N: Notification>(&mut self) -> N {
        self.event_where(|_: &N| true).await
    }

    pub async fn event_where<N: Notification>(&mut self, wanted: impl Fn(&N) -> bool) -> N {
        let parse = |params: &Value| N::deserialize(params).unwrap_or_else(|error| panic!("{error}: {params:#}"));
        let params = self.notification_where(N::METHOD, |params| wanted(&parse(params))).await;
        parse(&params)
    }

    /// Waits for the next notification of this name.
    pub async fn notification(&mut self, method: &str) -> Value {
        self.notification_where(method, |_| true).await
    }

    pub async fn notification_where(&mut self, method: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let found = self.notifications.iter().position(|each| each.method == method && wanted(&each.params));
            if let Some(notification) = found.and_then(|found| self.notifications.remove(found)) {
                return notification.params;
            }
            self.take_in(&format!("a notification {method}")).await;
        }
    }

    /// Answers requests of this name from now on. An error `null` leaves the request unanswered.
    pub fn handle(&mut self, method: &str, handler: impl FnMut(&Value) -> Result<Value, Value> + Send + 'static) {
        self.handlers.insert(method.to_owned(), Box::new(handler));
    }

    /// Notifications of this name are none of the test's business.
    pub fn ignore(&mut self, method: &str) {
        self.ignored.push(method.to_owned());
        self.notifications.retain(|notification| notification.method != method);
    }

    /// Reads notifications of this name again.
    pub fn heed(&mut self, method: &str) {
        self.ignored.retain(|ignored| ignored != method);
    }

    /// Goes as an editor should. Nothing unexpected may be left.
    pub async fn quit(mut self) {
        self.request("shutdown", Value::Null).await.expect("shutdown is answered");
        self.notify("exit", Value::Null);
        self.assert_quiet();
    }

    #[track_caller]
    pub fn assert_quiet(&mut self) {
        while let Ok(event) = self.events.try_recv() {
            self.handle_event(event);
        }
        // It comes some time after a call.
        self.notifications.retain(|notification| notification.method != "mcp/agentsChanged");
        assert!(self.notifications.is_empty(), "not expected: {:#?}", self.notifications);
    }

    /// Waits for the other side to hang up.
    pub async fn hung_up(&mut self) {
        let end = async { while self.events.recv().await.is_some() {} };
        tokio::time::timeout(PATIENCE, end).await.expect("the other side should have hung up");
    }

    async fn take_in(&mut self, waiting_for: &str) {
        match tokio::time::timeout(PATIENCE, self.events.recv()).await {
            Ok(Some(event)) => self.handle_event(event),
            Ok(None) => panic!("the other side hung up; waiting for {waiting_for}"),
            Err(_) => panic!("waited in vain for {waiting_for}; there is only {:#?}", self.notifications),
        }
    }

    fn handle_event(&mut self, event: Event) {
        match event {
            Event::Request(request) => {
                let handler = self.handlers.get_mut(&request.method);
                match handler.unwrap_or_else(|| panic!("not expected: {request:#?}"))(&request.params) {
                    Ok(result) => request.respond(&result),
                    // The user closed a dialog that this editor then forgets.
                    Err(Value::Null) => {}
                    Err(error) => request.refuse(error["code"].as_i64().unwrap(), error["message"].to_string()),
                }
            }
            // A question that is taken back, say because the editor quits, needs no answer.
            Event::Notification(notification) if notification.method == "$/cancelRequest" => {}
            Event::Notification(notification) if self.ignored.contains(&notification.method) => {}
            Event::Notification(notification) => self.notifications.push_back(notification),
            Event::Invalid(reason) => panic!("{reason}"),
        }
    }
}

pub fn uri(path: &Path) -> String {
    url::Url::from_file_path(path).expect("tests use absolute paths").to_string()
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}
