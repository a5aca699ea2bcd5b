//! Repairs the schemas that agents get. Validators and model APIs reject a schema with one invalid keyword, and with it all
//! tools. Removing the keyword only makes a schema accept more: calls are checked against the schema of the server.

use serde_json::{Map, Value, json};

use super::patterns;
use crate::text::{mask, one_line};

const TYPES: [&str; 7] = ["object", "string", "number", "integer", "boolean", "array", "null"];
/// How much of the path of a removed part is shown.
const MAX_PATH: usize = 120;

/// The removed parts of a schema. A server decides how many there are and how long their paths are, so only the first is kept.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// The path of the first part, as text for the user.
    pub first: Option<String>,
    pub count: usize,
}

/// Repairs the schema of the arguments or of the result of a tool. Returns the parts that it removed; an error if the schema
/// cannot describe an object.
pub fn repair(schema: &mut Map<String, Value>, is_output: bool) -> Result<Removed, String> {
    // Arguments and structured results are objects, so this does not change the meaning.
    match schema.get("type") {
        Some(Value::String(name)) if name != "object" && TYPES.contains(&name.as_str()) => {
            return Err(format!("expected the type `object`, found `{name}`"));
        }
        Some(Value::Array(names)) if !names.iter().any(|name| name == "object") => {
            return Err("expected the type `object`".to_owned());
        }
        _ => schema.insert("type".to_owned(), json!("object")),
    };
    let mut repair = Repair { is_output, path: Vec::new(), removed: Removed::default(), is_tentative: false };
    repair.fields(schema);
    if is_output {
        let root = Value::Object(schema.clone());
        repair.references(schema, &root);
    }
    Ok(repair.removed)
}

struct Repair {
    /// Agents compile the schemas of results, all of them with one validator.
    is_output: bool,
    path: Vec<String>,
    removed: Removed,
    /// The parts that are removed now are not reported.
    is_tentative: bool,
}

impl Repair {
    fn fields(&mut self, schema: &mut Map<String, Value>) {
        let has_type = schema.contains_key("type");
        let keys: Vec<String> = schema.keys().cloned().collect();
        for key in keys {
            let Some(value) = schema.get_mut(&key) else { continue };
            self.path.push(key.clone());
            if !self.keyword(&key, value, has_type) {
                self.count_removed();
                schema.shift_remove(&key);
            }
            self.path.pop();
        }
    }

