//! The LSP transport. It isolates the session from misbehaving handlers.
//!
//! It is our own, because tower-lsp's transport runs every handler in one task: four waiting handlers block the fifth request and every
//! notification, a panic or a late response ends the server, and `exit` may never return. So we use only its router, and
//! this transport:
//! - Every request runs in its own task. A panic fails that request with −32603 and nothing else.
//! - `$/cancelRequest` takes effect at once: the future of the request is dropped and the response is −32800. A command
//!   whose result we show continues, because editors also cancel when they stop waiting.
//! - Notifications are handled on the reader, in order. They must not wait.
//! - The session ends with `exit`, the end of input, a closed output or the death of the editor's process.

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

use super::editor::{Editor, Outgoing};
use super::frames::{self, Frame, Frames};
use super::message::{self, Incoming};
use super::parent::Parent;

/// The maximum number of unsent messages. Further senders wait.
const OUTBOX_SIZE: usize = 256;
/// The maximum number of requests that run at once.
const MAX_IN_FLIGHT: usize = 4_096;
/// How long sending the remaining messages may take at the end.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// The result of a request, as raw JSON so that large results are not parsed.
pub type Reply = Result<Box<RawValue>, Error>;

/// Handles the messages of the editor.
pub trait Front: Send {
    /// Starts a request; dropping the future cancels it. Work that must happen in the order of the messages is done before
    /// the future is returned.
    fn request(&mut self, id: Id, method: String, params: Option<Value>) -> BoxFuture<'static, Reply>;

    /// Handles a notification. This runs on the reader, so it must not wait.
    fn notify(&mut self, method: &str, params: Value);

    /// Called after the response to `initialize`. From now on, messages may be sent to the editor.
    fn begin(&mut self);
}

/// Why a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    Exit,
    InputClosed,
    /// The editor stopped reading.
    OutputClosed,
    /// The process that `initialize` named died.
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
    /// As LSP requires: success only after `shutdown`. A signal is not a failure.
    pub fn exit_code(&self) -> u8 {
        u8::from(!self.after_shutdown && self.reason != Reason::Signal)
    }
}

/// Runs one session until it ends.
pub async fn run<R, W, F>(input: R, output: W, front: impl FnOnce(Editor) -> F) -> End
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
    F: Front,
{
    let (outbox, inbox) = mpsc::channel(OUTBOX_SIZE);
    let editor = Editor::new(outbox);
    let (named, parent) = oneshot::channel();
    let mut guard = Guard {
        front: front(editor.clone()),
        editor: editor.clone(),
        in_flight: Arc::default(),
        parent: Some(named),
        shutdown: false,
    };
    let closing = CancellationToken::new();
    let mut writer = tokio::spawn(write(output, inbox, closing.clone()));
    let reason = tokio::select! {
        reason = guard.read(input) => reason,
        _ = &mut writer => Reason::OutputClosed,
        () = gone(parent) => Reason::EditorDied,
    };
    let end = End { reason, after_shutdown: guard.shutdown };
    tracing::info!(?end, "session over");
    drop(guard);
    editor.close();
    closing.cancel();
    if reason != Reason::OutputClosed && tokio::time::timeout(FLUSH_TIMEOUT, &mut writer).await.is_err() {
        writer.abort();
    }
    end
}

struct Guard<F> {
    front: F,
    editor: Editor,
    in_flight: Arc<InFlight>,
    /// Receives the editor's process, once.
    parent: Option<oneshot::Sender<Parent>>,
    shutdown: bool,
}

