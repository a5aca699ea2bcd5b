//! Calls as the JSON of OTLP.

use serde_json::{Value, json};

use super::{Exported, Span};
use crate::model::{CallKind, CallRecord};

pub fn traces(calls: &[Exported]) -> Value {
    let spans: Vec<Value> = calls.iter().map(span).collect();
    json!({ "resourceSpans": [{ "resource": resource(), "scopeSpans": [{ "scope": scope(), "spans": spans }] }] })
}

pub fn logs(calls: &[Exported]) -> Value {
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