    /// Whether a keyword is valid, after repairing what is below it.
    fn keyword(&mut self, key: &str, value: &mut Value, has_type: bool) -> bool {
        match key {
            "type" => match value {
                Value::Array(names) => {
                    names.retain(is_type);
                    !names.is_empty()
                }
                name => is_type(name),
            },
            "required" => value.as_array_mut().is_some_and(|names| {
                names.retain(Value::is_string);
                true
            }),
            "enum" => value.as_array().is_some_and(|values| !values.is_empty()),
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => value.is_number(),
            "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => {
                value.as_f64().is_some_and(|number| number >= 0.0 && number.fract() == 0.0)
            }
            "uniqueItems" => value.is_boolean(),
            "format" | "$schema" => value.is_string(),
            "pattern" => value.as_str().is_some_and(|pattern| self.is_pattern(pattern)),
            "properties" | "$defs" | "definitions" | "patternProperties" | "dependentSchemas" => {
                let Value::Object(schemas) = value else { return false };
                if key == "patternProperties" {
                    schemas.retain(|pattern, _| self.is_pattern(pattern));
                }
                for (name, schema) in schemas {
                    self.path.push(name.clone());
                    self.property(schema);
                    self.path.pop();
                }
                true
            }
            "dependentRequired" | "dependencies" => value.as_object_mut().is_some_and(|names| {
                names.retain(|_, names| names.as_array().is_some_and(|names| names.iter().all(Value::is_string)));
                true
            }),
            "prefixItems" | "allOf" | "anyOf" => self.all(value),
            "items" if value.is_array() => self.all(value),
            "items"
            | "additionalItems"
            | "additionalProperties"
            | "unevaluatedItems"
            | "unevaluatedProperties"
            | "propertyNames"
            | "then"
            | "else" => self.schema(value),
            // A part of these that accepts more makes the whole accept less.
            "not" | "if" | "contains" | "oneOf" => {
                let before = self.removed.count;
                let outer = std::mem::replace(&mut self.is_tentative, true);
                let is_valid = if key == "oneOf" { self.all(value) } else { self.schema(value) };
                self.is_tentative = outer;
                is_valid && before == std::mem::replace(&mut self.removed.count, before)
            }
            "$ref" => value.is_string(),
            "nullable" => !self.is_output || (has_type && *value == true),
            // The schemas of different tools must not refer to each other.
            "$id" | "id" | "$anchor" | "$dynamicAnchor" | "$dynamicRef" | "$recursiveAnchor" | "$recursiveRef" => {
                !self.is_output
            }
            _ => true,
        }
    }

    /// Counts the part at the current path as removed.
    fn count_removed(&mut self) {
        self.removed.count += 1;
        if self.removed.first.is_none() && !self.is_tentative {
            // Masked first: a truncated secret would not be recognized.
            self.removed.first = Some(one_line(&mask(&self.path.join(".")), MAX_PATH));
        }
    }

    fn schema(&mut self, schema: &mut Value) -> bool {
        match schema {
            Value::Object(fields) => self.fields(fields),
            Value::Bool(_) => {}
            _ => return false,
        }
        true
    }

    fn all(&mut self, schemas: &mut Value) -> bool {
        let Value::Array(schemas) = schemas else { return false };
        !schemas.is_empty() && schemas.iter_mut().all(|schema| self.schema(schema))
    }

    /// The schema of a property, which some SDKs require to be an object.
    fn property(&mut self, schema: &mut Value) {
        match schema {
            Value::Object(fields) => self.fields(fields),
            Value::Bool(true) => *schema = json!({}),
            Value::Bool(false) => *schema = json!({ "not": {} }),
            _ => {
                self.count_removed();
                *schema = json!({});
            }
        }
    }

    fn is_pattern(&self, pattern: &str) -> bool {
        !self.is_output || is_javascript(pattern)
    }

    /// Removes references to what does not exist.
    fn references(&mut self, schema: &mut Map<String, Value>, root: &Value) {
        let is_dangling = |value: &Value| {
            let target = value.as_str().and_then(|target| target.strip_prefix('#')).unwrap_or("?");
            let known = ["/$defs/", "/definitions/", "/properties/"].iter().any(|start| target.starts_with(start));
            !(target.is_empty() || known && root.pointer(target).is_some_and(Value::is_object))
        };
        if schema.get("$ref").is_some_and(is_dangling) {
            schema.shift_remove("$ref");
            self.path = vec!["$ref".to_owned()];
            self.count_removed();
        }
        for (key, value) in schema.iter_mut() {
            if !matches!(key.as_str(), "enum" | "const" | "default" | "examples") {
                let values = match value {
                    Value::Array(values) => values.as_mut_slice(),
                    value => std::slice::from_mut(value),
                };
                values.iter_mut().filter_map(Value::as_object_mut).for_each(|inner| self.references(inner, root));
            }
        }
    }
}

fn is_type(name: &Value) -> bool {
    name.as_str().is_some_and(|name| TYPES.contains(&name))
}

