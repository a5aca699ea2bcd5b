//! Whole servers from templates, with the inputs that they need.

use serde_json::Value;

use super::cursor::Cursor;
use super::keys::Entry;
use super::{Item, ItemKind, plain, quoted};
use crate::config::problem::TextEdit;
use crate::config::templates::{Template, templates as all};
use crate::config::tree::{Kind, Node};
use crate::ide::markdown;
use crate::ide::page::Page;

/// The skeleton of an empty file.
pub fn file(cursor: &Cursor<'_>) -> Item {
    let mut item = Item::new("servers", ItemKind::Template, cursor).detail("a new mcp.json");
    item.text = "{ \"servers\": {} }".to_owned();
    item.snippet = Some("{\n\t\"servers\": {\n\t\t$0\n\t\\}\n\\}".to_owned());
    item
}

/// A server for each template, under a name that is free.
pub fn templates(page: &Page<'_>, entry: &Entry<'_>) -> Vec<Item> {
    if entry.has_value {
        return Vec::new();
    }
    all().iter().map(|template| item(page, entry, template)).collect()
}

fn item(page: &Page<'_>, entry: &Entry<'_>, template: &Template) -> Item {
    let taken = |name: &str| entry.others().any(|member| member.key.text == name);
    let name = (1..100)
        .map(|number| if number == 1 { template.id.clone() } else { format!("{}-{number}", template.id) })
        .find(|name| !taken(name))
        .unwrap_or_else(|| template.id.clone());
    let lines = over_lines(&template.config);
    let mut item = entry.item(&name, ItemKind::Template, &on_one_line(&template.config), &plain(&lines));
    if let Some(snippet) = &mut item.snippet {
        // The name, and the one word that a general template leaves open, are there to be typed over.
        *snippet = snippet.replacen(&quoted(&name), &format!("\"${{1:{name}}}\""), 1);
        for open in ["package", "image", "https://example.com/mcp"] {
            *snippet = snippet.replacen(&quoted(open), &format!("\"${{2:{open}}}\""), 1);
        }
    }
    item.edits.extend(inputs(page, template));
    let docs = format!("{}\n\n```json\n{}\n```", markdown::line(&template.description, 300), lines.replace('\t', "  "));
    item.detail(template.title.clone()).docs(docs)
}

/// The edit that adds what is missing in `inputs`.
fn inputs(page: &Page<'_>, template: &Template) -> Option<TextEdit> {
    let root = page.tree.root.as_ref()?;
    let section = root.get("inputs").map(|member| &member.value);
    let there = section.and_then(Node::items).unwrap_or_default();
    let known = |input: &&Value| {
        let id = input.get("id").and_then(Value::as_str);
        there.iter().any(|item| item.get("id").and_then(|member| member.value.text()) == id)
    };
    let missing: Vec<String> = template.inputs.iter().filter(|input| !known(input)).map(on_one_line).collect();
    if missing.is_empty() {
        return None;
    }
    let missing = missing.join(", ");
    match section {
        Some(Node { kind: Kind::List(items), span }) => Some(match items.last() {
            Some(last) => TextEdit { span: last.span.end..last.span.end, text: format!(", {missing}") },
            None => TextEdit { span: span.start + 1..span.start + 1, text: missing },
        }),
        // Something else stands there, which is complained about already.
        Some(_) => None,
        None => {
            // Before the first entry, laid out as that one is.
            let first = root.members()?.first()?;
            let start = root.span.start + 1;
            let gap = page.text.get(start..first.key.span.start)?;
            let gap = if gap.trim().is_empty() { gap } else { "\n  " };
            Some(TextEdit { span: start..start, text: format!("{gap}\"inputs\": [{missing}],") })
        }
    }
}

/// An object with a line for each of its keys; the editor puts it at the right depth.
fn over_lines(value: &Value) -> String {
    let Some(fields) = value.as_object() else { return on_one_line(value) };
    let lines: Vec<String> =
        fields.iter().map(|(key, value)| format!("\t{}: {}", quoted(key), on_one_line(value))).collect();
    format!("{{\n{}\n}}", lines.join(",\n"))
}

/// `{ "a": [1, 2] }`
fn on_one_line(value: &Value) -> String {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            let fields: Vec<String> =
                fields.iter().map(|(key, value)| format!("{}: {}", quoted(key), on_one_line(value))).collect();
            format!("{{ {} }}", fields.join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(on_one_line).collect::<Vec<_>>().join(", ")),
        _ => value.to_string(),
    }
}
