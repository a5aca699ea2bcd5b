//! Passes the tasks of 2025-11-25 through the HTTP transport of rmcp, which drops `task` of a call and answers requests
//! about tasks only for the extension.

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::CONTENT_LENGTH;
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use rmcp::model::ProtocolVersion;
use serde_json::{Value, json};

use crate::agent::tasks::{METHODS, PREFIX, REQUESTED};

/// Rewrites requests about tasks. `limit` is the longest message.
pub async fn rewrite(State(limit): State<usize>, request: Request, next: Next) -> Response {
    let version = request.headers().get("mcp-protocol-version");
    if request.method() != Method::POST
        || version.is_none_or(|version| version != ProtocolVersion::V_2025_11_25.as_str())
    {
        return next.run(request).await;
    }
    let (mut parts, body) = request.into_parts();
    let Ok(message) = to_bytes(body, limit).await else {
        return (StatusCode::PAYLOAD_TOO_LARGE, format!("message longer than {limit} bytes\n")).into_response();
    };
    let body = match rewritten(&message) {
        Some(rewritten) => {
            parts.headers.remove(CONTENT_LENGTH);
            Body::from(rewritten)
        }
        None => Body::from(message),
    };
    next.run(Request::from_parts(parts, body)).await
}

/// The message as rmcp passes it on; `None` if it is not about a task.
fn rewritten(message: &[u8]) -> Option<String> {
    memchr::memmem::find(message, b"\"task")?;
    let mut message: Value = serde_json::from_slice(message).ok()?;
    let method = message.get("method")?.as_str()?;
    if METHODS.contains(&method) {
        let method = format!("{PREFIX}{method}");
        *message.get_mut("method")? = json!(method);
    } else if method == "tools/call" {
        let params = message.get_mut("params")?.as_object_mut()?;
        let task = params.remove("task")?;
        let meta = params.entry("_meta").or_insert_with(|| json!({}));
        meta.as_object_mut()?.insert(REQUESTED.to_owned(), task);
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
            rewritten(message.to_string().as_bytes()).map(|text| serde_json::from_str::<Value>(&text).unwrap());
        assert_eq!(rewritten, expected, "{message}");
    }

    #[test]
    fn only_what_is_about_a_task_is_rewritten() {
        let call = |params: Value| json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        check(
            call(json!({ "name": "a", "arguments": { "task": 1 }, "task": { "ttl": 5 }, "_meta": { "x": 1 } })),
            Some(call(json!({
                "name": "a", "arguments": { "task": 1 }, "_meta": { "x": 1, "mcp-sidecar/task": { "ttl": 5 } }
            }))),
        );
        check(call(json!({ "name": "a", "arguments": { "task": 1 } })), None);
        check(call(json!({ "name": "a", "task": {}, "_meta": 1 })), None);
        let get = |method: &str| json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": { "taskId": "t" } });
        check(get("tasks/get"), Some(get("mcp-sidecar/tasks/get")));
        check(get("tasks/other"), None);
        assert_eq!(rewritten(b"\"task nonsense"), None);
    }
}
