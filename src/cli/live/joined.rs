//! The engine that runs for this workspace already: asked as an editor asks, over its socket.
//!
//! It claims no folders of its own, so that looking at a workspace does not change it.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;
use tokio::sync::{mpsc, oneshot, watch};

use super::{Failure, News, Question, shell_words};
use crate::paths::Paths;
use crate::server::connection::Progress;
use crate::session::{self, Front, Hello};
use crate::text::visible;

/// Messages on their way out; there are never many.
const QUEUE: usize = 64;
/// The largest answer that is read.
const LONGEST: usize = 64 << 20;

/// The connection. What waits for an answer is behind a `std` lock, private to this file, held for a look-up.
pub struct Connection {
    outbox: mpsc::Sender<Value>,
    waiting: Arc<Waiting>,
    next: AtomicI64,
}

#[derive(Default)]
struct Waiting {
    answers: Mutex<HashMap<i64, oneshot::Sender<Result<Value, Failure>>>>,
    progress: Mutex<HashMap<i64, mpsc::Sender<Progress>>>,
}

/// Joins the engine of exactly this workspace; `None` when there is none, or none that can be talked to.
pub async fn join(
    folder: &Path,
    paths: &Paths,
    attended: bool,
    changes: watch::Sender<u64>,
    questions: watch::Sender<News>,
) -> Option<Connection> {
    let (folder, paths) = (folder.canonicalize().ok()?, paths.clone());
    let joined = tokio::task::spawn_blocking(move || {
        let joined = session::join_running(&folder, &paths, &Hello::new(Front::Editor)).ok().flatten();
        // One of a folder above has other servers.
        joined.filter(|joined| joined.place.root == folder)
    });
    let stream = joined.await.ok().flatten()?.stream;
    stream.set_nonblocking(true).ok()?;
    let (read, mut write) = UnixStream::from_std(stream).ok()?.into_split();
    let (outbox, mut outgoing) = mpsc::channel::<Value>(QUEUE);
    tokio::spawn(async move {
        while let Some(message) = outgoing.recv().await {
            let body = message.to_string();
            let frame = format!("Content-Length: {}\r\n\r\n{body}", body.len());
            if write.write_all(frame.as_bytes()).await.is_err() {
                return;
            }
        }
    });
    let waiting = Arc::new(Waiting::default());
    let reader = Reader { waiting: waiting.clone(), outbox: outbox.downgrade(), changes, questions: questions.clone() };
    tokio::spawn(reader.run(BufReader::new(read)));
    let connection = Connection { outbox, waiting, next: AtomicI64::new(1) };
    connection.greet(attended).await.ok()?;
    let waits = connection.run("mcp.approvals", json!({}), None).await.ok()?;
    questions.send_replace(Question::read(waits.get("approvals").cloned().unwrap_or_default()));
    Some(connection)
}

impl Connection {
    async fn greet(&self, attended: bool) -> Result<(), Failure> {
        // `approvals` even when nobody is at the terminal: then an editor answers them.
        let ours = json!({ "version": env!("CARGO_PKG_VERSION"), "approvals": true, "elicitation": attended });
        let capabilities = json!({ "experimental": { "mcpSidecar": ours } });
        let params = json!({ "processId": null, "rootUri": null, "capabilities": capabilities });
        self.request("initialize", params, None).await?;
        self.send(json!({ "jsonrpc": "2.0", "method": "initialized", "params": {} })).await
    }

    pub async fn run(
        &self,
        name: &str,
        params: Value,
        progress: Option<mpsc::Sender<Progress>>,
    ) -> Result<Value, Failure> {
        self.request("workspace/executeCommand", json!({ "command": name, "arguments": [params] }), progress).await
    }

    async fn request(
        &self,
        method: &str,
        mut params: Value,
        progress: Option<mpsc::Sender<Progress>>,
    ) -> Result<Value, Failure> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        self.waiting.answers().insert(id, answer);
        if let Some(progress) = progress {
            self.waiting.progress().insert(id, progress);
            if let Some(fields) = params.as_object_mut() {
                fields.insert("workDoneToken".to_owned(), json!(id));
            }
        }
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await?;
        let answer = answered.await.unwrap_or_else(|_| Err(gone()));
        self.waiting.progress().remove(&id);
        answer
    }

    async fn send(&self, message: Value) -> Result<(), Failure> {
        self.outbox.send(message).await.map_err(|_| gone())
    }

    /// Says good-bye, so that the engine does not take us for an editor that died.
    pub async fn leave(self) {
        self.request("shutdown", Value::Null, None).await.ok();
        self.send(json!({ "jsonrpc": "2.0", "method": "exit" })).await.ok();
    }
}

