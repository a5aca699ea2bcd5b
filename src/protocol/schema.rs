//! JSON Schemas of the names and words that the model defines.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::config::interop::Dialect;
use crate::model::{CallId, CallKind, Decision, Level, Requester, Scope, ServerName, Timestamp};

/// Gives a type of the model a schema under its own name.
macro_rules! schemas {
    ($($type:ident as $name:literal = $schema:expr;)*) => {
        $(impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
                $schema
            }
        })*
    };
}

schemas! {
    ServerName as "ServerName" = json_schema!({ "type": "string", "description": "The name of a server: letters, digits, `-` and `_`." });
    CallId as "CallId" = json_schema!({ "type": "string", "description": "Identifies a call in the log and in notifications." });
    Timestamp as "Timestamp" = json_schema!({ "type": "string", "format": "date-time", "description": "RFC 3339 in UTC." });
    Level as "Level" = json_schema!({
        "description": "How freely a tool may run, from the most to the least restrictive.",
        "enum": Level::ALL.map(Level::as_str),
    });
    Decision as "Decision" = json_schema!({
        "description": "An answer to a question about a tool call.",
        "enum": Decision::ALL.map(Decision::as_str),
    });
 CallKind as "CallKind" = json_schema!({
        "description": "What a call requests from a server. Only denied completions are recorded.",
        "enum": CallKind::ALL.map(CallKind::as_str),
    });
    Scope as "FileScope" = json_schema!({
        "description": "Where a definition is written.",
        "enum": ["user", "project", "local", "session", "managed"],
    });
    Dialect as "Dialect" = json_schema!({
        "description": "A program whose config files can be imported and exported.",
        "enum": Dialect::ALL.map(Dialect::name),
    });
    Requester as "Requester" = json_schema!({
        "description": "Who made a call.",
        "type": "object",
        "properties": {
            "kind": { "enum": ["user", "plugin", "agent"] },
            "name": { "type": "string" },
        },
        "required": ["kind"],
    });
}
