//! What a server says about the things that it offers, made fit to be kept and shown: without a secret, and not endless.

use serde_json::{Map, Value};

use crate::text::{holds_secret, mask};

/// Where words mean something to programs: a schema whose `type` was masked would be none.
const STRUCTURE: [&str; 9] = ["type", "$ref", "$schema", "$id", "format", "required", "uri", "uriTemplate", "mimeType"];

/// Masks every known secret in what is said, once, as it comes in. `identity` is the field by which a thing is asked for:
/// it stays as it is, wherever it stands.
pub fn mask_secrets(fields: &mut Map<String, Value>, identity: &str) {
    for (key, value) in fields.iter_mut() {
        let is_structure = key == identity || STRUCTURE.contains(&key.as_str());
        match value {
            Value::String(_) if is_structure => {}
            Value::Array(items) if is_structure && items.iter().all(Value::is_string) => {}
            value => mask_value(value, identity),
        }
    }
}

fn mask_value(value: &mut Value, identity: &str) {
    match value {
        Value::String(text) => {
            if let std::borrow::Cow::Owned(masked) = mask(text) {
                *text = masked;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| mask_value(item, identity)),
        Value::Object(fields) => mask_secrets(fields, identity),
        Value::Number(number) if holds_secret(&number.to_string()) => *value = Value::from(crate::text::MASK),
        Value::Number(_) | Value::Bool(_) | Value::Null => {}
    }
}

/// Cuts a text of a thing at the limit; tells whether there was anything to cut.
pub fn truncate_field(fields: &mut Map<String, Value>, key: &str, max_bytes: usize) -> bool {
    match fields.get_mut(key) {
        Some(Value::String(text)) => truncate(text, max_bytes),
        _ => false,
    }
}

pub fn truncate(text: &mut String, max_bytes: usize) -> bool {
    if text.len() <= max_bytes {
        return false;
    }
    text.truncate(text.floor_char_boundary(max_bytes));
    text.shrink_to_fit();
    text.push('…');
    true
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::text::Secret;

    #[test]
    fn a_secret_shows_in_no_word_of_a_tool_and_its_schema_stays_one() {
        Secret::new("list-secret-1");
        let Value::Object(mut tool) = json!({
            "name": "list-secret-1", "title": "t list-secret-1", "description": "uses list-secret-1",
            "inputSchema": { "type": "object", "required": ["list-secret-1"],
                "properties": { "type": { "type": "string", "default": "list-secret-1" } } }
        }) else {
            unreachable!()
        };
        mask_secrets(&mut tool, "name");
        assert_eq!(
            Value::Object(tool),
            json!({
                "name": "list-secret-1", "title": "t •••", "description": "uses •••",
                "inputSchema": { "type": "object", "required": ["list-secret-1"],
                    "properties": { "type": { "type": "string", "default": "•••" } } }
            })
        );
    }
}
