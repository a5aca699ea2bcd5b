//! Fields of `tools/call` that MCP does not define. rmcp drops them, so they travel in `_meta` from the transport to the call.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use rmcp::model::RequestMetaObject;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// The key of `_meta` that keeps them. It never reaches a server.
pub const KEPT: &str = "mcp-sidecar/unknown-fields";
/// The fields that MCP defines, in all of its versions.
const DEFINED: [&str; 6] = ["name", "arguments", "_meta", "task", "inputResponses", "requestState"];

/// The unknown fields of a message, if it is a call.
pub fn of_message(message: &[u8]) -> Map<String, Value> {
    #[derive(Deserialize)]
    struct Call<'a> {
        #[serde(borrow)]
        method: Cow<'a, str>,
        #[serde(borrow)]
        params: BTreeMap<Cow<'a, str>, &'a RawValue>,
    }
    let Ok(Call { method, params }) = serde_json::from_slice(message) else { return Map::new() };
    let unknown = params.into_iter().filter(|(key, _)| method == "tools/call" && is_unknown(key));
    // What serde has accepted as raw JSON is JSON.
    unknown.filter_map(|(key, raw)| Some((key.into_owned(), serde_json::from_str(raw.get()).ok()?))).collect()
}

/// The fields that the transport has kept.
pub fn kept(meta: &RequestMetaObject) -> Arc<Map<String, Value>> {
    let kept = meta.get(KEPT).and_then(Value::as_object);
    let kept = kept.map(|fields| fields.iter().filter(|(key, _)| is_unknown(key)));
    kept.map(|fields| Arc::new(fields.map(|(key, value)| (key.clone(), value.clone())).collect())).unwrap_or_default()
}

fn is_unknown(key: &str) -> bool {
    !DEFINED.contains(&key)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_calls_have_unknown_fields_and_defined_fields_are_known() {
        let message = |method: &str| {
            let params = json!({
                "name": "a", "arguments": { "x": 1 }, "_meta": { "y": 1 }, "task": {}, "inputResponses": {},
                "requestState": "s", "priority": [1], "caf\u{e9}\n": null,
            });
            json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string()
        };
        let expected = json!({ "caf\u{e9}\n": null, "priority": [1] });
        assert_eq!(Value::Object(of_message(message("tools/call").as_bytes())), expected);
        assert!(of_message(message("prompts/get").as_bytes()).is_empty());
        assert!(of_message(b"nonsense").is_empty());
    }

    #[test]
    fn metadata_cannot_replace_a_field_that_is_checked() {
        let mut meta = RequestMetaObject::new();
        meta.insert(KEPT.to_owned(), json!({ "name": "other", "arguments": {}, "_meta": {}, "priority": 1 }));
        assert_eq!(Value::Object(kept(&meta).as_ref().clone()), json!({ "priority": 1 }));
    }
}
