//! Finds patterns in schemas that cannot be matched in linear time. Arguments are not checked against these.

use regex::RegexBuilder;
use serde_json::{Map, Value};

/// Larger patterns are not supported either, but validation finds out.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// The first unsupported pattern of a schema.
pub fn unsupported(schema: &Map<String, Value>) -> Option<&str> {
    let own = schema.get("pattern").and_then(Value::as_str);
    let of_names = schema.get("patternProperties").and_then(Value::as_object);
    let mut patterns = own.into_iter().chain(of_names.into_iter().flat_map(|names| names.keys().map(String::as_str)));
    patterns.find(|pattern| needs_backtracking(pattern)).or_else(|| {
        // These contain values, not schemas.
        let schemas =
            schema.iter().filter(|(key, _)| !["enum", "const", "default", "examples"].contains(&key.as_str()));
        schemas
            .flat_map(|(_, value)| value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice))
            .find_map(|value| unsupported(value.as_object()?))
    })
}

pub fn needs_backtracking(pattern: &str) -> bool {
    let is_suspicious = ["(?=", "(?!", "(?<"].iter().any(|part| pattern.contains(part))
        || pattern.as_bytes().windows(2).any(|pair| matches!(pair, [b'\\', b'1'..=b'9' | b'k']));
    let compiled = || RegexBuilder::new(pattern).size_limit(MAX_PATTERN_BYTES).build();
    is_suspicious
        && compiled().is_err_and(|error| {
            let reason = error.to_string();
            reason.contains("look-around") || reason.contains("backreference") || reason.contains("unrecognized escape")
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_patterns_that_need_backtracking_are_found() {
        for (schema, found) in [
            (json!({ "properties": { "a": { "pattern": "^(?=.*b)a" } } }), Some("^(?=.*b)a")),
            (json!({ "items": [{ "anyOf": [{ "pattern": r"(a)\1" }] }] }), Some(r"(a)\1")),
            (json!({ "patternProperties": { "(?<!x)y": {} } }), Some("(?<!x)y")),
            (
                json!({ "properties": { "a": { "pattern": r"^(?<year>\d{4})\(\?=$" }, "pattern": { "type": "string" } } }),
                None,
            ),
            (json!({ "const": { "pattern": "(?=x)" }, "pattern": "[" }), None),
        ] {
            assert_eq!(unsupported(schema.as_object().unwrap()), found, "{schema}");
        }
    }
}
