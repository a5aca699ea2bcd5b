//! The transport to an agent: one JSON message per line, with limits on everything.
//!
//! A result is sent as the raw JSON of its server. Invalid messages, duplicate ids and requests over the limit are
//! answered here. An agent that does not read its responses is disconnected, without affecting others.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorCode, ErrorData, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::pending_responses::{PendingResponses, Rejection};
use crate::server::transport::frame::{Frame, Frames};
use crate::server::transport::repair::{self, Outline};

/// How many messages may wait for the agent to read them.
const MAX_UNREAD: usize = 4_096;
/// How long the remaining messages may take when the connection closes.
const FLUSH_TIMEOUT: std::time::Duration = std::time::Duration::from_millis(500);
/// Small messages are combined into writes of about this size.
const WRITE_SIZE: usize = 64 << 10;

type Reader = Box<dyn AsyncRead + Send + Unpin>;
type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// The agent has disconnected, or we have disconnected it.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the agent has disconnected")]
pub struct Disconnected;

pub struct LineTransport {
    read: Reader,
    frames: Frames,
    ready: VecDeque<ClientJsonRpcMessage>,
    pending: PendingResponses,
    outbox: Outbox,
    limit: usize,
    /// The name that the agent reports.
    agent: Option<String>,
    rejected: VecDeque<RejectedCall>,
    records: mpsc::Sender<RejectedCall>,
}

/// A call that was rejected before it reached the engine.
pub struct RejectedCall {
    pub agent: Option<String>,
    pub tool: String,
    pub reason: &'static str,
    pub error: ErrorData,
}

impl LineTransport {
    pub fn new(
        read: Reader,
        write: Writer,
        pending: PendingResponses,
        limit: usize,
        records: mpsc::Sender<RejectedCall>,
    ) -> Self {
        let outbox = Outbox::new(write, limit);
        let (ready, rejected) = Default::default();
        Self { read, frames: Frames::new(limit), ready, pending, outbox, limit, agent: None, rejected, records }
    }

    async fn next(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            // Read no more until rejected calls are recorded. `reserve` is safe to cancel.
            while !self.rejected.is_empty() {
                let Ok(permit) = self.records.reserve().await else { break };
                if let Some(rejected) = self.rejected.pop_front() {
                    permit.send(rejected);
                }
            }
            if let Some(message) = self.ready.pop_front() {
                return Some(message);
            }
            let disconnect = self.outbox.disconnect.clone();
            // `read_buf` is safe to cancel: no bytes are lost.
            let length = tokio::select! {
                length = self.read.read_buf(self.frames.room()) => length,
                () = disconnect.cancelled() => return None,
            };
            match length {
                Ok(0) | Err(_) => return None,
                Ok(_) => self.handle_frames(),
            }
        }
    }

    fn handle_frames(&mut self) {
        while let Some(frame) = self.frames.take() {
            match frame {
                Frame::Line(line) => match parse(self.frames.line(line)) {
                    Parsed::Message(message) => self.admit(*message),
                    Parsed::Nothing => {}
                    Parsed::Bad(id, error) => self.reject(id, error),
                },
                // Its id may be at the end, so wait for that.
                Frame::TooLong(_) => {}
                Frame::TooLongEnded(flood) => {
                    let limit = self.limit;
                    let text = format!("message longer than {limit} bytes (the limit is `limits.message-bytes`)");
                    let outline = repair::outline(&flood.head, &flood.tail);
                    match invalid(outline, ErrorData::invalid_request(text, None)) {
                        Parsed::Message(message) => self.admit(*message),
                        Parsed::Nothing => {}
                        Parsed::Bad(id, error) => self.reject(id, error),
                    }
                }
            }
        }
    }

    fn admit(&mut self, message: ClientJsonRpcMessage) {
        match &message {
            JsonRpcMessage::Request(request) => {
                if let ClientRequest::InitializeRequest(initialize) = &request.request {
                    self.agent = Some(initialize.params.client_info.name.clone());
                }
                if let Err(rejection) = self.pending.begin(&request.id) {
                    let id = request.id.clone();
                    let error = rejection_error(rejection, &id);
                    if let ClientRequest::CallToolRequest(call) = &request.request {
                        let (agent, tool) = (self.agent.clone(), call.params.name.to_string());
                        let reason = match rejection {
                            Rejection::Full(_) => "limits.agent-calls",
                            Rejection::Duplicate => "id in use",
                        };
                        self.rejected.push_back(RejectedCall { agent, tool, reason, error: error.clone() });
                    }
                    return self.reject(Some(id), error);
                }
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.pending.take(id);
                }
            }
            _ => {}
        }
        self.ready.push_back(message);
    }

    fn reject(&mut self, id: Option<RequestId>, error: ErrorData) {
        tracing::debug!(code = error.code.0, message = %error.message, "rejected a message of an agent");
        self.put(&ServerJsonRpcMessage::error(error, id)).ok();
    }

    fn put(&mut self, message: &ServerJsonRpcMessage) -> Result<(), Disconnected> {
        let result = match message {
            JsonRpcMessage::Response(response) => self.pending.take(&response.id).map(|raw| (&response.id, raw)),
            _ => None,
        };
        match result {
            Some((id, raw)) => self.outbox.put(envelope(id)?, Some(raw)),
            None => {
                let mut text = serde_json::to_vec(message).map_err(|_| Disconnected)?;
                text.push(b'\n');
                self.outbox.put(text, None)
            }
        }
    }
}

