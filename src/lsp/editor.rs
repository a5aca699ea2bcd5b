//! Sends notifications and requests to the editor.
//!
//! A request whose future is dropped is cancelled with `$/cancelRequest`. A response that arrives later is ignored.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lsp_types::{notification, request};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tower_lsp::jsonrpc::{Error, Id};

use super::message;

/// Why a request to the editor has no result.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    #[error("the editor disconnected")]
    Gone,
    #[error("the editor returned an error: {0}")]
    Refused(Error),
    #[error("cannot parse the editor's response: {0}")]
    Unexpected(#[from] serde_json::Error),
}

/// How many KiB may wait for the editor to read them. Further senders wait, so that a slow editor gets only the newest
/// state. A single message may have any size.
const OUTBOX_KIB: u32 = 4 << 10;

/// A message body, and the room that it takes until it is written.
pub(super) type Outgoing = (Vec<u8>, OwnedSemaphorePermit);

/// The connected editor. Clones share the connection.
#[derive(Clone)]
pub struct Editor {
    inner: Arc<Inner>,
}

struct Inner {
    outbox: mpsc::Sender<Outgoing>,
    room: Arc<Semaphore>,
    next: AtomicI64,
    /// Our pending requests. They have a lock because callers and the reader both use them; each holds it only briefly.
    pending: Mutex<HashMap<i64, oneshot::Sender<Result<Value, Error>>>>,
    gone: CancellationToken,
}

impl Editor {
    pub(super) fn new(outbox: mpsc::Sender<Outgoing>) -> Self {
        let inner = Inner {
            outbox,
            room: Arc::new(Semaphore::new(OUTBOX_KIB as usize)),
            next: AtomicI64::new(1),
            pending: Mutex::new(HashMap::new()),
            gone: CancellationToken::new(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Sends a notification; waits only while the outbox is full. Does nothing if the editor is gone.
    pub async fn notify<N: notification::Notification>(&self, params: &N::Params) {
        self.send_notification(N::METHOD, params).await;
    }

    /// Sends a notification that is not part of LSP.
    pub async fn send_notification<P: Serialize + ?Sized>(&self, method: &str, params: &P) {
        self.send(message::call(None, method, params)).await;
    }

    /// Sends a request and waits for the response. Dropping the future cancels the request.
    pub async fn request<R: request::Request>(&self, params: &R::Params) -> Result<R::Result, AskError> {
        self.send_request(R::METHOD, params).await
    }

    /// Sends a request that is not part of LSP.
    pub async fn send_request<P, T>(&self, method: &str, params: &P) -> Result<T, AskError>
    where
        P: Serialize + ?Sized,
        T: DeserializeOwned,
    {
        self.send_request_until(method, params, std::future::pending()).await
    }

    /// The same for a request that is cancelled when `ended` completes. An editor that does not support that may still
    /// send a response, which is returned.
    pub async fn send_request_until<P, T>(
        &self,
        method: &str,
        params: &P,
        ended: impl Future<Output = ()>,
    ) -> Result<T, AskError>
    where
        P: Serialize + ?Sized,
        T: DeserializeOwned,
    {
        let id = self.inner.next.fetch_add(1, Ordering::Relaxed);
        let (reply, mut response) = oneshot::channel();
        self.pending().insert(id, reply);
        let _guard = PendingRequest { editor: self, id };
        if self.is_gone() || !self.send(message::call(Some(id), method, params)).await {
            return Err(AskError::Gone);
        }
        let result = tokio::select! {
            biased;
            result = &mut response => result,
            () = ended => {
                self.send_notification("$/cancelRequest", &json!({ "id": id })).await;
                response.await
            }
        };
        let result = result.map_err(|_| AskError::Gone)?;
        Ok(serde_json::from_value(result.map_err(AskError::Refused)?)?)
    }

    /// Returns when the editor disconnects.
    pub async fn gone(&self) {
        self.inner.gone.cancelled().await;
    }

    pub fn is_gone(&self) -> bool {
        self.inner.gone.is_cancelled()
    }

    /// Sends a message body; false if the editor is gone.
    pub(super) async fn send(&self, body: Vec<u8>) -> bool {
        let room = self.inner.room.clone().acquire_many_owned(kib(&body));
        let permit = tokio::select! {
            biased;
            Ok(permit) = room => permit,
            () = self.inner.outbox.closed() => return false,
        };
        self.inner.outbox.send((body, permit)).await.is_ok()
    }

    /// Passes a response of the editor to the request that waits for it.
    pub(super) fn complete(&self, id: &Id, result: Result<Value, Error>) {
        let waiter = match id {
            Id::Number(id) => self.pending().remove(id),
            _ => None,
        };
        match waiter {
            Some(waiter) => _ = waiter.send(result),
            None => tracing::debug!(%id, "ignored a response without a pending request"),
        }
    }

    /// Fails all pending requests.
    pub(super) fn close(&self) {
        self.inner.gone.cancel();
        self.pending().clear();
    }

    fn pending(&self) -> MutexGuard<'_, HashMap<i64, oneshot::Sender<Result<Value, Error>>>> {
        self.inner.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn kib(body: &[u8]) -> u32 {
    u32::try_from(body.len() >> 10).unwrap_or(u32::MAX).saturating_add(1).min(OUTBOX_KIB)
}

/// Cancels a request if it is dropped before the response arrives.
struct PendingRequest<'a> {
    editor: &'a Editor,
    id: i64,
}

impl Drop for PendingRequest<'_> {
    fn drop(&mut self) {
        if self.editor.pending().remove(&self.id).is_some() {
            // Best effort: if the outbox is full, the editor does not learn that the request is cancelled.
            let body = message::call(None, "$/cancelRequest", &json!({ "id": self.id }));
            if let Ok(permit) = self.editor.inner.room.clone().try_acquire_many_owned(kib(&body)) {
                self.editor.inner.outbox.try_send((body, permit)).ok();
            }
        }
    }
}
