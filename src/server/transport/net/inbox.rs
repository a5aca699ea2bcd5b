//! The queue between a remote server and rmcp, and the reason for the end of a connection.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rmcp::model::{ErrorData, GetExtensions, RequestId, ServerJsonRpcMessage};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::RemoteError;
use crate::server::transport::ledger::{Ledger, StreamRequest};

/// Messages that wait for rmcp. Senders wait while it is full and take turns, so a busy stream delays a response on
/// another one only briefly.
const QUEUE: usize = 64;
/// The time between a failed request and the end of the connection, so that the caller gets its own error first.
const GRACE: Duration = Duration::from_millis(50);

/// The receiving end, which rmcp reads.
pub struct Inbox {
    queue: mpsc::Receiver<ServerJsonRpcMessage>,
    closed: CloseReason,
}

/// The sending end, for the tasks of a connection.
#[derive(Clone)]
pub struct InboxSender {
    ledger: Ledger,
    queue: mpsc::Sender<ServerJsonRpcMessage>,
    pub closed: CloseReason,
}

/// What a text contained.
#[derive(Default)]
pub struct Delivered {
    pub any: bool,
    pub answered: bool,
}

/// Whether and why the connection is closed. The first reason is kept.
#[derive(Clone, Default)]
pub struct CloseReason {
    reason: Arc<OnceLock<RemoteError>>,
    over: CancellationToken,
}

pub fn inbox(ledger: Ledger) -> (Inbox, InboxSender) {
    let (sender, queue) = mpsc::channel(QUEUE);
    let closed = CloseReason::default();
    (Inbox { queue, closed: closed.clone() }, InboxSender { ledger, queue: sender, closed })
}

impl Inbox {
    /// The next message; `None` when the connection is closed. Cancel-safe.
    pub async fn next(&mut self) -> Option<ServerJsonRpcMessage> {
        tokio::select! {
            biased;
            message = self.queue.recv() => message,
            () = self.closed.ended() => None,
        }
    }
}

impl InboxSender {
    /// Closes the connection. The ledger keeps the reason for all callers.
    pub fn close(&self, reason: RemoteError) {
        if reason != RemoteError::Closed {
            self.ledger.close(&reason.to_string());
        }
        self.closed.reason.set(reason).ok();
        self.closed.over.cancel();
    }

    /// Closes the connection if no other request can succeed after this error.
    pub fn close_if_fatal(&self, reason: &RemoteError) {
        if reason.ends_connection() {
            let (sender, reason) = (self.clone(), reason.clone());
            tokio::spawn(async move {
                tokio::time::sleep(GRACE).await;
                sender.close(reason);
            });
        }
    }

    /// Delivers the messages in `text`, and returns whether the response to `request` was among them.
    pub async fn deliver_answer(&self, text: &str, request: &RequestId) -> Delivered {
        let mut delivered = Delivered::default();
        for mut message in self.ledger.read_on(text.as_bytes(), Some(request)) {
            delivered.any = true;
            delivered.answered |= answers(&message, request);
            if let ServerJsonRpcMessage::Request(server_request) = &mut message {
                server_request.request.extensions_mut().insert(StreamRequest(request.clone()));
            }
            self.put(message).await;
        }
        delivered
    }

    /// Delivers messages that belong to no request.
    pub async fn deliver(&self, text: &str) {
        for message in self.ledger.read(text.as_bytes()) {
            self.put(message).await;
        }
    }

    /// Delivers an error for a request that the server rejected without a JSON-RPC response.
    pub async fn refuse(&self, error: ErrorData, request: &RequestId) {
        let refusal = ServerJsonRpcMessage::error(error, Some(request.clone()));
        if let Ok(text) = serde_json::to_string(&refusal) {
            self.deliver(&text).await;
        }
    }

    async fn put(&self, message: ServerJsonRpcMessage) {
        // An error means that rmcp has ended.
        self.queue.send(message).await.ok();
    }
}

impl CloseReason {
    /// Why the connection is closed; `None` while it is open.
    pub fn reason(&self) -> Option<RemoteError> {
        self.reason.get().cloned()
    }

    pub async fn ended(&self) {
        self.over.cancelled().await;
    }
}

/// Whether `message` answers `request`. Some servers return a numeric id as a string.
fn answers(message: &ServerJsonRpcMessage, request: &RequestId) -> bool {
    let id = match message {
        ServerJsonRpcMessage::Response(response) => Some(&response.id),
        ServerJsonRpcMessage::Error(error) => error.id.as_ref(),
        _ => None,
    };
    id.is_some_and(|id| id == request || id.to_string() == request.to_string())
}
