//! Tracks open requests. Every transport has one: it matches responses to requests, handles notifications in order, and
//! counts skipped lines.
//!
//! The lock is `std`, private to this file and held for lookups only; only remote transports read from several tasks.

mod direct;
mod notices;
mod slot;
mod state;

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, CustomRequest, ErrorCode, ErrorData, GetExtensions,
    GetMeta, JsonRpcMessage, JsonRpcNotification, JsonRpcRequest, PingRequest, RequestId, ServerJsonRpcMessage,
    ServerRequest, ServerResult,
};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::repair::{self, Incoming, Parsed};
use super::{OpenError, ServerNotice, server_info};
use crate::model::json_memory::is_light;
use crate::model::{CallId, RawJson, ServerName};
use crate::text::{mask, one_line, without_colors};

pub use slot::{Reply, Sent, Slot};
use state::{Kind, Open, State};

/// Invalid bytes before the first message after which the peer is not an MCP server.
const MAX_INVALID_BYTES: usize = 16 << 10;

/// Shared by a transport and its connection.
#[derive(Clone)]
pub struct Ledger(Arc<Shared>);

struct Shared {
    server: ServerName,
    /// Maximum size of a message, in bytes.
    limit: usize,
    state: Mutex<State>,
    closed: watch::Sender<Option<String>>,
    notices: OnceLock<mpsc::Sender<ServerNotice>>,
    /// List changes that found the channel full and are sent by a task.
    pending_changes: [AtomicBool; 3],
    dropped_logs: AtomicU64,
    unread: Unread,
}

/// What was sent but not yet read by the server.
#[derive(Default)]
pub(super) struct Unread {
    pub bytes: AtomicUsize,
    pub messages: AtomicUsize,
    /// Since when the server has read nothing. `std`, private to this file, held for a copy only.
    since: Mutex<Option<Instant>>,
}

impl Unread {
    /// Adds a message.
    pub fn add(&self, bytes: usize) {
        let before = self.bytes.fetch_add(bytes, Ordering::AcqRel);
        self.messages.fetch_add(1, Ordering::AcqRel);
        if before == 0 {
            self.reset_clock(true);
        }
    }

    /// Removes what the server has read.
    pub fn taken(&self, bytes: usize, messages: usize) {
        let before = self.bytes.fetch_sub(bytes, Ordering::AcqRel);
        self.messages.fetch_sub(messages, Ordering::AcqRel);
        self.reset_clock(before > bytes);
    }

    fn reset_clock(&self, waits: bool) {
        *self.since.lock().unwrap_or_else(PoisonError::into_inner) = waits.then(Instant::now);
    }
}

/// The request whose stream carried a message, as an extension of the message.
#[derive(Debug, Clone)]
pub struct StreamRequest(pub RequestId);

/// The calls that were open when the server sent a request, as an extension of the message. The request belongs to one
/// of them, or to none.
#[derive(Debug, Clone, Default)]
pub struct ActiveCalls(pub Vec<CallId>);

/// What to do with a message before rmcp sees it.
pub(super) enum Screened {
    Forward(ServerJsonRpcMessage),
    Respond(ClientJsonRpcMessage),
    Handled,
}

impl Ledger {
    pub fn new(server: ServerName, message_bytes: usize) -> Self {
        Self(Arc::new(Shared {
            server,
            limit: message_bytes,
            state: Mutex::default(),
            closed: watch::Sender::new(None),
            notices: OnceLock::new(),
            pending_changes: Default::default(),
            dropped_logs: AtomicU64::new(0),
            unread: Unread::default(),
        }))
    }

    /// The call of an open request.
    pub fn call_of(&self, request: &RequestId) -> Option<CallId> {
        self.state().open.get(request)?.slot.as_ref()?.call()
    }

    pub fn server(&self) -> &ServerName {
        &self.0.server
    }

    /// Maximum size of a message, in bytes.
    pub fn limit(&self) -> usize {
        self.0.limit
    }

