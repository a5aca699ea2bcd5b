//! What we asked and who waits for it. Every wire keeps one: it ties each answer to its request, takes notices in the
//! order they came, and notes what was skipped.
//!
//! The lock is `std`, private to this file and held for table look-ups only: a remote wire reads in tasks of its own,
//! all others would not need one.

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
use super::{ServerNotice, server_info};
use crate::model::{CallId, ServerName};
use crate::text::{mask, one_line};

pub use slot::{Sent, Slot};
use state::{Kind, Open, State};

/// Broken bytes before the first message after which a peer is taken for something other than MCP.
const MAX_INVALID_BYTES: usize = 16 << 10;

/// Shared by a wire and its connection.
#[derive(Clone)]
pub struct Ledger(Arc<Shared>);

struct Shared {
    server: ServerName,
    /// Longest message, in bytes.
    limit: usize,
    state: Mutex<State>,
    closed: watch::Sender<Option<String>>,
    notices: OnceLock<mpsc::Sender<ServerNotice>>,
    /// A list change that found the channel full and is being sent by a task of its own.
    pending_changes: [AtomicBool; 3],
    dropped_logs: AtomicU64,
    unread: Unread,
}

/// What was given to a wire and has not been taken by the server yet.
#[derive(Default)]
pub(super) struct Unread {
    pub bytes: AtomicUsize,
    pub messages: AtomicUsize,
    /// Since when nothing has been taken of what waits. `std`, private to this file, held for a copy only.
    since: Mutex<Option<Instant>>,
}

impl Unread {
    /// Notes a message that waits to be taken.
    pub fn add(&self, bytes: usize) {
        let before = self.bytes.fetch_add(bytes, Ordering::AcqRel);
        self.messages.fetch_add(1, Ordering::AcqRel);
        if before == 0 {
            self.reset_clock(true);
        }
    }

    /// Notes that some were taken.
    pub fn taken(&self, bytes: usize, messages: usize) {
        let before = self.bytes.fetch_sub(bytes, Ordering::AcqRel);
        self.messages.fetch_sub(messages, Ordering::AcqRel);
        self.reset_clock(before > bytes);
    }

    fn reset_clock(&self, waits: bool) {
        *self.since.lock().unwrap_or_else(PoisonError::into_inner) = waits.then(Instant::now);
    }
}

/// The request on whose stream a message came. Travels with the message as an extension of it.
#[derive(Debug, Clone)]
pub struct StreamRequest(pub RequestId);

/// The calls that were on their way when a request of the server came: one of them it belongs to, if to any. Travels with
/// the message as an extension of it.
#[derive(Debug, Clone, Default)]
pub struct ActiveCalls(pub Vec<CallId>);

