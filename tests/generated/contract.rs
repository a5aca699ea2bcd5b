//! The whole contract as JSON Schemas.

use std::collections::BTreeMap;

use mcp_sidecar::protocol::DiagnosticCode;
use mcp_sidecar::protocol::commands::{self, Command};
use mcp_sidecar::protocol::errors::ErrorData;
use mcp_sidecar::protocol::events::{self, Notification, Request};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// Types whose words are needed at run time, too.
pub const LISTS: [(&str, &str); 2] = [("Dialect", "DIALECTS"), ("Level", "LEVELS")];

pub struct Contract {
    pub commands: Vec<Message>,
    pub notifications: Vec<Message>,
    pub requests: Vec<Message>,
    /// Every named type.
    pub types: BTreeMap<String, Value>,
}

/// A command, notification or request.
pub struct Message {
    pub name: &'static str,
    pub description: String,
    /// An object schema.
    pub params: Value,
    /// Notifications have none.
    pub answer: Option<Value>,
}

struct Reader {
    /// What is read from the wire: a field with a default is optional.
    incoming: SchemaGenerator,
    /// What is written to it: a field that may be skipped is optional.
    outgoing: SchemaGenerator,
    contract: Contract,
}

impl Contract {
    pub fn read() -> Self {
        let mut reader = Reader {
            incoming: SchemaSettings::draft2020_12().for_deserialize().into_generator(),
            outgoing: SchemaSettings::draft2020_12().for_serialize().into_generator(),
            contract: Self {
                commands: Vec::new(),
                notifications: Vec::new(),
                requests: Vec::new(),
                types: BTreeMap::new(),
            },
        };
        commands::visit(&mut reader);
        events::visit(&mut reader);
        reader.outgoing.subschema_for::<ErrorData>();
        reader.outgoing.subschema_for::<DiagnosticCode>();
        let Reader { mut incoming, mut outgoing, mut contract } = reader;
        contract.types.extend(incoming.take_definitions(true));
        contract.types.extend(outgoing.take_definitions(true));
        contract
    }

    /// One JSON Schema document with every message and type.
    pub fn schema(&self) -> Value {
        let messages = |all: &[Message]| -> Map<String, Value> {
            let entry = |message: &Message| {
                let mut entry = json!({ "description": message.description, "params": message.params });
                if let Some(answer) = &message.answer {
                    entry["answer"] = answer.clone();
                }
                (message.name.to_owned(), entry)
            };
            all.iter().map(entry).collect()
        };
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "Editor protocol of mcp-sidecar",
            "commands": messages(&self.commands),
            "notifications": messages(&self.notifications),
            "requests": messages(&self.requests),
            "$defs": self.types,
        })
    }
}

/// The schema of a type without its name, with its description apart.
fn inline<T: JsonSchema>(generator: &SchemaGenerator) -> (Value, String) {
    let mut own = generator.settings().clone().into_generator();
    let mut schema = Value::from(T::json_schema(&mut own));
    let description = schema.as_object_mut().and_then(|fields| fields.shift_remove("description"));
    (schema, description.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned())
}

impl commands::Visitor for Reader {
    fn command<C: Command>(&mut self) {
        // Registers the named types that the params use.
        C::json_schema(&mut self.incoming);
        let (params, description) = inline::<C>(&self.incoming);
        let answer = Some(Value::from(self.outgoing.subschema_for::<C::Answer>()));
        self.contract.commands.push(Message { name: C::NAME, description, params, answer });
    }
}

impl events::Visitor for Reader {
    fn notification<N: Notification>(&mut self) {
        N::json_schema(&mut self.outgoing);
        let (params, description) = inline::<N>(&self.outgoing);
        self.contract.notifications.push(Message { name: N::METHOD, description, params, answer: None });
    }

    fn request<R: Request>(&mut self) {
        R::json_schema(&mut self.outgoing);
        let (params, description) = inline::<R>(&self.outgoing);
        let answer = Some(Value::from(self.outgoing.subschema_for::<R::Answer>()));
        self.contract.requests.push(Message { name: R::METHOD, description, params, answer });
    }
}

/// What a schema says, as far as our types use JSON Schema.
pub enum Shape<'a> {
    Any,
    Named(&'a str),
    /// One of these texts.
    Words(Vec<&'a str>),
    Union(Vec<&'a Value>),
    Text,
    Number,
    Integer,
    Flag,
    List(&'a Value),
    /// An object with any keys.
    Dictionary(Option<&'a Value>),
    Object(Vec<Field<'a>>),
}

pub struct Field<'a> {
    pub name: &'a str,
    pub optional: bool,
    pub nullable: bool,
    pub schema: &'a Value,
}

impl Field<'_> {
    pub fn description(&self) -> Option<&str> {
        self.schema["description"].as_str()
    }
}

fn is_null(schema: &Value) -> bool {
    schema["type"] == "null"
}

fn nullable(schema: &Value) -> bool {
    let among = |key: &str| schema[key].as_array().is_some_and(|all| all.iter().any(is_null));
    schema["type"].as_array().is_some_and(|types| types.contains(&json!("null"))) || among("anyOf") || among("oneOf")
}

/// Reads one schema.
pub fn shape(schema: &Value) -> Shape<'_> {
    if let Some(reference) = schema["$ref"].as_str() {
        return Shape::Named(reference.rsplit('/').next().unwrap());
    }
    if let Some(words) = schema["enum"].as_array() {
        return Shape::Words(words.iter().filter_map(Value::as_str).collect());
    }
    if let Some(parts) = schema["oneOf"].as_array().or(schema["anyOf"].as_array()) {
        let parts: Vec<&Value> = parts.iter().filter(|part| !is_null(part)).collect();
        if parts.iter().all(|part| part["const"].is_string() || part["enum"].is_array()) {
            let words = parts.iter().flat_map(|part| match part["enum"].as_array() {
                Some(several) => several.iter().filter_map(Value::as_str).collect(),
                None => vec![part["const"].as_str().unwrap()],
            });
            return Shape::Words(words.collect());
        }
        return if let [only] = parts[..] { shape(only) } else { Shape::Union(parts) };
    }
    let name = match &schema["type"] {
        Value::String(name) => name.as_str(),
        Value::Array(names) => names.iter().filter_map(Value::as_str).find(|name| *name != "null").unwrap(),
        _ => return Shape::Any,
    };
    match name {
        "string" => Shape::Text,
        "number" => Shape::Number,
        "integer" => Shape::Integer,
        "boolean" => Shape::Flag,
        "array" => Shape::List(&schema["items"]),
        "object" => match schema["properties"].as_object() {
            Some(properties) => {
                let required = schema["required"].as_array();
                let needed = |name: &str| required.is_some_and(|all| all.iter().any(|each| each == name));
                let field = |(name, schema)| {
                    let nullable = nullable(schema);
                    Field { name, optional: !needed(name) || nullable, nullable, schema }
                };
                Shape::Object(properties.iter().map(|(name, schema)| field((name.as_str(), schema))).collect())
            }
            None => Shape::Dictionary(Some(&schema["additionalProperties"]).filter(|values| values.is_object())),
        },
        other => panic!("a type that no generator knows: {other}"),
    }
}
