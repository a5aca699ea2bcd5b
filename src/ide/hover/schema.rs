//! A short name for the type of an argument, from its JSON Schema. References are resolved only within the schema and
//! only once, so recursive types end and nothing is fetched.

use serde_json::{Map, Value};

use crate::text::one_line;

const MAX_ALTERNATIVES: usize = 8;
const MAX_DEPTH: usize = 3;

/// The type of a part of a schema. `whole` contains its definitions.
pub fn kind_of(schema: &Value, whole: &Map<String, Value>) -> String {
    let kind = Reader { whole, depth: MAX_DEPTH, may_resolve: true }.kind(schema);
    one_line(kind.as_deref().unwrap_or("any"), 120)
}

/// The target of a reference.
pub fn target<'a>(schema: &Value, whole: &'a Map<String, Value>) -> Option<&'a Value> {
    let mut steps = schema.get("$ref")?.as_str()?.strip_prefix("#/")?.split('/').map(unescaped);
    let first = whole.get(&steps.next()?)?;
    steps.try_fold(first, |node, step| match node {
        Value::Object(members) => members.get(&step),
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        _ => None,
    })
}

#[derive(Clone, Copy)]
struct Reader<'a> {
    whole: &'a Map<String, Value>,
    depth: usize,
    /// Whether a reference may still be resolved.
    may_resolve: bool,
}

impl Reader<'_> {
    fn kind(self, schema: &Value) -> Option<String> {
        let inner = Self { depth: self.depth.checked_sub(1)?, ..self };
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let resolved = target(schema, self.whole).filter(|_| self.may_resolve);
            let kind = resolved.and_then(|target| Self { may_resolve: false, ..inner }.kind(target));
            return kind.or_else(|| name(reference));
        }
        if let Some(value) = schema.get("const") {
            return Some(value.to_string());
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            return Some(alternatives(values.iter().map(Value::to_string).collect()));
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(each) = schema.get(key).and_then(Value::as_array) {
                let any = |each| inner.kind(each).unwrap_or_else(|| "any".to_owned());
                return Some(alternatives(each.iter().map(any).collect())).filter(|kinds| !kinds.is_empty());
            }
        }
        if let Some(first) = schema.get("allOf").and_then(Value::as_array).and_then(|all| all.first()) {
            return inner.kind(first);
        }
        let name = |value: &Value| value.as_str().map(str::to_owned);
        let kind = match schema.get("type")? {
            Value::Array(kinds) => alternatives(kinds.iter().filter_map(name).collect()),
            kind => name(kind)?,
        };
        match (kind.as_str(), schema.get("items")) {
            ("array", Some(items)) => Some(match inner.kind(items) {
                Some(item) if item.contains(" | ") => format!("list of ({item})"),
                Some(item) => format!("list of {item}"),
                None => "list".to_owned(),
            }),
            ("", _) => None,
            _ => Some(kind),
        }
    }
}

/// Without duplicates.
fn alternatives(each: Vec<String>) -> String {
    let mut shown: Vec<String> = Vec::new();
    for one in each {
        if shown.len() == MAX_ALTERNATIVES {
            shown.push("…".to_owned());
            break;
        }
        if !shown.contains(&one) {
            shown.push(one);
        }
    }
    shown.join(" | ")
}

/// The last part of a reference within the schema.
fn name(reference: &str) -> Option<String> {
    let last = reference.strip_prefix("#/")?.rsplit('/').next()?;
    Some(unescaped(last)).filter(|name| !name.is_empty())
}

fn unescaped(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn types_have_short_names() {
        let whole = json!({ "$defs": {
            "Unit": { "enum": ["c", "f"] },
            "Node": { "type": "object", "properties": { "next": { "$ref": "#/$defs/Node" } } },
            "Loop": { "$ref": "#/$defs/Loop" },
            "Names": { "type": "array", "items": { "$ref": "#/$defs/Unit" } },
            "a/b": { "type": "string" },
        } });
        let kind = |schema: Value| kind_of(&schema, whole.as_object().unwrap());
        for (schema, expected) in [
            (json!({ "type": "string" }), "string"),
            (json!({ "type": ["string", "null"] }), "string | null"),
            (json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] }), "string | null"),
            (
                json!({ "oneOf": [{ "type": "integer" }, { "type": "integer" }, { "const": "all" }] }),
                "integer | \"all\"",
            ),
            (json!({ "anyOf": [{ "$ref": "#/$defs/Unit" }, { "type": "null" }] }), "\"c\" | \"f\" | null"),
            (json!({ "allOf": [{ "$ref": "#/$defs/Unit" }] }), "\"c\" | \"f\""),
            (json!({ "$ref": "#/$defs/Node" }), "object"),
            (json!({ "$ref": "#/$defs/Loop" }), "Loop"),
            (json!({ "$ref": "#/$defs/Names" }), "list of Unit"),
            (json!({ "$ref": "#/$defs/a~1b" }), "string"),
            (json!({ "$ref": "#/$defs/Missing" }), "Missing"),
            (json!({ "$ref": "https://example.test/schema.json" }), "any"),
            (json!({ "$ref": "#" }), "any"),
            (json!({ "type": "array", "items": { "type": "string" } }), "list of string"),
            (
                json!({ "type": "array", "items": { "anyOf": [{ "type": "string" }, { "type": "null" }] } }),
                "list of (string | null)",
            ),
            (json!({ "type": "array", "items": {} }), "list"),
            (json!({ "enum": [1, 2, 3, 4, 5, 6, 7, 8, 9] }), "1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | …"),
            (json!({ "anyOf": [] }), "any"),
            (json!(true), "any"),
            (json!({}), "any"),
        ] {
            assert_eq!(kind(schema.clone()), expected, "{schema}");
        }
        let deep = (0..50).fold(json!({ "type": "string" }), |inner, _| json!({ "anyOf": [inner] }));
        assert_eq!(kind(deep), "any");
    }
}
