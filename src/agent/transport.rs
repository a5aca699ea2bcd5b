//! An agent's bytes: a message a line in, a message a line out, everything bounded.
//!
//! The mirror of the servers' own transport: a result goes out as the text that its server sent. What cannot be taken
//! on is answered here: a line that is no message, an id that is in use, one request too many. An agent that does not
//! read what it asked for is cut off, and nobody else notices.

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

use super::desk::{Desk, Refused};
use crate::server::transport::frame::{Frame, Frames};
use crate::server::transport::repair::{self, Outline};

/// Messages that may wait for an agent to read them.
const WAITING: usize = 4_096;
/// How long the last words may take when a connection closes.
const LAST_WORDS: std::time::Duration = std::time::Duration::from_millis(500);
/// What is written in one go.
const TOGETHER: usize = 64 << 10;

type Reader = Box<dyn AsyncRead + Send + Unpin>;
type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// The agent has gone, or was cut off.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the agent has gone")]
pub struct Gone;

pub struct Lines {
    read: Reader,
    frames: Frames,
    ready: VecDeque<ClientJsonRpcMessage>,
    desk: Desk,
    outbox: Outbox,
    limit: usize,
    /// What the agent calls itself.
    agent: Option<String>,
    turned: VecDeque<Turned>,
    records: mpsc::Sender<Turned>,
}

/// A call that was turned away before anybody else heard of it.
pub struct Turned {
    pub agent: Option<String>,
    pub tool: String,
    pub by: &'static str,
    pub error: ErrorData,
}

impl Lines {
    pub fn new(read: Reader, write: Writer, desk: Desk, limit: usize, records: mpsc::Sender<Turned>) -> Self {
        let outbox = Outbox::new(write, limit);
        let (ready, turned) = Default::default();
        Self { read, frames: Frames::new(limit), ready, desk, outbox, limit, agent: None, turned, records }
    }

    async fn next(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            // Whoever is turned away faster than that can be recorded waits. Reserving, too, may be dropped in between.
            while !self.turned.is_empty() {
                let Ok(place) = self.records.reserve().await else { break };
                if let Some(turned) = self.turned.pop_front() {
                    place.send(turned);
                }
            }
            if let Some(message) = self.ready.pop_front() {
                return Some(message);
            }
            let cut = self.outbox.cut.clone();
            // `read_buf` either appends or does nothing, so that dropping this future in between loses no byte.
            let length = tokio::select! {
                length = self.read.read_buf(self.frames.room()) => length,
                () = cut.cancelled() => return None,
            };
            match length {
                Ok(0) | Err(_) => return None,
                Ok(_) => self.sort(),
            }
        }
    }

    fn sort(&mut self) {
        while let Some(frame) = self.frames.take() {
            match frame {
                Frame::Line(line) => match read(self.frames.line(line)) {
                    Read::Message(message) => self.admit(*message),
                    Read::Nothing => {}
                    Read::Bad(id, error) => self.refuse(id, error),
                },
                // Whose it was can be told when its end is there, at the latest.
                Frame::TooLong(_) => {}
                Frame::TooLongEnded(flood) => {
                    let limit = self.limit;
                    let text = format!("message longer than {limit} bytes (`limits.message-bytes` sets this limit)");
                    let outline = repair::outline(&flood.head, &flood.tail);
                    match unread(outline, ErrorData::invalid_request(text, None)) {
                        Read::Message(message) => self.admit(*message),
                        Read::Nothing => {}
                        Read::Bad(id, error) => self.refuse(id, error),
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
                if let Err(refused) = self.desk.begin(&request.id) {
                    let id = request.id.clone();
                    let error = refusal(refused, &id);
                    if let ClientRequest::CallToolRequest(call) = &request.request {
                        let (agent, tool) = (self.agent.clone(), call.params.name.to_string());
                        let by = match refused {
                            Refused::Full(_) => "limits.agent-calls",
                            Refused::Duplicate => "id in use",
                        };
                        self.turned.push_back(Turned { agent, tool, by, error: error.clone() });
                    }
                    return self.refuse(Some(id), error);
                }
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.desk.end(id);
                }
            }
            _ => {}
        }
        self.ready.push_back(message);
    }

    fn refuse(&mut self, id: Option<RequestId>, error: ErrorData) {
        tracing::debug!(code = error.code.0, message = %error.message, "refused a message of an agent");
        self.put(&ServerJsonRpcMessage::error(error, id)).ok();
    }

    fn put(&mut self, message: &ServerJsonRpcMessage) -> Result<(), Gone> {
        let laid = match message {
            JsonRpcMessage::Response(response) => self.desk.end(&response.id).map(|raw| (&response.id, raw)),
            _ => None,
        };
        match laid {
            Some((id, raw)) => self.outbox.put(envelope(id)?, Some(raw)),
            None => {
                let mut text = serde_json::to_vec(message).map_err(|_| Gone)?;
                text.push(b'\n');
                self.outbox.put(text, None)
            }
        }
    }
}

impl Transport<RoleServer> for Lines {
    type Error = Gone;

    fn send(&mut self, message: ServerJsonRpcMessage) -> impl Future<Output = Result<(), Gone>> + Send + 'static {
        if let JsonRpcMessage::Error(error) = &message
            && let Some(id) = &error.id
        {
            self.desk.end(id);
        }
        std::future::ready(self.put(&message))
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        self.next().await
    }

    async fn close(&mut self) -> Result<(), Gone> {
        self.outbox.close().await;
        Ok(())
    }
}

enum Read {
    Message(Box<ClientJsonRpcMessage>),
    Nothing,
    Bad(Option<RequestId>, ErrorData),
}