impl<F: Front> Guard<F> {
    /// Reads messages until the session ends.
    async fn read<R: AsyncRead + Unpin>(&mut self, input: R) -> Reason {
        let mut frames = FramedRead::new(input, Frames::default());
        while let Some(frame) = frames.next().await {
            let incoming = match frame {
                Ok(Frame::Body(body)) => message::read(&body),
                Ok(Frame::Refused(reason)) => {
                    Incoming::Invalid { id: Id::Null, error: message::error(ErrorCode::ParseError, reason) }
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot read from the editor");
                    break;
                }
            };
            match incoming {
                Incoming::Request { id, method, params } => self.request(id, method, params).await,
                Incoming::Notification { method, .. } if method == "exit" => return Reason::Exit,
                Incoming::Notification { method, params } => self.notify(&method, params.unwrap_or_default()).await,
                Incoming::Response { id, result } => self.editor.complete(&id, result),
                Incoming::Invalid { id, error } => {
                    tracing::error!(%error, "message refused");
                    self.answer(&id, Err(error)).await;
                }
            }
        }
        Reason::InputClosed
    }

    async fn request(&mut self, id: Id, method: String, params: Option<Value>) {
        match method.as_str() {
            // Wait for the response, so that no later message is handled before it.
            "initialize" => {
                let process = params.as_ref().and_then(|params| params.get("processId")).and_then(Value::as_u64);
                // Watch the process before responding, in case the editor dies right after the response.
                if let (Some(process), Some(parent)) = (process.and_then(|id| id.try_into().ok()), self.parent.take()) {
                    parent.send(Parent::open(process)).ok();
                }
                self.run_now(id, method, params).await;
                catch_panic(|| self.front.begin()).ok();
            }
            // Some editors send it twice.
            "shutdown" if self.shutdown => self.answer(&id, Ok(RawValue::NULL.to_owned())).await,
            "shutdown" => self.shutdown = self.run_now(id, method, params).await,
            _ => self.run_in_task(id, method, params).await,
        }
    }

    /// Returns whether the request succeeded.
    async fn run_now(&mut self, id: Id, method: String, params: Option<Value>) -> bool {
        let reply = match catch_panic(|| self.front.request(id.clone(), method, params)) {
            Ok(work) => AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|_| Err(panicked())),
            Err(error) => Err(error),
        };
        let success = reply.is_ok();
        self.answer(&id, reply).await;
        success
    }

    async fn run_in_task(&mut self, id: Id, method: String, params: Option<Value>) {
        if let Err(refusal) = self.in_flight.admit(&id) {
            return self.answer(&id, Err(refusal)).await;
        }
        let given = params.as_ref().and_then(|params| params.get("workDoneToken")).cloned();
        let shows_result = params.as_ref().and_then(|params| params.pointer("/arguments/0/show")) == Some(&json!(true));
        let tokens = given.into_iter().chain([json!(progress_token(&id))]).collect();
        let work = match catch_panic(|| self.front.request(id.clone(), method, params)) {
            Ok(work) => work,
            Err(error) => return self.answer(&id, Err(error)).await,
        };
        let editor = self.editor.clone();
        let in_flight = self.in_flight.clone();
        let own_id = id.clone();
        self.in_flight.begin(id, tokens, shows_result, async move {
            let reply = AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|_| Err(panicked()));
            // Only the side that removes the request from the list responds, in case it is cancelled at the same time.
            if in_flight.take(&own_id).is_some_and(|task| !task.answered) {
                editor.send(message::response(&own_id, &reply)).await;
            }
        });
    }

    async fn notify(&mut self, method: &str, params: Value) {
        let cancelled = match method {
            "$/cancelRequest" => id_of(&params).filter(|id| self.in_flight.cancel(id)),
            "window/workDoneProgress/cancel" => params.get("token").and_then(|token| self.in_flight.cancel_by(token)),
            _ => {
                catch_panic(|| self.front.notify(method, params)).ok();
                return;
            }
        };
        if let Some(id) = cancelled {
            self.answer(&id, Err(cancelled_error())).await;
        }
    }

    async fn answer(&mut self, id: &Id, reply: Reply) {
        self.editor.send(message::response(id, &reply)).await;
    }
}

