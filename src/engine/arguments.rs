//! Arguments checked against a tool's schema before anything is sent.

use serde_json::{Map, Value};

use crate::model::Violation;

/// How many broken rules are told; a wrong document can break thousands.
const MOST: usize = 20;

/// A tool's input schema, compiled once.
pub enum Checker {
    Compiled(Box<jsonschema::Validator>),
    /// The schema itself is no schema (or refers to things outside of it, which is never followed). The server gets
    /// the arguments unchecked: refusing the tool would punish the user for the author's mistake.
    Unusable,
}

impl Checker {
    pub fn compile(schema: &Map<String, Value>) -> Self {
        let mut schema = schema.clone();
        let compiled = build(&schema).or_else(|| {
            // A dialect that the validator does not know: most say nothing that 2020-12 would read otherwise.
            schema.remove("$schema")?;
            build(&schema)
        });
        compiled.map_or(Self::Unusable, |validator| Self::Compiled(Box::new(validator)))
    }

    /// The rules that these arguments break; none when they may be sent.
    pub fn check(&self, arguments: &Map<String, Value>) -> Vec<Violation> {
        let Self::Compiled(validator) = self else { return Vec::new() };
        let arguments = Value::Object(arguments.clone());
        validator
            .iter_errors(&arguments)
            .take(MOST)
            .map(|error| Violation {
                path: error.instance_path().to_string(),
                message: crate::text::one_line(&error.to_string(), 300),
            })
            .collect()
    }
}

/// The validator reads its own rules at the first use, which takes milliseconds: not those of the first call.
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

    fn told(schema: Value, arguments: Value) -> String {
        let (Value::Object(schema), Value::Object(arguments)) = (schema, arguments) else { panic!("objects only") };
        let violations = Checker::compile(&schema).check(&arguments);
        violations.iter().map(|v| format!("{}: {}", v.path, v.message)).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn an_error_names_the_path_and_the_rule() {
        let schema = json!({ "type": "object", "required": ["path"], "properties": {
            "path": { "type": "string" }, "depth": { "type": "object", "properties": { "max": { "type": "integer", "maximum": 9 } } } } });
        insta::assert_snapshot!(told(schema.clone(), json!({ "path": 1, "depth": { "max": 10 } })), @r#"
        /path: 1 is not of type "string"
        /depth/max: 10 is greater than the maximum of 9
        "#);
        insta::assert_snapshot!(told(schema, json!({})), @r#": "path" is a required property"#);
    }

    #[test]
    fn a_reference_to_the_outside_is_never_followed_and_costs_nothing_but_the_check() {
        for target in ["http://127.0.0.1:9/schema.json", "file:///etc/passwd"] {
            assert_eq!(told(json!({ "properties": { "a": { "$ref": target } } }), json!({ "a": 1 })), "");
        }
    }

    #[test]
    fn a_schema_that_holds_itself_ends() {
        let schema = json!({ "type": "object", "properties": { "child": { "$ref": "#" }, "n": { "type": "number" } } });
        assert_eq!(told(schema.clone(), json!({ "child": { "child": {} } })), "");
        assert!(told(schema, json!({ "child": { "n": "x" } })).contains("/child/n"));
    }

    #[test]
    fn an_unknown_dialect_is_checked_as_the_newest() {
        let schema = json!({ "$schema": "https://example.test/other", "required": ["a"] });
        assert!(told(schema, json!({})).contains("required"));
    }
}
