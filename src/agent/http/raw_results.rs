//! Sends results as raw JSON through the HTTP transport of rmcp, whose types would drop unknown fields.
//!
//! A handler returns an empty result with the raw JSON as a text in its `_meta`. Here, the text replaces the result in the
//! response. Only handlers create such results, and servers cannot: all of their results travel inside the text.

use std::future::ready;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::middleware::Next;
use axum::response::Response;
use futures::TryStreamExt;
use rmcp::model::ErrorData;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

const KEY: &str = "mcp-sidecar/raw-result";
/// The first version whose streams may begin with an event without data. Older clients try to parse it.
const FIRST_WITH_PRIMING: &str = "2025-11-25";

/// The stub with the raw result in its `_meta`.
pub fn carry<T: Serialize + DeserializeOwned>(stub: T, raw: &RawValue) -> Result<T, ErrorData> {
    let packed = serde_json::to_value(stub).and_then(|mut stub| {
        if let Some(fields) = stub.as_object_mut() {
            fields.insert("_meta".to_owned(), json!({ KEY: raw.get() }));
        }
        serde_json::from_value(stub)
    });
    packed.map_err(|error| ErrorData::internal_error(format!("cannot send the result: {error}"), None))
}

/// Unpacks the raw results of a response, and drops events that the client cannot parse.
pub async fn unpack(request: Request, next: Next) -> Response {
    let version = request.headers().get("mcp-protocol-version").and_then(|version| version.to_str().ok());
    let knows_priming = version.is_some_and(|version| version >= FIRST_WITH_PRIMING);
    let (mut parts, body) = next.run(request).await.into_parts();
    let has_messages = |kind: &str| kind.starts_with("text/event-stream") || kind.starts_with("application/json");
    if !parts.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).is_some_and(has_messages) {
        return Response::from_parts(parts, body);
    }
    parts.headers.remove(CONTENT_LENGTH);
    // rmcp sends each event, and each JSON response, as one frame.
    let frames = body.into_data_stream().try_filter_map(move |frame| ready(Ok(unpack_frame(frame, knows_priming))));
    Response::from_parts(parts, Body::from_stream(frames))
}

fn unpack_frame(frame: Bytes, knows_priming: bool) -> Option<Bytes> {
    let Ok(text) = std::str::from_utf8(&frame) else { return Some(frame) };
    if text.starts_with('{') {
        return Some(raw_message(text).map_or_else(|| frame.clone(), Bytes::from));
    }
    let mut event = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        match line.strip_prefix("data:").map(str::trim) {
            Some("") if !knows_priming => return None,
            data => match data.and_then(raw_message) {
                // Raw line breaks in JSON are only whitespace, but would end the line.
                Some(message) => event.push_str(&format!("data: {}\n", message.replace(['\n', '\r'], " "))),
                None => event.push_str(line),
            },
        }
    }
    Some(event.into())
}

/// The message with the raw result that it carries, if it does.
fn raw_message(text: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Message<'a> {
        #[serde(borrow)]
        id: &'a RawValue,
        result: Stub,
    }
    #[derive(Deserialize)]
    struct Stub {
        #[serde(rename = "_meta")]
        meta: Meta,
    }
    #[derive(Deserialize)]
    struct Meta {
        #[serde(rename = "mcp-sidecar/raw-result")]
        raw: String,
    }
    memchr::memmem::find(text.as_bytes(), KEY.as_bytes())?;
    let Message { id, result: Stub { meta: Meta { raw } } } = serde_json::from_str(text).ok()?;
    Some(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{raw}}}"#))
}

#[cfg(test)]
mod tests {
    use rmcp::model::CallToolResult;

    use super::*;

    #[test]
    fn a_raw_result_survives_the_types_of_rmcp() {
        let raw = RawValue::from_string("{\"content\": [],\n \"own\": 1.50}".to_owned()).unwrap();
        let result = carry(CallToolResult::default(), &raw).unwrap();
        let message = json!({ "jsonrpc": "2.0", "id": "a", "result": result }).to_string();
        let expected = r#"{"jsonrpc":"2.0","id":"a","result":{"content": [],  "own": 1.50}}"#;
        let event = unpack_frame(format!("id: 1\ndata: {message}\n\n").into(), false).unwrap();
        assert_eq!(event, format!("id: 1\ndata: {expected}\n\n"));
        assert_eq!(unpack_frame(message.into(), false).unwrap(), expected.replace(",  ", ",\n "));
    }

    #[test]
    fn only_events_without_data_are_dropped_for_older_clients() {
        let priming = Bytes::from("data: \nid: 0\nretry: 3000\n\n");
        assert_eq!(unpack_frame(priming.clone(), false), None);
        assert_eq!(unpack_frame(priming.clone(), true), Some(priming));
        for other in [":\n\n", "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n"] {
            assert_eq!(unpack_frame(Bytes::from(other), false), Some(Bytes::from(other)));
        }
    }
}
