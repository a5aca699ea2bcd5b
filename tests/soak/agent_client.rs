//! The agent's end of `mcp-sidecar connect`: many requests at once, each with one response.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin};
use tokio::sync::oneshot;

use crate::world::{PATIENCE, World, lock};

type Pending = Arc<Mutex<BTreeMap<i64, oneshot::Sender<Value>>>>;

pub struct AgentClient {
    process: Child,
    input: tokio::sync::Mutex<Option<ChildStdin>>,
    pending: Pending,
    last_id: Mutex<i64>,
}

impl AgentClient {
    /// Starts the front, and greets as this agent. `None` if it ended before it responded.
    pub async fn open(world: &Arc<World>, name: &str) -> Option<Self> {
        let (process, output, input) = world.start("connect");
        let pending = Pending::default();
        tokio::spawn({
            let (world, pending, name) = (world.clone(), pending.clone(), name.to_owned());
            async move {
                let mut lines = BufReader::new(output).lines();
                while let Ok(Some(line)) = lines.next_line().await {
                    let message: Value = serde_json::from_str(&line).expect("every message is JSON");
                    if message.get("method").is_some() {
                        continue;
                    }
                    let waiting = message["id"].as_i64().and_then(|id| lock(&pending).remove(&id));
                    match waiting {
                        Some(waiting) => drop(waiting.send(message)),
                        None => world.model.violation(format!("{name} got a response that it did not ask for: {line}")),
                    }
                }
                lock(&pending).clear();
            }
        });
        let client = Self { process, input: Some(input).into(), pending, last_id: Mutex::new(0) };
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": name, "version": "1" } });
        client.request("initialize", params).await?;
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        Some(client)
    }

    async fn send(&self, message: &Value) {
        if let Some(input) = self.input.lock().await.as_mut() {
            // A front that was killed does not read; its requests get no response.
            input.write_all(format!("{message}\n").as_bytes()).await.ok();
        }
    }

    /// The response, or `None` if the front has ended.
    pub async fn request(&self, method: &str, params: Value) -> Option<Value> {
        self.begin(method, params).await.1.await.ok()
    }

    /// Sends a request, and returns its id.
    pub async fn begin(&self, method: &str, params: Value) -> (i64, oneshot::Receiver<Value>) {
        let (respond, response) = oneshot::channel();
        let id = {
            let mut last = lock(&self.last_id);
            *last += 1;
            *last
        };
        lock(&self.pending).insert(id, respond);
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        (id, response)
    }

    /// Cancels a request. There may be a response all the same, because it was on its way.
    pub async fn cancel(&self, id: i64) {
        let params = json!({ "requestId": id });
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params })).await;
    }

    /// Leaves as an agent should: it closes its side.
    pub async fn quit(mut self) -> Result<(), String> {
        self.input.lock().await.take();
        match tokio::time::timeout(PATIENCE, self.process.wait()).await {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(status) => Err(format!("the front of an agent that left ended with {status:?}")),
            Err(_) => Err("the front of an agent that left does not end".to_owned()),
        }
    }

    pub async fn kill(mut self) {
        self.process.kill().await.ok();
    }
}