/// The running requests. They have a lock because the reader cancels what other tasks finish; each holds it only briefly.
/// Dropping the session aborts them.
#[derive(Default)]
struct InFlight {
    tasks: Mutex<HashMap<Id, Task>>,
}

struct Task {
    abort: AbortHandle,
    /// They identify the request in `window/workDoneProgress/cancel`.
    tokens: Vec<Value>,
    /// We show the result ourselves. Some editors cancel a request after a few seconds, while the user still waits.
    shows_result: bool,
    /// The editor has cancelled the request, but the work continues.
    answered: bool,
}

/// The token of the progress of a request, if the editor sent none.
pub fn progress_token(request: &Id) -> String {
    format!("mcp-sidecar/{request}")
}

impl InFlight {
    fn admit(&self, id: &Id) -> Result<(), Error> {
        let tasks = self.tasks();
        if tasks.contains_key(id) {
            return Err(message::error(
                ErrorCode::InvalidRequest,
                format!("a request with id {id} is already running"),
            ));
        }
        if tasks.len() >= MAX_IN_FLIGHT {
            let message = format!("too many requests: {MAX_IN_FLIGHT} are running; wait until one ends");
            return Err(message::error(ErrorCode::ServerError(-32001), message));
        }
        Ok(())
    }

    /// Starts the work while holding the lock, so that it cannot end before it is in the list.
    fn begin(&self, id: Id, tokens: Vec<Value>, shows_result: bool, work: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks();
        let abort = tokio::spawn(work).abort_handle();
        tasks.insert(id, Task { abort, tokens, shows_result, answered: false });
    }

    fn take(&self, id: &Id) -> Option<Task> {
        self.tasks().remove(id)
    }

    /// Returns whether the request has to be answered.
    fn cancel(&self, id: &Id) -> bool {
        match self.tasks().get_mut(id) {
            Some(task) if task.shows_result => return !std::mem::replace(&mut task.answered, true),
            _ => {}
        }
        self.take(id).inspect(|task| task.abort.abort()).is_some()
    }

    /// The user cancels the work itself. Returns the request that has to be answered.
    fn cancel_by(&self, token: &Value) -> Option<Id> {
        let id = self.tasks().iter().find(|(_, task)| task.tokens.contains(token)).map(|(id, _)| id.clone())?;
        self.take(&id).inspect(|task| task.abort.abort()).filter(|task| !task.answered).map(|_| id)
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

/// Writes messages and flushes when the queue is empty. Ends when the editor stops reading, or when `closing` is set and
/// all messages are written.
async fn write<W: AsyncWrite + Unpin>(output: W, mut inbox: mpsc::Receiver<Outgoing>, closing: CancellationToken) {
    let mut output = tokio::io::BufWriter::with_capacity(64 << 10, output);
    let mut bodies = Vec::new();
    loop {
        tokio::select! {
            biased;
            count = inbox.recv_many(&mut bodies, 64) => if count == 0 { break },
            () = closing.cancelled(), if !inbox.is_closed() => inbox.close(),
        }
        // Let other tasks that are ready queue their messages first: waking the reader for each message costs more.
        tokio::task::yield_now().await;
        while let Some(body) = (bodies.len() < 64).then(|| inbox.try_recv().ok()).flatten() {
            bodies.push(body);
        }
        let written = async {
            for (body, _room) in bodies.drain(..) {
                frames::write(&mut output, &body).await?;
            }
            output.flush().await
        };
        if let Err(error) = written.await {
            tracing::info!(%error, "the editor stopped reading");
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

/// Runs a handler on the reader, so that a panic affects only one message.
fn catch_panic<T>(work: impl FnOnce() -> T) -> Result<T, Error> {
    std::panic::catch_unwind(AssertUnwindSafe(work)).map_err(|_| panicked())
}

fn panicked() -> Error {
    tracing::error!("a handler panicked");
    message::error(
        ErrorCode::InternalError,
        "this request failed because of a bug in mcp-sidecar; see the log for details".to_owned(),
    )
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
