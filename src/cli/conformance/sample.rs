//! Makes a value that matches a schema: the default if there is one, else the simplest value of its type.

use serde_json::{Map, Value, json};

/// Deeper schemas are not filled in.
const MAX_DEPTH: usize = 16;

pub fn of(schema: &Value) -> Value {
    value_for(schema, 0)
}

fn value_for(schema: &Value, depth: usize) -> Value {
    if depth > MAX_DEPTH {
        return Value::Null;
    }
    if let Some(value) = schema.get("default").or_else(|| schema.get("const")) {
        return value.clone();
    }
    if let Some(first) = schema.pointer("/enum/0") {
        return first.clone();
    }
    for alternative in ["/oneOf/0", "/anyOf/0"] {
        if let Some(first) = schema.pointer(alternative) {
            return value_for(first, depth + 1);
        }
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("string") => json!("text"),
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or(json!(1)),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("null") => Value::Null,
        _ => object(schema, depth),
    }
}

/// Fills in required properties and those with a default, like a form that is sent without changes.
fn object(schema: &Value, depth: usize) -> Value {
    let required = schema.get("required").and_then(Value::as_array);
    let wanted = |name: &String, property: &Value| {
        property.get("default").is_some() || required.is_some_and(|list| list.iter().any(|each| each == name))
    };
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let filled: Map<String, Value> = properties
        .filter(|(name, property)| wanted(name, property))
        .map(|(name, property)| (name.clone(), value_for(property, depth + 1)))
        .collect();
    Value::Object(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_and_required_properties_are_filled_in() {
        let schema = json!({ "type": "object", "required": ["age", "color", "ok"], "properties": {
            "name": { "type": "string", "default": "Ada" },
            "age": { "type": "integer" },
            "color": { "type": "string", "enum": ["red", "blue"] },
            "ok": { "type": "boolean", "default": false },
            "note": { "type": "string" },
        } });
        assert_eq!(of(&schema), json!({ "name": "Ada", "age": 1, "color": "red", "ok": false }));
        assert_eq!(of(&Value::Null), json!({}));
    }
}