impl Transport<RoleServer> for LineTransport {
    type Error = Disconnected;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Disconnected>> + Send + 'static {
        if let JsonRpcMessage::Error(error) = &message
            && let Some(id) = &error.id
        {
            self.pending.take(id);
        }
        std::future::ready(self.put(&message))
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        self.next().await
    }

    async fn close(&mut self) -> Result<(), Disconnected> {
        self.outbox.close().await;
        Ok(())
    }
}

enum Parsed {
    Message(Box<ClientJsonRpcMessage>),
    Nothing,
    Bad(Option<RequestId>, ErrorData),
}

fn parse(line: &[u8]) -> Parsed {
    let line = line.trim_ascii();
    if line.is_empty() {
        return Parsed::Nothing;
    }
    match serde_json::from_slice::<ClientJsonRpcMessage>(line) {
        Ok(message) => Parsed::Message(Box::new(message)),
        Err(_) => match serde_json::from_slice::<Value>(line) {
            Ok(value) => {
                let id = value.get("id").and_then(|id| serde_json::from_value(id.clone()).ok());
                Parsed::Bad(id, ErrorData::invalid_request("not a JSON-RPC 2.0 message", None))
            }
            Err(error) => {
                let text = format!("invalid JSON at column {}", error.column());
                invalid(repair::outline(line, line), ErrorData::parse_error(text, None))
            }
        },
    }
}

/// The error for a message that cannot be parsed, with its id if possible. A response becomes a failed response.
fn invalid(outline: Option<Outline>, error: ErrorData) -> Parsed {
    match outline {
        Some(Outline { id, is_request: true }) => Parsed::Bad(Some(id), error),
        Some(Outline { id, is_request: false }) => {
            Parsed::Message(Box::new(ClientJsonRpcMessage::error(error, Some(id))))
        }
        None => Parsed::Bad(None, error),
    }
}

fn rejection_error(rejection: Rejection, id: &RequestId) -> ErrorData {
    match rejection {
        Rejection::Duplicate => {
            ErrorData::invalid_request(format!("a request with the id {id} is still running"), None)
        }
        Rejection::Full(limit) => {
            let text = format!("too many requests: {limit} are already running (the limit is `limits.agent-calls`)");
            ErrorData::new(ErrorCode(-32_000), text, None)
        }
    }
}