    /// Parses a text from the server. Responses go to their slots, and rmcp gets a stub; progress, logs and list
    /// changes are handled in order. Returns the messages for rmcp.
    pub fn read(&self, text: &[u8]) -> Vec<ServerJsonRpcMessage> {
        self.read_on(text, None)
    }

    /// The same for a text on the stream of a request.
    pub fn read_on(&self, text: &[u8], stream: Option<&RequestId>) -> Vec<ServerJsonRpcMessage> {
        match repair::read(text) {
            Parsed::Messages(messages) => {
                messages.into_iter().filter_map(|message| self.accept_one(message, stream)).collect()
            }
            Parsed::Incomplete | Parsed::Junk => {
                self.skip(text);
                Vec::new()
            }
        }
    }

    pub fn accept(&self, messages: Vec<Incoming>) -> Vec<ServerJsonRpcMessage> {
        messages.into_iter().filter_map(|message| self.accept_one(message, None)).collect()
    }

    fn accept_one(&self, message: Incoming, stream: Option<&RequestId>) -> Option<ServerJsonRpcMessage> {
        match message {
            Incoming::Reply { id, outcome } => self.complete(&id, outcome),
            Incoming::ErrorWithoutId(error) => self.complete_without_id(error),
            Incoming::Request { id, method, params } => {
                let mut request = match (method.as_str(), params) {
                    ("ping", _) => ServerRequest::PingRequest(PingRequest::default()),
                    (_, Ok(params)) => ServerRequest::CustomRequest(CustomRequest::new(method, params)),
                    (_, Err(reason)) => {
                        let mut request = ServerRequest::CustomRequest(CustomRequest::new(method, None));
                        request.extensions_mut().insert(reason);
                        request
                    }
                };
                request.extensions_mut().insert(ActiveCalls(self.open_calls()));
                Some(JsonRpcMessage::Request(JsonRpcRequest::new(id, request)))
            }
            Incoming::Notification { method, params } => self.notice(&method, params, stream),
            Incoming::Ignored(reason) => {
                self.warn(format!("ignored a part of what the server sent: {reason}"));
                None
            }
        }
    }

    fn open_calls(&self) -> Vec<CallId> {
        self.state().open.values().filter_map(|open| open.slot.as_ref()?.call()).collect()
    }

    /// Completes a request. A second response, or one to a cancelled request, is ignored.
    fn complete(&self, id: &RequestId, outcome: Result<RawJson, ErrorData>) -> Option<ServerJsonRpcMessage> {
        let mut state = self.state();
        let Some((id, open)) = state.close(id) else {
            tracing::debug!(server = %self.0.server, %id, "ignored a response to an unknown request");
            return None;
        };
        let outcome = match &open.slot {
            Some(slot) => slot.reply(outcome)?,
            None => outcome,
        };
        let raw = match outcome {
            Ok(raw) => raw,
            Err(error) => return Some(JsonRpcMessage::error(error, Some(id))),
        };
        let result = match open.kind {
            Kind::Initialize | Kind::Discover => {
                let result = match open.kind {
                    Kind::Initialize => ServerResult::InitializeResult(server_info::initialize_result(&raw)),
                    _ => ServerResult::DiscoverResult(server_info::discover_result(&raw)),
                };
                state.handshake_result = Some(raw);
                result
            }
            Kind::Listen if is_light(raw.get()) => serde_json::from_str(raw.get()).unwrap_or(ServerResult::empty(())),
            Kind::Listen => ServerResult::empty(()),
            Kind::Other => {
                if let Some(slot) = open.slot {
                    slot.put(raw);
                }
                ServerResult::empty(())
            }
        };
        Some(JsonRpcMessage::response(result, id))
    }

    /// An error without an id belongs to the open request, if there is only one.
    fn complete_without_id(&self, error: ErrorData) -> Option<ServerJsonRpcMessage> {
        let mut state = self.state();
        let only = match state.open.keys().next() {
            Some(id) if state.open.len() == 1 => id.clone(),
            _ => {
                drop(state);
                self.warn(format!("the server sent an error without a request id: {}", one_line(&error.message, 200)));
                return None;
            }
        };
        let closed = state.close(&only)?;
        fail(closed, error)
    }

