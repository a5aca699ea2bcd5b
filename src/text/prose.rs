//! The prose in untrusted JSON: what a person or a model reads about a tool, as opposed to what programs compare.

use serde_json::Value;

use super::visible::{has_invisible, strip_invisible};

/// Fields that contain prose, at any depth. Values of `enum` and `const` are compared, not read.
const PROSE_FIELDS: [&str; 7] =
    ["title", "description", "$comment", "instructions", "examples", "default", "markdownDescription"];

/// Removes invisible characters from all prose.
pub fn clean_prose(value: &mut Value) {
    each(value, false, &mut |text| {
        if let std::borrow::Cow::Owned(clean) = strip_invisible(text) {
            *text = clean;
        }
    });
}

/// Whether any prose contains invisible characters.
pub fn prose_has_invisible(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(prose_has_invisible),
        Value::Object(fields) => fields.iter().any(|(key, value)| match value {
            Value::String(text) => is_prose(key) && has_invisible(text),
            Value::Array(items) if is_prose(key) => {
                items.iter().filter_map(Value::as_str).any(has_invisible) || prose_has_invisible(value)
            }
            value => prose_has_invisible(value),
        }),
        _ => false,
    }
}

fn each(value: &mut Value, words: bool, change: &mut dyn FnMut(&mut String)) {
    match value {
        Value::String(text) if words => change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| each(item, words, change)),
        Value::Object(fields) => fields.iter_mut().for_each(|(key, value)| each(value, is_prose(key), change)),
        _ => {}
    }
}

fn is_prose(key: &str) -> bool {
    PROSE_FIELDS.contains(&key)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn prose_is_cleaned_at_any_depth_and_compared_values_stay() {
        let hidden = "a\u{e0041}b";
        let mut tool = json!({
            "name": hidden, "title": hidden, "annotations": { "title": hidden },
            "inputSchema": { "properties": {
                "title": { "description": hidden, "enum": [hidden], "examples": [hidden] }
            } }
        });
        assert!(prose_has_invisible(&tool["inputSchema"]));
        assert!(prose_has_invisible(&json!({ "examples": [hidden] })));
        assert!(!prose_has_invisible(&json!({ "name": hidden, "title": "plain" })));
        clean_prose(&mut tool);
        assert!(!prose_has_invisible(&tool));
        assert_eq!(
            tool,
            json!({
                "name": hidden, "title": "ab", "annotations": { "title": "ab" },
                "inputSchema": { "properties": {
                    "title": { "description": "ab", "enum": [hidden], "examples": ["ab"] }
                } }
            })
        );
    }
}