/// The beginning of a response, up to the result.
fn envelope(id: &RequestId) -> Result<Vec<u8>, Disconnected> {
    let mut text = br#"{"jsonrpc":"2.0","id":"#.to_vec();
    serde_json::to_writer(&mut text, id).map_err(|_| Disconnected)?;
    text.extend_from_slice(br#","result":"#);
    Ok(text)
}

/// A message on its delivery: its text, or the beginning of it and the result that comes then.
type Outgoing = (Vec<u8>, Option<Arc<RawValue>>);

/// The queue of outgoing messages, and the task that writes them. The channel is unbounded because `send` must not wait;
/// `unread` limits the queue instead.
struct Outbox {
    sender: Option<mpsc::UnboundedSender<Outgoing>>,
    unread: Arc<Unread>,
    /// Cancelled when the agent is disconnected.
    disconnect: CancellationToken,
    writing: Option<AbortOnDropHandle<()>>,
    max_bytes: usize,
}

#[derive(Default)]
struct Unread {
    bytes: AtomicUsize,
    messages: AtomicUsize,
}

impl Outbox {
    fn new(write: Writer, limit: usize) -> Self {
        let (sender, queue) = mpsc::unbounded_channel();
        let (unread, disconnect) = (Arc::<Unread>::default(), CancellationToken::new());
        let writing = AbortOnDropHandle::new(tokio::spawn(write_all(write, queue, unread.clone(), disconnect.clone())));
        Self { sender: Some(sender), unread, disconnect, writing: Some(writing), max_bytes: 2 * limit }
    }

    fn put(&self, text: Vec<u8>, raw: Option<Arc<RawValue>>) -> Result<(), Disconnected> {
        let length = length(&text, raw.as_deref());
        let waiting = self.unread.bytes.load(Ordering::Acquire);
        // A single message may have any size.
        let too_much = waiting > 0 && waiting + length > self.max_bytes;
        if too_much || self.unread.messages.load(Ordering::Acquire) >= MAX_UNREAD {
            tracing::warn!(waiting, "disconnected an agent that does not read its responses");
            self.disconnect.cancel();
            return Err(Disconnected);
        }
        self.unread.bytes.fetch_add(length, Ordering::AcqRel);
        self.unread.messages.fetch_add(1, Ordering::AcqRel);
        self.sender.as_ref().ok_or(Disconnected)?.send((text, raw)).map_err(|_| Disconnected)
    }

    async fn close(&mut self) {
        self.sender = None;
        if let Some(writing) = self.writing.take()
            && !self.disconnect.is_cancelled()
        {
            // Do not wait longer for an agent that does not read.
            tokio::time::timeout(FLUSH_TIMEOUT, writing).await.ok();
        }
    }
}

/// Writes the queue in order. Combines small messages, and writes large results without copying them.
async fn write_all(
    mut write: Writer,
    mut queue: mpsc::UnboundedReceiver<Outgoing>,
    unread: Arc<Unread>,
    disconnect: CancellationToken,
) {
    // Stops reading, too, when writing fails.
    let _disconnect = disconnect.drop_guard();
    let mut text = Vec::new();
    let (mut messages, mut bytes) = (0, 0);
    let mut next = queue.recv().await;
    while let Some((head, raw)) = next.take() {
        messages += 1;
        bytes += length(&head, raw.as_deref());
        text.extend_from_slice(&head);
        if let Some(raw) = raw
            && put_result(&mut write, &mut text, raw.get()).await.is_err()
        {
            return;
        }
        if text.len() < WRITE_SIZE
            && let Ok(more) = queue.try_recv()
        {
            next = Some(more);
            continue;
        }
        if write.write_all(&text).await.is_err() || write.flush().await.is_err() {
            return;
        }
        text.clear();
        unread.bytes.fetch_sub(std::mem::take(&mut bytes), Ordering::AcqRel);
        unread.messages.fetch_sub(std::mem::take(&mut messages), Ordering::AcqRel);
        next = queue.recv().await;
    }
    write.shutdown().await.ok();
}

/// The size of a message.
fn length(head: &[u8], raw: Option<&RawValue>) -> usize {
    head.len() + raw.map_or(0, |raw| raw.get().len() + 2)
}

/// Adds a result and the end of the response to `text`. A large result is written immediately.
async fn put_result(write: &mut Writer, text: &mut Vec<u8>, raw: &str) -> std::io::Result<()> {
    if memchr::memchr2(b'\n', b'\r', raw.as_bytes()).is_some() {
        // Raw line breaks in JSON are only whitespace, so they can become spaces.
        text.extend(raw.bytes().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }));
    } else if raw.len() < WRITE_SIZE {
        text.extend_from_slice(raw.as_bytes());
    } else {
        write.write_all(text).await?;
        text.clear();
        write.write_all(raw.as_bytes()).await?;
    }
    text.extend_from_slice(b"}\n");
    Ok(())
}
