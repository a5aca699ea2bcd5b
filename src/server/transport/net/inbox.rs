//! The queue between a remote server and the protocol, and the end of a connection with its reason.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rmcp::model::{ErrorData, GetExtensions, RequestId, ServerJsonRpcMessage};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::RemoteError;
use crate::server::transport::ledger::{Ledger, Stream};

/// Messages that wait for the protocol. A sender waits when they are full, and so does the server behind it; senders
/// take turns, so that a flood on one stream holds up an answer on another by a few messages at most.
const QUEUE: usize = 64;
/// Between the failure of an exchange and the end of the connection, so that whoever asked hears the answer to his own
/// question before everybody hears of the end.
const GRACE: Duration = Duration::from_millis(50);

/// The receiving end: what the protocol reads from.
pub struct Inbox {
    queue: mpsc::Receiver<ServerJsonRpcMessage>,
    lost: Lost,
}

/// The sending end: what the tasks of a connection write to.
#[derive(Clone)]
pub struct Outlet {
    ledger: Ledger,
    queue: mpsc::Sender<ServerJsonRpcMessage>,
    pub lost: Lost,
}

/// What a text held for the protocol.
#[derive(Default)]
pub struct Handed {
    pub any: bool,
    pub answered: bool,
}

/// Whether the connection is over, and why. The first reason counts.
#[derive(Clone, Default)]
pub struct Lost {
    reason: Arc<OnceLock<RemoteError>>,
    over: CancellationToken,
}

pub fn inbox(ledger: Ledger) -> (Inbox, Outlet) {
    let (sender, queue) = mpsc::channel(QUEUE);
    let lost = Lost::default();
    (Inbox { queue, lost: lost.clone() }, Outlet { ledger, queue: sender, lost })
}

impl Inbox {
    /// The next message; `None` when the connection is over. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<ServerJsonRpcMessage> {
        tokio::select! {
            biased;
            message = self.queue.recv() => message,
            () = self.lost.ended() => None,
        }
    }
}

impl Outlet {
    /// Ends the connection. The ledger keeps the reason for everybody who waits for an answer.
    pub fn lose(&self, reason: RemoteError) {
        if reason != RemoteError::Closed {
            self.ledger.close(&reason.to_string());
        }
        self.lost.reason.set(reason).ok();
        self.lost.over.cancel();
    }

    /// Ends the connection if an exchange has failed in a way that no other can survive.
    pub fn judge(&self, reason: &RemoteError) {
        if reason.ends_connection() {
            let (outlet, reason) = (self.clone(), reason.clone());
            tokio::spawn(async move {
                tokio::time::sleep(GRACE).await;
                outlet.lose(reason);
            });
        }
    }

    /// Hands over what `text` holds, and tells whether the answer to `request` was among it.
    pub async fn answer(&self, text: &str, request: &RequestId) -> Handed {
        let mut handed = Handed::default();
        for mut message in self.ledger.read(text.as_bytes()) {
            handed.any = true;
            handed.answered |= answers(&message, request);
            if let ServerJsonRpcMessage::Request(asked) = &mut message {
                asked.request.extensions_mut().insert(Stream(request.clone()));
            }
            self.put(message).await;
        }
        handed
    }

    /// Hands over what arrived without being asked for.
    pub async fn pass(&self, text: &str) {
        for message in self.ledger.read(text.as_bytes()) {
            self.put(message).await;
        }
    }

    /// Answers a request in the server's place, where it has put its refusal into something other than an answer.
    pub async fn refuse(&self, error: ErrorData, request: &RequestId) {
        let refusal = ServerJsonRpcMessage::error(error, Some(request.clone()));
        if let Ok(text) = serde_json::to_string(&refusal) {
            self.pass(&text).await;
        }
    }

    async fn put(&self, message: ServerJsonRpcMessage) {
        // The protocol has gone: then nobody misses the message.
        self.queue.send(message).await.ok();
    }
}

impl Lost {
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
