//! Recognizes arguments that are certainly valid. Most schemas only list properties with their types, and the validator takes
//! milliseconds and megabytes before its first use.

use serde_json::{Map, Value};

/// How many values are compared before the validator is used instead.
const MAX_STEPS: usize = 1_000;

/// Keywords that do not restrict a value.
const ANNOTATIONS: [&str; 10] = [
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$comment",
    "$schema",
    // Formats are not checked: servers often state formats that they do not mean.
    "format",
];

/// Whether these arguments are valid for sure. If not, only the validator knows.
pub fn are_valid(schema: &Map<String, Value>, arguments: &Map<String, Value>) -> bool {
    let mut steps = MAX_STEPS;
    keywords_allow(schema, Instance::Fields(arguments), &mut steps)
}

/// A value, or the fields of an object.
#[derive(Clone, Copy)]
enum Instance<'a> {
    Fields(&'a Map<String, Value>),
    Other(&'a Value),
}

impl<'a> Instance<'a> {
    fn of(value: &'a Value) -> Self {
        match value {
            Value::Object(fields) => Self::Fields(fields),
            other => Self::Other(other),
        }
    }

    fn has_type(self, name: &str) -> bool {
        match (name, self) {
            ("object", Self::Fields(_)) => true,
            (_, Self::Fields(_)) => false,
            ("string", Self::Other(value)) => value.is_string(),
            ("number", Self::Other(value)) => value.is_number(),
            // Drafts disagree about 1.0.
            ("integer", Self::Other(value)) => value.is_i64() || value.is_u64(),
            ("boolean", Self::Other(value)) => value.is_boolean(),
            ("null", Self::Other(value)) => value.is_null(),
            ("array", Self::Other(value)) => value.is_array(),
            _ => false,
        }
    }

    fn is(self, expected: &Value) -> bool {
        match self {
            Self::Fields(_) => false,
            Self::Other(value) => value == expected,
        }
    }
}

fn allows(schema: &Value, value: &Value, steps: &mut usize) -> bool {
    match schema {
        Value::Bool(allowed) => *allowed,
        Value::Object(schema) => keywords_allow(schema, Instance::of(value), steps),
        _ => false,
    }
}

fn keywords_allow(schema: &Map<String, Value>, instance: Instance<'_>, steps: &mut usize) -> bool {
    schema.iter().all(|(keyword, rule)| {
        let Some(left) = steps.checked_sub(1) else { return false };
        *steps = left;
        match (keyword.as_str(), rule, instance) {
            ("type", Value::String(name), instance) => instance.has_type(name),
            ("type", Value::Array(names), instance) => {
                names.iter().take(MAX_TYPES).any(|name| name.as_str().is_some_and(|name| instance.has_type(name)))
            }
            ("enum", Value::Array(values), instance) => {
                *steps = steps.saturating_sub(values.len());
                *steps > 0 && values.iter().any(|value| instance.is(value))
            }
            ("properties", Value::Object(properties), Instance::Fields(fields)) => {
                fields.iter().all(|(name, value)| {
                    *steps = steps.saturating_sub(1);
                    *steps > 0 && properties.get(name).is_none_or(|property| allows(property, value, steps))
                })
            }
            ("required", Value::Array(names), Instance::Fields(fields)) => {
                *steps = steps.saturating_sub(names.len());
                *steps > 0 && names.iter().all(|name| name.as_str().is_some_and(|name| fields.contains_key(name)))
            }
            ("additionalProperties", Value::Bool(true), _) => true,
            ("additionalProperties", Value::Bool(false), Instance::Fields(fields)) => {
                let properties = schema.get("properties").and_then(Value::as_object);
                *steps = steps.saturating_sub(fields.len());
                *steps > 0
                    && fields.keys().all(|name| properties.is_some_and(|properties| properties.contains_key(name)))
            }
            ("items", items, Instance::Other(Value::Array(values))) if items.is_object() => {
                values.iter().all(|value| {
                    *steps = steps.saturating_sub(1);
                    *steps > 0 && allows(items, value, steps)
                })
            }
            // These say nothing about values of other types.
            ("properties", Value::Object(_), Instance::Other(_))
            | ("required", Value::Array(_), Instance::Other(_))
            | ("additionalProperties", Value::Bool(false), Instance::Other(_)) => true,
            ("items", Value::Object(_), Instance::Fields(_)) => true,
            ("items", Value::Object(_), Instance::Other(other)) => !other.is_array(),
            (keyword, _, _) => ANNOTATIONS.contains(&keyword),
        }
    })
}

/// There are seven types.
const MAX_TYPES: usize = 7;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Checker;
    use super::*;

    fn are_simple(schema: &Value, arguments: &Value) -> bool {
        are_valid(schema.as_object().unwrap(), arguments.as_object().unwrap())
    }

    #[test]
    fn simple_arguments_need_no_validator() {
        let schema = json!({
            "$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "additionalProperties": false,
            "required": ["path"],
            "properties": {
                "path": { "type": "string", "description": "d", "format": "uri" }, "limit": { "type": ["integer", "null"] },
                "mode": { "enum": ["a", 1] }, "any": {}, "all": true,
                "list": { "type": "array", "items": { "type": "object", "properties": { "n": { "type": "number" } } } },
            },
        });
        for arguments in [
            json!({ "path": "x" }),
            json!({ "path": "x", "limit": 3, "mode": 1, "any": [{}], "all": null, "list": [{ "n": 1.5 }, { "m": "x" }] }),
            json!({ "path": "", "limit": null, "list": [] }),
        ] {
            assert!(are_simple(&schema, &arguments), "{arguments}");
        }
        for arguments in [
            json!({}),
            json!({ "path": 1 }),
            json!({ "path": "x", "limit": 1.0 }),
            json!({ "path": "x", "mode": "b" }),
            json!({ "path": "x", "list": [{ "n": "1" }] }),
            json!({ "path": "x", "list": {} }),
            json!({ "path": "x", "other": 1 }),
        ] {
            assert!(!are_simple(&schema, &arguments), "{arguments}");
        }
    }

    #[test]
    fn unknown_keywords_and_large_values_are_left_to_the_validator() {
        for schema in
            [json!({ "minProperties": 1 }), json!({ "$ref": "#/x" }), json!({ "type": 5 }), json!({ "items": [] })]
        {
            assert!(!are_simple(&schema, &json!({ "a": 1 })), "{schema}");
        }
        let many = json!({ "list": vec![1; MAX_STEPS] });
        assert!(!are_simple(&json!({ "properties": { "list": { "items": { "type": "integer" } } } }), &many));
        let values: Vec<usize> = (0..MAX_STEPS).collect();
        assert!(!are_simple(&json!({ "properties": { "a": { "enum": values } } }), &json!({ "a": 1 })));
    }

    proptest::proptest! {
        #[test]
        fn what_is_valid_here_is_valid_for_the_validator(
            types in proptest::collection::vec(0_usize..8, 3), values in proptest::collection::vec(0_usize..9, 3), closed: bool, needs: bool,
        ) {
            const NAMES: [&str; 8] = ["string", "number", "integer", "boolean", "null", "array", "object", "odd"];
            let value = |kind: usize| [json!("x"), json!(1.5), json!(1), json!(true), json!(null), json!([1]), json!({ "a": 1 }), json!(1.0), json!([])][kind].clone();
            let mut schema = json!({ "type": "object", "additionalProperties": !closed, "properties": {
                "a": { "type": NAMES[types[0]] }, "b": { "type": [NAMES[types[1]], "null"] }, "c": { "items": { "type": NAMES[types[2]] }, "enum": [value(values[2]), 7] },
            } });
            if needs {
                schema["required"] = json!(["a", "c"]);
            }
            let arguments = json!({ "a": value(values[0]), "b": value(values[1]), "c": value(values[2]) });
            let (schema, arguments) = (schema.as_object().unwrap(), arguments.as_object().unwrap());
            if are_valid(schema, arguments) {
                proptest::prop_assert!(Checker::compile(schema).check(arguments).is_empty());
            }
        }
    }
}
