//! The transport to an agent: one JSON message per line, with limits on everything.
//!
//! A result is sent as the raw JSON of its server. Invalid messages, duplicate ids and requests over the limit are
//! answered here. No request is read from an agent that is behind with reading its responses.

use std::collections::VecDeque;
use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorCode, ErrorData, GetMeta, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use serde::Deserialize;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::byte_budget::OverBudget;
use super::call_message;
use super::direct_calls::DirectCalls;
use super::outbox::{Disconnected, FLUSH_TIMEOUT, Outbox};
use super::pending_responses::{Closed, PendingResponses, Rejection};
use super::tasks;
use crate::model::json_memory::{each_item, memory_of};
use crate::server::heavy;
use crate::server::transport::frame::{Frame, Frames};
use crate::server::transport::line_writer::{LineWriter, Writer};
use crate::server::transport::repair::{self, Outline};
use crate::text::fix_surrogates;

type Reader = Box<dyn AsyncRead + Send + Unpin>;

pub struct LineTransport {
    read: Reader,
    frames: Frames,
    ready: VecDeque<ClientJsonRpcMessage>,
    pending: PendingResponses,
    outbox: Outbox,
    writer: LineWriter,
    limit: usize,
    /// The name that the agent reports.
    agent: Option<String>,
    rejected: VecDeque<RejectedCall>,
    records: mpsc::Sender<RejectedCall>,
    /// Cancelled when the agent has disconnected.
    gone: CancellationToken,
    direct: Arc<DirectCalls>,
    /// Whether the agent has sent its first request: `initialize`, or one of 2026-07-28.
    has_begun: bool,
}

/// How many messages of a batch are read.
const MAX_BATCH: usize = 1_000;

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
        gone: CancellationToken,
        direct: Arc<DirectCalls>,
    ) -> Self {
        let (outbox, writer) = Outbox::new(write, pending.clone(), limit);
        let (ready, rejected) = Default::default();
        let frames = Frames::new(limit);
        let (agent, has_begun) = Default::default();
        Self { read, frames, ready, pending, outbox, writer, limit, agent, rejected, records, gone, direct, has_begun }
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
            let (outbox, read, room) = (&self.outbox, &mut self.read, self.frames.room());
            // `read_buf` is safe to cancel: no bytes are lost.
            let next = async {
                outbox.has_room().await;
                read.read_buf(room).await
            };
            let length = tokio::select! {
                length = next => length,
                () = outbox.disconnected() => return None,
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
                Frame::Line(line) => {
                    let line = self.frames.line(line);
                    let pending = &self.pending;
                    let parsed = heavy(line.len(), || {
                        let bytes = memory_of(line);
                        // Before it is parsed, because that is what takes the memory.
                        match pending.fits(bytes) {
                            Ok(()) => parse_line(line, bytes),
                            Err(error) => vec![(invalid(line, line, over_budget(&error)), bytes)],
                        }
                    });
                    for (parsed, bytes) in parsed {
                        self.handle(parsed, bytes);
                    }
                }
                // Its id may be at the end, so wait for that.
                Frame::TooLong(_) => {}
                Frame::TooLongEnded(flood) => {
                    let limit = self.limit;
                    let text = format!("message longer than {limit} bytes");
                    self.handle(invalid(&flood.head, &flood.tail, ErrorData::invalid_request(text, None)), 0);
                }
            }
        }
    }

    fn handle(&mut self, parsed: Parsed, bytes: usize) {
        match parsed {
            Parsed::Message(message) => self.admit(*message, bytes),
            Parsed::Nothing => {}
            Parsed::Bad { id, error, tool } => {
                if let Some(tool) = tool {
                    let agent = self.agent.clone();
                    self.rejected.push_back(RejectedCall {
                        agent,
                        tool,
                        reason: "invalid message",
                        error: error.clone(),
                    });
                }
                self.reject(id, error);
            }
        }
    }

    fn admit(&mut self, message: ClientJsonRpcMessage, bytes: usize) {
        match &message {
            JsonRpcMessage::Request(request) => {
                if let ClientRequest::InitializeRequest(initialize) = &request.request {
                    self.agent = Some(initialize.params.client_info.name.clone());
                    self.has_begun = true;
                }
                let is_probe = matches!(request.request, ClientRequest::DiscoverRequest(_));
                self.has_begun |= request.request.get_meta().protocol_version().is_some() && !is_probe;
                if let (false, ClientRequest::CallToolRequest(call)) = (self.has_begun, &request.request) {
                    // rmcp refuses it.
                    let error = ErrorData::invalid_request("a call before `initialize`", None);
                    let (tool, reason) = (call.params.name.to_string(), "not initialized");
                    self.rejected.push_back(RejectedCall { agent: None, tool, reason, error });
                }
                if let Err(rejection) = self.pending.begin(&request.id, bytes) {
                    let id = request.id.clone();
                    let error = rejection_error(&rejection, &id);
                    if let ClientRequest::CallToolRequest(call) = &request.request {
                        let (agent, tool) = (self.agent.clone(), call.params.name.to_string());
                        let reason = match &rejection {
                            Rejection::Full(_) => "limits.agent-calls",
                            Rejection::Duplicate => "id in use",
                            Rejection::Memory(error) => error.setting,
                        };
                        self.rejected.push_back(RejectedCall { agent, tool, reason, error: error.clone() });
                    }
                    return self.reject(Some(id), error);
                }
            }
            // They would end the session.
            _ if !self.has_begun => return,
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                    && let Some(Closed { cancel: Some(cancel), .. }) = self.pending.take(id)
                {
                    cancel.cancel();
                }
            }
            _ => {}
        }
        self.ready.extend(self.direct.start(message, &self.outbox, &self.pending));
    }

    fn reject(&mut self, id: Option<RequestId>, error: ErrorData) {
        tracing::debug!(code = error.code.0, message = %error.message, "rejected a message of an agent");
        self.outbox.reject(id, error).ok();
    }
}

