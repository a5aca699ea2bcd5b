//! Recognizes schemas that apply so many schemas to one value that validating it would take forever. A validation cannot be
//! stopped, so such a schema is never used.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// How often schemas may be applied along one path through a value. A schema of a few lines can reach any number.
const MAX_APPLICATIONS: usize = 1 << 20;
/// How deep schemas may refer to each other.
const MAX_DEPTH: usize = 500;
/// References that are not paths are not followed. A schema with more of them is not used.
const MAX_UNKNOWN: usize = 16;

/// Whether validating with this schema may take forever.
pub fn is_too_large(schema: &Map<String, Value>) -> bool {
    let mut count = Count { root: schema, known: HashMap::new(), unknown: 0, depth: 0 };
    count.fields(schema).is_none()
}

struct Count<'a> {
    root: &'a Map<String, Value>,
    /// Path → how many applications it stands for; 1 while it is being counted, because a cycle ends with the value.
    known: HashMap<&'a str, usize>,
    unknown: usize,
    depth: usize,
}

impl<'a> Count<'a> {
    /// How many schemas are applied to a value and along its longest path; `None` if there are too many.
    fn fields(&mut self, schema: &'a Map<String, Value>) -> Option<usize> {
        let mut sum = 1;
        for (key, value) in schema {
            sum += match (key.as_str(), value) {
                ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(target)) => self.target(target)?,
                // These contain values or names, or schemas that only references apply.
                ("enum" | "const" | "default" | "examples" | "required" | "$defs" | "definitions", _) => 0,
                // Each of these applies to another part of the value.
                ("properties", Value::Object(parts)) => self.largest(parts.values())?,
                ("prefixItems" | "items", Value::Array(parts)) => self.largest(parts)?,
                ("patternProperties" | "dependentSchemas" | "dependencies", Value::Object(schemas)) => {
                    self.all(schemas.values())?
                }
                (_, Value::Array(schemas)) => self.all(schemas)?,
                (_, value) => self.value(value)?,
            };
        }
        (sum <= MAX_APPLICATIONS).then_some(sum)
    }

    fn value(&mut self, value: &'a Value) -> Option<usize> {
        let Value::Object(schema) = value else { return Some(0) };
        self.depth += 1;
        let sum = if self.depth > MAX_DEPTH { None } else { self.fields(schema) };
        self.depth -= 1;
        sum
    }

    fn all(&mut self, schemas: impl IntoIterator<Item = &'a Value>) -> Option<usize> {
        schemas.into_iter().try_fold(0, |sum: usize, schema| Some(sum + self.value(schema)?))
    }

    fn largest(&mut self, schemas: impl IntoIterator<Item = &'a Value>) -> Option<usize> {
        schemas.into_iter().try_fold(0, |most: usize, schema| Some(most.max(self.value(schema)?)))
    }

    fn target(&mut self, target: &'a str) -> Option<usize> {
        if let Some(known) = self.known.get(target) {
            return Some(*known);
        }
        let root = self.root;
        let found = match target.strip_prefix('#')? {
            "" => return Some(1),
            path => path.strip_prefix('/').and_then(|path| resolve(root, path)),
        };
        let Some(found) = found else {
            self.unknown += 1;
            return (self.unknown <= MAX_UNKNOWN).then_some(1);
        };
        self.known.insert(target, 1);
        let count = self.value(found)?;
        self.known.insert(target, count);
        Some(count)
    }
}

/// The part of a schema with this path.
fn resolve<'a>(root: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    let (first, rest) = path.split_once('/').unwrap_or((path, ""));
    let part = root.get(&first.replace("~1", "/").replace("~0", "~"))?;
    if rest.is_empty() { Some(part) } else { part.pointer(&format!("/{rest}")) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn is_refused(schema: Value) -> bool {
        is_too_large(schema.as_object().unwrap())
    }

    /// Definitions, each of which is made from the name of the next one.
    fn chain(count: usize, of: impl Fn(Value) -> Value) -> Value {
        let mut defs = Map::new();
        for number in 0..count {
            let next = json!({ "$ref": format!("#/$defs/d{}", number + 1) });
            defs.insert(format!("d{number}"), of(next));
        }
        defs.insert(format!("d{count}"), json!({ "type": "string" }));
        json!({ "$defs": defs, "properties": { "a": { "$ref": "#/$defs/d0" } } })
    }

    #[test]
    fn schemas_that_multiply_are_refused() {
        for keyword in ["anyOf", "allOf", "oneOf"] {
            assert!(is_refused(chain(40, |next| json!({ keyword: [next, next] }))), "{keyword}");
            assert!(!is_refused(chain(8, |next| json!({ keyword: [next, next] }))), "{keyword}");
        }
        assert!(is_refused(chain(40, |next| json!({ "if": next, "then": next }))));
        assert!(is_refused(chain(40, |next| json!({ "properties": { "a": { "allOf": [next, next] } } }))));
        assert!(is_refused(chain(5_000, |next| next)), "too deep");
        let anchors: Vec<Value> = (0..40).map(|number| json!({ "$ref": format!("#d{number}") })).collect();
        assert!(is_refused(json!({ "allOf": anchors })));
    }

    #[test]
    fn large_and_recursive_schemas_are_used() {
        let fields: Map<String, Value> = (0..40).map(|n| (n.to_string(), json!({ "$ref": "#/$defs/d1" }))).collect();
        assert!(!is_refused(chain(40, |next| json!({ "properties": { "a": next, "b": next } }))));
        assert!(!is_refused(json!({ "properties": fields, "$defs": { "d1": { "properties": fields } } })));
        assert!(!is_refused(json!({ "$defs": { "a/b": { "anyOf": [{ "$ref": "#" }, { "$ref": "#/$defs/a~1b" }] } },
            "items": { "$ref": "#/$defs/a~1b" } })));
    }
}
