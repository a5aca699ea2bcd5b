//! Scripted servers over an in-memory pipe, so that tests can pause time.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, split};
use tokio::sync::{mpsc, watch};

use crate::config::expand::Expanded;
use crate::config::spec::{Input, Stdio};
use crate::config::{Definition, Launch, ServerSpec};
use crate::model::{CallId, Requester, Result, Scope, ServerName, ServerState, ToolCall, ToolId};
use crate::policy::permit::Permitted;
use crate::policy::trust::Trusted;
use crate::server::connector::{ConnectRequest, Connector, OpenConnection};
use crate::server::host::Host;
use crate::server::transport::{OpenError, Wire};
use crate::server::{Context, Event, Server};
use crate::settings::Settings;
use crate::text::Secret;

/// The outcome of one attempt to connect. The last one repeats.
#[derive(Clone)]
pub enum Outcome {
    Error(OpenError),
    /// Reads and never answers.
    NoAnswer,
    Server(Fake),
}

/// The behaviour of a server.
#[derive(Clone, Default)]
pub struct Fake {
    pub tools: Arc<Mutex<Vec<&'static str>>>,
    pub ignores_pings: bool,
    /// Closes the connection after the first list.
    pub hangs_up: bool,
    pub refuses_second_list: bool,
    /// Sent after `initialize`.
    pub sends: Vec<Value>,
    pub list_count: Arc<AtomicUsize>,
}

impl Fake {
    pub fn with(tools: &[&'static str]) -> Self {
        Self { tools: Arc::new(Mutex::new(tools.to_vec())), ..Self::default() }
    }

    async fn serve(self, pipe: DuplexStream) {
        let (read, mut write) = split(pipe);
        let mut lines = BufReader::new(read).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let message: Value = serde_json::from_str(&line).unwrap();
            let method = message["method"].as_str().unwrap_or_default();
            let mut out = Vec::new();
            let result = match method {
                "initialize" => Some(json!({
                    "protocolVersion": "2025-11-25", "capabilities": { "tools": { "listChanged": true }, "logging": {} },
                    "serverInfo": { "name": "fake", "version": "1" },
                })),
                "tools/list" => {
                    let count = self.list_count.fetch_add(1, Ordering::SeqCst);
                    if count > 0 && self.refuses_second_list {
                        out.push(json!({ "jsonrpc": "2.0", "id": message["id"], "error": { "code": -32603, "message": "no" } }));
                        None
                    } else {
                        out.extend(if count == 0 { self.sends.clone() } else { Vec::new() });
                        let tools: Vec<Value> = self
                            .tools
                            .lock()
                            .unwrap()
                            .iter()
                            .map(|name| json!({ "name": name, "inputSchema": { "type": "object" } }))
                            .collect();
                        Some(json!({ "tools": tools }))
                    }
                }
                "ping" if self.ignores_pings => None,
                "tools/call" if message["params"]["name"] == "die" => return,
                "tools/call" if message["params"]["name"] == "hang" => None,
                "tools/call" => Some(json!({ "content": [{ "type": "text", "text": "done" }] })),
                _ if message.get("id").is_some() => Some(json!({})),
                _ => None,
            };
            if let Some(result) = result {
                out.insert(0, json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }));
            }
            for message in out {
                write.write_all(format!("{message}\n").as_bytes()).await.ok();
            }
            if self.hangs_up && method == "tools/list" {
                return;
            }
        }
    }
}

pub struct FakeConnector {
    outcomes: Mutex<VecDeque<Outcome>>,
    /// The transport of every attempt.
    pub attempts: Mutex<Vec<&'static str>>,
}

impl FakeConnector {
    /// What every attempt comes to from now on.
    pub fn set_outcome(&self, outcome: Outcome) {
        *self.outcomes.lock().unwrap() = VecDeque::from([outcome]);
    }
}