impl Transport<RoleServer> for LineTransport {
    type Error = Disconnected;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Disconnected>> + Send + 'static {
        std::future::ready(self.outbox.put(&message))
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        let message = self.next().await;
        if message.is_none() {
            // rmcp waits for the running calls before it ends the session.
            self.gone.cancel();
        }
        message
    }

    async fn close(&mut self) -> Result<(), Disconnected> {
        if !self.outbox.is_disconnected() {
            self.writer.close(FLUSH_TIMEOUT).await;
        }
        Ok(())
    }
}

enum Parsed {
    Message(Box<ClientJsonRpcMessage>),
    Nothing,
    Bad {
        id: Option<RequestId>,
        error: ErrorData,
        /// The tool, if it is a call.
        tool: Option<String>,
    },
}

/// The messages of a line, and the memory that each takes. Before 2025-06-18, a line may be a batch.
fn parse_line(line: &[u8], bytes: usize) -> Vec<(Parsed, usize)> {
    let line = repair::trim(line);
    if !line.starts_with(b"[") {
        return vec![(parse(line), bytes)];
    }
    let (mut parsed, mut is_cut) = (Vec::new(), false);
    let items = std::str::from_utf8(line).map(|text| {
        each_item(text, |item| match item.get().as_bytes() {
            item if parsed.len() < MAX_BATCH => parsed.push((parse(item), memory_of(item))),
            _ => is_cut = true,
        })
    });
    let problem = match items {
        Ok(Ok(())) if parsed.is_empty() => "an empty batch".to_owned(),
        Ok(Ok(())) if is_cut => format!("a batch may have at most {MAX_BATCH} messages; the others were ignored"),
        Ok(Ok(())) => return parsed,
        Ok(Err(error)) => return vec![(invalid(line, line, invalid_json(&error)), bytes)],
        Err(_) => return vec![(invalid(line, line, ErrorData::parse_error("invalid UTF-8", None)), bytes)],
    };
    parsed.push((Parsed::Bad { id: None, error: ErrorData::invalid_request(problem, None), tool: None }, 0));
    parsed
}

fn parse(line: &[u8]) -> Parsed {
    if line.is_empty() {
        return Parsed::Nothing;
    }
    if let Some(call) = call_message::parse(line) {
        return Parsed::Message(Box::new(call));
    }
    match serde_json::from_slice::<ClientJsonRpcMessage>(line) {
        Ok(mut message) => {
            tasks::keep(line, &mut message);
            Parsed::Message(Box::new(message))
        }
        Err(_) => match serde_json::from_slice::<Value>(line) {
            Ok(value) => {
                let id = value.get("id").and_then(|id| serde_json::from_value(id.clone()).ok());
                let error = ErrorData::invalid_request("not a JSON-RPC 2.0 message", None);
                Parsed::Bad { id, error, tool: called_tool(line) }
            }
            Err(error) => invalid(line, line, invalid_json(&error)),
        },
    }
}

fn invalid_json(error: &serde_json::Error) -> ErrorData {
    ErrorData::parse_error(format!("invalid JSON at column {}", error.column()), None)
}

/// The error for a message that cannot be parsed, with its id if possible. A response becomes a failed response.
fn invalid(head: &[u8], tail: &[u8], error: ErrorData) -> Parsed {
    match repair::outline(head, tail) {
        Some(Outline { id, is_request: false }) => {
            Parsed::Message(Box::new(ClientJsonRpcMessage::error(error, Some(id))))
        }
        outline => Parsed::Bad { id: outline.map(|outline| outline.id), error, tool: called_tool(head) },
    }
}

/// The tool that an invalid message calls, as far as it can be read, so that the call is recorded.
fn called_tool(message: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Call {
        method: String,
        #[serde(default)]
        params: Option<Params>,
    }
    #[derive(Deserialize)]
    struct Params {
        name: Option<String>,
    }
    memchr::memmem::find(message, b"\"tools/call\"")?;
    let text = String::from_utf8_lossy(message);
    let name = match serde_json::from_str::<Call>(&fix_surrogates(&text)) {
        Ok(call) if call.method != "tools/call" => return None,
        Ok(call) => call.params.and_then(|params| params.name),
        Err(_) => None,
    };
    Some(name.unwrap_or_else(|| "?".to_owned()))
}

fn rejection_error(rejection: &Rejection, id: &RequestId) -> ErrorData {
    match rejection {
        Rejection::Duplicate => {
            ErrorData::invalid_request(format!("a request with the id {id} is still running"), None)
        }
        Rejection::Full(limit) => {
            let text = format!("too many requests: {limit} are already running");
            ErrorData::new(ErrorCode(-32_000), text, None)
        }
        Rejection::Memory(error) => over_budget(error),
    }
}

pub fn over_budget(error: &OverBudget) -> ErrorData {
    ErrorData::new(ErrorCode(-32_000), error.to_string(), None)
}
