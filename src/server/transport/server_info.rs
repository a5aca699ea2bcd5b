//! Parses the handshake result leniently: missing or invalid fields get defaults or are ignored. Only [`peer_info`]
//! reads the instructions.

use std::sync::Arc;

use rmcp::model::{DiscoverResult, InitializeResult, ProtocolVersion, ServerCapabilities};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::Era;
use crate::model::json_memory::{KEY_BYTES, tree_bytes};
use crate::model::{PeerInfo, Scanner};

/// How much memory the values of a handshake result may take in addition to their text.
const MAX_TREE_BYTES: usize = 1 << 20;

/// The version of a server that does not send one: the first MCP revision.
const DEFAULT_VERSION: &str = "2024-11-05";
/// Where a server of the newer era describes itself.
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

pub fn initialize_result(raw: &RawValue) -> InitializeResult {
    let sent = object(raw);
    if let Ok(mut result) = InitializeResult::deserialize(&sent) {
        result.instructions = None;
        return result;
    }
    // What is not a text is not a version. It is refused like a version that is not known.
    let version = sent.get("protocolVersion").map_or(DEFAULT_VERSION.to_owned(), |version| match version {
        Value::String(version) => version.clone(),
        other => other.to_string(),
    });
    let repaired = json!({
        "protocolVersion": version,
        "capabilities": {},
        "serverInfo": { "name": "", "version": "" },
    });
    let mut result = serde_json::from_value::<InitializeResult>(repaired).unwrap_or_else(|_| {
        InitializeResult::new(ServerCapabilities::default()).with_protocol_version(ProtocolVersion::V_2024_11_05)
    });
    result.capabilities = capabilities(&sent);
    result
}

pub fn discover_result(raw: &RawValue) -> DiscoverResult {
    let sent = object(raw);
    if let Ok(mut result) = DiscoverResult::deserialize(&sent) {
        result.instructions = None;
        return result;
    }
    let versions = sent.get("supportedVersions").and_then(Value::as_array).map_or_else(Vec::new, |versions| {
        versions.iter().filter_map(|version| serde_json::from_value(version.clone()).ok()).collect()
    });
    let versions = if versions.is_empty() { vec![ProtocolVersion::V_2026_07_28] } else { versions };
    DiscoverResult::new(versions, capabilities(&sent))
}

/// The server's description of itself.
pub fn peer_info(raw: &RawValue, era: Era, version: &ProtocolVersion) -> PeerInfo {
    let sent = object(raw);
    let info = match era {
        Era::Initialize => sent.get("serverInfo"),
        Era::Discover => sent.get("_meta").and_then(|meta| meta.get(SERVER_INFO)).or_else(|| sent.get("serverInfo")),
    };
    let field = |key: &str| info.and_then(|info| info.get(key)).and_then(Value::as_str).unwrap_or_default().to_owned();
    let capabilities = match sent.get("capabilities") {
        Some(Value::Object(capabilities)) => {
            capabilities.iter().filter(|(_, value)| declared(value)).map(|(name, _)| name.clone()).collect()
        }
        // A server without `capabilities` is expected to have tools, and nothing else.
        _ => vec!["tools".to_owned()],
    };
    PeerInfo {
        name: field("name"),
        version: field("version"),
        protocol_version: version.to_string(),
        instructions: text(&sent, "instructions").map(str::to_owned),
        capabilities,
        raw: Arc::new(Value::Object(sent)),
    }
}

/// `"tools": false` and `"tools": null` mean that there are none.
fn declared(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false))
}

/// The valid capabilities, for rmcp; the others are only shown.
fn capabilities(sent: &Map<String, Value>) -> ServerCapabilities {
    let Some(Value::Object(given)) = sent.get("capabilities") else { return ServerCapabilities::default() };
    let readable = |value: &Value| serde_json::from_value::<ServerCapabilities>(value.clone()).is_ok();
    let kept: Map<String, Value> = given
        .iter()
        .filter(|(name, value)| readable(&json!({ *name: value })))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    serde_json::from_value(Value::Object(kept)).unwrap_or_default()
}

/// The fields of a handshake result, without those that would take too much memory.
fn object(raw: &RawValue) -> Map<String, Value> {
    fields(raw.get(), 2, &mut { MAX_TREE_BYTES })
}

/// The fields of an object that fit. A field that does not fit is read in the same way, down to some `levels`.
fn fields(object: &str, levels: usize, left: &mut usize) -> Map<String, Value> {
    let mut found = Map::new();
    Scanner::new(object).object(|scanner, key| {
        let value = scanner.value()?;
        let text = value.get();
        let bytes = KEY_BYTES + key.len() + tree_bytes(text.as_bytes());
        let parsed = match left.checked_sub(bytes) {
            Some(rest) => {
                *left = rest;
                serde_json::from_str(text).ok()
            }
            None if levels > 0 && text.starts_with('{') && *left > KEY_BYTES + key.len() => {
                *left -= KEY_BYTES + key.len();
                Some(Value::Object(fields(text, levels - 1, left)))
            }
            None => None,
        };
        if let (Ok(key), Some(parsed)) = (serde_json::from_str(&format!("\"{key}\"")), parsed) {
            found.insert(key, parsed);
        }
        Some(value)
    });
    found
}

fn text<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    object.get(key)?.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn missing_fields_of_the_handshake_result_get_defaults() {
        for sent in [r#"{}"#, r#"null"#, r#"{"capabilities":{"tools":true}}"#] {
            assert_eq!(initialize_result(&raw(sent)).protocol_version, ProtocolVersion::V_2024_11_05, "{sent}");
        }
        for (sent, version) in [(r#"{"protocolVersion":7}"#, "7"), (r#"{"protocolVersion":null}"#, "null")] {
            assert_eq!(initialize_result(&raw(sent)).protocol_version.as_str(), version, "{sent}");
        }
        let result =
            initialize_result(&raw(r#"{"protocolVersion":"banana-1","capabilities":{"tools":{},"logging":7}}"#));
        assert_eq!(result.protocol_version.as_str(), "banana-1");
        assert!(result.capabilities.tools.is_some());
    }

    #[test]
    fn a_server_without_capabilities_is_asked_for_its_tools() {
        let of =
            |sent: &str| peer_info(&raw(sent), Era::Initialize, &ProtocolVersion::V_2025_11_25).capabilities.join(" ");
        assert_eq!(of(r#"{"capabilities":{"tools":{},"prompts":false,"logging":{}}}"#), "tools logging");
        assert_eq!(of(r#"{"capabilities":{}}"#), "");
        assert_eq!(of("{}"), "tools");
    }

    #[test]
    fn a_field_that_takes_too_much_memory_is_left_out() {
        let large = format!("[0{}]", ",0".repeat(100_000));
        let sent = format!(
            r#"{{"x":{large},"protocolVersion":"2025-06-18","capabilities":{{"tools":{{}},"x":{large},"prompts":{{}}}},
            "serverInfo":{{"name":"n","version":"1"}},"instructions":"{}"}}"#,
            "i".repeat(4 << 20)
        );
        let info = peer_info(&raw(&sent), Era::Initialize, &ProtocolVersion::V_2025_11_25);
        assert_eq!((&*info.name, info.capabilities.join(" ")), ("n", "tools prompts".to_owned()));
        assert_eq!(info.instructions.map(|text| text.len()), Some(4 << 20));
        assert!(info.raw.get("x").is_none());
        assert!(initialize_result(&raw(&sent)).capabilities.tools.is_some());
    }
}
