//! An editor for tests. Every message must be expected: by a wait of the test, by a handler, or by `ignore`. The test
//! fails if unexpected messages are left when the editor quits.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;

use super::wire;

/// Fails tests that would hang.
const PATIENCE: Duration = Duration::from_secs(60);

/// Ids from here on are those of an [`EditorSender`], which does not wait for responses.
const FIRST_SENDER_ID: i64 = 1 << 40;

type Handler = Box<dyn FnMut(&Value) -> Result<Value, Value> + Send>;

/// Sends requests from inside the editor, for example for an MCP server that it hosts.
#[derive(Clone)]
pub struct EditorSender {
    output: mpsc::UnboundedSender<Value>,
    next_id: i64,
}

impl EditorSender {
    pub fn request(&mut self, method: &str, params: Value) {
        self.next_id += 1;
        let message = json!({ "jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params });
        self.output.send(message).ok();
    }

    pub fn notify(&self, method: &str, params: Value) {
        self.output.send(json!({ "jsonrpc": "2.0", "method": method, "params": params })).ok();
    }
}

/// One editor on one connection.
pub struct TestEditor {
    output: mpsc::UnboundedSender<Value>,
    input: mpsc::UnboundedReceiver<Value>,
    next_id: i64,
    /// Received, but not yet requested by the test.
    answers: BTreeMap<i64, Value>,
    notifications: VecDeque<(String, Value)>,
    handlers: BTreeMap<String, Handler>,
    ignored: Vec<String>,
    /// What `initialize` was answered with.
    pub greeting: Value,
}

impl TestEditor {
    /// Speaks to whatever is at the other end of these streams.
    pub fn on<R, W>(reader: R, mut writer: W) -> Self
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let (output, mut outgoing) = mpsc::unbounded_channel();
        let (incoming, input) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some(message) = outgoing.recv().await {
                if wire::write(&mut writer, &message).await.is_err() {
                    return;
                }
            }
            // Closes our side when the editor is dropped.
            writer.shutdown().await.ok();
        });
        tokio::spawn(async move {
            let mut reader = BufReader::new(reader);
            while let Some(message) = wire::read(&mut reader).await {
                if incoming.send(message).is_err() {
                    return;
                }
            }
        });
        Self {
            output,
            input,
            next_id: 1,
            answers: BTreeMap::new(),
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
        self.send(json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    pub fn send(&mut self, message: Value) {
        self.output.send(message).ok();
    }

    pub fn sender(&self) -> EditorSender {
        EditorSender { output: self.output.clone(), next_id: FIRST_SENDER_ID }
    }

    /// Asks and waits; the error is the JSON-RPC error object.
    pub async fn request(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.begin(method, params);
        self.answer(id).await
    }

    /// Asks without waiting.
    pub fn begin(&mut self, method: &str, params: Value) -> i64 {
        let id = self.next_id;
        self.next_id += 1;
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// The answer to a request, where it has arrived.
    pub fn answered(&mut self, id: i64) -> Option<Result<Value, Value>> {
        let mut answer = self.answers.remove(&id)?;
        Some(match answer.get("error") {
            Some(error) => Err(error.clone()),
            None => Ok(answer["result"].take()),
        })
    }

    pub async fn answer(&mut self, id: i64) -> Result<Value, Value> {
        loop {
            if let Some(answer) = self.answered(id) {
                return answer;
            }
            self.take_in(&format!("the answer to request {id}")).await;
        }
    }

    pub fn cancel(&mut self, id: i64) {
        self.notify("$/cancelRequest", json!({ "id": id }));
    }

    /// Runs a command of ours.
    pub async fn command(&mut self, name: &str, params: Value) -> Result<Value, Value> {
        let id = self.begin_command(name, params);
        self.answer(id).await
    }

    /// Begins a command without waiting for its answer.
    pub fn begin_command(&mut self, name: &str, params: Value) -> i64 {
        self.begin("workspace/executeCommand", json!({ "command": name, "arguments": [params] }))
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

    /// Waits for the next notification of this name.
    pub async fn notification(&mut self, method: &str) -> Value {
        self.notification_where(method, |_| true).await
    }

    pub async fn notification_where(&mut self, method: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let found = self.notifications.iter().position(|(name, params)| name == method && wanted(params));
            if let Some((_, params)) = found.and_then(|found| self.notifications.remove(found)) {
                return params;
            }
            self.take_in(&format!("a notification {method}")).await;
        }
    }

    /// Answers requests of this name from now on.
    pub fn handle(&mut self, method: &str, handler: impl FnMut(&Value) -> Result<Value, Value> + Send + 'static) {
        self.handlers.insert(method.to_owned(), Box::new(handler));
    }

    /// Notifications of this name are none of the test's business.
    pub fn ignore(&mut self, method: &str) {
        self.ignored.push(method.to_owned());
        self.notifications.retain(|(name, _)| name != method);
    }

    /// Goes as an editor should. Nothing unexpected may be left.
    pub async fn quit(mut self) {
        self.request("shutdown", Value::Null).await.expect("shutdown is answered");
        self.notify("exit", Value::Null);
        self.assert_quiet();
    }

    #[track_caller]
    pub fn assert_quiet(&self) {
        assert!(self.notifications.is_empty(), "not expected: {:#?}", self.notifications);
        assert!(self.answers.is_empty(), "responses without a request: {:#?}", self.answers);
    }

    /// Waits for the other side to hang up.
    pub async fn hung_up(&mut self) {
        let end = async { while self.input.recv().await.is_some() {} };
        tokio::time::timeout(PATIENCE, end).await.expect("the other side should have hung up");
    }

    async fn take_in(&mut self, waiting_for: &str) {
        let message = match tokio::time::timeout(PATIENCE, self.input.recv()).await {
            Ok(Some(message)) => message,
            Ok(None) => panic!("the other side hung up; waiting for {waiting_for}"),
            Err(_) => panic!("waited in vain for {waiting_for}; there is only {:#?}", self.notifications),
        };
        let method = message["method"].as_str().map(str::to_owned);
        match (method, message.get("id")) {
            (Some(method), Some(id)) => {
                let handler = self.handlers.get_mut(&method);
                let reply = handler.unwrap_or_else(|| panic!("not expected: {message:#}"))(&message["params"]);
                let (key, value) = match reply {
                    Ok(result) => ("result", result),
                    Err(error) => ("error", error),
                };
                self.send(json!({ "jsonrpc": "2.0", "id": id, key: value }));
            }
            // A question that is taken back, say because the editor quits, needs no answer.
            (Some(method), None) if method == "$/cancelRequest" => {}
            (Some(method), None) if self.ignored.contains(&method) => {}
            (Some(method), None) => self.notifications.push_back((method, message["params"].clone())),
            (None, Some(id)) if id.as_i64().is_some_and(|id| id > FIRST_SENDER_ID) => {}
            (None, _) => {
                let id = message["id"].as_i64().unwrap_or_else(|| panic!("an answer without an id: {message:#}"));
                assert!(self.answers.insert(id, message).is_none(), "request {id} was answered twice");
            }
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
