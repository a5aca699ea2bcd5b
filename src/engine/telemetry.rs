//! Exports a span and a log record for each call by OTLP over HTTP, if `telemetry.otlp-endpoint` is set.
//!
//! They contain names, the decision, the outcome and durations, but no arguments, results, messages or URIs. A call never
//! waits: what does not fit into the queue is dropped and counted.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, watch};
use url::Url;

use crate::model::{CallId, CallKind, CallRecord};
use crate::server::transport::net::{is_loopback, ready_tls};
use crate::settings::Settings;

/// Calls that may wait for the export.
const QUEUE: usize = 1_024;
/// Calls in one request.
const BATCH: usize = 128;
/// How long the collector may take.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The key of `_meta` that names the trace of a request.
const TRACEPARENT: &str = "traceparent";

/// Cheap to clone; all clones share the queue.
#[derive(Clone)]
pub struct Telemetry {
    settings: watch::Receiver<Arc<Settings>>,
    /// Created with the first call that is exported.
    queue: Arc<OnceLock<mpsc::Sender<Exported>>>,
    dropped: Arc<AtomicU64>,
}

/// One call.
struct Exported {
    record: CallRecord,
    span: Span,
    error: Option<&'static str>,
}

/// Where a call is in a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    trace: String,
    id: String,
    parent: Option<String>,
    flags: String,
}

impl Span {
    /// The span of a call. The metadata of its caller may name the trace.
    pub fn of(call: &CallId, meta: &Map<String, Value>) -> Self {
        let id = call.0.get(16..32).unwrap_or("0000000000000001").to_owned();
        match meta.get(TRACEPARENT).and_then(Value::as_str).and_then(parse_traceparent) {
            Some((trace, parent, flags)) => Self { trace, id, parent: Some(parent), flags },
            None => Self { trace: call.0.to_string(), id, parent: None, flags: "01".to_owned() },
        }
    }

    /// The metadata for the server, whose own spans become children of this one.
    pub fn child_meta(&self, meta: &Map<String, Value>) -> Map<String, Value> {
        let mut meta = meta.clone();
        let Self { trace, id, parent: _, flags } = self;
        meta.insert(TRACEPARENT.to_owned(), json!(format!("00-{trace}-{id}-{flags}")));
        meta
    }
}