/// What becomes of a message on its way to rmcp.
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

    /// The call that a request of ours belongs to, while it is on its way.
    pub fn call_of(&self, request: &RequestId) -> Option<CallId> {
        self.state().open.get(request)?.slot.as_ref()?.call()
    }

    pub fn server(&self) -> &ServerName {
        &self.0.server
    }

    /// Longest message, in bytes.
    pub fn limit(&self) -> usize {
        self.0.limit
    }

    /// Reads a text from the server and settles what can be settled here: answers go to whoever waits, with a mere
    /// stub for rmcp; progress, logs and list changes go where they belong, in order. What remains is for rmcp.
    pub fn read(&self, text: &[u8]) -> Vec<ServerJsonRpcMessage> {
        match repair::read(text) {
            Parsed::Messages(messages) => self.accept(messages),
            Parsed::Incomplete | Parsed::Junk => {
                self.skip(text);
                Vec::new()
            }
        }
    }

    pub fn accept(&self, messages: Vec<Incoming>) -> Vec<ServerJsonRpcMessage> {
        messages.into_iter().filter_map(|message| self.accept_one(message)).collect()
    }

    fn accept_one(&self, message: Incoming) -> Option<ServerJsonRpcMessage> {
        match message {
            Incoming::Reply { id, outcome } => self.complete(&id, outcome),
            Incoming::ErrorWithoutId(error) => self.complete_without_id(error),
            Incoming::Request { id, method, params } => {
                let mut request = match method.as_str() {
                    "ping" => ServerRequest::PingRequest(PingRequest::default()),
                    _ => ServerRequest::CustomRequest(CustomRequest::new(method, params)),
                };
                let open = self.state().open.values().filter_map(|open| open.slot.as_ref()?.call()).collect();
                request.extensions_mut().insert(ActiveCalls(open));
                Some(JsonRpcMessage::Request(JsonRpcRequest::new(id, request)))
            }
            Incoming::Notification { method, params } => self.notice(&method, params),
        }
    }

    /// Ends a request with its answer. A second answer, or one to a request that was given up, finds nobody.
    fn complete(&self, id: &RequestId, outcome: Result<Box<RawValue>, ErrorData>) -> Option<ServerJsonRpcMessage> {
        let mut state = self.state();
        let Some((id, open)) = state.close(id) else {
            tracing::debug!(server = %self.0.server, %id, "an answer nobody waits for");
            return None;
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
                state.handshake_result = Some(Arc::from(raw));
                result
            }
            Kind::Listen => serde_json::from_str(raw.get()).unwrap_or(ServerResult::empty(())),
            Kind::Other => {
                if let Some(slot) = open.slot {
                    slot.put(raw);
                }
                ServerResult::empty(())
            }
        };
        Some(JsonRpcMessage::response(result, id))
    }

    /// An error without an id belongs to the only open request, if there is just one.
    fn complete_without_id(&self, error: ErrorData) -> Option<ServerJsonRpcMessage> {
        let mut state = self.state();
        let only = match state.open.keys().next() {
            Some(id) if state.open.len() == 1 => id.clone(),
            _ => {
                drop(state);
                self.warn(format!(
                    "the server reported an error without saying to which request: {}",
                    one_line(&error.message, 200)
                ));
                return None;
            }
        };
        let (id, _) = state.close(&only)?;
        Some(JsonRpcMessage::error(error, Some(id)))
    }

    /// Fails whoever waits for a message that was too long to be kept: by its id, else the only one, else all.
    pub fn too_long(&self, id: Option<RequestId>, may_be_any: bool) -> Vec<ServerJsonRpcMessage> {
        let mut state = self.state();
        let mut failed: Vec<RequestId> = id.and_then(|id| state.close(&id)).map(|(id, _)| id).into_iter().collect();
        if failed.is_empty() && (may_be_any || state.open.len() == 1) {
            failed = state.open.keys().cloned().collect();
            failed.sort_by_key(|id| state.open.get(id).map(|open| open.sent));
            for id in &failed {
                state.close(id);
            }
        }
        let message = format!("answer is larger than {} (`limits.message-bytes` sets this limit)", size(self.0.limit));
        let error =
            |id| JsonRpcMessage::error(ErrorData::new(ErrorCode::INTERNAL_ERROR, message.clone(), None), Some(id));
        failed.into_iter().map(error).collect()
    }

    /// Counts a line that was no message, and tells each of the first hundred, then at 1000, 10000, ….
    pub fn skip(&self, line: &[u8]) {
        let line = repair::trim(line);
        if line.is_empty() {
            return;
        }
        let mut state = self.state();
        state.skipped += 1;
        let sample = one_line(&mask(&String::from_utf8_lossy(line.get(..200.min(line.len())).unwrap_or(line))), 80);
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

    /// Lines skipped so far, and the first of them.
    pub fn skipped(&self) -> (u64, String) {
        let state = self.state();
        (state.skipped, state.sample.clone())
    }

    /// Whether so much came that cannot be text, and not one message, that waiting for more is no use.
    pub fn is_not_mcp(&self) -> bool {
        let state = self.state();
        state.handshake_result.is_none() && state.invalid_bytes > MAX_INVALID_BYTES
    }

    /// The result of the handshake as the server sent it.
    pub fn handshake_result(&self) -> Option<Arc<RawValue>> {
        self.state().handshake_result.clone()
    }

    /// Everything in it has been read: that there was one is all that is still asked.
    pub fn clear_handshake_result(&self) {
        self.state().handshake_result = Some(Arc::from(RawValue::NULL.to_owned()));
    }

    /// From now on what happens is told to this channel.
    pub fn send_notices_to(&self, notices: mpsc::Sender<ServerNotice>) {
        self.0.notices.set(notices).ok();
    }

    pub fn warn(&self, text: String) {
        self.notify(ServerNotice::Warning(text));
    }

    /// Marks the wire as gone; the first reason stays.
    pub fn close(&self, reason: &str) {
        self.0.closed.send_if_modified(|closed| {
            let first = closed.is_none();
            if first {
                *closed = Some(reason.to_owned());
            }
            first
        });
    }

    /// Ends when the wire is gone, with the reason.
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

    /// Bytes of which the server has not taken one for this long. What was sent a moment ago does not count.
    pub fn unread_for(&self, long: Duration) -> Option<usize> {
        let since = (*self.0.unread.since.lock().unwrap_or_else(PoisonError::into_inner))?;
        Some(self.unread_bytes()).filter(|bytes| *bytes > 0 && since.elapsed() >= long)
    }

    /// Bytes that wait for the server to read them.
    pub fn unread_bytes(&self) -> usize {
        self.0.unread.bytes.load(Ordering::Acquire)
    }

    /// Notes a message that goes out.
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

    /// Forgets a request that nobody waits for any more.
    pub fn forget(&self, id: &RequestId) {
        self.state().close(id);
    }

    /// The last look at a message before rmcp sees it. Requests that come before the handshake is done are answered
    /// here, because rmcp would leave them without an answer; `ping` is allowed at any time.
    pub(super) fn screen(&self, message: ServerJsonRpcMessage) -> Screened {
        match &message {
            JsonRpcMessage::Request(request)
                if !matches!(request.request, ServerRequest::PingRequest(_)) && self.handshake_result().is_none() =>
            {
                let error = ErrorData::invalid_request("not before the answer to initialize", None);
                Screened::Respond(JsonRpcMessage::error(error, Some(request.id.clone())))
            }
            // An answer that a wire has read by itself: its request is done all the same.
            JsonRpcMessage::Response(response) => {
                let mut state = self.state();
                if let Some((_, open)) = state.close(&response.id)
                    && matches!(open.kind, Kind::Initialize | Kind::Discover)
                {
                    state.handshake_result = serde_json::value::to_raw_value(&response.result).ok().map(Arc::from);
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
            // Where a wire has typed notices, they take the same way as the others.
            JsonRpcMessage::Notification(notice) => match serde_json::to_value(notice) {
                Ok(Value::Object(mut fields)) => {
                    let params = fields.remove("params");
                    match fields.get("method").and_then(Value::as_str).map(|method| self.notice(method, params)) {
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

/// A size for people.
pub fn size(bytes: usize) -> String {
    match bytes {
        bytes if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        bytes if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        bytes => format!("{bytes} bytes"),
    }
}
