//! Stands between the editor's bytes and the handlers, and keeps what a handler does from harming the session.
//!
//! tower-lsp's own transport runs every handler in one task: four that wait block the fifth request and every
//! notification, a panic or a late answer ends the server, `exit` may never return. So its router and types are used,
//! and the transport is this one:
//! - every request runs in a task of its own, a panic in it is the answer −32603 to that request and nothing else;
//! - `$/cancelRequest` is taken in at once, wherever the request is: its future is dropped and −32800 is the answer;
//! - notifications are taken in on the reader itself, in order; they may not wait;
//! - whatever ends the session ends it: `exit`, end of input, an output nobody reads, the death of the editor.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio_util::codec::FramedRead;
use tokio_util::sync::CancellationToken;
use tower_lsp::jsonrpc::{Error, ErrorCode, Id};

use super::editor::Editor;
use super::frames::{self, Frame, Frames};
use super::message::{self, Incoming};
use super::parent::Parent;

/// Messages on their way to the editor; whoever has one more waits until it reads.
const OUTBOX: usize = 256;
/// Requests of the editor that are being worked on.
const IN_FLIGHT: usize = 4_096;
/// How long the last messages may take to leave.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What a request comes to: JSON as it goes on the wire, so that a large result is not parsed on its way.
pub type Reply = Result<Box<RawValue>, Error>;

/// What stands behind the guard.
pub trait Front: Send {
    /// Begins on a request; dropping the future cancels it. What has to happen in the order of the messages happens
    /// before the future is returned.
    fn request(&mut self, id: Id, method: String, params: Option<Value>) -> BoxFuture<'static, Reply>;

    /// Takes in a notification. It runs on the reader, so it may not wait.
    fn notify(&mut self, method: &str, params: Value);

    /// `initialize` has been answered: from now on the editor may be spoken to.
    fn begin(&mut self);
}

/// Why a session is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    Exit,
    InputClosed,
    /// The editor reads no more.
    OutputClosed,
    /// The process that `initialize` named has died.
    EditorDied,
    Signal,
}

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    pub reason: Reason,
    pub after_shutdown: bool,
}

impl End {
    /// As LSP asks for it: success only when `shutdown` came first. A signal is an order, not a failure.
    pub fn exit_code(&self) -> u8 {
        u8::from(!self.after_shutdown && self.reason != Reason::Signal)
    }
}

/// Runs one session to its end.
pub async fn run<R, W, F>(input: R, output: W, front: impl FnOnce(Editor) -> F) -> End
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
    F: Front,
{
    let (outbox, inbox) = mpsc::channel(OUTBOX);
    let editor = Editor::new(outbox);
    let (named, parent) = oneshot::channel();
    let mut guard = Guard {
        front: front(editor.clone()),
        editor: editor.clone(),
        in_flight: Arc::default(),
        parent: Some(named),
        shutdown: false,
    };
    let last_words = CancellationToken::new();
    let mut writer = tokio::spawn(write(output, inbox, last_words.clone()));
    let reason = tokio::select! {
        reason = guard.read(input) => reason,
        _ = &mut writer => Reason::OutputClosed,
        () = gone(parent) => Reason::EditorDied,
    };
    let end = End { reason, after_shutdown: guard.shutdown };
    tracing::info!(?end, "session over");
    drop(guard);
    editor.close();
    last_words.cancel();
    if reason != Reason::OutputClosed && tokio::time::timeout(LAST_WORDS, &mut writer).await.is_err() {
        writer.abort();
    }
    end
}

struct Guard<F> {
    front: F,
    editor: Editor,
    in_flight: Arc<InFlight>,
    /// Where the editor's process is told, once.
    parent: Option<oneshot::Sender<Parent>>,
    shutdown: bool,
}

impl<F: Front> Guard<F> {
    /// Reads until there is a reason to stop.
    async fn read<R: AsyncRead + Unpin>(&mut self, input: R) -> Reason {
        let mut frames = FramedRead::new(input, Frames::default());
        while let Some(frame) = frames.next().await {
            let incoming = match frame {
                Ok(Frame::Body(body)) => message::read(&body),
                Ok(Frame::Refused(reason)) => {
                    Incoming::Bad { id: Id::Null, error: message::error(ErrorCode::ParseError, reason) }
                }
                Err(error) => {
                    tracing::warn!(%error, "the editor's messages cannot be read any more");
                    break;
                }
            };
            match incoming {
                Incoming::Request { id, method, params } => self.request(id, method, params).await,
                Incoming::Notification { method, .. } if method == "exit" => return Reason::Exit,
                Incoming::Notification { method, params } => self.notify(&method, params.unwrap_or_default()).await,
                Incoming::Answer { id, result } => self.editor.answered(&id, result),
                Incoming::Bad { id, error } => {
                    tracing::error!(%error, "message refused");
                    self.answer(&id, Err(error)).await;
                }
            }
        }
        Reason::InputClosed
    }

    async fn request(&mut self, id: Id, method: String, params: Option<Value>) {
        match method.as_str() {
            // Answered before anything else is read, so that nothing that follows can come too early.
            "initialize" => {
                let process = params.as_ref().and_then(|params| params.get("processId")).and_then(Value::as_u64);
                // Before the answer: an editor that dies right after it is missed all the same.
                if let (Some(process), Some(parent)) = (process.and_then(|id| id.try_into().ok()), self.parent.take()) {
                    parent.send(Parent::see(process)).ok();
                }
                self.run_now(id, method, params).await;
                contain(|| self.front.begin()).ok();
            }
            // Some editors send it twice.
            "shutdown" if self.shutdown => self.answer(&id, Ok(RawValue::NULL.to_owned())).await,
            "shutdown" => {
                self.shutdown = true;
                self.run_now(id, method, params).await;
            }
            _ => self.run_aside(id, method, params).await,
        }
    }

