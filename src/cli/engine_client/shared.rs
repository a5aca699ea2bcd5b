//! The engine that already runs for this workspace, reached over its socket like an editor would.
//!
//! The connection claims no folders, so that a subcommand does not change what the engine runs.

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

use super::{CommandError, Question, Questions, in_shell_terms};
use crate::paths::Paths;
use crate::server::connection::Progress;
use crate::session::{self, Front, Hello};
use crate::text::visible;

/// The capacity of the queue of outgoing messages.
const QUEUE: usize = 64;
/// The largest message that is read.
const MAX_MESSAGE: usize = 64 << 20;

/// A connection to the engine.
pub struct Connection {
    outbox: mpsc::Sender<Value>,
    pending: Arc<Pending>,
    next: AtomicI64,
}

/// Requests without a response yet. The `std` locks are private to this file and held for a lookup.
#[derive(Default)]
struct Pending {
    responses: Mutex<HashMap<i64, oneshot::Sender<Result<Value, CommandError>>>>,
    progress: Mutex<HashMap<i64, mpsc::Sender<Progress>>>,
}

/// Joins the engine of exactly this workspace; `None` if there is none or it does not respond.
pub async fn join(
    folder: &Path,
    paths: &Paths,
    interactive: bool,
    changes: watch::Sender<u64>,
    questions: watch::Sender<Questions>,
) -> Option<Connection> {
    let (folder, paths) = (folder.canonicalize().ok()?, paths.clone());
    let joined = tokio::task::spawn_blocking(move || {
        let joined = session::join_running(&folder, &paths, &Hello::new(Front::Editor)).ok().flatten();
        // The engine of a parent folder has other servers.
        joined.filter(|joined| joined.address.root == folder)
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
    let pending = Arc::new(Pending::default());
    let reader = Reader { pending: pending.clone(), outbox: outbox.downgrade(), changes, questions: questions.clone() };
    tokio::spawn(reader.run(BufReader::new(read)));
    let connection = Connection { outbox, pending, next: AtomicI64::new(1) };
    connection.initialize(interactive).await.ok()?;
    let approvals = connection.run("mcp.approvals", json!({}), None).await.ok()?;
    questions.send_replace(Question::parse_list(approvals.get("approvals").cloned().unwrap_or_default()));
    Some(connection)
}

impl Connection {
    async fn initialize(&self, interactive: bool) -> Result<(), CommandError> {
        // `approvals` even if there is no user at the terminal: then an editor answers them.
        let sidecar = json!({ "version": env!("CARGO_PKG_VERSION"), "approvals": true, "elicitation": interactive });
        let capabilities = json!({ "experimental": { "mcpSidecar": sidecar } });
        let params = json!({ "processId": null, "rootUri": null, "capabilities": capabilities });
        self.request("initialize", params, None).await?;
        self.send(json!({ "jsonrpc": "2.0", "method": "initialized", "params": {} })).await
    }

    pub async fn run(
        &self,
        name: &str,
        params: Value,
        progress: Option<mpsc::Sender<Progress>>,
    ) -> Result<Value, CommandError> {
        self.request("workspace/executeCommand", json!({ "command": name, "arguments": [params] }), progress).await
    }

    async fn request(
        &self,
        method: &str,
        mut params: Value,
        progress: Option<mpsc::Sender<Progress>>,
    ) -> Result<Value, CommandError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (respond, response) = oneshot::channel();
        self.pending.responses().insert(id, respond);
        if let Some(progress) = progress {
            self.pending.progress().insert(id, progress);
            if let Some(fields) = params.as_object_mut() {
                fields.insert("workDoneToken".to_owned(), json!(id));
            }
        }
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await?;
        let response = response.await.unwrap_or_else(|_| Err(engine_ended()));
        self.pending.progress().remove(&id);
        response
    }

    async fn send(&self, message: Value) -> Result<(), CommandError> {
        self.outbox.send(message).await.map_err(|_| engine_ended())
    }

    /// Shuts the session down, so that the engine does not mistake us for an editor that crashed.
    pub async fn leave(self) {
        self.request("shutdown", Value::Null, None).await.ok();
        self.send(json!({ "jsonrpc": "2.0", "method": "exit" })).await.ok();
    }
}

impl Pending {
    fn responses(&self) -> MutexGuard<'_, HashMap<i64, oneshot::Sender<Result<Value, CommandError>>>> {
        self.responses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn progress(&self) -> MutexGuard<'_, HashMap<i64, mpsc::Sender<Progress>>> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn engine_ended() -> CommandError {
    CommandError { kind: "io".to_owned(), message: "the engine of this workspace has ended; try again".to_owned() }
}

/// Handles the messages of the engine.
struct Reader {
    pending: Arc<Pending>,
    outbox: mpsc::WeakSender<Value>,
    changes: watch::Sender<u64>,
    questions: watch::Sender<Questions>,
}

impl Reader {
    async fn run(self, mut input: BufReader<OwnedReadHalf>) {
        while let Ok(message) = read(&mut input).await {
            self.handle(message).await;
        }
        // Fails all pending requests.
        self.pending.responses().clear();
    }

    async fn handle(&self, mut message: Value) {
        let id = message.get("id").cloned().filter(|id| !id.is_null());
        let method = message.get("method").and_then(Value::as_str).map(str::to_owned);
        let params = message.get("params").cloned().unwrap_or_default();
        match (method.as_deref(), id) {
            (None, Some(id)) => {
                let waiter = id.as_i64().and_then(|id| self.pending.responses().remove(&id));
                let answer = match message.get("error") {
                    Some(error) => Err(command_error(error)),
                    None => Ok(message.get_mut("result").map(Value::take).unwrap_or_default()),
                };
                if let Some(waiter) = waiter {
                    waiter.send(answer).ok();
                }
            }
            (Some(method), Some(id)) => {
                let result = if method == "window/showDocument" {
                    let page = params.get("uri").and_then(Value::as_str).unwrap_or_default();
                    let message = format!("open this page in your browser: {}\n", visible(page, 8_000));
                    json!({ "success": super::super::terminal::eprint(&message).is_ok() })
                } else {
                    Value::Null
                };
                if let Some(outbox) = self.outbox.upgrade() {
                    outbox.send(json!({ "jsonrpc": "2.0", "id": id, "result": result })).await.ok();
                }
            }
            (Some("mcp/approvalsChanged"), None) => {
                self.questions.send_replace(Question::parse_list(params.get("approvals").cloned().unwrap_or_default()));
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
        let progress = self.pending.progress().get(&token).cloned();
        if let Some(progress) = progress {
            progress.try_send(Progress { progress: percentage, total: Some(100.0), message }).ok();
        }
    }
}

fn command_error(error: &Value) -> CommandError {
    let message = error.get("message").and_then(Value::as_str).unwrap_or("the engine gave no reason");
    CommandError::from_wire(&in_shell_terms(message), error.get("data").unwrap_or(&Value::Null))
}

/// Reads one message: header lines, an empty line, and the body.
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
    let mut body = vec![0; length.filter(|length| *length <= MAX_MESSAGE).ok_or_else(broken)?];
    input.read_exact(&mut body).await?;
    serde_json::from_slice(&body).map_err(|_| broken())
}
