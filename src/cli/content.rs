//! The result of a tool as text. Images and other data are described.

use serde_json::Value;

use crate::protocol::types::ToolResult;
use crate::text::{one_line, visible};

/// The content of a result. Control characters are removed; `--json` prints the original.
pub(super) fn to_text(result: &ToolResult) -> String {
    let list = result.blocks();
    let mut shown: String = list.iter().map(|block| with_newline(block_to_text(block))).collect();
    let has_text = list.iter().any(|block| block.get("type").is_some_and(|kind| kind == "text"));
    if let (false, Some(structured)) = (has_text, &result.structured_content) {
        let structured: Value = serde_json::from_str(structured.get()).unwrap_or_default();
        shown.push_str(&with_newline(visible(&format!("{structured:#}"), usize::MAX)));
    }
    shown
}

/// The content of a prompt's message.
pub(super) fn message_to_text(block: &Value) -> String {
    with_newline(block_to_text(block))
}

/// The text of a resource. Other data is described.
pub(super) fn resource_to_text(resource: &Value) -> String {
    let text = |key: &str| resource.get(key).and_then(Value::as_str);
    let word = |key: &str| one_line(text(key).unwrap_or_default(), 400);
    with_newline(match (text("text"), text("blob")) {
        (Some(content), _) => visible(content, usize::MAX),
        (None, blob) => format!(
            "[resource: {} {}, {}; use --json to get the data]",
            word("uri"),
            word("mimeType"),
            size(blob.unwrap_or_default())
        ),
    })
}

fn block_to_text(block: &Value) -> String {
    let text = |path: &str| block.pointer(path).and_then(Value::as_str);
    let word = |path: &str| one_line(text(path).unwrap_or_default(), 400);
    match text("/type") {
        Some("text") => visible(text("/text").unwrap_or_default(), usize::MAX),
        Some(kind @ ("image" | "audio")) => {
            format!(
                "[{kind}: {}, {}; use --json to get the data]",
                word("/mimeType"),
                size(text("/data").unwrap_or_default())
            )
        }
        Some("resource_link") => format!("[link: {} {}]", word("/name"), word("/uri")),
        Some("resource") => {
            let resource = block.get("resource").unwrap_or(&Value::Null);
            match resource.get("text") {
                Some(_) => format!("[resource: {}]\n{}", word("/resource/uri"), resource_to_text(resource)),
                None => resource_to_text(resource),
            }
        }
        _ => visible(&block.to_string(), usize::MAX),
    }
}

/// The size of base64 data, decoded.
fn size(base64: &str) -> String {
    let padding = base64.bytes().rev().take_while(|byte| *byte == b'=').count();
    let bytes = (base64.len() / 4 * 3).saturating_sub(padding);
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{} kB", bytes / 1_000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}

fn with_newline(text: String) -> String {
    if text.ends_with('\n') || text.is_empty() { text } else { text + "\n" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(content: Value, structured: Value) -> String {
        let result = json!({
            "callId": "1", "content": content, "structuredContent": structured, "isError": false, "durationMs": 1.0, "waitedMs": 0,
            "decision": "allow-once", "server": "demo", "tool": "weather",
        });
        to_text(&serde_json::from_value(result).unwrap())
    }

    #[test]
    fn text_is_shown_and_other_content_is_described() {
        let content = json!([
            { "type": "text", "text": "hello\u{1b}[31m red" },
            { "type": "image", "mimeType": "image/png", "data": "aGVsbG8=" },
            { "type": "resource_link", "name": "notes", "uri": "file:///notes.md" },
            { "type": "resource", "resource": { "uri": "file:///a.txt", "text": "inside\n" } },
            { "type": "resource", "resource": { "uri": "file:///b.bin", "mimeType": "application/x", "blob": "AAAA" } },
            { "type": "later", "thing": 1 },
        ]);
        insta::assert_snapshot!(shown(content, json!({ "not": "shown beside text" })), @r#"
        hello⟨U+001B⟩[31m red
        [image: image/png, 5 bytes; use --json to get the data]
        [link: notes file:///notes.md]
        [resource: file:///a.txt]
        inside
        [resource: file:///b.bin application/x, 3 bytes; use --json to get the data]
        {"type":"later","thing":1}
        "#);
    }

    #[test]
    fn structured_content_is_shown_if_there_is_no_text() {
        insta::assert_snapshot!(shown(json!([]), json!({ "sky": "cloudy" })), @r#"
        {
          "sky": "cloudy"
        }
        "#);
    }
}