    async fn run_now(&mut self, id: Id, method: String, params: Option<Value>) {
        let reply = match contain(|| self.front.request(id.clone(), method, params)) {
            Ok(work) => AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|_| Err(panicked())),
            Err(error) => Err(error),
        };
        self.answer(&id, reply).await;
    }

    async fn run_aside(&mut self, id: Id, method: String, params: Option<Value>) {
        if let Err(refusal) = self.in_flight.admit(&id) {
            return self.answer(&id, Err(refusal)).await;
        }
        let token = params.as_ref().and_then(|params| params.get("workDoneToken")).cloned();
        let work = match contain(|| self.front.request(id.clone(), method, params)) {
            Ok(work) => work,
            Err(error) => return self.answer(&id, Err(error)).await,
        };
        let editor = self.editor.clone();
        let in_flight = self.in_flight.clone();
        let own_id = id.clone();
        self.in_flight.begin(id, token, async move {
            let reply = AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|_| Err(panicked()));
            // Whoever takes the request out of the list answers it: it may have been cancelled in this very moment.
            if in_flight.take(&own_id).is_some() {
                editor.send(message::answer(&own_id, &reply)).await;
            }
        });
    }

    async fn notify(&mut self, method: &str, params: Value) {
        let cancelled = match method {
            "$/cancelRequest" => id_of(&params).filter(|id| self.in_flight.cancel(id)),
            "window/workDoneProgress/cancel" => params.get("token").and_then(|token| self.in_flight.cancel_by(token)),
            _ => {
                contain(|| self.front.notify(method, params)).ok();
                return;
            }
        };
        if let Some(id) = cancelled {
            self.answer(&id, Err(cancelled_error())).await;
        }
    }

    async fn answer(&mut self, id: &Id, reply: Reply) {
        self.editor.send(message::answer(id, &reply)).await;
    }
}

/// The requests being worked on. Behind a lock because the reader cancels what other tasks finish; it is held for a
/// moment each. Dropping the session drops the work.
#[derive(Default)]
struct InFlight {
    tasks: Mutex<HashMap<Id, Task>>,
}

struct Task {
    abort: AbortHandle,
    /// What `window/workDoneProgress/cancel` would call it.
    token: Option<Value>,
}

impl InFlight {
    fn admit(&self, id: &Id) -> Result<(), Error> {
        let tasks = self.tasks();
        if tasks.contains_key(id) {
            return Err(message::error(
                ErrorCode::InvalidRequest,
                format!("a request with the id {id} is still running"),
            ));
        }
        if tasks.len() >= IN_FLIGHT {
            let message = format!("{IN_FLIGHT} requests of this editor are running already; wait for one to end");
            return Err(message::error(ErrorCode::ServerError(-32001), message));
        }
        Ok(())
    }

    /// Starts the work under the lock, so that it cannot end before it is in the list.
    fn begin(&self, id: Id, token: Option<Value>, work: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks();
        let abort = tokio::spawn(work).abort_handle();
        tasks.insert(id, Task { abort, token });
    }

    fn take(&self, id: &Id) -> Option<Task> {
        self.tasks().remove(id)
    }

    fn cancel(&self, id: &Id) -> bool {
        self.take(id).inspect(|task| task.abort.abort()).is_some()
    }

    fn cancel_by(&self, token: &Value) -> Option<Id> {
        let id = self.tasks().iter().find(|(_, task)| task.token.as_ref() == Some(token)).map(|(id, _)| id.clone())?;
        self.cancel(&id).then_some(id)
    }

    fn tasks(&self) -> MutexGuard<'_, HashMap<Id, Task>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F> Drop for Guard<F> {
    fn drop(&mut self) {
        self.in_flight.tasks().drain().for_each(|(_, task)| task.abort.abort());
    }
}

/// Writes what comes, as it comes; flushes when there is nothing more to write. Ends when the editor does not read any
/// more, or after the last words.
async fn write<W: AsyncWrite + Unpin>(output: W, mut inbox: mpsc::Receiver<Vec<u8>>, last_words: CancellationToken) {
    let mut output = tokio::io::BufWriter::with_capacity(64 << 10, output);
    let mut bodies = Vec::new();
    loop {
        tokio::select! {
            biased;
            count = inbox.recv_many(&mut bodies, 64) => if count == 0 { break },
            () = last_words.cancelled(), if !inbox.is_closed() => inbox.close(),
        }
        let written = async {
            for body in bodies.drain(..) {
                frames::write(&mut output, &body).await?;
            }
            output.flush().await
        };
        if let Err(error) = written.await {
            tracing::info!(%error, "the editor does not read any more");
            break;
        }
    }
}

async fn gone(parent: oneshot::Receiver<Parent>) {
    match parent.await {
        Ok(parent) => parent.gone().await,
        Err(_) => std::future::pending().await,
    }
}

/// Runs what the reader calls itself, so that a panic there costs one message.
fn contain<T>(work: impl FnOnce() -> T) -> Result<T, Error> {
    std::panic::catch_unwind(AssertUnwindSafe(work)).map_err(|_| panicked())
}

fn panicked() -> Error {
    tracing::error!("a handler panicked");
    message::error(ErrorCode::InternalError, "this request hit a bug in mcp-sidecar; the log tells where".to_owned())
}

fn cancelled_error() -> Error {
    Error { code: ErrorCode::RequestCancelled, message: "cancelled".into(), data: Some(json!({ "kind": "cancelled" })) }
}

fn id_of(params: &Value) -> Option<Id> {
    match params.get("id")? {
        Value::String(text) => Some(Id::String(text.clone())),
        number => number.as_i64().map(Id::Number),
    }
}

#[cfg(test)]
mod tests;
