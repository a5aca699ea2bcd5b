//! How many tokens of a model's context something takes, as an estimate.
//!
//! Every model counts differently, and its tokenizer is often unknown. We count one token for four bytes of compact JSON,
//! which is close to what most models count for English text and JSON. An image or a sound counts as a fixed number,
//! whatever its size, because a model does not read its encoded bytes.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{RawJson, Tool};

/// Bytes per token.
pub const BYTES: usize = 4;
/// What an image, a sound or another binary block counts as.
const BINARY: usize = 1_500;

/// The tokens of a text.
pub fn of_bytes(bytes: usize) -> usize {
    bytes.div_ceil(BYTES)
}

/// The tokens of a tool's definition: what an agent passes on to its model, which is its name, its description and the
/// schema of its arguments.
pub fn of_tool(tool: &Tool) -> usize {
    #[derive(serde::Serialize)]
    struct Shown<'a> {
        name: &'a str,
        description: &'a str,
        input_schema: &'a serde_json::Map<String, serde_json::Value>,
    }
    let shown = Shown { name: &tool.name, description: &tool.description, input_schema: &tool.input_schema };
    let mut counter = Counter(0);
    serde_json::to_writer(&mut counter, &shown).ok();
    of_bytes(counter.0)
}

/// The tokens of a result, as a server sent it.
pub fn of_result(raw: &RawJson) -> usize {
    let content = raw.content().unwrap_or_default();
    let may_be_binary = |word: &str| memchr::memmem::find(content.as_bytes(), word.as_bytes()).is_some();
    let length = raw.get().len();
    match ["\"data\"", "\"blob\""].into_iter().any(may_be_binary).then(|| binary(content)).flatten() {
        Some((blocks, bytes)) => of_bytes(length.saturating_sub(bytes)) + blocks * BINARY,
        None => of_bytes(length),
    }
}

/// How many binary blocks this content has, and how many bytes they take.
fn binary(content: &str) -> Option<(usize, usize)> {
    #[derive(Deserialize)]
    struct Block<'a> {
        #[serde(borrow)]
        data: Option<&'a RawValue>,
        #[serde(borrow)]
        resource: Option<Embedded<'a>>,
    }
    #[derive(Deserialize)]
    struct Embedded<'a> {
        #[serde(borrow)]
        blob: Option<&'a RawValue>,
    }
    let content: Vec<Block<'_>> = serde_json::from_str(content).ok()?;
    let blobs = content.iter().filter_map(|block| block.data.or_else(|| block.resource.as_ref()?.blob));
    Some(blobs.fold((0, 0), |(blocks, bytes), blob| (blocks + 1, bytes + blob.get().len())))
}

/// A number of tokens for people: `~340 tokens`, `~1.2k tokens`, `~9k tokens`.
pub fn shown(tokens: usize) -> String {
    match tokens {
        1 => "~1 token".to_owned(),
        0..1_000 => format!("~{tokens} tokens"),
        1_000..9_950 => format!("~{:.1}k tokens", tokens as f64 / 1e3),
        _ => format!("~{:.0}k tokens", tokens as f64 / 1e3),
    }
}

struct Counter(usize);

impl std::io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::model::{Annotations, Subject};

    fn tool(definition: Value) -> Tool {
        let text = |key: &str| definition[key].as_str().unwrap_or_default();
        Tool {
            name: text("name").into(),
            subject: Subject::Tool,
            title: None,
            description: text("description").to_owned(),
            input_schema: Arc::new(definition["inputSchema"].as_object().unwrap().clone()),
            output_schema: None,
            annotations: Annotations::default(),
            raw: Arc::new(definition),
        }
    }

    #[test]
    fn a_definition_counts_with_its_schema_and_without_what_models_do_not_see() {
        let small = json!({ "name": "read", "description": "Reads a file", "inputSchema": { "type": "object" } });
        let mut titled = small.clone();
        titled["title"] = json!("Read a file from the disk");
        let mut large = small.clone();
        large["inputSchema"]["properties"] = json!({ "path": { "type": "string", "description": "Where it is" } });
        assert_eq!(of_tool(&tool(small.clone())), 20);
        assert_eq!(of_tool(&tool(titled)), of_tool(&tool(small)));
        assert_eq!(of_tool(&tool(large)), 37);
    }

    fn result(text: String) -> usize {
        of_result(&RawValue::from_string(text).unwrap().into())
    }

    #[test]
    fn an_image_counts_as_a_fixed_number_whatever_its_size() {
        let image = |bytes: usize| {
            let data = "A".repeat(bytes);
            json!({ "content": [{ "type": "image", "data": data, "mimeType": "image/png" }] }).to_string()
        };
        assert_eq!(result(image(100_000)), result(image(1_000)));
        assert!((BINARY..BINARY + 50).contains(&result(image(1_000))));
        let blob =
            json!({ "content": [{ "type": "resource", "resource": { "uri": "a:b", "blob": "A".repeat(9_000) } }] });
        assert!(result(blob.to_string()) < BINARY + 50);
        let text = json!({ "content": [{ "type": "text", "text": "\"data\"".repeat(1_000) }] }).to_string();
        assert_eq!(result(text.clone()), text.len().div_ceil(4));
    }

    #[test]
    fn numbers_are_rounded_for_people() {
        let texts = [0, 1, 340, 1_234, 9_100, 12_345].map(shown);
        assert_eq!(texts, ["~0 tokens", "~1 token", "~340 tokens", "~1.2k tokens", "~9.1k tokens", "~12k tokens"]);
    }
}