    /// Fails the request of a message that was too long: by its id, or the only open one, or all.
    pub fn too_long(&self, id: Option<RequestId>, may_be_any: bool) -> Vec<ServerJsonRpcMessage> {
        let mut state = self.state();
        let mut failed: Vec<(RequestId, Open)> = id.and_then(|id| state.close(&id)).into_iter().collect();
        if failed.is_empty() && (may_be_any || state.open.len() == 1) {
            let all: Vec<RequestId> = state.open.keys().cloned().collect();
            failed = all.iter().filter_map(|id| state.close(id)).collect();
            failed.sort_by_key(|(_, open)| open.sent);
        }
        let message =
            format!("the response is larger than {} (`limits.message-bytes` sets this limit)", size(self.0.limit));
        let error = || ErrorData::new(ErrorCode::INTERNAL_ERROR, message.clone(), None);
        failed.into_iter().filter_map(|closed| fail(closed, error())).collect()
    }

    /// Counts a line that is not a message, and reports the first hundred, then the 1000th, the 10000th and so on.
    pub fn skip(&self, line: &[u8]) {
        let line = repair::trim(line);
        if line.is_empty() {
            return;
        }
        let mut state = self.state();
        state.skipped += 1;
        let start = String::from_utf8_lossy(line.get(..200.min(line.len())).unwrap_or(line));
        let sample = one_line(&mask(&without_colors(&start)), 80);
        if state.skipped == 1 {
            state.sample.clone_from(&sample);
        }
        if state.handshake_result.is_none() && std::str::from_utf8(line).is_err() {
            state.invalid_bytes += line.len();
        }
        let lines = state.skipped;
        drop(state);
        if lines <= 100 || lines.checked_ilog10().is_some_and(|power| 10_u64.pow(power) == lines) {
            self.notify(ServerNotice::Skipped { lines, sample });
        }
    }

    /// The number of skipped lines, and the first of them.
    pub fn skipped(&self) -> (u64, String) {
        let state = self.state();
        (state.skipped, state.sample.clone())
    }

    /// Whether the server has sent many invalid bytes and no message.
    pub fn is_not_mcp(&self) -> bool {
        let state = self.state();
        state.handshake_result.is_none() && state.invalid_bytes > MAX_INVALID_BYTES
    }

    /// The result of the handshake as it was sent.
    pub fn handshake_result(&self) -> Option<RawJson> {
        self.state().handshake_result.clone()
    }

    /// Frees the result; only its presence still matters.
    pub fn clear_handshake_result(&self) {
        self.state().handshake_result = Some(RawJson::from(RawValue::NULL.to_owned()));
    }

    /// Sends notices to this channel.
    pub fn send_notices_to(&self, notices: mpsc::Sender<ServerNotice>) {
        self.0.notices.set(notices).ok();
    }

    pub fn warn(&self, text: String) {
        self.notify(ServerNotice::Warning(text));
    }

    /// Marks the transport as closed; the first reason is kept.
    pub fn close(&self, reason: &str) {
        self.0.closed.send_if_modified(|closed| {
            let first = closed.is_none();
            if first {
                *closed = Some(reason.to_owned());
            }
            first
        });
        self.abandon_direct();
    }

    /// Waits until the transport is closed and returns the reason.
    pub async fn closed(&self) -> String {
        let mut closed = self.0.closed.subscribe();
        match closed.wait_for(Option::is_some).await {
            Ok(reason) => reason.clone().unwrap_or_default(),
            Err(_) => String::new(),
        }
    }

    pub fn close_reason(&self) -> Option<String> {
        self.0.closed.borrow().clone()
    }

    pub(super) fn unread(&self) -> &Unread {
        &self.0.unread
    }

