//! An agent that starts `mcp-sidecar connect` and exchanges raw lines of JSON with it.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::support::Home;

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-sidecar");
/// No wait takes longer on the slowest machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct StdioAgent {
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    /// Ends with the agent.
    _process: Child,
    next_id: u64,
    pub notifications: Vec<Value>,
    /// The result of `initialize`.
    pub server: Value,
}

impl StdioAgent {
    pub async fn start(home: &Home, folder: &Path) -> Self {
        Self::with(home, folder, json!({})).await
    }

    /// Starts it without a session, as agents since 2026-07-28 do: each of its requests says who it is.
    pub fn stateless(home: &Home, folder: &Path) -> Self {
        let mut command = Command::new(PROGRAM);
        command.arg("connect").envs(home.variables()).current_dir(folder).kill_on_drop(true);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let output = BufReader::new(output).lines();
        Self { input, output, _process: process, next_id: 0, notifications: Vec::new(), server: Value::Null }
    }

    /// Starts it with these capabilities.
    pub async fn with(home: &Home, folder: &Path, capabilities: Value) -> Self {
        let mut agent = Self::stateless(home, folder);
        let client = json!({ "name": "stdio-agent", "version": "1" });
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client });
        agent.server = agent.ask("initialize", params).await["result"].clone();
        agent.send(json!({ "method": "notifications/initialized" })).await;
        agent
    }

    pub async fn send(&mut self, mut message: Value) {
        message["jsonrpc"] = json!("2.0");
        self.input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    /// Sends a request and returns its id.
    pub async fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.next_id += 1;
        self.send(json!({ "id": self.next_id, "method": method, "params": params })).await;
        self.next_id
    }

    pub async fn hear(&mut self) -> Value {
        let line = tokio::time::timeout(PATIENCE, self.output.next_line()).await.expect("a message").unwrap();
        serde_json::from_str(&line.expect("it should still run")).unwrap()
    }

    /// The response to a request. Notifications are stored.
    pub async fn response(&mut self, id: u64) -> Value {
        loop {
            let message = self.hear().await;
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
            self.notifications.push(message);
        }
    }

    pub async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params).await;
        self.response(id).await
    }

    pub async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    /// Waits until the list of tools contains this one.
    pub async fn until_listed(&mut self, tool: &str) -> Value {
        loop {
            let listed = self.ask("tools/list", json!({})).await;
            let tools = listed["result"]["tools"].as_array().expect("tools").clone();
            if let Some(found) = tools.into_iter().find(|each| each["name"] == tool) {
                return found;
            }
            self.notified("notifications/tools/list_changed").await;
        }
    }

    /// Waits for a notification, or takes one that has arrived.
    pub async fn notified(&mut self, method: &str) -> Value {
        self.message(method).await["params"].clone()
    }

    /// Waits for a request or notification, or takes one that has arrived.
    pub async fn message(&mut self, method: &str) -> Value {
        loop {
            if let Some(at) = self.notifications.iter().position(|message| message["method"] == method) {
                return self.notifications.remove(at);
            }
            let message = self.hear().await;
            self.notifications.push(message);
        }
    }
}

/// The text of a result.
pub fn text(response: &Value) -> &str {
    response["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{response:#}"))
}
