//! The contract as TypeScript, for the VS Code extension.

use serde_json::Value;

use crate::contract::{Contract, Field, LISTS, Message, Shape, shape};

const HEAD: &str = "// Generated from src/protocol by `make generate`. Do not edit.\n";

pub fn generate(contract: &Contract) -> String {
    let mut text = HEAD.to_owned();
    for (name, schema) in &contract.types {
        text.push('\n');
        comment(&mut text, "", schema["description"].as_str());
        match shape(schema) {
            Shape::Object(fields) => {
                text.push_str(&format!("export interface {name} {{\n"));
                fields.iter().for_each(|field| member(&mut text, field));
                text.push_str("}\n");
            }
            _ => text.push_str(&format!("export type {name} = {};\n", written(schema))),
        }
        if let (Some((_, list)), Shape::Words(words)) = (LISTS.iter().find(|(of, _)| of == name), shape(schema)) {
            let words: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
            text.push_str(&format!("\nexport const {list}: readonly {name}[] = [{}];\n", words.join(", ")));
        }
    }
    messages(&mut text, "Commands", "Every command with its params and its answer.", &contract.commands);
    messages(&mut text, "Notifications", "Every notification with its params.", &contract.notifications);
    messages(&mut text, "Requests", "Each of our own requests with its params and its answer.", &contract.requests);
    text
}

fn messages(text: &mut String, name: &str, about: &str, messages: &[Message]) {
    text.push_str(&format!("\n/** {about} */\nexport interface {name} {{\n"));
    for message in messages {
        comment(text, "  ", Some(&message.description));
        let answer = message.answer.as_ref().map(|answer| format!("; answer: {}", written(answer)));
        let params = written(&message.params);
        text.push_str(&format!("  {:?}: {{ params: {params}{} }};\n", message.name, answer.unwrap_or_default()));
    }
    text.push_str("}\n");
}

fn member(text: &mut String, field: &Field<'_>) {
    comment(text, "  ", field.description());
    let mark = if field.optional { "?" } else { "" };
    text.push_str(&format!("  {}{mark}: {};\n", field.name, written(field.schema)));
}

fn comment(text: &mut String, indent: &str, description: Option<&str>) {
    if let Some(description) = description.filter(|description| !description.is_empty()) {
        text.push_str(&format!("{indent}/** {} */\n", description.split_whitespace().collect::<Vec<_>>().join(" ")));
    }
}

fn written(schema: &Value) -> String {
    match shape(schema) {
        Shape::Any => "unknown".to_owned(),
        Shape::Named(name) => name.to_owned(),
        Shape::Words(words) => words.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(" | "),
        Shape::Union(parts) => parts.into_iter().map(written).collect::<Vec<_>>().join(" | "),
        Shape::Text => "string".to_owned(),
        Shape::Number | Shape::Integer => "number".to_owned(),
        Shape::Flag => "boolean".to_owned(),
        Shape::List(items) => match shape(items) {
            Shape::Words(_) | Shape::Union(_) => format!("({})[]", written(items)),
            _ => format!("{}[]", written(items)),
        },
        Shape::Dictionary(values) => {
            format!("Record<string, {}>", values.map_or("unknown".to_owned(), written))
        }
        Shape::Object(fields) if fields.is_empty() => "Record<string, never>".to_owned(),
        Shape::Object(fields) => {
            // Only params are written in place. In them, `null` means absent.
            let member = |field: &Field<'_>| {
                let mark = if field.optional { "?" } else { "" };
                let or_null = if field.nullable { " | null" } else { "" };
                format!("{}{mark}: {}{or_null}", field.name, written(field.schema))
            };
            format!("{{ {} }}", fields.iter().map(member).collect::<Vec<_>>().join("; "))
        }
    }
}
