//! The messages that wait for an agent to read them.
//!
//! An agent may be slow: as long as it takes a byte now and then, it stays connected, and only its own requests wait. One
//! that takes nothing for a while is disconnected.

use std::time::Duration;

use rmcp::model::{ErrorCode, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use serde_json::json;

use super::pending_responses::{Closed, PendingResponses};
use crate::model::RawJson;
use crate::server::transport::ledger::size;
use crate::server::transport::line_writer::{LineSender, LineWriter, Piece, Unread, WriteMode, Writer};

/// How many messages may wait before the agent's requests wait, too.
const MAX_UNREAD: usize = 4_096;
/// How long an agent may take no byte of what waits for it.
const STALL_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the remaining messages may take when the connection closes.
pub const FLUSH_TIMEOUT: Duration = Duration::from_millis(500);

/// The agent has disconnected, or we have disconnected it.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the agent has disconnected")]
pub struct Disconnected;

/// Sends messages to an agent. The queue is unbounded because a transport must not wait when it sends; what is unread limits
/// it instead.
#[derive(Clone)]
pub struct Outbox {
    sender: LineSender,
    pending: PendingResponses,
    limit: usize,
}

impl Outbox {
    /// `limit` is the size of the largest message. The writer has to be kept.
    pub fn new(write: Writer, pending: PendingResponses, limit: usize) -> (Self, LineWriter) {
        let writer = LineWriter::new(write, Some(STALL_TIMEOUT), |_| {});
        (Self { sender: writer.sender().clone(), pending, limit }, writer)
    }

    /// Waits until the agent has read enough to send more requests.
    pub async fn has_room(&self) {
        self.sender.until(|unread| unread.bytes <= self.limit && unread.messages < MAX_UNREAD).await;
    }

    /// Waits until the agent is disconnected.
    pub async fn disconnected(&self) {
        self.sender.ended().await;
    }

    pub fn is_disconnected(&self) -> bool {
        self.sender.has_ended()
    }

    /// Sends a message. The response to a request is its stored result, if there is one.
    pub fn put(&self, message: &ServerJsonRpcMessage) -> Result<(), Disconnected> {
        let closed = match message {
            JsonRpcMessage::Response(response) => self.pending.take(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref().and_then(|id| self.pending.take(id)),
            _ => None,
        };
        self.respond(message, closed)
    }

    /// Sends an error about a message that was not admitted. A request with the same id may be open.
    pub fn reject(&self, id: Option<RequestId>, error: ErrorData) -> Result<(), Disconnected> {
        match id {
            Some(id) => self.respond(&ServerJsonRpcMessage::error(error, Some(id)), None),
            // rmcp would leave the id out, but JSON-RPC requires it.
            None => {
                let message = json!({ "jsonrpc": "2.0", "id": null, "error": error });
                self.write([Piece::Text(format!("{message}\n").into_bytes())], WriteMode::Now)
            }
        }
    }

    /// The same for a request that was closed before.
    pub fn respond(&self, message: &ServerJsonRpcMessage, closed: Option<Closed>) -> Result<(), Disconnected> {
        let mode = match closed.as_ref().is_none_or(|closed| closed.is_last) {
            true => WriteMode::Now,
            false => WriteMode::Together,
        };
        match (message, closed.and_then(|closed| closed.result)) {
            (JsonRpcMessage::Response(response), Some(raw)) => self.put_result(&response.id, raw, mode),
            // Notifications are hints, and an agent that is behind gets enough of them.
            (JsonRpcMessage::Notification(_), _) if !self.can_take(0) => Ok(()),
            _ => self.put_text(message, mode),
        }
    }

    fn put_result(&self, id: &RequestId, raw: RawJson, mode: WriteMode) -> Result<(), Disconnected> {
        if !self.can_take(raw.get().len()) {
            let most = size(self.most());
            let text = format!("the result was dropped: more than {most} of earlier results are still unread");
            let error = ErrorData::new(ErrorCode(-32_000), text, None);
            return self.put_text(&ServerJsonRpcMessage::error(error, Some(id.clone())), mode);
        }
        let result = match memchr::memchr2(b'\n', b'\r', raw.get().as_bytes()) {
            // Raw line breaks in JSON are only whitespace, so they can become spaces.
            Some(_) => {
                let spaced = raw.get().bytes().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte });
                Piece::Text(spaced.collect())
            }
            None => Piece::Result(raw),
        };
        self.write([Piece::Text(envelope(id)?), result, Piece::Text(b"}\n".to_vec())], mode)
    }

    fn put_text(&self, message: &ServerJsonRpcMessage, mode: WriteMode) -> Result<(), Disconnected> {
        let mut text = serde_json::to_vec(message).map_err(|_| Disconnected)?;
        text.push(b'\n');
        self.write([Piece::Text(text)], mode)
    }

    fn write(&self, pieces: impl IntoIterator<Item = Piece>, mode: WriteMode) -> Result<(), Disconnected> {
        self.sender.put(pieces, mode).map_err(|_| Disconnected)
    }

    /// Whether a result of this size may wait as well. Requests that were sent before the agent fell behind still end, so
    /// there is room for more than `has_room` allows. A single message may have any size.
    fn can_take(&self, bytes: usize) -> bool {
        let Unread { bytes: unread, messages } = self.sender.unread();
        messages == 0 || (unread + bytes <= self.most() && messages < 2 * MAX_UNREAD)
    }

    fn most(&self) -> usize {
        4 * self.limit
    }
}

/// The beginning of a response, up to the result.
fn envelope(id: &RequestId) -> Result<Vec<u8>, Disconnected> {
    let mut text = br#"{"jsonrpc":"2.0","id":"#.to_vec();
    serde_json::to_writer(&mut text, id).map_err(|_| Disconnected)?;
    text.extend_from_slice(br#","result":"#);
    Ok(text)
}
