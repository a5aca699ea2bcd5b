//! A form made from a JSON Schema: the arguments of a tool, or the answer to a question of a server. Every front shows
//! these fields and sends back what the user entered; reading and checking it happens here.

use std::cell::Cell;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::errors::Violation;
use super::types::Object;
use crate::engine::arguments::check_form;
use crate::text::{counted, visible};

/// How deep objects and lists are taken apart. What is deeper is entered as JSON.
const MAX_DEPTH: usize = 6;
/// How many fields are taken apart in all: a schema can refer to itself many times.
const MAX_FIELDS: usize = 500;
/// How many references to other parts of a schema are followed in a row.
const MAX_REFERENCES: usize = 16;

/// The fields of a form, required ones first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Form {
    pub fields: Vec<Field>,
}

/// A field of a form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Field {
    /// The key of its value.
    pub name: String,
    pub title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    pub required: bool,
    pub kind: FieldKind,
    /// What can be entered, as text: `a whole number, at least 1`.
    pub rule: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// The values to choose from. A field of kind `choices` takes several of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Choice>,
    /// The fields of an object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<Field>,
    /// An item of a list. The user can add as many as the rule allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<Box<Field>>,
}

/// How a value is entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FieldKind {
    Text,
    /// Text of several lines.
    Multiline,
    /// Text that must not be shown.
    Secret,
    Integer,
    Number,
    Boolean,
    Choice,
    Choices,
    Object,
    List,
    /// Anything else, as JSON.
    Json,
}

/// A value to choose.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Choice {
    pub value: Value,
    pub title: String,
}

impl Form {
    pub fn of_schema(schema: &Object) -> Self {
        let secret = schema.get("password") == Some(&Value::Bool(true));
        let reader = Reader { root: schema, secret, left: Cell::new(MAX_FIELDS) };
        Self { fields: reader.fields(schema, 0) }
    }

    /// What was entered, as values of the schema. A text that does not fit its field stays as it is, so that the check
    /// reports it. An optional field that is empty is left out.
    pub fn read(&self, entered: &Object) -> Object {
        read_fields(&self.fields, entered)
    }
}

/// What was entered in the form of a schema, and what is wrong with it. Unlike a call, this also checks formats.
pub fn check(schema: &Object, entered: &Object) -> (Object, Vec<Violation>) {
    let values = Form::of_schema(schema).read(entered);
    let problems = check_form(schema, &values, true);
    (values, problems.iter().map(Into::into).collect())
}

fn read_fields(fields: &[Field], entered: &Object) -> Object {
    let mut values = Object::new();
    for (name, value) in entered {
        let value = match fields.iter().find(|field| field.name == *name) {
            Some(field) => match read_value(field, value) {
                Some(value) => value,
                None => continue,
            },
            None => value.clone(),
        };
        values.insert(name.clone(), value);
    }
    values
}

/// `None` if nothing was entered.
fn read_value(field: &Field, value: &Value) -> Option<Value> {
    match (field.kind, value) {
        (FieldKind::Object, Value::Object(entered)) => Some(Value::Object(read_fields(&field.fields, entered))),
        (FieldKind::List, Value::Array(items)) => {
            let Some(item) = &field.item else { return Some(value.clone()) };
            Some(items.iter().map(|each| read_value(item, each).unwrap_or_else(|| each.clone())).collect())
        }
        (_, Value::Null) if !field.required => None,
        (_, Value::String(text)) => read_text(field, text),
        _ => Some(value.clone()),
    }
}

fn read_text(field: &Field, text: &str) -> Option<Value> {
    let is_text = matches!(field.kind, FieldKind::Text | FieldKind::Multiline | FieldKind::Secret);
    if text.is_empty() && !field.required {
        return None;
    }
    let trimmed = text.trim();
    let read = match field.kind {
        _ if is_text => None,
        FieldKind::Boolean => match trimmed.to_lowercase().as_str() {
            "true" | "yes" | "y" => Some(Value::Bool(true)),
            "false" | "no" | "n" => Some(Value::Bool(false)),
            _ => None,
        },
        FieldKind::Choice => chosen(field, trimmed),
        FieldKind::Choices => trimmed.split(',').map(|part| chosen(field, part.trim())).collect(),
        // Without JSON, each line is an item.
        FieldKind::List => serde_json::from_str(trimmed).ok().filter(Value::is_array).or_else(|| {
            let item = field.item.as_ref()?;
            Some(text.lines().filter_map(|line| read_text(item, line)).collect())
        }),
        _ => serde_json::from_str(trimmed).ok(),
    };
    Some(read.unwrap_or_else(|| Value::String(text.to_owned())))
}