    /// The unread bytes, if the server has read nothing for this long.
    pub fn unread_for(&self, long: Duration) -> Option<usize> {
        let since = (*self.0.unread.since.lock().unwrap_or_else(PoisonError::into_inner))?;
        Some(self.unread_bytes()).filter(|bytes| *bytes > 0 && since.elapsed() >= long)
    }

    /// The bytes that the server has not read yet.
    pub fn unread_bytes(&self) -> usize {
        self.0.unread.bytes.load(Ordering::Acquire)
    }

    /// Records an outgoing message.
    pub(super) fn sent(&self, message: &ClientJsonRpcMessage) {
        match message {
            JsonRpcMessage::Request(request) => {
                let kind = match &request.request {
                    ClientRequest::InitializeRequest(_) => Kind::Initialize,
                    ClientRequest::DiscoverRequest(_) if self.handshake_result().is_none() => Kind::Discover,
                    ClientRequest::SubscriptionsListenRequest(_) => Kind::Listen,
                    _ => Kind::Other,
                };
                let slot = request.request.extensions().get::<Slot>().cloned();
                let token =
                    slot.as_ref().and_then(|_| request.request.get_meta().get_progress_token()).map(|token| token.0);
                let mut state = self.state();
                if let Some(token) = &token {
                    state.tokens.insert(token.clone(), request.id.clone());
                }
                state.open.insert(request.id.clone(), Open { kind, slot, token, sent: Instant::now() });
            }
            JsonRpcMessage::Notification(JsonRpcNotification {
                notification: ClientNotification::CancelledNotification(cancelled),
                ..
            }) => {
                if let Some(id) = &cancelled.params.request_id {
                    self.state().close(id);
                }
            }
            _ => {}
        }
    }

    /// Forgets a cancelled request.
    pub fn forget(&self, id: &RequestId) {
        self.state().close(id);
    }

    /// Checks a message before rmcp sees it. Requests before the end of the handshake are answered here, because rmcp
    /// would not answer them; `ping` is always allowed.
    pub(super) fn screen(&self, message: ServerJsonRpcMessage) -> Screened {
        match &message {
            JsonRpcMessage::Request(request)
                if !matches!(request.request, ServerRequest::PingRequest(_)) && self.handshake_result().is_none() =>
            {
                let error =
                    ErrorData::invalid_request("requests are not allowed before `initialize` is answered", None);
                Screened::Respond(JsonRpcMessage::error(error, Some(request.id.clone())))
            }
            // A response that the transport parsed itself completes its request, too.
            JsonRpcMessage::Response(response) => {
                let mut state = self.state();
                if let Some((_, open)) = state.close(&response.id)
                    && matches!(open.kind, Kind::Initialize | Kind::Discover)
                {
                    state.handshake_result = serde_json::value::to_raw_value(&response.result).ok().map(RawJson::from);
                }
                drop(state);
                Screened::Forward(message)
            }
            JsonRpcMessage::Error(error) => {
                if let Some(id) = &error.id {
                    self.forget(id);
                }
                Screened::Forward(message)
            }
            // Typed notifications are handled like the others.
            JsonRpcMessage::Notification(notice) => match serde_json::to_value(notice) {
                Ok(Value::Object(mut fields)) => {
                    let params = fields.remove("params");
                    match fields.get("method").and_then(Value::as_str).map(|method| self.notice(method, params, None)) {
                        Some(Some(_)) | None => Screened::Forward(message),
                        Some(None) => Screened::Handled,
                    }
                }
                _ => Screened::Forward(message),
            },
            _ => Screened::Forward(message),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Fails a request. Returns the error for rmcp if rmcp has sent the request.
fn fail((id, open): (RequestId, Open), error: ErrorData) -> Option<ServerJsonRpcMessage> {
    let reply = match &open.slot {
        Some(slot) => slot.reply(Err(error))?,
        None => Err(error),
    };
    reply.err().map(|error| JsonRpcMessage::error(error, Some(id)))
}

/// A size as text for users.
pub fn size(bytes: usize) -> String {
    match bytes {
        bytes if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        bytes if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        bytes => format!("{bytes} bytes"),
    }
}
