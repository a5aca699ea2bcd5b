//! Validates arguments against a tool's schema before they are sent.

use serde_json::{Map, Value};

use crate::model::Violation;

/// How many violations are reported. A bad document can have thousands.
const MAX_VIOLATIONS: usize = 20;

/// A tool's input schema, compiled once.
pub enum Checker {
    Compiled(Box<jsonschema::Validator>),
    /// The schema is invalid, or refers to other documents, which are never loaded. The arguments are sent unchecked:
    /// rejecting the call would punish the user for the author's mistake.
    Unusable,
}

impl Checker {
    pub fn compile(schema: &Map<String, Value>) -> Self {
        let mut schema = schema.clone();
        let compiled = build(&schema).or_else(|| {
            // The validator does not know this dialect. Most schemas mean the same in 2020-12.
            schema.remove("$schema")?;
            build(&schema)
        });
        compiled.map_or(Self::Unusable, |validator| Self::Compiled(Box::new(validator)))
    }

    /// The violations in these arguments. Empty if they can be sent.
    pub fn check(&self, arguments: &Map<String, Value>) -> Vec<Violation> {
        let Self::Compiled(validator) = self else { return Vec::new() };
        let arguments = Value::Object(arguments.clone());
        validator
            .iter_errors(&arguments)
            .take(MAX_VIOLATIONS)
            .map(|error| Violation {
                path: error.instance_path().to_string(),
                message: crate::text::one_line(&error.to_string(), 300),
            })
            .collect()
    }
}

/// The validator loads its own schemas on first use, which takes milliseconds. This keeps that out of the first call.
pub fn warm_up() {
    drop(tokio::task::spawn_blocking(|| drop(build(&Map::new()))));
}

fn build(schema: &Map<String, Value>) -> Option<jsonschema::Validator> {
    jsonschema::options().build(&Value::Object(schema.clone())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn violations(schema: Value, arguments: Value) -> String {
        let (Value::Object(schema), Value::Object(arguments)) = (schema, arguments) else { panic!("objects only") };
        let violations = Checker::compile(&schema).check(&arguments);
        violations.iter().map(|v| format!("{}: {}", v.path, v.message)).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn violations_have_a_path_and_a_message() {
        let schema = json!({ "type": "object", "required": ["path"], "properties": {
            "path": { "type": "string" }, "depth": { "type": "object", "properties": { "max": { "type": "integer", "maximum": 9 } } } } });
        insta::assert_snapshot!(violations(schema.clone(), json!({ "path": 1, "depth": { "max": 10 } })), @r#"
        /path: 1 is not of type "string"
        /depth/max: 10 is greater than the maximum of 9
        "#);
        insta::assert_snapshot!(violations(schema, json!({})), @r#": "path" is a required property"#);
    }

    #[test]
    fn external_references_are_never_loaded_and_only_disable_the_check() {
        for target in ["http://127.0.0.1:9/schema.json", "file:///etc/passwd"] {
            assert_eq!(violations(json!({ "properties": { "a": { "$ref": target } } }), json!({ "a": 1 })), "");
        }
    }

    #[test]
    fn recursive_schemas_are_supported() {
        let schema = json!({ "type": "object", "properties": { "child": { "$ref": "#" }, "n": { "type": "number" } } });
        assert_eq!(violations(schema.clone(), json!({ "child": { "child": {} } })), "");
        assert!(violations(schema, json!({ "child": { "n": "x" } })).contains("/child/n"));
    }

    #[test]
    fn an_unknown_dialect_is_checked_as_the_newest_one() {
        let schema = json!({ "$schema": "https://example.test/other", "required": ["a"] });
        assert!(violations(schema, json!({})).contains("required"));
    }
}
