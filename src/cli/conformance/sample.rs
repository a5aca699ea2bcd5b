//! Fills in a form with sample values: the default if there is one, else the simplest value of the field.

use serde_json::{Value, json};

use crate::protocol::form::{Field, FieldKind, Form};
use crate::protocol::types::Object;

/// Fills in required fields and those with a default, like a form that is sent without changes.
pub fn of(schema: &Object) -> Object {
    fill(&Form::of_schema(schema).fields)
}

fn fill(fields: &[Field]) -> Object {
    let wanted = fields.iter().filter(|field| field.required || field.default.is_some());
    wanted.map(|field| (field.name.clone(), value_of(field))).collect()
}

fn value_of(field: &Field) -> Value {
    let simplest = || match field.kind {
        FieldKind::Text | FieldKind::Multiline | FieldKind::Secret => json!("text"),
        FieldKind::Integer | FieldKind::Number => json!(1),
        FieldKind::Boolean => json!(true),
        FieldKind::Choice => field.choices.first().map(|choice| choice.value.clone()).unwrap_or_default(),
        FieldKind::Choices | FieldKind::List => json!([]),
        FieldKind::Object => fill(&field.fields).into(),
        FieldKind::Json => json!({}),
    };
    field.default.clone().unwrap_or_else(simplest)
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
        let filled = Value::Object(of(schema.as_object().unwrap()));
        assert_eq!(filled, json!({ "name": "Ada", "age": 1, "color": "red", "ok": false }));
        assert_eq!(of(&Object::new()), Object::new());
    }
}
