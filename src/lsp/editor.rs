//! The way to the editor: notifications and requests of ours.
//!
//! A request whose waiter has gone is taken back with `$/cancelRequest`, and an answer that comes later finds nobody:
//! that is normal and costs nothing.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tower_lsp::jsonrpc::{Error, Id};
use tower_lsp::lsp_types::{notification, request};

use super::message;

/// Why the editor gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    #[error("the editor has gone")]
    Gone,
    #[error("the editor answered with an error: {0}")]
    Refused(Error),
    #[error("the editor's answer could not be read: {0}")]
    Odd(#[from] serde_json::Error),
}

/// The editor at the other end. Clones speak to the same one.
#[derive(Clone)]
pub struct Editor {
    inner: Arc<Inner>,
}

struct Inner {
    outbox: mpsc::Sender<Vec<u8>>,
    next: AtomicI64,
    /// Requests of ours that wait. Behind a lock because the asker and the reader both touch it, for a moment each.
    waiting: Mutex<HashMap<i64, oneshot::Sender<Result<Value, Error>>>>,
    gone: CancellationToken,
}

impl Editor {
    pub(super) fn new(outbox: mpsc::Sender<Vec<u8>>) -> Self {
        let inner = Inner {
            outbox,
            next: AtomicI64::new(1),
            waiting: Mutex::new(HashMap::new()),
            gone: CancellationToken::new(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Tells the editor something; waits only while too much is on its way already. Nothing happens when it has gone.
    pub async fn notify<N: notification::Notification>(&self, params: &N::Params) {
        self.tell(N::METHOD, params).await;
    }

    /// The same for methods that LSP does not know.
    pub async fn tell<P: Serialize + ?Sized>(&self, method: &str, params: &P) {
        self.send(message::call(None, method, params)).await;
    }

    /// Asks the editor and waits for the answer, for as long as the caller likes: dropping the future takes the
    /// question back.
    pub async fn request<R: request::Request>(&self, params: &R::Params) -> Result<R::Result, AskError> {
        self.ask(R::METHOD, params).await
    }

    /// The same for methods that LSP does not know.
    pub async fn ask<P, T>(&self, method: &str, params: &P) -> Result<T, AskError>
    where
        P: Serialize + ?Sized,
        T: DeserializeOwned,
    {
        let id = self.inner.next.fetch_add(1, Ordering::Relaxed);
        let (reply, answer) = oneshot::channel();
        self.waiting().insert(id, reply);
        let _question = Question { editor: self, id };
        if self.is_gone() || !self.send(message::call(Some(id), method, params)).await {
            return Err(AskError::Gone);
        }
        let result = answer.await.map_err(|_| AskError::Gone)?;
        Ok(serde_json::from_value(result.map_err(AskError::Refused)?)?)
    }

    /// Ends when the editor has gone.
    pub async fn gone(&self) {
        self.inner.gone.cancelled().await;
    }

    pub fn is_gone(&self) -> bool {
        self.inner.gone.is_cancelled()
    }

    /// Sends a whole body. False when the editor has gone.
    pub(super) async fn send(&self, body: Vec<u8>) -> bool {
        self.inner.outbox.send(body).await.is_ok()
    }

    /// Hands an answer of the editor to whoever waits for it.
    pub(super) fn answered(&self, id: &Id, result: Result<Value, Error>) {
        let waiter = match id {
            Id::Number(id) => self.waiting().remove(id),
            _ => None,
        };
        match waiter {
            Some(waiter) => _ = waiter.send(result),
            None => tracing::debug!(%id, "answer that nobody waits for"),
        }
    }

    /// Nobody will answer any more.
    pub(super) fn close(&self) {
        self.inner.gone.cancel();
        self.waiting().clear();
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<i64, oneshot::Sender<Result<Value, Error>>>> {
        self.inner.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A question on its way; takes itself back when it is dropped unanswered.
struct Question<'a> {
    editor: &'a Editor,
    id: i64,
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        if self.editor.waiting().remove(&self.id).is_some() {
            // Best effort: an editor that reads so slowly that there is no room may keep its question.
            let body = message::call(None, "$/cancelRequest", &json!({ "id": self.id }));
            self.editor.inner.outbox.try_send(body).ok();
        }
    }
}