/// Trace, parent and flags of a valid `traceparent`.
fn parse_traceparent(text: &str) -> Option<(String, String, String)> {
    let mut parts = text.split('-');
    let (version, trace, parent, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_hex = |part: &str, length: usize| {
        part.len() == length && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let is_id = |part: &str, length: usize| is_hex(part, length) && part.bytes().any(|byte| byte != b'0');
    let is_valid = is_hex(version, 2) && version != "ff" && is_id(trace, 32) && is_id(parent, 16) && is_hex(flags, 2);
    is_valid.then(|| (trace.to_owned(), parent.to_owned(), flags.to_owned()))
}

impl Telemetry {
    pub fn new(settings: watch::Receiver<Arc<Settings>>) -> Self {
        Self { settings, queue: Arc::default(), dropped: Arc::default() }
    }

    pub fn is_on(&self) -> bool {
        !self.settings.borrow().telemetry.otlp_endpoint.is_empty()
    }

    /// Exports a call that has ended. `error` is the kind of its error.
    pub fn record(&self, record: &CallRecord, span: &Span, error: Option<&'static str>) {
        if !self.is_on() {
            return;
        }
        let queue = self.queue.get_or_init(|| {
            let (sender, receiver) = mpsc::channel(QUEUE);
            // Ends with the last clone, which holds the sender.
            tokio::spawn(export(receiver, self.settings.clone(), self.dropped.clone()));
            sender
        });
        let record = CallRecord { arguments: None, requested_arguments: None, result: None, ..record.clone() };
        if queue.try_send(Exported { record, span: span.clone(), error }).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

async fn export(
    mut queue: mpsc::Receiver<Exported>,
    settings: watch::Receiver<Arc<Settings>>,
    dropped: Arc<AtomicU64>,
) {
    ready_tls();
    let mut calls = Vec::new();
    let mut reported = 0;
    while queue.recv_many(&mut calls, BATCH).await > 0 {
        let endpoint = settings.borrow().telemetry.otlp_endpoint.clone();
        let mut is_lost = false;
        for (path, body) in [("v1/traces", traces(&calls)), ("v1/logs", logs(&calls))] {
            if let Err(why) = send(&endpoint, path, &body).await {
                tracing::debug!(%why, path, "cannot export calls");
                is_lost = true;
            }
        }
        if is_lost {
            dropped.fetch_add(calls.len() as u64, Ordering::Relaxed);
        }
        calls.clear();
        let total = dropped.load(Ordering::Relaxed);
        // Each time that the number doubles, so that a collector that is gone does not fill the log.
        if total > 0 && total >= reported * 2 {
            reported = total;
            tracing::warn!(total, "records of calls were not exported: the collector at telemetry.otlp-endpoint fails");
        }
    }
}

async fn send(endpoint: &str, path: &str, body: &Value) -> Result<(), String> {
    let url = Url::parse(&format!("{}/{path}", endpoint.trim_end_matches('/'))).map_err(|error| error.to_string())?;
    let mut client = reqwest::Client::builder().timeout(TIMEOUT).redirect(reqwest::redirect::Policy::none());
    if url.host_str().is_some_and(is_loopback) {
        client = client.no_proxy();
    }
    if url.scheme() == "http" {
        client = client.tls_certs_only([]);
    }
    let client = client.build().map_err(|error| error.without_url().to_string())?;
    let answer = client.post(url).json(body).send().await.map_err(|error| error.without_url().to_string())?;
    match answer.status().is_success() {
        true => Ok(()),
        false => Err(format!("HTTP {}", answer.status().as_u16())),
    }
}

fn traces(calls: &[Exported]) -> Value {
    let spans: Vec<Value> = calls.iter().map(span).collect();
    json!({ "resourceSpans": [{ "resource": resource(), "scopeSpans": [{ "scope": scope(), "spans": spans }] }] })
}

fn logs(calls: &[Exported]) -> Value {
    let records: Vec<Value> = calls.iter().map(log).collect();
    json!({ "resourceLogs": [{ "resource": resource(), "scopeLogs": [{ "scope": scope(), "logRecords": records }] }] })
}

fn resource() -> Value {
    json!({ "attributes": [text("service.name", "mcp-sidecar"), text("service.version", env!("CARGO_PKG_VERSION"))] })
}

fn scope() -> Value {
    json!({ "name": "mcp-sidecar", "version": env!("CARGO_PKG_VERSION") })
}

fn text(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

fn number(key: &str, value: f64) -> Value {
    json!({ "key": key, "value": { "doubleValue": value } })
}

fn span(call: &Exported) -> Value {
    let (start, end) = times(&call.record);
    let Span { trace, id, parent, flags: _ } = &call.span;
    let status = if call.record.success { json!({ "code": 1 }) } else { json!({ "code": 2 }) };
    let mut span = json!({
        "traceId": trace, "spanId": id, "name": name(&call.record), "kind": 3, "status": status,
        "startTimeUnixNano": start, "endTimeUnixNano": end, "attributes": attributes(call),
    });
    if let (Some(parent), Some(fields)) = (parent, span.as_object_mut()) {
        fields.insert("parentSpanId".to_owned(), json!(parent));
    }
    span
}

fn log(call: &Exported) -> Value {
    let (_, end) = times(&call.record);
    let Span { trace, id, .. } = &call.span;
    let (level, level_name) = if call.record.success { (9, "INFO") } else { (17, "ERROR") };
    json!({
        "timeUnixNano": end, "severityNumber": level, "severityText": level_name, "traceId": trace, "spanId": id,
        "body": { "stringValue": name(&call.record) }, "attributes": attributes(call),
    })
}

/// Start and end in nanoseconds, as OTLP writes them.
fn times(record: &CallRecord) -> (String, String) {
    let start = i128::from(record.time.unix_millis()) * 1_000_000;
    let lasted = ((record.duration_ms + record.waited_ms) * 1e6) as i128;
    (start.to_string(), (start + lasted).to_string())
}

/// The MCP method and what it is about. URIs may contain values, so they are left out.
fn name(record: &CallRecord) -> String {
    let method = method(record.kind);
    match subject(record) {
        Some(subject) => format!("{method} {subject}"),
        None => method.to_owned(),
    }
}

fn method(kind: CallKind) -> &'static str {
    match kind {
        CallKind::Tool => "tools/call",
        CallKind::Resource => "resources/read",
        CallKind::Subscription => "resources/subscribe",
        CallKind::Prompt => "prompts/get",
        CallKind::Completion => "completion/complete",
        CallKind::Hook => "hook",
    }
}

fn subject(record: &CallRecord) -> Option<&str> {
    match record.kind {
        CallKind::Tool | CallKind::Prompt | CallKind::Hook => Some(&record.tool),
        CallKind::Resource | CallKind::Subscription | CallKind::Completion => None,
    }
}

fn attributes(call: &Exported) -> Vec<Value> {
    let record = &call.record;
    let mut attributes = vec![
        text("mcp.method.name", method(record.kind)),
        text("mcp_sidecar.call_id", &record.call_id.0),
        text("mcp_sidecar.server", record.server.as_str()),
        text("mcp_sidecar.requester.kind", &record.requester.kind.to_string()),
        text("mcp_sidecar.requester.name", &record.requester.name),
        text("mcp_sidecar.decision", &record.decision),
        text("mcp_sidecar.outcome", if record.success { "success" } else { "error" }),
        number("mcp_sidecar.duration_ms", record.duration_ms),
        number("mcp_sidecar.waited_ms", record.waited_ms),
    ];
    attributes.extend(subject(record).map(|subject| text("gen_ai.tool.name", subject)));
    attributes.extend(call.error.map(|kind| text("error.type", kind)));
    attributes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caller_names_the_trace_and_the_server_gets_our_span() {
        let call = CallId("0123456789abcdef0123456789abcdee".into());
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        let meta = json!({ "traceparent": format!("00-{trace}-00f067aa0ba902b7-00"), "other": 1 });
        let span = Span::of(&call, meta.as_object().unwrap());
        assert_eq!((span.trace.as_str(), span.parent.as_deref()), (trace, Some("00f067aa0ba902b7")));
        let child = span.child_meta(meta.as_object().unwrap());
        assert_eq!(child["traceparent"], format!("00-{trace}-0123456789abcdee-00"));
        assert_eq!(child["other"], 1);
        for bad in ["", "00-x-y-00", "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"] {
            let span = Span::of(&call, json!({ "traceparent": bad }).as_object().unwrap());
            assert_eq!((span.trace.as_str(), span.parent), (&*call.0, None), "{bad}");
        }
    }
}
