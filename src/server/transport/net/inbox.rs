//! The queue between a remote server and the protocol, and the end of a connection with its reason.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rmcp::model::{ErrorData, GetExtensions, RequestId, ServerJsonRpcMessage};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::RemoteError;
use crate::server::transport::ledger::{Ledger, StreamRequest};

/// Messages that wait for the protocol. A sender waits when they are full, and so does the server behind it; senders
/// take turns, so that a flood on one stream holds up an answer on another by a few messages at most.
const QUEUE: usize = 64;
/// Between the failure of an exchange and the end of the connection, so that whoever asked hears the answer to his own
/// question before everybody hears of the end.
const GRACE: Duration = Duration::from_millis(50);

/// The receiving end: what the protocol reads from.
pub struct Inbox {
    queue: mpsc::Receiver<ServerJsonRpcMessage>,
    closed: CloseReason,
}

/// The sending end: what the tasks of a connection write to.
#[derive(Clone)]
pub struct InboxSender {
    ledger: Ledger,
    queue: mpsc::Sender<ServerJsonRpcMessage>,
    pub closed: CloseReason,
}

/// What a text held for the protocol.
#[derive(Default)]
pub struct Delivered {
    pub any: bool,
    pub answered: bool,
}

/// Whether the connection is over, and why. The first reason counts.
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
    /// The next message; `None` when the connection is over. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<ServerJsonRpcMessage> {
        tokio::select! {
            biased;
            message = self.queue.recv() => message,
            () = self.closed.ended() => None,
        }
    }
}

impl InboxSender {
    /// Ends the connection. The ledger keeps the reason for everybody who waits for an answer.
    pub fn close(&self, reason: RemoteError) {
        if reason != RemoteError::Closed {
            self.ledger.close(&reason.to_string());
        }
        self.closed.reason.set(reason).ok();
        self.closed.over.cancel();
    }

    /// Ends the connection if an exchange has failed in a way that no other can survive.
    pub fn close_if_fatal(&self, reason: &RemoteError) {
        if reason.ends_connection() {
            let (inbox_sender, reason) = (self.clone(), reason.clone());
            tokio::spawn(async move {
                tokio::time::sleep(GRACE).await;
                inbox_sender.close(reason);
            });
        }
    }

    /// Hands over what `text` holds, and tells whether the answer to `request` was among it.
    pub async fn deliver_answer(&self, text: &str, request: &RequestId) -> Delivered {
        let mut delivered = Delivered::default();
        for mut message in self.ledger.read(text.as_bytes()) {
            delivered.any = true;
            delivered.answered |= answers(&message, request);
            if let ServerJsonRpcMessage::Request(asked) = &mut message {
                asked.request.extensions_mut().insert(StreamRequest(request.clone()));
            }
            self.put(message).await;
        }
        delivered
    }

    /// Hands over what arrived without being asked for.
    pub async fn deliver(&self, text: &str) {
        for message in self.ledger.read(text.as_bytes()) {
            self.put(message).await;
        }
    }

    /// Answers a request in the server's place, where it has put its refusal into something other than an answer.
    pub async fn refuse(&self, error: ErrorData, request: &RequestId) {
        let refusal = ServerJsonRpcMessage::error(error, Some(request.clone()));
        if let Ok(text) = serde_json::to_string(&refusal) {
            self.deliver(&text).await;
        }
    }

    async fn put(&self, message: ServerJsonRpcMessage) {
        // The protocol has gone: then nobody misses the message.
        self.queue.send(message).await.ok();
    }
}

impl CloseReason {
    /// Why the connection ended; `None` while it lives.
    pub fn reason(&self) -> Option<RemoteError> {
        self.reason.get().cloned()
    }

    pub async fn ended(&self) {
        self.over.cancelled().await;
    }
}

/// Whether `message` answers `request`. Some servers give a numeric id back as a string.
fn answers(message: &ServerJsonRpcMessage, request: &RequestId) -> bool {
    let id = match message {
        ServerJsonRpcMessage::Response(response) => Some(&response.id),
        ServerJsonRpcMessage::Error(error) => error.id.as_ref(),
        _ => None,
    };
    id.is_some_and(|id| id == request || id.to_string() == request.to_string())
}
