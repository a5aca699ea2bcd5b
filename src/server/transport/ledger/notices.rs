//! Handles notifications of a server in order, without waiting.

use std::sync::atomic::{AtomicBool, Ordering};

use rmcp::model::{JsonRpcMessage, NumberOrString, RequestId, ServerJsonRpcMessage, ServerNotification};
use serde_json::Value;
use tokio::sync::mpsc::error::TrySendError;

use super::Ledger;
use crate::model::{CallId, UnknownNotification};
use crate::server::transport::{ListKind, Progress, ServerNotice};
use crate::text::{holds_secret, mask, mask_value, one_line, visible};

/// Longer log messages are truncated.
const MAX_LOG_CHARS: usize = 16 << 10;
/// Unknown methods to remember, so that each is logged once.
const MAX_UNKNOWN_METHODS: usize = 64;

/// The first words of methods that MCP defines, with or without `notifications/` before them. An agent would take such a
/// notification for one of ours, or it names something that has another name or no meaning there.
const RESERVED: [&str; 18] = [
    "cancelled",
    "completion",
    "discover",
    "elicitation",
    "initialize",
    "initialized",
    "logging",
    "message",
    "messages",
    "ping",
    "progress",
    "prompts",
    "resources",
    "roots",
    "sampling",
    "subscriptions",
    "tasks",
    "tools",
];
/// Longer names are not names.
const MAX_METHOD_BYTES: usize = 128;

/// Whether a notification that we do not know must not be passed on.
fn is_reserved(method: &str) -> bool {
    let name = method.trim_start_matches("notifications/");
    let first = name.split('/').next().unwrap_or_default().to_ascii_lowercase();
    let is_name =
        !name.is_empty() && method.len() <= MAX_METHOD_BYTES && method.bytes().all(|byte| byte.is_ascii_graphic());
    !is_name || holds_secret(method) || RESERVED.contains(&first.as_str())
}

impl Ledger {
    /// Handles a notification. Returns those that rmcp needs.
    pub(super) fn notice(
        &self,
        method: &str,
        params: Option<Value>,
        stream: Option<&RequestId>,
    ) -> Option<ServerJsonRpcMessage> {
        let field = |name: &str| params.as_ref().and_then(|params| params.get(name));
        match method {
            "notifications/progress" => self.progress(params.as_ref()?),
            "notifications/message" => {
                // A log message does not say which call it belongs to.
                if let Some(call) = self.state().only_call() {
                    call.record_sign();
                }
                let level = field("level").and_then(Value::as_str).unwrap_or("info");
                let logger =
                    field("logger").and_then(Value::as_str).map(|logger| format!("{logger}: ")).unwrap_or_default();
                let data = match field("data").or_else(|| field("message")) {
                    Some(Value::String(text)) => text.clone(),
                    Some(data) => {
                        data.get("message").and_then(Value::as_str).map_or_else(|| data.to_string(), str::to_owned)
                    }
                    None => String::new(),
                };
                let text = visible(&mask(&format!("{logger}{data}")), MAX_LOG_CHARS);
                self.notify(ServerNotice::Log { level: one_line(level, 20), text, calls: self.calls_on(stream) });
            }
            "notifications/tools/list_changed" => self.notify(ServerNotice::ListChanged(ListKind::Tools)),
            "notifications/resources/list_changed" => self.notify(ServerNotice::ListChanged(ListKind::Resources)),
            "notifications/prompts/list_changed" => self.notify(ServerNotice::ListChanged(ListKind::Prompts)),
            "notifications/resources/updated" => {
                let uri = field("uri").and_then(Value::as_str)?;
                self.notify(ServerNotice::ResourceUpdated(uri.to_owned()));
            }
            "notifications/cancelled" | "notifications/subscriptions/acknowledged" => {
                let message = serde_json::json!({ "method": method, "params": params });
                let notification = serde_json::from_value::<ServerNotification>(message).ok()?;
                return Some(JsonRpcMessage::notification(notification));
            }
            _ => self.unknown(method, params.as_ref(), stream),
        }
        None
    }

