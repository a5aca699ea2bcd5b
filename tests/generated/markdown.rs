//! The reference tables of `docs/protocol.md`. Each stands between two comments that name it.

use serde_json::Value;

use crate::contract::{Contract, Message, Shape, shape};

/// The page with its tables written again.
pub fn update(page: &str, contract: &Contract) -> String {
    let tables = [
        ("commands", messages(&contract.commands)),
        ("notifications", messages(&contract.notifications)),
        ("requests", messages(&contract.requests)),
        ("errors", words(&contract.types["ErrorKind"])),
        ("types", types(contract)),
    ];
    let mut page = page.to_owned();
    for (name, table) in tables {
        let (begin, end) = (format!("<!-- generated: {name} -->\n"), "<!-- end of generated part -->");
        let from = page.find(&begin).unwrap_or_else(|| panic!("docs/protocol.md has no part `{name}`")) + begin.len();
        let to = from + page[from..].find(end).unwrap_or_else(|| panic!("the part `{name}` has no end"));
        page.replace_range(from..to, &table);
    }
    page
}

fn messages(messages: &[Message]) -> String {
    let answered = messages.iter().any(|message| message.answer.is_some());
    let mut table = if answered {
        "| name | what it does | params | answer |\n|---|---|---|---|\n".to_owned()
    } else {
        "| name | what it reports | params |\n|---|---|---|\n".to_owned()
    };
    for message in messages {
        let answer = message.answer.as_ref().map(|answer| format!(" {} |", cell(answer))).unwrap_or_default();
        let description = cell_text(&message.description);
        table.push_str(&format!("| `{}` | {description} | {} |{answer}\n", message.name, cell(&message.params)));
    }
    table
}

fn types(contract: &Contract) -> String {
    let mut text = String::new();
    for (name, schema) in &contract.types {
        text.push_str(&format!("#### {name}\n"));
        if let Some(description) = schema["description"].as_str() {
            text.push_str(&format!("{}\n", cell_text(description)));
        }
        match shape(schema) {
            Shape::Object(fields) => {
                text.push_str("\n| field | type | |\n|---|---|---|\n");
                for field in fields {
                    let mark = if field.optional { "?" } else { "" };
                    let about = field.description().map(cell_text).unwrap_or_default();
                    text.push_str(&format!("| `{}{mark}` | {} | {about} |\n", field.name, cell(field.schema)));
                }
            }
            Shape::Words(_) => text.push_str(&format!("\n{}", words(schema))),
            _ => text.push_str(&format!("\n{}\n", cell(schema))),
        }
        text.push('\n');
    }
    text
}

/// The words of an enumeration, with what each means where that is said.
fn words(schema: &Value) -> String {
    let explained: Vec<(&str, &str)> = schema["oneOf"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|part| Some((part["const"].as_str()?, part["description"].as_str()?)))
        .collect();
    if explained.is_empty() {
        let Shape::Words(words) = shape(schema) else { return String::new() };
        return format!("{}\n", words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "));
    }
    let row = |(word, about): (&str, &str)| format!("| `{word}` | {} |\n", cell_text(about));
    format!("| value | meaning |\n|---|---|\n{}", explained.into_iter().map(row).collect::<String>())
}

fn cell_text(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

fn cell(schema: &Value) -> String {
    match shape(schema) {
        Shape::Any => "any JSON".to_owned(),
        Shape::Named(name) => format!("[{name}](#{})", name.to_lowercase()),
        Shape::Words(words) => words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "),
        Shape::Union(parts) => parts.into_iter().map(cell).collect::<Vec<_>>().join(" or "),
        Shape::Text => "string".to_owned(),
        Shape::Number => "number".to_owned(),
        Shape::Integer => "integer".to_owned(),
        Shape::Flag => "boolean".to_owned(),
        Shape::List(items) => format!("list of {}", cell(items)),
        Shape::Dictionary(values) => format!("map of {}", values.map_or("any JSON".to_owned(), cell)),
        Shape::Object(fields) if fields.is_empty() => "none".to_owned(),
        Shape::Object(fields) => {
            let name = |field: &crate::contract::Field<'_>| {
                format!("`{}{}`: {}", field.name, if field.optional { "?" } else { "" }, cell(field.schema))
            };
            fields.iter().map(name).collect::<Vec<_>>().join("; ")
        }
    }
}
