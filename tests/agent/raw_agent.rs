//! An agent that sends raw lines of JSON, which no library would send, and the engine it connects to.

use std::time::Duration;

use mcp_sidecar::agent::{AgentOptions, Endpoint};
use mcp_sidecar::engine::Engine;
use mcp_sidecar::settings::Settings;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};

use crate::support::Home;

/// Fails tests that would hang.
const PATIENCE: Duration = Duration::from_secs(30);

/// An engine with servers in the user's config, and its endpoint for agents.
pub struct Host {
    pub home: Home,
    pub engine: Engine,
    pub endpoint: Endpoint,
}

impl Host {
    pub fn new(servers: Value) -> Self {
        Self::with(servers, Settings::default())
    }

    pub fn with(servers: Value, settings: Settings) -> Self {
        Self::with_config(json!({ "servers": servers }), settings)
    }

    /// An engine with this config file of the user.
    pub fn with_config(config: Value, settings: Settings) -> Self {
        let home = Home::new();
        std::fs::write(home.path("config/mcp.json"), config.to_string()).unwrap();
        let engine = Engine::start(home.paths(), settings);
        let endpoint = Endpoint::new(engine.clone());
        Self { home, engine, endpoint }
    }

    /// The agent's end of a connection.
    pub fn connect(&self, room: usize) -> DuplexStream {
        self.connect_as(AgentOptions::default(), room)
    }

    pub fn connect_as(&self, options: AgentOptions, room: usize) -> DuplexStream {
        let (near, far) = tokio::io::duplex(room);
        let (read, write) = tokio::io::split(far);
        let (endpoint, options) = (self.endpoint.clone(), AgentOptions { folder: self.home.project(), ..options });
        tokio::spawn(async move { endpoint.serve(read, write, options).await });
        near
    }

    pub async fn agent(&self) -> RawAgent {
        self.agent_named("liner").await
    }

    /// An agent that reports this name.
    pub async fn agent_named(&self, name: &str) -> RawAgent {
        let mut line = RawAgent::new(self.connect(1 << 20));
        line.initialize_as(name, json!({})).await;
        line
    }
}

pub struct RawAgent {
    input: BufReader<ReadHalf<DuplexStream>>,
    output: WriteHalf<DuplexStream>,
    pub notifications: Vec<Value>,
}

impl RawAgent {
    pub fn new(stream: DuplexStream) -> Self {
        let (input, output) = tokio::io::split(stream);
        Self { input: BufReader::new(input), output, notifications: Vec::new() }
    }

    pub async fn initialize(&mut self, capabilities: Value) -> Value {
        self.initialize_as("liner", capabilities).await
    }

    pub async fn initialize_as(&mut self, name: &str, capabilities: Value) -> Value {
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities,
            "clientInfo": { "name": name, "version": "1" } });
        let greeting = self.ask(0, "initialize", params).await;
        self.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        greeting["result"].clone()
    }

    pub async fn send(&mut self, message: Value) {
        self.say(&message.to_string()).await;
    }

    pub async fn say(&mut self, line: &str) {
        self.output.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    pub async fn begin(&mut self, id: i64, method: &str, params: Value) {
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
    }

    /// The next raw line; empty at the end.
    pub async fn hear(&mut self) -> String {
        let mut line = String::new();
        tokio::time::timeout(PATIENCE, self.input.read_line(&mut line)).await.expect("no hang").unwrap();
        line
    }

    /// The next response or request. Notifications are stored.
    pub async fn next(&mut self) -> Value {
        loop {
            let line = self.hear().await;
            let message: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no message: {line:?}"));
            if message.get("id").is_none() && message.get("method").is_some() {
                self.notifications.push(message);
            } else {
                return message;
            }
        }
    }

    pub async fn ask(&mut self, id: i64, method: &str, params: Value) -> Value {
        self.begin(id, method, params).await;
        let answer = self.next().await;
        assert_eq!(answer["id"], id, "{answer:#}");
        answer
    }

    pub async fn call(&mut self, id: i64, tool: &str, arguments: Value) -> Value {
        self.ask(id, "tools/call", json!({ "name": tool, "arguments": arguments })).await["result"].clone()
    }

    pub async fn notified(&mut self, method: &str) -> Value {
        loop {
            if let Some(at) = self.notifications.iter().position(|message| message["method"] == method) {
                return self.notifications.remove(at)["params"].clone();
            }
            let message: Value = serde_json::from_str(&self.hear().await).unwrap();
            assert!(message.get("id").is_none(), "not expected: {message:#}");
            self.notifications.push(message);
        }
    }
}