    /// Passes on a notification that we do not know. It counts like a log message.
    fn unknown(&self, method: &str, params: Option<&Value>, stream: Option<&RequestId>) {
        let is_short = || params.is_none_or(|params| params.to_string().len() <= MAX_LOG_CHARS);
        let ignored = match method {
            _ if is_reserved(method) => Some("MCP gives it another meaning"),
            _ if !is_short() => Some("it is too long"),
            _ => None,
        };
        if let Some(reason) = ignored {
            let mut state = self.state();
            if state.unknown.len() < MAX_UNKNOWN_METHODS && state.unknown.insert(one_line(method, 80)) {
                let method = one_line(&mask(method), 80);
                tracing::debug!(server = %self.0.server, method, reason, "ignored an unknown notification");
            }
            return;
        }
        let notification = UnknownNotification { method: method.to_owned(), params: params.map(mask_value) };
        self.notify(ServerNotice::Unknown { notification, calls: self.calls_on(stream) });
    }

    /// The calls that a message may be about. The stream of a request carries only messages about it.
    fn calls_on(&self, stream: Option<&RequestId>) -> Vec<CallId> {
        match stream {
            Some(request) => self.call_of(request).into_iter().collect(),
            None => self.open_calls(),
        }
    }

    fn progress(&self, params: &Value) {
        let Some(token) = params.get("progressToken") else { return };
        let Ok(token) = serde_json::from_value::<NumberOrString>(token.clone()) else { return };
        let state = self.state();
        let Some(slot) = state.slot_of(&token) else { return };
        slot.record_progress(Progress {
            progress: params.get("progress").and_then(Value::as_f64).unwrap_or_default(),
            total: params.get("total").and_then(Value::as_f64),
            message: params.get("message").and_then(Value::as_str).map(|text| visible(&mask(text), MAX_LOG_CHARS)),
            is_waiting: false,
        });
    }

    /// Sends a notice without waiting, so that reading never blocks.
    pub(in crate::server) fn notify(&self, notice: ServerNotice) {
        let Some(notices) = self.0.notices.get() else { return };
        if matches!(notice, ServerNotice::Log { .. }) {
            let dropped = self.0.dropped_logs.swap(0, Ordering::Relaxed);
            if dropped > 0 {
                let text = format!("dropped {dropped} log messages: they arrived too fast");
                let notice = ServerNotice::Log { level: "warning".to_owned(), text, calls: Vec::new() };
                if notices.try_send(notice).is_err() {
                    self.0.dropped_logs.fetch_add(dropped, Ordering::Relaxed);
                }
            }
        }
        let Err(TrySendError::Full(notice)) = notices.try_send(notice) else { return };
        match notice {
            // A list change is never lost: one notice stands for all pending changes.
            ServerNotice::ListChanged(listed) => {
                let ledger = self.clone();
                let sender = notices.clone();
                if !ledger.pending_change(listed).swap(true, Ordering::AcqRel) {
                    tokio::spawn(async move {
                        let permit = sender.reserve().await;
                        ledger.pending_change(listed).store(false, Ordering::Release);
                        if let Ok(permit) = permit {
                            permit.send(ServerNotice::ListChanged(listed));
                        }
                    });
                }
            }
            ServerNotice::Log { .. } => {
                self.0.dropped_logs.fetch_add(1, Ordering::Relaxed);
            }
            ServerNotice::ResourceUpdated(_)
            | ServerNotice::Unknown { .. }
            | ServerNotice::Warning(_)
            | ServerNotice::Skipped { .. } => {
                tracing::debug!(server = %self.0.server, "dropped a notice: the queue is full");
            }
        }
    }

    fn pending_change(&self, listed: ListKind) -> &AtomicBool {
        let [tools, resources, prompts] = &self.0.pending_changes;
        match listed {
            ListKind::Tools => tools,
            ListKind::Resources => resources,
            ListKind::Prompts => prompts,
        }
    }
}
