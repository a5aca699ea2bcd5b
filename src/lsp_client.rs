//! An LSP client for the front for editors, over any pair of streams. It sends commands and requests by type, and passes
//! on what the front sends. The shell, the demo and the tests use it; how they show things is up to them.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures::{FutureExt, StreamExt};
use lsp_types::{InitializeResult, notification, request};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufWriter};
use tokio::sync::{mpsc, oneshot};
use tokio_util::codec::FramedRead;
use tower_lsp::jsonrpc::{self, ErrorCode, Id};

use crate::lsp::frames::{self, Frame, Frames};
use crate::lsp::message::{self, Incoming};
use crate::model::Error;
use crate::protocol::commands::Command;
use crate::protocol::errors::{ErrorData, ErrorKind};
use crate::protocol::events;
use crate::server::connection::Progress;

/// The capacity of the queues in both directions, and the maximum number of requests without a response.
const QUEUE: usize = 1 << 14;

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct CommandError {
    pub code: i64,
    pub message: String,
    /// Absent if the request did not reach a command.
    pub data: Option<Box<ErrorData>>,
}

/// A connection. It closes when all clones are dropped.
#[derive(Clone)]
pub struct LspClient {
    outbox: mpsc::Sender<Vec<u8>>,
    pending: Arc<Pending>,
}

/// What the other side sends unprompted. The owner must keep reading: a full queue stops the connection.
pub type Events = mpsc::Receiver<Event>;

#[derive(Debug)]
pub enum Event {
    Notification(IncomingNotification),
    Request(IncomingRequest),
    /// A message that is not valid, or a response that no request waits for.
    Invalid(String),
}

#[derive(Debug)]
pub struct IncomingNotification {
    pub method: String,
    pub params: Value,
}

#[derive(Debug)]
pub struct IncomingRequest {
    pub method: String,
    pub params: Value,
    id: Id,
    outbox: mpsc::WeakSender<Vec<u8>>,
}

/// The response to a request, once it arrives. Dropping it cancels the request.
#[must_use = "dropping a response cancels its request"]
pub struct Response<T> {
    id: i64,
    receiver: oneshot::Receiver<Result<Value, CommandError>>,
    pending: Arc<Pending>,
    outbox: mpsc::WeakSender<Vec<u8>>,
    result: PhantomData<fn() -> T>,
}

/// Requests without a response. The `std` lock is private to this file and held for a lookup.
#[derive(Default)]
struct Pending(Mutex<Requests>);

#[derive(Default)]
struct Requests {
    last_id: i64,
    waiting: HashMap<i64, OpenRequest>,
    ended: bool,
}

struct OpenRequest {
    /// Closed if the request was cancelled.
    respond: oneshot::Sender<Result<Value, CommandError>>,
    progress: Option<mpsc::Sender<Progress>>,
}

impl LspClient {
    pub fn connect(
        input: impl AsyncRead + Unpin + Send + 'static,
        output: impl AsyncWrite + Unpin + Send + 'static,
    ) -> (Self, Events) {
        let (outbox, outgoing) = mpsc::channel(QUEUE);
        let (deliver, events) = mpsc::channel(QUEUE);
        let pending = Arc::new(Pending::default());
        tokio::spawn(write(output, outgoing));
        tokio::spawn(read(input, pending.clone(), deliver, outbox.downgrade()));
        (Self { outbox, pending }, events)
    }

    /// Starts the session. `abilities` are those of `capabilities.experimental.mcpSidecar`.
    pub async fn initialize(&self, folder: Option<&Path>, abilities: Value) -> Result<InitializeResult, CommandError> {
        let uri = folder.and_then(|folder| url::Url::from_file_path(folder).ok());
        let params = json!({
            "processId": std::process::id(),
            "rootUri": uri,
            "workspaceFolders": uri.as_ref().map(|uri| json!([{ "uri": uri, "name": "workspace" }])),
            "capabilities": { "experimental": { "mcpSidecar": abilities } },
        });
        let result = self.send_request("initialize", &params).await?;
        self.send_notification("initialized", &json!({}));
        Ok(result)
    }

    /// Ends the session, so that it does not look like a crash.
    pub async fn shut_down(&self) -> Result<(), CommandError> {
        self.request::<request::Shutdown>(()).await?;
        self.notify::<notification::Exit>(());
        Ok(())
    }

    /// Runs a command and waits for its answer.
    pub async fn call<C: Command>(&self, command: C) -> Result<C::Answer, CommandError> {
        self.start(command, None).await
    }

    /// Sends a command. Its progress goes to `progress`.
    pub fn start<C: Command>(&self, command: C, progress: Option<mpsc::Sender<Progress>>) -> Response<C::Answer> {
        let has_progress = progress.is_some();
        self.begin(progress, |id| {
            let mut params = json!({ "command": C::NAME, "arguments": [command] });
            if let (true, Some(fields)) = (has_progress, params.as_object_mut()) {
                fields.insert("workDoneToken".to_owned(), id.into());
            }
            message::call(Some(id), "workspace/executeCommand", &params)
        })
    }

