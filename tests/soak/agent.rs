//! An agent: it lists and calls tools, cancels some of its calls, leaves or is killed, and comes back.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use futures::future::join_all;
use serde_json::{Value, json};

use crate::actor::Actor;
use crate::agent_client::AgentClient;
use crate::model::Saw;
use crate::world::{PATIENCE, SERVERS, World};

/// The front does not start an engine again that was killed twice within a moment, until the agent sends something else.
const GAVE_UP: &str = "could not be restarted";

pub struct Agent {
    world: Arc<World>,
    name: String,
    rng: Rng,
    client: Option<AgentClient>,
}

impl Agent {
    pub fn new(world: &Arc<World>, number: usize, rng: Rng) -> Self {
        Self { world: world.clone(), name: format!("agent-{number}"), rng, client: None }
    }
}

impl Actor for Agent {
    const PAUSE: Duration = Duration::from_millis(400);

    fn world(&self) -> &Arc<World> {
        &self.world
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn random(&mut self) -> &mut Rng {
        &mut self.rng
    }

    /// Connects if it is not, and checks that the connection works.
    async fn connect(&mut self) {
        for _ in 0..10 {
            if self.client.is_none() {
                let opened = tokio::time::timeout(PATIENCE, AgentClient::open(&self.world, &self.name)).await;
                self.client = opened.unwrap_or_else(|_| {
                    self.world.model.violation(format!("{} cannot connect: it hangs", self.name));
                    None
                });
            }
            if self.ask("ping", json!({})).await.is_some() {
                return;
            }
            // The engine was killed while it started.
            self.client = None;
        }
        self.world.model.violation(format!("{} could not connect ten times", self.name));
    }

    async fn act(&mut self) {
        if self.client.is_none() {
            self.world.note(&self.name, "connects");
            self.connect().await;
        }
        let what = self.rng.u32(0..100);
        self.world.note(&self.name, format!("does {what}"));
        match what {
            0..70 => self.calls().await,
            70..80 => self.cancelled_call().await,
            80..88 => self.list().await,
            88..92 => {
                let token = self.world.model.begin(&self.name, "mcp-sidecar", "nonsense");
                let (world, client) = (&self.world, self.client.as_ref());
                call(world, client, &token, "py0__no_such_tool", json!({ "text": token })).await;
            }
            92..96 => self.leave().await,
            _ => {
                // Its running calls end with it.
                let calls = self.calls();
                tokio::time::timeout(Duration::from_millis(30), calls).await.ok();
                self.world.model.count("kills of agents");
                if let Some(client) = self.client.take() {
                    client.kill().await;
                }
            }
        }
    }

    async fn leave(&mut self) {
        self.world.model.count("agents that left");
        if let Some(client) = self.client.take()
            && let Err(reason) = client.quit().await
        {
            self.world.model.violation(reason);
        }
    }
}

impl Agent {
    async fn ask(&self, method: &str, params: Value) -> Option<Value> {
        let response = tokio::time::timeout(PATIENCE, self.client.as_ref()?.request(method, params)).await;
        response.unwrap_or_else(|_| {
            self.world.model.violation(format!("{method} of {} hangs", self.name));
            None
        })
    }

    /// Some calls at once, each at a random server.
    async fn calls(&mut self) {
        let calls: Vec<_> = (0..self.rng.usize(1..5)).map(|_| self.draw()).collect();
        let (world, name, client) = (&self.world, &self.name, self.client.as_ref());
        let calls = calls.into_iter().map(|(server, mut arguments)| {
            let token = world.model.begin(name, server, "echo");
            arguments["text"] = json!(token);
            async move { call(world, client, &token, &format!("{server}__echo"), arguments).await }
        });
        join_all(calls).await;
    }

    /// A server, and arguments that make it crash or hesitate now and then.
    fn draw(&mut self) -> (&'static str, Value) {
        let server = SERVERS[self.rng.usize(..SERVERS.len())];
        // The demo server accepts only what its schema says.
        let arguments = match self.rng.u32(..40) {
            0 if !server.starts_with("demo") => json!({ "crash": true }),
            1..6 if !server.starts_with("demo") => json!({ "late": true }),
            _ => json!({}),
        };
        (server, arguments)
    }

    async fn cancelled_call(&mut self) {
        let (server, mut arguments) = self.draw();
        let Some(client) = &self.client else { return };
        let token = self.world.model.begin(&self.name, server, "echo");
        arguments["text"] = json!(token);
        let params = json!({ "name": format!("{server}__echo"), "arguments": arguments });
        let (id, response) = client.begin("tools/call", params).await;
        tokio::time::sleep(Duration::from_millis(self.rng.u64(..40))).await;
        client.cancel(id).await;
        self.world.model.count("cancelled calls");
        // A ping that is answered shows that the agent is still served. The response to the call is optional.
        self.ask("ping", json!({})).await;
        drop(response);
    }

    async fn list(&mut self) {
        self.world.model.count("lists");
        if let Some(listed) =
            self.ask("tools/list", json!({})).await.filter(|listed| !listed.to_string().contains(GAVE_UP))
        {
            let tools = listed["result"]["tools"].as_array().map_or(&[][..], Vec::as_slice);
            let mut names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap_or_default()).collect();
            names.sort_unstable();
            let count = names.len();
            names.dedup();
            if count != names.len() || listed["result"]["tools"].is_null() {
                self.world.model.violation(format!("{} got this list: {listed}", self.name));
            }
        }
    }
}

async fn call(world: &World, client: Option<&AgentClient>, token: &str, tool: &str, arguments: Value) {
    let Some(client) = client else { return };
    let params = json!({ "name": tool, "arguments": arguments });
    let response = match tokio::time::timeout(PATIENCE, client.request("tools/call", params)).await {
        Ok(response) => response,
        Err(_) => return world.model.violation(format!("{token} of an agent hangs: {tool} {arguments}")),
    };
    let Some(response) = response else { return world.model.ended(token, Saw::Nothing) };
    let result = &response["result"];
    let text = result["content"][0]["text"].as_str().or(response["error"]["message"].as_str()).unwrap_or_default();
    if result["isError"] != true && result.is_object() {
        return world.model.answered(token, text);
    }
    let is_lost = text.contains("stopped while this request was running") || text.contains(GAVE_UP);
    let is_denial = text.contains("denied") || text.contains("not allowed");
    world.model.ended(token, if is_lost { Saw::Nothing } else { Saw::Refusal { is_denial, text: text.to_owned() } });
}
