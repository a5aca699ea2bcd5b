//! Passes the tasks of 2025-11-25 and unknown fields of calls through the HTTP transport of rmcp, which drops `task` and
//! unknown fields of a call, and answers requests about tasks only for the extension.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::CONTENT_LENGTH;
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use rmcp::model::ProtocolVersion;
use serde_json::{Value, json};

use crate::agent::byte_budget::ByteBudget;
use crate::agent::tasks::{METHODS, PREFIX, REQUESTED};
use crate::agent::unknown_fields;
use crate::model::json_memory::memory_of;
use crate::server::heavy;

/// Rewrites calls and requests about tasks. Refuses messages longer than `limit`, and those that would take more memory than
/// the budget has left, before anything parses them.
pub async fn rewrite(
    State((limit, budget)): State<(usize, Arc<ByteBudget>)>,
    request: Request,
    next: Next,
) -> Response {
    if request.method() != Method::POST {
        return next.run(request).await;
    }
    let version = request.headers().get("mcp-protocol-version");
    let has_tasks = version.is_some_and(|version| version == ProtocolVersion::V_2025_11_25.as_str());
    let (mut parts, body) = request.into_parts();
    let Ok(message) = to_bytes(body, limit).await else {
        return (StatusCode::PAYLOAD_TOO_LARGE, format!("message longer than {limit} bytes\n")).into_response();
    };
    if let Err(over) = heavy(message.len(), || budget.fits(memory_of(&message))) {
        return (StatusCode::PAYLOAD_TOO_LARGE, format!("{over}\n")).into_response();
    }
    let body = match rewritten(&message, has_tasks) {
        Some(rewritten) => {
            parts.headers.remove(CONTENT_LENGTH);
            Body::from(rewritten)
        }
        None => Body::from(message),
    };
    next.run(Request::from_parts(parts, body)).await
}

/// The message as rmcp passes it on; `None` if it does that anyway.
fn rewritten(message: &[u8], has_tasks: bool) -> Option<String> {
    let unknown = unknown_fields::of_message(message);
    let has_task = has_tasks && memchr::memmem::find(message, b"\"task").is_some();
    if unknown.is_empty() && !has_task {
        return None;
    }
    let mut message: Value = serde_json::from_slice(message).ok()?;
    let method = message.get("method")?.as_str()?;
    if has_tasks && METHODS.contains(&method) {
        let method = format!("{PREFIX}{method}");
        *message.get_mut("method")? = json!(method);
    } else if method == "tools/call" {
        let params = message.get_mut("params")?.as_object_mut()?;
        let task = if has_tasks { params.remove("task") } else { None };
        if task.is_none() && unknown.is_empty() {
            return None;
        }
        let meta = params.entry("_meta").or_insert_with(|| json!({})).as_object_mut()?;
        meta.extend(task.map(|task| (REQUESTED.to_owned(), task)));
        if !unknown.is_empty() {
            meta.insert(unknown_fields::KEPT.to_owned(), Value::Object(unknown));
        }
    } else {
        return None;
    }
    Some(message.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(message: Value, expected: Option<Value>) {
        let rewritten =
            rewritten(message.to_string().as_bytes(), true).map(|text| serde_json::from_str::<Value>(&text).unwrap());
        assert_eq!(rewritten, expected, "{message}");
    }

    #[test]
    fn only_tasks_and_unknown_fields_are_rewritten() {
        let call = |params: Value| json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        check(
            call(json!({ "name": "a", "arguments": { "task": 1 }, "task": { "ttl": 5 }, "_meta": { "x": 1 } })),
            Some(call(json!({
                "name": "a", "arguments": { "task": 1 }, "_meta": { "x": 1, "mcp-sidecar/task": { "ttl": 5 } }
            }))),
        );
        check(
            call(json!({ "name": "a", "priority": 3 })),
            Some(call(json!({
                "name": "a", "priority": 3, "_meta": { "mcp-sidecar/unknown-fields": { "priority": 3 } }
            }))),
        );
        check(call(json!({ "name": "a", "arguments": { "task": 1 } })), None);
        check(call(json!({ "name": "a", "task": {}, "_meta": 1 })), None);
        let get = |method: &str| json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": { "taskId": "t" } });
        check(get("tasks/get"), Some(get("mcp-sidecar/tasks/get")));
        check(get("tasks/other"), None);
        assert_eq!(rewritten(b"\"task nonsense", true), None);
        assert_eq!(rewritten(get("tasks/get").to_string().as_bytes(), false), None);
    }
}