    pub fn request<R: request::Request>(&self, params: R::Params) -> Response<R::Result> {
        self.send_request(R::METHOD, &params)
    }

    /// Sends a request that is not part of LSP, or not valid.
    pub fn send_request<T>(&self, method: &str, params: &(impl Serialize + ?Sized)) -> Response<T> {
        self.begin(None, |id| message::call(Some(id), method, params))
    }

    pub fn notify<N: notification::Notification>(&self, params: N::Params) {
        self.send_notification(N::METHOD, &params);
    }

    /// Sends a notification that is not part of LSP, or not valid.
    pub fn send_notification(&self, method: &str, params: &(impl Serialize + ?Sized)) {
        if self.outbox.try_send(message::call(None, method, params)).is_err() {
            tracing::warn!(method, "cannot send a notification");
        }
    }

    fn begin<T>(&self, progress: Option<mpsc::Sender<Progress>>, message: impl FnOnce(i64) -> Vec<u8>) -> Response<T> {
        let (respond, receiver) = oneshot::channel();
        let id = self.pending.add(OpenRequest { respond, progress });
        if self.outbox.try_send(message(id)).is_err() {
            self.pending.requests().waiting.remove(&id);
        }
        let (pending, outbox) = (self.pending.clone(), self.outbox.downgrade());
        Response { id, receiver, pending, outbox, result: PhantomData }
    }
}

impl<T> Response<T> {
    /// Asks the other side to cancel the request. It still responds, usually with an error.
    pub fn cancel(&self) {
        if let Some(outbox) = self.outbox.upgrade() {
            // Best effort: if the queue is full, the request continues.
            outbox.try_send(message::call(None, "$/cancelRequest", &json!({ "id": self.id }))).ok();
        }
    }
}

impl<T: DeserializeOwned> Future for Response<T> {
    type Output = Result<T, CommandError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.receiver.poll_unpin(context).map(|response| {
            let result = response.unwrap_or_else(|_| Err(CommandError::ended()))?;
            serde_json::from_value(result)
                .map_err(|error| CommandError::local(format!("cannot parse the answer: {error}")))
        })
    }
}

impl<T> Drop for Response<T> {
    fn drop(&mut self) {
        self.receiver.close();
        if self.pending.requests().waiting.contains_key(&self.id) {
            self.cancel();
        }
    }
}

impl IncomingNotification {
    /// The notification by its type, if it is of this type.
    pub fn parse<N: events::Notification>(&self) -> Option<N> {
        (self.method == N::METHOD).then(|| N::deserialize(&self.params).ok()).flatten()
    }
}

impl IncomingRequest {
    pub fn respond(&self, result: &impl Serialize) {
        self.reply(to_raw_value(result).map_err(|_| jsonrpc::Error::internal_error()));
    }

    pub fn refuse(&self, code: i64, message: String) {
        self.reply(Err(message::error(ErrorCode::from(code), message)));
    }

    fn reply(&self, result: Result<Box<serde_json::value::RawValue>, jsonrpc::Error>) {
        if let Some(outbox) = self.outbox.upgrade() {
            outbox.try_send(message::response(&self.id, &result)).ok();
        }
    }
}

impl CommandError {
    pub fn kind(&self) -> Option<ErrorKind> {
        self.data.as_ref().map(|data| data.kind)
    }

    /// An error on this side of the connection.
    fn local(message: String) -> Self {
        Self { code: ErrorCode::InternalError.code(), message, data: None }
    }

    fn ended() -> Self {
        Self::local("the engine of this workspace has ended; try again".to_owned())
    }
}

impl From<&Error> for CommandError {
    fn from(error: &Error) -> Self {
        let data = ErrorData::from(error);
        Self { code: data.kind.code(), message: error.to_string(), data: Some(Box::new(data)) }
    }
}

impl From<jsonrpc::Error> for CommandError {
    fn from(error: jsonrpc::Error) -> Self {
        let data = error.data.and_then(|data| serde_json::from_value(data).ok());
        Self { code: error.code.code(), message: error.message.into_owned(), data }
    }
}

impl Pending {
    /// The id of a new request. Without room for it, its response is an error.
    fn add(&self, waiting: OpenRequest) -> i64 {
        let mut requests = self.requests();
        requests.last_id += 1;
        let id = requests.last_id;
        if !requests.ended && requests.waiting.len() < QUEUE {
            requests.waiting.insert(id, waiting);
        }
        id
    }

    /// Completes a request. Returns false if there is none with this id.
    fn complete(&self, id: &Id, result: Result<Value, jsonrpc::Error>) -> bool {
        let waiting = match id {
            Id::Number(id) => self.requests().waiting.remove(id),
            _ => None,
        };
        // The receiver of a cancelled request is closed.
        waiting.map(|waiting| waiting.respond.send(result.map_err(CommandError::from)).ok()).is_some()
    }

