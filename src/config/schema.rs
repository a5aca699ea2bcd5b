//! The JSON Schema of `mcp.json`, generated from the tables in `shape`.

use serde_json::{Map, Value, json};

use super::sections::is_section;
use super::shape::keys::{self, Key, Role, Table, ValueType};
use crate::model::Level;

/// The schema (2020-12), for editors without MCP support and for `mcp-sidecar schema`.
pub fn json_schema() -> Value {
    let mut schema = table(&keys::ROOT);
    let tables = [
        &keys::SERVER,
        &keys::FALLBACK,
        &keys::OAUTH,
        &keys::DEV,
        &keys::SANDBOX,
        &keys::INPUT,
        &keys::POLICY,
        &keys::MATCHER,
        &keys::AGENT_TOOLS,
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
        ValueType::Text => json!({ "type": "string" }),
        ValueType::Flag => json!({ "type": "boolean" }),
        ValueType::Seconds => json!({ "type": "number", "exclusiveMinimum": 0 }),
        ValueType::Port => json!({ "type": "integer", "minimum": 1, "maximum": 65535 }),
        ValueType::Texts => texts(),
        ValueType::TextOrTexts => json!({ "anyOf": [{ "type": "string" }, texts()] }),
        ValueType::Environment => {
            json!({ "type": "object", "additionalProperties": { "type": ["string", "number", "boolean", "null"] } })
        }
        ValueType::TextMap => json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        ValueType::Choice(choices) if key.name == "type" && choices == keys::TYPES => {
            let aliases = keys::TYPE_ALIASES.iter().map(|(alias, _)| *alias);
            json!({ "enum": choices.iter().copied().chain(aliases).collect::<Vec<_>>() })
        }
        ValueType::Choice(choices) => json!({ "enum": choices }),
        ValueType::Level => json!({ "$ref": "#/$defs/level" }),
        ValueType::Tools => {
            let rules = json!({ "type": "array", "minItems": 1, "items": { "anyOf": [definition(&keys::CASE), { "$ref": "#/$defs/level" }] } });
            json!({ "anyOf": [
                { "type": "object", "additionalProperties": { "anyOf": [{ "$ref": "#/$defs/level" }, rules] } },
                texts(),
            ] })
        }
        ValueType::Conditions => {
            json!({ "type": "object", "minProperties": 1, "additionalProperties": { "anyOf": [{ "type": "string" }, definition(&keys::CONDITION)] } })
        }
        ValueType::Object(table) => definition(table),
        ValueType::List(table) => json!({ "type": "array", "items": definition(table) }),
        ValueType::Map(table) if is_section(key.name) => json!({
            "type": "object",
            "propertyNames": { "pattern": "^(?!.*__)[A-Za-z0-9_-]{1,64}$" },
            "additionalProperties": definition(table),
        }),
        ValueType::Map(table) => json!({ "type": "object", "additionalProperties": definition(table) }),
        ValueType::Any => json!({}),
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
                        "dev": { "watch": ["**/*.ts"] }, "sandbox": { "read": ["/a"], "write": [], "network": true }, "fallback": { "port": 1 } },
                "web": { "type": "streamable-http", "url": "https://x.test", "headers": { "A": "b" }, "gallery": true }
            },
            "inputs": [{ "id": "a", "type": "promptString", "password": true }],
            "agentTools": { "codex": { "Bash": [{ "when": { "command": { "in": ["git status"] } }, "level": "allow-session" }, "require-approval"] }, "*": { "*": "deny" } },
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