impl Connector for FakeConnector {
    fn open(&self, request: ConnectRequest) -> BoxFuture<'static, Result<OpenConnection, OpenError>> {
        self.attempts.lock().unwrap().push(match request.expanded {
            Expanded::Stdio(_) => "stdio",
            Expanded::Tcp { .. } => "tcp",
            _ => "other",
        });
        let outcomes = {
            let mut outcomes = self.outcomes.lock().unwrap();
            if outcomes.len() > 1 { outcomes.pop_front().unwrap() } else { outcomes[0].clone() }
        };
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        match outcomes {
            Outcome::Error(error) => return Box::pin(std::future::ready(Err(error))),
            Outcome::NoAnswer => {
                tokio::spawn(async move { tokio::io::copy(&mut split(theirs).0, &mut tokio::io::sink()).await });
            }
            Outcome::Server(fake) => {
                tokio::spawn(fake.serve(theirs));
            }
        }
        let (read, write) = split(ours);
        let wire = Wire::Bytes { read: Box::new(read), write: Box::new(write), input_closed: None };
        Box::pin(std::future::ready(Ok(OpenConnection { wire, process: None, warnings: Vec::new() })))
    }
}

/// A host without a user; it only answers inputs.
#[derive(Default)]
pub struct FakeHost {
    pub answer: Option<&'static str>,
}

impl Host for FakeHost {
    fn input(&self, _: ServerName, _: Input) -> BoxFuture<'static, Option<Secret>> {
        let answer = self.answer.map(Secret::plain);
        Box::pin(async move {
            tokio::time::sleep(std::time::Duration::from_secs(100)).await;
            answer
        })
    }
}

/// One server and its events.
pub struct TestServer {
    pub server: Server,
    pub connector: Arc<FakeConnector>,
    pub events: mpsc::Receiver<(ServerName, u64, Event)>,
    _settings: watch::Sender<Arc<Settings>>,
}

pub fn definition(change: impl FnOnce(&mut ServerSpec)) -> Definition {
    let mut spec = ServerSpec::new(Launch::Stdio(Stdio { command: "fake".to_owned(), ..Stdio::default() }));
    change(&mut spec);
    let name = ServerName::new("it").unwrap();
    Definition { scope: Scope::User, ..Definition::of_session(name, spec, Value::Null) }
}

pub fn start(outcomes: impl IntoIterator<Item = Outcome>) -> TestServer {
    start_with(definition(|_| ()), outcomes, |_| ())
}

pub fn start_with(
    definition: Definition,
    outcomes: impl IntoIterator<Item = Outcome>,
    change: impl FnOnce(&mut Context),
) -> TestServer {
    let (settings, watched) = watch::channel(Arc::new(Settings::default()));
    let (sender, events) = mpsc::channel(1_000);
    let connector =
        Arc::new(FakeConnector { outcomes: Mutex::new(outcomes.into_iter().collect()), attempts: Mutex::default() });
    let mut context = Context::new(watched, Arc::new(FakeHost::default()), sender);
    context.connector = connector.clone();
    change(&mut context);
    let server = Server::spawn(Trusted::for_test(Arc::new(definition)), 7, context);
    TestServer { server, connector, events, _settings: settings }
}

impl TestServer {
    /// Waits for a matching state.
    pub async fn until(&mut self, fits: impl Fn(&ServerState) -> bool) -> Arc<ServerState> {
        loop {
            let (_, generation, event) = self.events.recv().await.expect("the server still tells");
            assert_eq!(generation, 7);
            if let Event::State(state) = event
                && fits(&state)
            {
                return state;
            }
        }
    }

    pub async fn until_status(&mut self, status: &str) -> Arc<ServerState> {
        self.until(|state| state.status.as_str() == status).await
    }

    pub fn attempts(&self) -> usize {
        self.connector.attempts.lock().unwrap().len()
    }
}

pub fn call(tool: &str) -> Permitted {
    let server = ServerName::new("it").unwrap();
    Permitted::for_test(ToolCall {
        id: CallId("1".into()),
        kind: Default::default(),
        tool: ToolId::new(server, tool),
        arguments: Arc::default(),
        requester: Requester::default(),
        workflow: None,
        timeout: None,
        meta: Default::default(),
        unknown_fields: Default::default(),
    })
}