impl Waiting {
    fn answers(&self) -> MutexGuard<'_, HashMap<i64, oneshot::Sender<Result<Value, Failure>>>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn progress(&self) -> MutexGuard<'_, HashMap<i64, mpsc::Sender<Progress>>> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn gone() -> Failure {
    Failure { kind: "io".to_owned(), message: "the engine of this workspace has gone; try again".to_owned() }
}

/// Hears everything that the engine says.
struct Reader {
    waiting: Arc<Waiting>,
    outbox: mpsc::WeakSender<Value>,
    changes: watch::Sender<u64>,
    questions: watch::Sender<News>,
}

impl Reader {
    async fn run(self, mut input: BufReader<OwnedReadHalf>) {
        while let Ok(message) = read(&mut input).await {
            self.hear(message).await;
        }
        // Whoever waits learns it now.
        self.waiting.answers().clear();
    }

    async fn hear(&self, mut message: Value) {
        let id = message.get("id").cloned().filter(|id| !id.is_null());
        let method = message.get("method").and_then(Value::as_str).map(str::to_owned);
        let params = message.get("params").cloned().unwrap_or_default();
        match (method.as_deref(), id) {
            (None, Some(id)) => {
                let waiter = id.as_i64().and_then(|id| self.waiting.answers().remove(&id));
                let answer = match message.get("error") {
                    Some(error) => Err(failure(error)),
                    None => Ok(message.get_mut("result").map(Value::take).unwrap_or_default()),
                };
                if let Some(waiter) = waiter {
                    waiter.send(answer).ok();
                }
            }
            (Some(method), Some(id)) => {
                let result = if method == "window/showDocument" {
                    let page = params.get("uri").and_then(Value::as_str).unwrap_or_default();
                    let told = super::super::terminal::say(&format!("open this page: {}\n", visible(page, 8_000)));
                    json!({ "success": told.is_ok() })
                } else {
                    Value::Null
                };
                if let Some(outbox) = self.outbox.upgrade() {
                    outbox.send(json!({ "jsonrpc": "2.0", "id": id, "result": result })).await.ok();
                }
            }
            (Some("mcp/approvalsChanged"), None) => {
                self.questions.send_replace(Question::read(params.get("approvals").cloned().unwrap_or_default()));
            }
            (Some("$/progress"), None) => self.report(&params),
            (Some(method), None) if method.starts_with("mcp/") => self.changes.send_modify(|count| *count += 1),
            _ => {}
        }
    }

    fn report(&self, params: &Value) {
        let value = params.get("value").cloned().unwrap_or_default();
        let number = |key: &str| value.get(key).and_then(Value::as_f64);
        let Some(percentage) = number("percentage") else { return };
        let message = value.get("message").and_then(Value::as_str).map(str::to_owned);
        let token = params.get("token").and_then(Value::as_i64).unwrap_or_default();
        let progress = self.waiting.progress().get(&token).cloned();
        if let Some(progress) = progress {
            progress.try_send(Progress { progress: percentage, total: Some(100.0), message }).ok();
        }
    }
}

fn failure(error: &Value) -> Failure {
    let message = error.get("message").and_then(Value::as_str).unwrap_or("no reason was given");
    Failure::told(&shell_words(message), error.get("data").unwrap_or(&Value::Null))
}

/// One message: header lines, an empty one, and as many bytes as they say.
async fn read(input: &mut BufReader<OwnedReadHalf>) -> io::Result<Value> {
    let broken = || io::Error::from(io::ErrorKind::InvalidData);
    let mut length = None;
    loop {
        let mut line = String::new();
        if input.read_line(&mut line).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match line.trim() {
            "" => break,
            line => {
                if let Some(count) = line.strip_prefix("Content-Length:") {
                    length = count.trim().parse::<usize>().ok();
                }
            }
        }
    }
    let mut body = vec![0; length.filter(|length| *length <= LONGEST).ok_or_else(broken)?];
    input.read_exact(&mut body).await?;
    serde_json::from_slice(&body).map_err(|_| broken())
}