/// Whether a pattern is certainly one of JavaScript, with its flag `u`, which rejects unknown escapes and lone brackets.
fn is_javascript(pattern: &str) -> bool {
    if patterns::syntax(pattern) == patterns::Syntax::Invalid {
        return false;
    }
    let is_group = |group: &str| [":", "=", "!", "<=", "<!"].iter().any(|kind| group.starts_with(kind));
    let (mut in_class, mut in_count) = (false, false);
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
        match c {
            '\\' => {
                let Some(escaped) = rest.chars().next() else { return false };
                let known = r"dDwWsSnrtfv^$\.*+?()[]{}|/".contains(escaped);
                if !(known || in_class && escaped == '-' || !in_class && matches!(escaped, 'b' | 'B')) {
                    return false;
                }
                rest = rest.get(1..).unwrap_or_default();
            }
            '[' if in_class => return false,
            '[' => in_class = true,
            ']' if in_class => in_class = false,
            // Rust has operators between classes.
            '&' | '~' | '-' if in_class && rest.starts_with(c) => return false,
            _ if in_class => {}
            '{' => in_count = true,
            '}' if in_count => in_count = false,
            ']' | '}' => return false,
            '(' if rest.strip_prefix('?').is_some_and(|group| !is_group(group)) => return false,
            _ => {}
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repaired(mut schema: Value, is_output: bool) -> (Value, Removed) {
        let removed = repair(schema.as_object_mut().unwrap(), is_output).unwrap();
        (schema, removed)
    }

    #[test]
    fn only_invalid_keywords_are_removed() {
        let schema = json!({
            "type": ["object", "null"], "required": ["a", 1], "additionalProperties": false,
            "properties": {
                "a": true, "b": false, "c": null,
                "d": { "type": "strng", "description": "kept", "exclusiveMinimum": true, "minimum": 1 },
                "e": { "type": "array", "items": { "enum": [] } },
                "f": { "not": { "type": 5 } },
            },
        });
        let (schema, removed) = repaired(schema, false);
        assert_eq!(
            schema,
            json!({
                "type": "object", "required": ["a"], "additionalProperties": false,
                "properties": {
                    "a": {}, "b": { "not": {} }, "c": {},
                    "d": { "description": "kept", "minimum": 1 },
                    "e": { "type": "array", "items": {} },
                    "f": {},
                },
            })
        );
        // `c`, `d.type`, `d.exclusiveMinimum`, `e.items.enum`, `f.not`
        assert_eq!(removed, Removed { first: Some("properties.c".to_owned()), count: 5 });
    }

    #[test]
    fn only_one_path_is_kept_and_it_is_short_and_masked() {
        let secret = "path-secret-5f0c7e";
        let _known = crate::text::Secret::new(secret);
        let name = format!("{secret}{}", "N".repeat(10_000));
        let parts: Map<String, Value> = (0..500).map(|n| (n.to_string(), json!({ "type": 5 }))).collect();
        let (_, removed) = repaired(json!({ "properties": { name: { "properties": parts } } }), false);
        assert_eq!(removed.count, 500);
        let first = removed.first.unwrap();
        assert!(first.starts_with("properties.•••NNN") && first.len() < 2 * MAX_PATH, "{first}");
    }

    #[test]
    fn a_schema_of_a_result_does_not_refer_to_others() {
        let schema = json!({
            "$id": "https://example.com/a", "$defs": { "x": { "type": "string" } },
            "properties": {
                "a": { "$ref": "#/$defs/x" }, "b": { "$ref": "#/$defs/y" }, "c": { "$ref": "other.json" },
                "d": { "pattern": "(?i)a" }, "e": { "pattern": r"^[\w\-.]+@\d{2}$" }, "f": { "nullable": true },
            },
        });
        let (schema, _) = repaired(schema, true);
        assert_eq!(
            schema,
            json!({
                "$defs": { "x": { "type": "string" } }, "type": "object",
                "properties": {
                    "a": { "$ref": "#/$defs/x" }, "b": {}, "c": {}, "d": {},
                    "e": { "pattern": r"^[\w\-.]+@\d{2}$" }, "f": {},
                },
            })
        );
    }

    #[test]
    fn a_schema_that_is_not_for_objects_cannot_be_repaired() {
        for schema in [json!({ "type": "string" }), json!({ "type": ["array", "null"] })] {
            assert!(repair(&mut schema.as_object().cloned().unwrap(), false).is_err(), "{schema}");
        }
    }

    #[test]
    fn patterns_that_javascript_rejects_are_found() {
        for pattern in ["^a+$", "(?=x)y", "[^\\]]", "a{1,2}", "(?:a|b)?", "\\bword\\b", "[a-z\\-]"] {
            assert!(is_javascript(pattern), "{pattern}");
        }
        // A pattern is parsed, not compiled: compiled, this one takes gigabytes.
        assert!(is_javascript(r"((\w{1000}){1000}){1000}"));
        for pattern in ["(?i)a", "\\Aa\\z", "\\@", "a]", "}", "(?P<x>a)", "[[:alpha:]]", "[a&&b]", "[", "a\\"] {
            assert!(!is_javascript(pattern), "{pattern}");
        }
    }
}
