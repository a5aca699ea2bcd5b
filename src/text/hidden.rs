//! Untrusted JSON that a model reads: the definition of a tool, a question of a server. People see it with everything
//! visible, so models get it that way, too.

use std::borrow::Cow;

use serde_json::Value;

use super::visible::{has_invisible, visible_text};

/// Makes hidden characters visible in every string and every key.
pub fn show_hidden(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(shown) = visible_text(text) {
                *text = shown;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(show_hidden),
        Value::Object(fields) => {
            if fields.keys().any(|key| has_invisible(key)) {
                let shown = std::mem::take(fields).into_iter();
                *fields = shown.map(|(key, value)| (visible_text(&key).into_owned(), value)).collect();
            }
            fields.values_mut().for_each(show_hidden);
        }
        _ => {}
    }
}

/// Whether any string or key contains hidden characters.
pub fn holds_hidden(value: &Value) -> bool {
    match value {
        Value::String(text) => has_invisible(text),
        Value::Array(items) => items.iter().any(holds_hidden),
        Value::Object(fields) => fields.iter().any(|(key, value)| has_invisible(key) || holds_hidden(value)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn everything_that_a_model_reads_is_visible() {
        let hidden = "a\u{e0041}b";
        let mut tool = json!({
            "title": hidden, "annotations": { "title": hidden }, "plain": "x\r\ny", "number": 1,
            "inputSchema": { "properties": { hidden: { "enum": [hidden], "examples": [[hidden]] } } }
        });
        assert!(holds_hidden(&tool["inputSchema"]) && holds_hidden(&json!([{ "x": hidden }])));
        show_hidden(&mut tool);
        assert!(!holds_hidden(&tool));
        let shown = "a⟨U+E0041⟩b";
        assert_eq!(
            tool,
            json!({
                "title": shown, "annotations": { "title": shown }, "plain": "x\r\ny", "number": 1,
                "inputSchema": { "properties": { shown: { "enum": [shown], "examples": [[shown]] } } }
            })
        );
    }
}
