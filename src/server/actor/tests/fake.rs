//! Servers that behave as a test wants, over a pipe in memory: time can stand still around them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, split};
use tokio::sync::{mpsc, watch};

use crate::config::expand::Expanded;
use crate::config::spec::{Input, Stdio};
use crate::config::{Definition, Launch, ServerSpec, Span};
use crate::model::{CallId, Requester, Result, Scope, ServerName, ServerState, ToolCall, ToolId};
use crate::policy::permit::Permitted;
use crate::policy::trust::Trusted;
use crate::server::connector::{Connector, Errand, Way};
use crate::server::host::Host;
use crate::server::transport::{OpenError, Wire};
use crate::server::{Context, Event, Server};
use crate::settings::Settings;
use crate::text::Secret;

/// What one attempt to reach the server meets. The last one stands for all that follow.
#[derive(Clone)]
pub enum Meets {
    Error(OpenError),
    /// Reads and says nothing.
    Silence,
    Server(Fake),
}

/// A server's manners.
#[derive(Clone, Default)]
pub struct Fake {
    pub tools: Arc<Mutex<Vec<&'static str>>>,
    pub ignores_pings: bool,
    /// Hangs up after so many lists.
    pub hangs_up: bool,
    pub refuses_second_list: bool,
    /// Says this after it was initialized.
    pub says: Vec<Value>,
    pub lists_asked: Arc<AtomicUsize>,
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
                    let asked = self.lists_asked.fetch_add(1, Ordering::SeqCst);
                    if asked > 0 && self.refuses_second_list {
                        out.push(json!({ "jsonrpc": "2.0", "id": message["id"], "error": { "code": -32603, "message": "no" } }));
                        None
                    } else {
                        out.extend(if asked == 0 { self.says.clone() } else { Vec::new() });
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

pub struct Fakes {
    meets: Mutex<VecDeque<Meets>>,
    /// Every launch that was tried.
    pub tried: Mutex<Vec<&'static str>>,
}

impl Connector for Fakes {
    fn open(&self, errand: Errand) -> BoxFuture<'static, Result<Way, OpenError>> {
        self.tried.lock().unwrap().push(match errand.expanded {
            Expanded::Stdio(_) => "stdio",
            Expanded::Tcp { .. } => "tcp",
            _ => "other",
        });
        let meets = {
            let mut meets = self.meets.lock().unwrap();
            if meets.len() > 1 { meets.pop_front().unwrap() } else { meets[0].clone() }
        };
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        match meets {
            Meets::Error(error) => return Box::pin(std::future::ready(Err(error))),
            Meets::Silence => {
                tokio::spawn(async move { tokio::io::copy(&mut split(theirs).0, &mut tokio::io::sink()).await });
            }
            Meets::Server(fake) => {
                tokio::spawn(fake.serve(theirs));
            }
        }
        let (read, write) = split(ours);
        let wire = Wire::Bytes { read: Box::new(read), write: Box::new(write) };
        Box::pin(std::future::ready(Ok(Way { wire, process: None, warnings: Vec::new() })))
    }
}

/// A host with nobody at it, except for an input that a test may give.
#[derive(Default)]
pub struct Nobody {
    pub answer: Option<&'static str>,
}

impl Host for Nobody {
    fn input(&self, _: ServerName, _: Input) -> BoxFuture<'static, Option<Secret>> {
        let answer = self.answer.map(Secret::plain);
        Box::pin(async move {
            tokio::time::sleep(std::time::Duration::from_secs(100)).await;
            answer
        })
    }
}

/// One server and everything that it tells.
pub struct Stage {
    pub server: Server,
    pub fakes: Arc<Fakes>,
    pub events: mpsc::Receiver<(ServerName, u64, Event)>,
    _settings: watch::Sender<Arc<Settings>>,
}

pub fn definition(change: impl FnOnce(&mut ServerSpec)) -> Definition {
    let mut spec = ServerSpec::new(Launch::Stdio(Stdio { command: "fake".to_owned(), ..Stdio::default() }));
    change(&mut spec);
    Definition {
        name: ServerName::new("it").unwrap(),
        key: ServerName::new("it").unwrap(),
        scope: Scope::User,
        file: None,
        folder: None,
        key_span: Span::default(),
        line: 0,
        rule_lines: Default::default(),
        spec,
        written: Arc::default(),
        hides: Vec::new(),
    }
}

pub fn stage(meets: impl IntoIterator<Item = Meets>) -> Stage {
    stage_with(definition(|_| ()), meets, |_| ())
}

pub fn stage_with(
    definition: Definition,
    meets: impl IntoIterator<Item = Meets>,
    change: impl FnOnce(&mut Context),
) -> Stage {
    let (settings, watched) = watch::channel(Arc::new(Settings::default()));
    let (tell, events) = mpsc::channel(1_000);
    let fakes = Arc::new(Fakes { meets: Mutex::new(meets.into_iter().collect()), tried: Mutex::default() });
    let mut context = Context::new(watched, Arc::new(Nobody::default()), tell);
    context.connector = fakes.clone();
    change(&mut context);
    let server = Server::spawn(Trusted::for_test(Arc::new(definition)), 7, context);
    Stage { server, fakes, events, _settings: settings }
}

impl Stage {
    /// Waits for a picture that fits.
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

    pub fn tried(&self) -> usize {
        self.fakes.tried.lock().unwrap().len()
    }
}

pub fn call(tool: &str) -> Permitted {
    let server = ServerName::new("it").unwrap();
    Permitted::for_test(ToolCall {
        id: CallId("1".into()),
        tool: ToolId::new(server, tool),
        arguments: Arc::default(),
        requester: Requester::default(),
        workflow: None,
        timeout: None,
    })
}
