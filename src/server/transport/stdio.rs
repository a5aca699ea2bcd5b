//! One message per line over a pair of byte streams: a child's pipes or a socket.
//!
//! Reading happens when rmcp asks for the next message, so a response is always seen before the end of the stream. Messages
//! are written in order, so a request is always sent before its cancellation.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use futures::future::BoxFuture;
use rmcp::model::{
    CallToolRequestParams, ClientJsonRpcMessage, ClientRequest, GetMeta, JsonRpcMessage, RequestId, RequestMetaObject,
    ServerJsonRpcMessage,
};
use serde::Serialize;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::frame::{Frame, Frames};
use super::ledger::{Ledger, Slot, size};
use super::line_writer::{LineSender, LineWriter, Piece, WriteMode, Writer};
use super::repair::{self, Nesting, Parsed};
use super::{AnyTransport, OpenError};
use crate::server::heavy;

/// Messages that may wait for the server. With more messages, or more than twice the largest message, the server does
/// not read its input at all.
const MAX_QUEUED: usize = 4_096;
/// How long the last messages may take when the connection closes.
const FLUSH_TIMEOUT: std::time::Duration = std::time::Duration::from_millis(200);

type Reader = Box<dyn AsyncRead + Send + Unpin>;

pub struct LineTransport {
    read: Reader,
    frames: Frames,
    /// The received part of a message that spans several lines.
    partial: Option<Partial>,
    ready: VecDeque<ServerJsonRpcMessage>,
    writer: LineWriter,
    ledger: Ledger,
    ended: bool,
    /// Resolves when the server has closed its input.
    input_closed: InputClosed,
}

pub type InputClosed = BoxFuture<'static, ()>;

#[derive(Default)]
struct Partial {
    text: Vec<u8>,
    nesting: Nesting,
}

impl LineTransport {
    pub fn new(read: Reader, write: Writer, input_closed: Option<InputClosed>, ledger: Ledger) -> Self {
        let limit = ledger.limit();
        let read_by = ledger.clone();
        Self {
            read,
            frames: Frames::new(limit),
            partial: None,
            ready: VecDeque::new(),
            // The reading side reports how the connection ended.
            writer: LineWriter::new(write, None, move |written| {
                read_by.unread().taken(written.bytes, written.messages);
            }),
            ledger,
            ended: false,
            input_closed: input_closed.unwrap_or_else(|| Box::pin(std::future::pending())),
        }
    }

    /// Sends messages that bypass rmcp.
    pub fn outbox(&self) -> Outbox {
        Outbox { sender: self.writer.sender().clone(), ledger: self.ledger.clone() }
    }

    async fn next(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Some(message);
            }
            if self.ended {
                return None;
            }
            // `read_buf` either appends or does nothing, so dropping this future loses no byte.
            let read = tokio::select! {
                biased;
                read = self.read.read_buf(self.frames.room()) => read,
                () = &mut self.input_closed => {
                    // Dropped at once, because it keeps the pipe open.
                    self.input_closed = Box::pin(std::future::pending());
                    self.end("the server closed its input");
                    continue;
                }
            };
            match read {
                Ok(0) => self.end("the server closed its output"),
                Ok(_) => self.parse_frames(),
                Err(error) => self.end(&format!("the connection broke: {}", error.kind())),
            }
        }
    }

    /// Parses the complete frames in the buffer.
    fn parse_frames(&mut self) {
        while let Some(frame) = self.frames.take() {
            match frame {
                Frame::Line(line) => {
                    let Self { frames, partial, ledger, ready, .. } = self;
                    ready.extend(take_line(frames.line(line), partial, ledger));
                }
                Frame::TooLong(head) => {
                    self.partial = None;
                    self.ready.extend(self.ledger.too_long(repair::id_of_cut_message(&head, &[]), false));
                }
                Frame::TooLongEnded(line) => {
                    // If the start named the request, it has failed already, and no other may fail.
                    if repair::id_of_cut_message(&line.head, &[]).is_none() {
                        let id = repair::id_of_cut_message(&[], &line.tail);
                        self.ready.extend(self.ledger.too_long(id, true));
                    }
                    self.ledger.warn(format!("dropped a message larger than {}", size(self.ledger.limit())));
                }
            }
        }
        if self.ledger.is_not_mcp() {
            self.end("the server does not send MCP messages");
        }
    }

    fn end(&mut self, reason: &str) {
        self.ended = true;
        if let Some(line) = self.frames.rest() {
            let Self { frames, partial, ledger, ready, .. } = self;
            ready.extend(take_line(frames.line(line), partial, ledger));
        }
        if let Some(partial) = self.partial.take() {
            self.ledger.skip(&partial.text);
        }
        if self.ready.is_empty() {
            self.ledger.close(reason);
        }
    }
}