    /// Reports progress of a request of ours. Returns false if it belongs to none.
    fn report(&self, params: &Value) -> bool {
        let id = params.get("token").and_then(Value::as_i64).unwrap_or_default();
        let Some(progress) = self.requests().waiting.get(&id).and_then(|waiting| waiting.progress.clone()) else {
            return false;
        };
        let field = |name: &str| params.get("value").and_then(|value| value.get(name));
        // The beginning has a percentage, too, but the call may still wait for the user.
        let is_report = field("kind").and_then(Value::as_str) == Some("report");
        if let Some(percentage) = field("percentage").and_then(Value::as_f64).filter(|_| is_report) {
            let message = field("message").and_then(Value::as_str).map(str::to_owned);
            progress.try_send(Progress { progress: percentage, total: Some(100.0), message, is_waiting: false }).ok();
        }
        true
    }

    /// Fails all requests, now and later.
    fn end(&self) {
        let mut requests = self.requests();
        requests.ended = true;
        requests.waiting.clear();
    }

    fn requests(&self) -> MutexGuard<'_, Requests> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes messages until all clones of the client are dropped, then closes the stream.
async fn write(output: impl AsyncWrite + Unpin, mut messages: mpsc::Receiver<Vec<u8>>) -> std::io::Result<()> {
    let mut output = BufWriter::new(output);
    while let Some(body) = messages.recv().await {
        frames::write(&mut output, &body).await?;
        if messages.is_empty() {
            output.flush().await?;
        }
    }
    output.shutdown().await
}

async fn read(
    input: impl AsyncRead + Unpin,
    pending: Arc<Pending>,
    events: mpsc::Sender<Event>,
    outbox: mpsc::WeakSender<Vec<u8>>,
) {
    let mut frames = FramedRead::new(input, Frames::default());
    while let Some(Ok(frame)) = frames.next().await {
        let incoming = match frame {
            Frame::Body(body) => message::read(&body),
            Frame::Refused(reason) => {
                Incoming::Invalid { id: Id::Null, error: message::error(ErrorCode::ParseError, reason) }
            }
        };
        let event = match incoming {
            Incoming::Response { id, result } if pending.complete(&id, result.clone()) => continue,
            Incoming::Response { id, result } => {
                Event::Invalid(format!("response to unknown request {id}: {result:?}"))
            }
            Incoming::Invalid { error, .. } => Event::Invalid(error.message.into_owned()),
            Incoming::Request { id, method, params } => {
                let (params, outbox) = (params.unwrap_or_default(), outbox.clone());
                Event::Request(IncomingRequest { method, params, id, outbox })
            }
            Incoming::Notification { method, params } => {
                let params = params.unwrap_or_default();
                if method == "$/progress" && pending.report(&params) {
                    continue;
                }
                Event::Notification(IncomingNotification { method, params })
            }
        };
        // Responses still count after the owner has stopped listening.
        events.send(event).await.ok();
    }
    pending.end();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::commands::{Approvals, Servers};

    /// A client, and the other side as another client that sees every message.
    fn pair() -> ((LspClient, Events), (LspClient, Events)) {
        let (near, far) = tokio::io::duplex(1 << 16);
        let ((near_in, near_out), (far_in, far_out)) = (tokio::io::split(near), tokio::io::split(far));
        (LspClient::connect(near_in, near_out), LspClient::connect(far_in, far_out))
    }

    async fn next_request(events: &mut Events) -> IncomingRequest {
        match events.recv().await {
            Some(Event::Request(request)) => request,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn answers_and_errors_are_typed() {
        let ((client, _events), (_other, mut requests)) = pair();
        let (approvals, servers) = (client.start(Approvals::default(), None), client.start(Servers::default(), None));
        let request = next_request(&mut requests).await;
        assert_eq!(request.params, json!({ "command": "mcp.approvals", "arguments": [{}] }));
        request.respond(&json!({ "approvals": [], "groups": [] }));
        next_request(&mut requests).await.refuse(-32001, "no".to_owned());
        assert!(approvals.await.unwrap().approvals.is_empty());
        assert_eq!(servers.await.unwrap_err().to_string(), "no");
    }

    #[tokio::test]
    async fn dropping_a_response_cancels_the_request() {
        let ((client, mut events), (_other, mut requests)) = pair();
        let response = client.start(Approvals::default(), None);
        let request = next_request(&mut requests).await;
        drop(response);
        let Some(Event::Notification(cancel)) = requests.recv().await else { panic!("should have been cancelled") };
        assert_eq!((cancel.method.as_str(), cancel.params), ("$/cancelRequest", json!({ "id": 1 })));
        // The late response is expected, a second one is not.
        request.respond(&Value::Null);
        request.respond(&Value::Null);
        assert!(matches!(events.recv().await, Some(Event::Invalid(_))));
    }

    #[tokio::test]
    async fn requests_fail_when_the_other_side_ends_or_does_not_read() {
        let ((client, mut events), other) = pair();
        let waiting = client.start(Approvals::default(), None);
        drop(other);
        assert!(waiting.await.unwrap_err().message.contains("has ended"));
        assert!(events.recv().await.is_none());
        assert!(client.call(Approvals::default()).await.is_err());

        let ((client, _events), _other) = pair();
        // The writer does not run in the meantime.
        let mut sent: Vec<_> = (0..=QUEUE).map(|_| client.start(Approvals::default(), None)).collect();
        assert!(sent.pop().unwrap().await.is_err());
    }
}
