//! The JSON Schema of `mcp.json`, generated from the tables in `shape`.

use serde_json::{Map, Value, json};

use super::shape::keys::{self, Key, Of, Role, Table};
use crate::model::Level;

/// The schema (2020-12), for editors without MCP support and for `mcp-sidecar schema`.
pub fn json_schema() -> Value {
    let mut schema = table(&keys::ROOT);
    let tables = [
        &keys::SERVER,
        &keys::FALLBACK,
        &keys::OAUTH,
        &keys::DEV,
        &keys::INPUT,
        &keys::POLICY,
        &keys::MATCHER,
        &keys::ACTION,
        &keys::CASE,
        &keys::CONDITION,
    ];
    let mut definitions: Map<String, Value> = tables.into_iter().map(|of| (of.noun.to_owned(), table(of))).collect();
    let levels: Vec<&str> = Level::ALL.iter().map(|level| level.as_str()).collect();
    definitions.insert("level".to_owned(), json!({ "enum": levels, "description": "Whether a tool may run." }));
    if let Some(schema) = schema.as_object_mut() {
        schema.shift_insert(0, "$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
        schema.shift_insert(1, "title".to_owned(), json!("mcp.json"));
        schema.insert("allowTrailingCommas".to_owned(), json!(true));
        schema.insert("$defs".to_owned(), Value::Object(definitions));
    }
    schema
}

fn table(table: &Table) -> Value {
    let mut schema = json!({
        "type": "object",
        "properties": table.keys.iter().map(|key| (key.name.to_owned(), property(key))).collect::<Map<_, _>>(),
    });
    let required: &[&str] = match table.noun {
        "input" => &["id"],
        "action" => &["title", "tool"],
        "rule" => &["when", "level"],
        _ => &[],
    };
    if let Some(schema) = schema.as_object_mut()
        && !required.is_empty()
    {
        schema.insert("required".to_owned(), json!(required));
    }
    schema
}

fn property(key: &Key) -> Value {
    let mut schema = of(key);
    if let Some(schema) = schema.as_object_mut() {
        let docs = match key.role {
            Role::Ignored => format!("Has no effect here: {}", key.docs),
            _ => key.docs.to_owned(),
        };
        schema.insert("description".to_owned(), json!(docs));
        if !matches!(key.role, Role::Own) {
            schema.insert("deprecated".to_owned(), json!(true));
        }
    }
    schema
}

fn of(key: &Key) -> Value {
    let definition = |table: &Table| json!({ "$ref": format!("#/$defs/{}", table.noun) });
    let texts = || json!({ "type": "array", "items": { "type": "string" } });
    match key.of {
        Of::Text => json!({ "type": "string" }),
        Of::Flag => json!({ "type": "boolean" }),
        Of::Seconds => json!({ "type": "number", "exclusiveMinimum": 0 }),
        Of::Port => json!({ "type": "integer", "minimum": 1, "maximum": 65535 }),
        Of::Texts => texts(),
        Of::TextOrTexts => json!({ "anyOf": [{ "type": "string" }, texts()] }),
        Of::Environment => {
            json!({ "type": "object", "additionalProperties": { "type": ["string", "number", "boolean", "null"] } })
        }
        Of::TextMap => json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        Of::Choice(choices) if key.name == "type" && choices == keys::TYPES => {
            let aliases = keys::TYPE_ALIASES.iter().map(|(alias, _)| *alias);
            json!({ "enum": choices.iter().copied().chain(aliases).collect::<Vec<_>>() })
        }
        Of::Choice(choices) => json!({ "enum": choices }),
        Of::Level => json!({ "$ref": "#/$defs/level" }),
        Of::Tools => {
            let rules = json!({ "type": "array", "minItems": 1, "items": { "anyOf": [definition(&keys::CASE), { "$ref": "#/$defs/level" }] } });
            json!({ "anyOf": [
                { "type": "object", "additionalProperties": { "anyOf": [{ "$ref": "#/$defs/level" }, rules] } },
                texts(),
            ] })
        }
        Of::Conditions => {
            json!({ "type": "object", "minProperties": 1, "additionalProperties": { "anyOf": [{ "type": "string" }, definition(&keys::CONDITION)] } })
        }
        Of::Object(table) => definition(table),
        Of::List(table) => json!({ "type": "array", "items": definition(table) }),
        Of::Map(table) if key.name == "servers" || key.name == "mcpServers" => json!({
            "type": "object",
            "propertyNames": { "pattern": "^(?!.*__)[A-Za-z0-9_-]{1,64}$" },
            "additionalProperties": definition(table),
        }),
        Of::Map(table) => json!({ "type": "object", "additionalProperties": definition(table) }),
        Of::Any => json!({}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistakes(config: &Value) -> Vec<String> {
        let validator = jsonschema::validator_for(&json_schema()).unwrap();
        validator.iter_errors(config).map(|error| format!("{}: {error}", error.instance_path())).collect()
    }

    #[test]
    fn the_schema_accepts_what_the_parser_accepts() {
        let config = json!({
            "$schema": "x",
            "servers": {
                "fs": { "type": "stdio", "command": ["npx", "-y"], "env": { "A": 1, "B": null }, "timeout": 60,
                        "tools": { "a": "deny", "b": [{ "when": { "p": { "inside": "/" }, "q": "x*" }, "level": "deny" }, "require-approval"] },
                        "dev": { "watch": ["**/*.ts"] }, "fallback": { "port": 1 } },
                "web": { "type": "streamable-http", "url": "https://x.test", "headers": { "A": "b" }, "gallery": true }
            },
            "inputs": [{ "id": "a", "type": "promptString", "password": true }],
            "policy": { "default": "confirm", "denylist": [{ "tool": "x" }], "readOnly": "allow-session" },
            "actions": [{ "title": "t", "tool": "mcp__a__b" }]
        });
        assert_eq!(mistakes(&config), Vec::<String>::new());
    }

    #[test]
    fn the_schema_rejects_what_the_parser_rejects() {
        for wrong in [
            json!([]),
            json!({ "servers": { "a__b": {} } }),
            json!({ "servers": { "a b": {} } }),
            json!({ "servers": { "a": { "type": "ws" } } }),
            json!({ "servers": { "a": { "port": 0 } } }),
            json!({ "servers": { "a": { "timeout": 0 } } }),
            json!({ "servers": { "a": { "tools": { "x": "allow" } } } }),
            json!({ "policy": { "default": "maybe" } }),
            json!({ "inputs": [{}] }),
        ] {
            assert!(!mistakes(&wrong).is_empty(), "{wrong}");
        }
    }

    #[test]
    fn every_key_has_a_description() {
        let text = json_schema().to_string();
        for key in keys::SERVER.keys.iter().chain(keys::ROOT.keys) {
            assert!(!key.docs.is_empty() && text.contains(key.name), "{}", key.name);
        }
    }
}