/// Parses a line, alone or as part of a message that spans several lines.
fn take_line(line: &[u8], partial: &mut Option<Partial>, ledger: &Ledger) -> Vec<ServerJsonRpcMessage> {
    let parsed = heavy(line.len(), || repair::read(line));
    let is_part = matches!(parsed, Parsed::Incomplete)
        && partial.as_ref().is_some_and(|partial_message| partial_message.nesting.expects_value());
    let is_start = !is_part && line.first().is_some_and(|byte| matches!(byte, b'{' | b'[' | b'\xef'));
    match (parsed, partial.as_mut()) {
        // A complete message ends a partial one, which was not a message then.
        (Parsed::Messages(messages), partial_message) if is_start || partial_message.is_none() => {
            if let Some(partial_message) = partial.take() {
                ledger.skip(&partial_message.text);
            }
            ledger.accept(messages)
        }
        (Parsed::Incomplete, partial_message) if is_start => {
            if let Some(partial_message) = partial_message {
                ledger.skip(&partial_message.text);
            }
            let mut partial_message = Partial::default();
            partial_message.add(line);
            *partial = Some(partial_message);
            Vec::new()
        }
        (_, Some(partial_message)) => {
            partial_message.add(line);
            if partial_message.text.len() > ledger.limit() {
                let id = repair::id_of_cut_message(&partial_message.text, &[]);
                *partial = None;
                return ledger.too_long(id, true);
            }
            if !partial_message.nesting.is_closed() {
                return Vec::new();
            }
            let text = std::mem::take(&mut partial_message.text);
            *partial = None;
            ledger.read(&text)
        }
        (Parsed::Messages(messages), None) => ledger.accept(messages),
        (Parsed::Incomplete | Parsed::Junk, None) => {
            ledger.skip(line);
            Vec::new()
        }
    }
}

impl Partial {
    fn add(&mut self, line: &[u8]) {
        self.text.extend_from_slice(line);
        self.text.push(b'\n');
        self.nesting.feed(line);
    }
}

impl AnyTransport for LineTransport {
    fn send(&mut self, message: ClientJsonRpcMessage) -> BoxFuture<'static, Result<(), OpenError>> {
        let sent = match to_text(&message) {
            Ok(text) => self.outbox().put(text, WriteMode::Now),
            Err(error) => {
                Err(OpenError::Protocol { message: format!("cannot serialize the message as JSON: {error}") })
            }
        };
        Box::pin(std::future::ready(sent))
    }

    fn receive(&mut self) -> BoxFuture<'_, Option<ServerJsonRpcMessage>> {
        Box::pin(self.next())
    }

    fn close(&mut self) -> BoxFuture<'_, ()> {
        self.input_closed = Box::pin(std::future::pending());
        Box::pin(self.writer.close(FLUSH_TIMEOUT))
    }
}

/// Serializes a message. A tool call is written from its parts, because rmcp would copy all arguments first.
fn to_text(message: &ClientJsonRpcMessage) -> serde_json::Result<Vec<u8>> {
    let text = match message {
        JsonRpcMessage::Request(request) => call_text(&request.id, &request.request),
        _ => None,
    };
    text.unwrap_or_else(|| serde_json::to_vec(message))
}

/// The text of a tool call; `None` for other requests.
fn call_text(id: &RequestId, request: &ClientRequest) -> Option<serde_json::Result<Vec<u8>>> {
    let call = match request {
        ClientRequest::CallToolRequest(call) if call.params.meta.is_none() => call,
        _ => return None,
    };
    #[derive(Serialize)]
    struct Call<'a> {
        jsonrpc: &'static str,
        id: &'a RequestId,
        method: &'static str,
        params: Params<'a>,
    }
    #[derive(Serialize)]
    struct Params<'a> {
        #[serde(rename = "_meta")]
        meta: &'a RequestMetaObject,
        #[serde(flatten)]
        rest: &'a CallToolRequestParams,
    }
    let params = Params { meta: request.get_meta(), rest: &call.params };
    Some(serde_json::to_vec(&Call { jsonrpc: "2.0", id, method: "tools/call", params }))
}

/// The messages to write. The queue is unbounded because `send` must not wait; the ledger's count of unread bytes limits it.
#[derive(Clone)]
pub struct Outbox {
    sender: LineSender,
    ledger: Ledger,
}

impl Outbox {
    fn put(&self, mut text: Vec<u8>, mode: WriteMode) -> Result<(), OpenError> {
        text.push(b'\n');
        let unread = self.ledger.unread();
        let waiting = unread.bytes.load(Ordering::Acquire);
        let limit = 2 * self.ledger.limit();
        // A single message may have any size: the server may still read it.
        if waiting > 0 && waiting + text.len() > limit || unread.messages.load(Ordering::Acquire) >= MAX_QUEUED {
            let message = format!(
                "the server does not read its input: {waiting} bytes are waiting (limit: {} or {MAX_QUEUED} messages)",
                size(limit)
            );
            return Err(OpenError::Closed { message });
        }
        unread.add(text.len());
        let closed = |_| OpenError::Closed { message: "the server closed its input".to_owned() };
        self.sender.put([Piece::Text(text)], mode).map_err(closed)
    }

    /// Sends a tool call that bypasses rmcp. Its response goes to the slot, which the ledger knows from now on. `None`
    /// if the request is not a call that can be sent this way.
    pub fn call(&self, id: &RequestId, request: &ClientRequest, slot: Slot) -> Option<Result<(), OpenError>> {
        let text = call_text(id, request)?;
        let token = request.get_meta().get_progress_token().map(|token| token.0);
        let invalid = |error| OpenError::Protocol { message: format!("cannot serialize the message as JSON: {error}") };
        let sent = text.map_err(invalid).and_then(|text| {
            let mode = self.ledger.sent_directly(id, slot, token)?;
            self.put(text, mode).inspect_err(|_| self.ledger.forget(id))
        });
        Some(sent)
    }
}