fn read(line: &[u8]) -> Read {
    let line = line.trim_ascii();
    if line.is_empty() {
        return Read::Nothing;
    }
    match serde_json::from_slice::<ClientJsonRpcMessage>(line) {
        Ok(message) => Read::Message(Box::new(message)),
        Err(_) => match serde_json::from_slice::<Value>(line) {
            Ok(value) => {
                let id = value.get("id").and_then(|id| serde_json::from_value(id.clone()).ok());
                Read::Bad(id, ErrorData::invalid_request("this is no message of JSON-RPC 2.0", None))
            }
            Err(error) => {
                let text = format!("this cannot be read as JSON: {error}");
                unread(repair::outline(line, line), ErrorData::parse_error(text, None))
            }
        },
    }
}

/// What becomes of a message that could not be read: its sender hears of it by its id, and an answer counts as a failed one.
fn unread(outline: Option<Outline>, error: ErrorData) -> Read {
    match outline {
        Some(Outline { id, is_request: true }) => Read::Bad(Some(id), error),
        Some(Outline { id, is_request: false }) => {
            Read::Message(Box::new(ClientJsonRpcMessage::error(error, Some(id))))
        }
        None => Read::Bad(None, error),
    }
}

fn refusal(refused: Refused, id: &RequestId) -> ErrorData {
    match refused {
        Refused::Duplicate => {
            ErrorData::invalid_request(format!("a request with the id {id} is still being worked on"), None)
        }
        Refused::Full(most) => {
            let text = format!("{most} requests of this agent wait already (`limits.agent-calls` sets this limit)");
            ErrorData::new(ErrorCode(-32_000), text, None)
        }
    }
}

/// What stands before a result; the result itself and the end of the envelope follow.
fn envelope(id: &RequestId) -> Result<Vec<u8>, Gone> {
    let mut text = br#"{"jsonrpc":"2.0","id":"#.to_vec();
    serde_json::to_writer(&mut text, id).map_err(|_| Gone)?;
    text.extend_from_slice(br#","result":"#);
    Ok(text)
}

/// A message on its way: its text, or the beginning of it and the result that comes then.
type Outgoing = (Vec<u8>, Option<Arc<RawValue>>);

/// What waits to be written, and the task that writes it. The queue has no bound of its own, because `send` must not
/// wait: the account of what is unread is its bound.
struct Outbox {
    sender: Option<mpsc::UnboundedSender<Outgoing>>,
    unread: Arc<Unread>,
    /// Cancelled when the agent is cut off, or reads no more.
    cut: CancellationToken,
    writing: Option<AbortOnDropHandle<()>>,
    most: usize,
}

#[derive(Default)]
struct Unread {
    bytes: AtomicUsize,
    messages: AtomicUsize,
}

impl Outbox {
    fn new(write: Writer, limit: usize) -> Self {
        let (sender, queue) = mpsc::unbounded_channel();
        let (unread, cut) = (Arc::<Unread>::default(), CancellationToken::new());
        let writing = AbortOnDropHandle::new(tokio::spawn(write_all(write, queue, unread.clone(), cut.clone())));
        Self { sender: Some(sender), unread, cut, writing: Some(writing), most: 2 * limit }
    }

    fn put(&self, text: Vec<u8>, raw: Option<Arc<RawValue>>) -> Result<(), Gone> {
        let length = length(&text, raw.as_deref());
        let waiting = self.unread.bytes.load(Ordering::Acquire);
        // A message that is alone may be of any size: the agent might well read it.
        let too_much = waiting > 0 && waiting + length > self.most;
        if too_much || self.unread.messages.load(Ordering::Acquire) >= WAITING {
            tracing::warn!(waiting, "an agent does not read what it asked for: cut off");
            self.cut.cancel();
            return Err(Gone);
        }
        self.unread.bytes.fetch_add(length, Ordering::AcqRel);
        self.unread.messages.fetch_add(1, Ordering::AcqRel);
        self.sender.as_ref().ok_or(Gone)?.send((text, raw)).map_err(|_| Gone)
    }

    async fn close(&mut self) {
        self.sender = None;
        if let Some(writing) = self.writing.take()
            && !self.cut.is_cancelled()
        {
            // An agent that does not read is not waited for.
            tokio::time::timeout(LAST_WORDS, writing).await.ok();
        }
    }
}

/// Writes in the order of the queue, small messages together, large results without copying them.
async fn write_all(
    mut write: Writer,
    mut queue: mpsc::UnboundedReceiver<Outgoing>,
    unread: Arc<Unread>,
    cut: CancellationToken,
) {
    // Whoever cannot be written to is not listened to any more either.
    let _cut = cut.drop_guard();
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
        if text.len() < TOGETHER
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

/// What a message counts for in the account of what is unread.
fn length(head: &[u8], raw: Option<&RawValue>) -> usize {
    head.len() + raw.map_or(0, |raw| raw.get().len() + 2)
}

/// Adds a result and the end of its envelope to what is to be written; a large one is written at once.
async fn put_result(write: &mut Writer, text: &mut Vec<u8>, raw: &str) -> std::io::Result<()> {
    if memchr::memchr2(b'\n', b'\r', raw.as_bytes()).is_some() {
        // Line breaks in JSON stand only between its parts: a blank says the same.
        text.extend(raw.bytes().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }));
    } else if raw.len() < TOGETHER {
        text.extend_from_slice(raw.as_bytes());
    } else {
        write.write_all(text).await?;
        text.clear();
        write.write_all(raw.as_bytes()).await?;
    }
    text.extend_from_slice(b"}\n");
    Ok(())
}
