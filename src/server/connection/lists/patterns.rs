//! Finds patterns in schemas that cannot be matched in linear time. Arguments are not checked against these.

use regex_syntax::ast::{ErrorKind, parse::Parser};
use serde_json::{Map, Value};

/// Longer patterns are not read.
const MAX_PATTERN_BYTES: usize = 64 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    Linear,
    /// It has look-around or back-references.
    NeedsBacktracking,
    Invalid,
}

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

fn needs_backtracking(pattern: &str) -> bool {
    let is_suspicious = ["(?=", "(?!", "(?<"].iter().any(|part| pattern.contains(part))
        || pattern.as_bytes().windows(2).any(|pair| matches!(pair, [b'\\', b'1'..=b'9' | b'k']));
    is_suspicious && syntax(pattern) == Syntax::NeedsBacktracking
}

/// Parses a pattern. It is not compiled, because a short pattern can take seconds and gigabytes to compile.
pub fn syntax(pattern: &str) -> Syntax {
    if pattern.len() > MAX_PATTERN_BYTES {
        return Syntax::Invalid;
    }
    match Parser::new().parse(pattern).map_err(|error| error.kind().clone()) {
        Ok(_) => Syntax::Linear,
        Err(ErrorKind::UnsupportedLookAround | ErrorKind::UnsupportedBackreference | ErrorKind::EscapeUnrecognized) => {
            Syntax::NeedsBacktracking
        }
        Err(_) => Syntax::Invalid,
    }
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
