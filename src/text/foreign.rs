//! The words of a stranger's JSON: what a person or a model reads of a tool, as opposed to what programs compare.

use serde_json::Value;

use super::visible::{cleaned, hides_something};

/// Fields that hold words, wherever they stand. What stands in `enum` or `const` is compared, not read.
const WORDS: [&str; 7] =
    ["title", "description", "$comment", "instructions", "examples", "default", "markdownDescription"];

/// Takes out of all words what no person could see.
pub fn clean_words(value: &mut Value) {
    each(value, false, &mut |text| {
        if let std::borrow::Cow::Owned(clean) = cleaned(text) {
            *text = clean;
        }
    });
}

/// Whether any of the words holds something that a reader would not see.
pub fn words_hide_something(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(words_hide_something),
        Value::Object(fields) => fields.iter().any(|(key, value)| match value {
            Value::String(text) => is_words(key) && hides_something(text),
            Value::Array(items) if is_words(key) => {
                items.iter().filter_map(Value::as_str).any(hides_something) || words_hide_something(value)
            }
            value => words_hide_something(value),
        }),
        _ => false,
    }
}

fn each(value: &mut Value, words: bool, change: &mut dyn FnMut(&mut String)) {
    match value {
        Value::String(text) if words => change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| each(item, words, change)),
        Value::Object(fields) => fields.iter_mut().for_each(|(key, value)| each(value, is_words(key), change)),
        _ => {}
    }
}

fn is_words(key: &str) -> bool {
    WORDS.contains(&key)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_are_cleaned_wherever_they_stand_and_what_is_compared_stays() {
        let hidden = "a\u{e0041}b";
        let mut tool = json!({
            "name": hidden, "title": hidden, "annotations": { "title": hidden },
            "inputSchema": { "properties": {
                "title": { "description": hidden, "enum": [hidden], "examples": [hidden] }
            } }
        });
        assert!(words_hide_something(&tool["inputSchema"]));
        assert!(words_hide_something(&json!({ "examples": [hidden] })));
        assert!(!words_hide_something(&json!({ "name": hidden, "title": "plain" })));
        clean_words(&mut tool);
        assert!(!words_hide_something(&tool));
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
