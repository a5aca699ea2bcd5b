//! Makes a server's descriptions safe to keep and show: secrets are masked, long texts truncated.

use serde_json::{Map, Value};

use crate::text::{holds_secret, mask};

/// Fields with a meaning to programs: masking the `type` would break a schema.
const STRUCTURE: [&str; 9] = ["type", "$ref", "$schema", "$id", "format", "required", "uri", "uriTemplate", "mimeType"];

/// Masks every known secret. The field `identity`, which names the entry in requests, stays unchanged at every depth.
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

/// Truncates a field; returns whether it was too long.
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
    fn secrets_in_a_tool_are_masked_and_its_schema_stays_valid() {
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
