//! The contract as LuaCATS annotations, for the Neovim plugin.

use serde_json::Value;

use crate::contract::{Contract, LISTS, Shape, shape};

const HEAD: &str = "---@meta\n-- Generated from src/protocol by `make generate`. Do not edit.\n";

pub fn generate(contract: &Contract) -> String {
    let mut text = HEAD.to_owned();
    for (name, schema) in &contract.types {
        text.push('\n');
        if let Some(description) = schema["description"].as_str() {
            text.push_str(&format!("---{}\n", one_line(description)));
        }
        match shape(schema) {
            Shape::Object(fields) => {
                text.push_str(&format!("---@class mcp_sidecar.{name}\n"));
                for field in fields {
                    let mark = if field.optional { "?" } else { "" };
                    let about = field.description().map(|text| format!(" {}", one_line(text))).unwrap_or_default();
                    text.push_str(&format!("---@field {}{mark} {}{about}\n", field.name, written(field.schema)));
                }
            }
            _ => text.push_str(&format!("---@alias mcp_sidecar.{name} {}\n", written(schema))),
        }
    }
    text
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn written(schema: &Value) -> String {
    match shape(schema) {
        Shape::Any => "any".to_owned(),
        Shape::Named(name) => format!("mcp_sidecar.{name}"),
        Shape::Words(words) => words.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join("|"),
        Shape::Union(parts) => parts.into_iter().map(written).collect::<Vec<_>>().join("|"),
        Shape::Text => "string".to_owned(),
        Shape::Number => "number".to_owned(),
        Shape::Integer => "integer".to_owned(),
        Shape::Flag => "boolean".to_owned(),
        Shape::List(items) => match shape(items) {
            Shape::Words(_) | Shape::Union(_) => format!("({})[]", written(items)),
            _ => format!("{}[]", written(items)),
        },
        Shape::Dictionary(values) => format!("table<string, {}>", values.map_or("any".to_owned(), written)),
        Shape::Object(_) => "table".to_owned(),
    }
}

/// The words that are needed at run time, too.
pub fn lists(contract: &Contract) -> String {
    let mut text = "-- Generated from src/protocol by `make generate`. Do not edit.\n\nreturn {\n".to_owned();
    for (name, list) in LISTS {
        if let Shape::Words(words) = shape(&contract.types[name]) {
            let words: Vec<String> = words.iter().map(|word| format!("    {word:?},\n")).collect();
            text.push_str(&format!("  {} = {{\n{}  }},\n", list.to_lowercase(), words.concat()));
        }
    }
    text + "}\n"
}