/// The choice with this value or title.
fn chosen(field: &Field, text: &str) -> Option<Value> {
    let value: Option<Value> = serde_json::from_str(text).ok();
    let is_it = |choice: &&Choice| choice.value.as_str() == Some(text) || value.as_ref() == Some(&choice.value);
    let by_value = field.choices.iter().find(is_it);
    by_value.or_else(|| field.choices.iter().find(|choice| choice.title == text)).map(|choice| choice.value.clone())
}

struct Reader<'a> {
    root: &'a Object,
    /// Every text is a secret.
    secret: bool,
    /// How many more fields may be taken apart.
    left: Cell<usize>,
}

impl Reader<'_> {
    fn fields(&self, schema: &Object, depth: usize) -> Vec<Field> {
        let required: Vec<&str> = list(schema, "required").iter().filter_map(Value::as_str).collect();
        let properties = schema.get("properties").and_then(Value::as_object);
        let mut fields: Vec<Field> = properties
            .into_iter()
            .flatten()
            .map(|(name, schema)| self.field(name, schema, required.contains(&name.as_str()), depth))
            .collect();
        fields.sort_by_key(|field| !field.required);
        fields
    }

    fn field(&self, name: &str, schema: &Value, required: bool, depth: usize) -> Field {
        self.left.set(self.left.get().saturating_sub(1));
        let empty = Object::new();
        let outer = schema.as_object().unwrap_or(&empty);
        let schema = &self.resolve(outer);
        let text = |key: &str| outer.get(key).or_else(|| schema.get(key)).and_then(Value::as_str);
        let choices = self.choices(schema);
        let kind = self.kind(name, schema, &choices, depth);
        let item = match kind {
            FieldKind::List => {
                let items = schema.get("items").unwrap_or(&Value::Bool(true));
                Some(Box::new(self.field("", items, true, depth + 1)))
            }
            _ => None,
        };
        let fields = if kind == FieldKind::Object { self.fields(schema, depth + 1) } else { Vec::new() };
        let default = outer.get("default").or_else(|| schema.get("default")).or_else(|| schema.get("const"));
        Field {
            name: name.to_owned(),
            title: visible(text("title").filter(|title| !title.is_empty()).unwrap_or(name), 200),
            help: text("description").filter(|help| !help.is_empty()).map(|help| visible(help, 2_000)),
            required,
            kind,
            rule: rule(schema, kind),
            default: default.filter(|default| !default.is_null()).cloned(),
            choices,
            fields,
            item,
        }
    }

    /// Follows references, and leaves out `null` as an alternative: an optional field is simply not sent.
    fn resolve(&self, schema: &Object) -> Object {
        let mut schema = schema.clone();
        for _ in 0..MAX_REFERENCES {
            if let Some(target) = schema.get("$ref").and_then(Value::as_str).and_then(|path| self.target(path)) {
                schema = target.clone();
                continue;
            }
            let alternatives = ["anyOf", "oneOf", "allOf"].iter().find_map(|key| schema.get(*key)?.as_array());
            let is_null = |each: &&Value| each.get("type") == Some(&Value::String("null".to_owned()));
            let others: Vec<&Value> = alternatives.into_iter().flatten().filter(|each| !is_null(each)).collect();
            match others.as_slice() {
                [Value::Object(only)] if !only.contains_key("const") => {
                    let mut merged = only.clone();
                    let own = schema.iter().filter(|(key, _)| !matches!(key.as_str(), "anyOf" | "oneOf" | "allOf"));
                    merged.extend(own.map(|(key, value)| (key.clone(), value.clone())));
                    schema = merged;
                }
                _ => break,
            }
        }
        schema
    }

    /// Only references within the same schema are followed.
    fn target(&self, path: &str) -> Option<&Object> {
        let mut found = self.root;
        for part in path.strip_prefix("#/")?.split('/') {
            found = found.get(&part.replace("~1", "/").replace("~0", "~"))?.as_object()?;
        }
        Some(found)
    }

    fn kind(&self, name: &str, schema: &Object, choices: &[Choice], depth: usize) -> FieldKind {
        let kinds = types(schema);
        let shallow = depth < MAX_DEPTH && self.left.get() > 0;
        match kinds.as_slice() {
            ["array"] if !choices.is_empty() => FieldKind::Choices,
            _ if !choices.is_empty() => FieldKind::Choice,
            ["array"] if shallow && schema.get("items").is_some_and(Value::is_object) => FieldKind::List,
            ["boolean"] => FieldKind::Boolean,
            ["integer"] => FieldKind::Integer,
            ["number"] | ["integer", "number"] | ["number", "integer"] => FieldKind::Number,
            ["string"] if self.secret || schema.get("format").is_some_and(|format| format == "password") => {
                FieldKind::Secret
            }
            ["string"] if is_multiline(name, schema) => FieldKind::Multiline,
            ["string"] => FieldKind::Text,
            ["object"] | [] if shallow && schema.get("properties").is_some_and(Value::is_object) => FieldKind::Object,
            _ => FieldKind::Json,
        }
    }

    fn choices(&self, schema: &Object) -> Vec<Choice> {
        if types(schema) == ["array"] {
            let items = schema.get("items").and_then(Value::as_object);
            return items.map(|items| self.choices(&self.resolve(items))).unwrap_or_default();
        }
        let names = list(schema, "enumNames");
        let titled = |(place, value): (usize, &Value)| Choice {
            title: names.get(place).and_then(Value::as_str).map_or_else(|| shown(value), |name| visible(name, 200)),
            value: value.clone(),
        };
        let listed: Vec<Choice> = list(schema, "enum").iter().enumerate().map(titled).collect();
        if !listed.is_empty() {
            return listed;
        }
        let constant = |option: &Value| {
            let value = option.get("const")?;
            let title = option.get("title").and_then(Value::as_str).map(|title| visible(title, 200));
            Some(Choice { title: title.unwrap_or_else(|| shown(value)), value: value.clone() })
        };
        let options = ["oneOf", "anyOf"].iter().map(|key| list(schema, key)).find(|options| !options.is_empty());
        options.and_then(|options| options.iter().map(constant).collect()).unwrap_or_default()
    }
}

