//! A value that fits a schema: the default where there is one, else the plainest of its type.

use serde_json::{Map, Value, json};

/// A schema that goes deeper than this is not a person's question.
const DEEPEST: usize = 16;

pub fn of(schema: &Value) -> Value {
    made(schema, 0)
}

fn made(schema: &Value, depth: usize) -> Value {
    if depth > DEEPEST {
        return Value::Null;
    }
    if let Some(value) = schema.get("default").or_else(|| schema.get("const")) {
        return value.clone();
    }
    if let Some(first) = schema.pointer("/enum/0") {
        return first.clone();
    }
    for several in ["/oneOf/0", "/anyOf/0"] {
        if let Some(first) = schema.pointer(several) {
            return made(first, depth + 1);
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

/// What is required, and whatever has a default: a form that is sent back untouched holds its defaults.
fn object(schema: &Value, depth: usize) -> Value {
    let required = schema.get("required").and_then(Value::as_array);
    let wanted = |name: &String, property: &Value| {
        property.get("default").is_some() || required.is_some_and(|list| list.iter().any(|each| each == name))
    };
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let filled: Map<String, Value> = properties
        .filter(|(name, property)| wanted(name, property))
        .map(|(name, property)| (name.clone(), made(property, depth + 1)))
        .collect();
    Value::Object(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_comes_back_with_its_defaults_and_with_what_it_insists_on() {
        let schema = json!({ "type": "object", "required": ["age", "colour", "ok"], "properties": {
            "name": { "type": "string", "default": "Ada" },
            "age": { "type": "integer" },
            "colour": { "type": "string", "enum": ["red", "blue"] },
            "ok": { "type": "boolean", "default": false },
            "note": { "type": "string" },
        } });
        assert_eq!(of(&schema), json!({ "name": "Ada", "age": 1, "colour": "red", "ok": false }));
        assert_eq!(of(&Value::Null), json!({}));
    }
}
