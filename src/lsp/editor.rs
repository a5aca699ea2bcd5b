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
use tokio::sync::{mpsc, oneshot};
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

/// The connected editor. Clones share the connection.
#[derive(Clone)]
pub struct Editor {
    inner: Arc<Inner>,
}

struct Inner {
    outbox: mpsc::Sender<Vec<u8>>,
    next: AtomicI64,
    /// Our pending requests. They have a lock because callers and the reader both use them; each holds it only briefly.
    pending: Mutex<HashMap<i64, oneshot::Sender<Result<Value, Error>>>>,
    gone: CancellationToken,
}

impl Editor {
    pub(super) fn new(outbox: mpsc::Sender<Vec<u8>>) -> Self {
        let inner = Inner {
            outbox,
            next: AtomicI64::new(1),
            pending: Mutex::new(HashMap::new()),
            gone: CancellationToken::new(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Sends a notification; waits only while the outbox is full. Does nothing if the editor is gone.
    pub async fn notify<N: notification::Notification>(&self, params: &N::Params) {
        self.tell(N::METHOD, params).await;
    }

    /// Sends a notification that is not part of LSP.
    pub async fn tell<P: Serialize + ?Sized>(&self, method: &str, params: &P) {
        self.send(message::call(None, method, params)).await;
    }

    /// Sends a request and waits for the response. Dropping the future cancels the request.
    pub async fn request<R: request::Request>(&self, params: &R::Params) -> Result<R::Result, AskError> {
        self.ask(R::METHOD, params).await
    }

    /// Sends a request that is not part of LSP.
    pub async fn ask<P, T>(&self, method: &str, params: &P) -> Result<T, AskError>
    where
        P: Serialize + ?Sized,
        T: DeserializeOwned,
    {
        let id = self.inner.next.fetch_add(1, Ordering::Relaxed);
        let (reply, response) = oneshot::channel();
        self.pending().insert(id, reply);
        let _guard = PendingRequest { editor: self, id };
        if self.is_gone() || !self.send(message::call(Some(id), method, params)).await {
            return Err(AskError::Gone);
        }
        let result = response.await.map_err(|_| AskError::Gone)?;
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
        self.inner.outbox.send(body).await.is_ok()
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
            self.editor.inner.outbox.try_send(body).ok();
        }
    }
}