fn list<'a>(schema: &'a Object, key: &str) -> &'a [Value] {
    schema.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn types(schema: &Map<String, Value>) -> Vec<&str> {
    let kinds = match schema.get("type") {
        Some(Value::String(kind)) => vec![kind.as_str()],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    kinds.into_iter().filter(|kind| *kind != "null").collect()
}

/// Schemas have no keyword for this: files, messages and code are long, and so is a default with several lines.
fn is_multiline(name: &str, schema: &Object) -> bool {
    let long = ["body", "code", "content", "description", "diff", "markdown", "message", "patch", "query", "script"];
    let default = schema.get("default").and_then(Value::as_str).unwrap_or_default();
    let short = schema.get("maxLength").and_then(Value::as_u64).is_some_and(|most| most <= 200);
    let plain = schema.get("format").is_none() && schema.get("pattern").is_none() && !short;
    default.contains('\n') || schema.contains_key("contentMediaType") || (plain && long.contains(&name))
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => visible(text, 200),
        other => visible(&other.to_string(), 200),
    }
}

fn rule(schema: &Object, kind: FieldKind) -> String {
    let noun = match kind {
        FieldKind::Text | FieldKind::Multiline | FieldKind::Secret => "text",
        FieldKind::Integer => "a whole number",
        FieldKind::Number => "a number",
        FieldKind::Boolean => "yes or no",
        FieldKind::Choice => "one of the choices",
        FieldKind::Choices => "any of the choices",
        FieldKind::Object => "an object",
        FieldKind::List => "a list",
        FieldKind::Json => "JSON",
    };
    let mut parts = vec![noun.to_owned()];
    let bounds = [
        ("minimum", "at least"),
        ("exclusiveMinimum", "more than"),
        ("maximum", "at most"),
        ("exclusiveMaximum", "less than"),
        ("multipleOf", "a multiple of"),
    ];
    for (key, words) in bounds {
        parts.extend(schema.get(key).filter(|bound| bound.is_number()).map(|bound| format!("{words} {bound}")));
    }
    let sizes = [
        ("minLength", "at least", "character"),
        ("maxLength", "at most", "character"),
        ("minItems", "at least", "item"),
        ("maxItems", "at most", "item"),
    ];
    for (key, words, noun) in sizes {
        let size = schema.get(key).and_then(Value::as_u64).and_then(|size| usize::try_from(size).ok());
        parts.extend(size.map(|size| format!("{words} {}", counted(size, noun))));
    }
    let text = |key: &str| schema.get(key).and_then(Value::as_str).map(|text| visible(text, 200));
    parts.extend(text("format").filter(|_| kind == FieldKind::Text).map(|format| format!("format {format}")));
    parts.extend(text("pattern").map(|pattern| format!("must match `{pattern}`")));
    parts.join(", ")
}

#[cfg(test)]
mod tests;
