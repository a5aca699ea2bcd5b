//! Where the response to one request is stored.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rmcp::model::ErrorData;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::model::{CallId, RawJson};
use crate::server::transport::Progress;

/// Whether a call has been sent to its server. Shared between the caller and the connection.
#[derive(Debug, Clone, Default)]
pub struct Sent(Arc<AtomicBool>);

impl Sent {
    pub fn get(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// The slot of one response. It is an extension of the request, so the transport knows it before the first byte is
/// sent.
#[derive(Clone, Default)]
pub struct Slot(Arc<Inner>);

/// The response to a request, or the error of the server.
pub type Reply = Result<RawJson, ErrorData>;

#[derive(Default)]
struct Inner {
    raw: OnceLock<RawJson>,
    /// Where the response to a call that bypasses rmcp goes. Locked like `last_sign`.
    reply: Option<Mutex<Option<oneshot::Sender<Reply>>>>,
    progress: Option<mpsc::Sender<Progress>>,
    call: Option<CallId>,
    sent: Sent,
    /// `std`, private to this file, held for a copy only.
    last_sign: Mutex<Option<Instant>>,
}

impl Slot {
    pub fn new(progress: Option<mpsc::Sender<Progress>>) -> Self {
        Self(Arc::new(Inner { progress, ..Default::default() }))
    }

    /// The slot of the response to a call.
    pub fn for_call(progress: Option<mpsc::Sender<Progress>>, call: &CallId, sent: Sent) -> Self {
        Self(Arc::new(Inner { progress, call: Some(call.clone()), sent, ..Default::default() }))
    }

    /// The same for a call that bypasses rmcp. Its response arrives at the receiver.
    pub fn direct(
        progress: Option<mpsc::Sender<Progress>>,
        call: &CallId,
        sent: Sent,
    ) -> (Self, oneshot::Receiver<Reply>) {
        let (reply, receiver) = oneshot::channel();
        let reply = Some(Mutex::new(Some(reply)));
        (Self(Arc::new(Inner { progress, call: Some(call.clone()), sent, reply, ..Default::default() })), receiver)
    }

    /// Passes on the response if the request bypassed rmcp. Otherwise returns it.
    pub(super) fn reply(&self, reply: Reply) -> Option<Reply> {
        let Some(receiver) = &self.0.reply else { return Some(reply) };
        if let Some(receiver) = receiver.lock().unwrap_or_else(PoisonError::into_inner).take() {
            receiver.send(reply).ok();
        }
        None
    }

    /// No response will come.
    pub(super) fn abandon(&self) {
        if let Some(receiver) = &self.0.reply {
            receiver.lock().unwrap_or_else(PoisonError::into_inner).take();
        }
    }

    /// Marks the request as sent.
    pub fn mark_sent(&self) {
        self.0.sent.0.store(true, Ordering::Release);
    }

    pub fn call(&self) -> Option<CallId> {
        self.0.call.clone()
    }

    /// The response, if it has arrived.
    pub fn take(self) -> Option<RawJson> {
        match Arc::try_unwrap(self.0) {
            Ok(inner) => inner.raw.into_inner(),
            Err(shared) => shared.raw.get().cloned(),
        }
    }

    /// When the last progress or log message arrived.
    pub fn last_sign(&self) -> Option<Instant> {
        *self.0.last_sign.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn put(&self, raw: RawJson) {
        self.0.raw.set(raw).ok();
    }

    /// Notes that the server works on the request.
    pub(super) fn record_sign(&self) {
        *self.0.last_sign.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    pub(super) fn record_progress(&self, progress: Progress) {
        self.record_sign();
        if let Some(sender) = &self.0.progress {
            // A slow reader misses a step; the next one replaces it.
            sender.try_send(progress).ok();
        }
    }
}
