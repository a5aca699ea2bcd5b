//! Completion of whole servers from templates, with the inputs that they need.

use serde_json::Value;

use super::cursor::Cursor;
use super::keys::NewEntry;
use super::{Item, ItemKind, escape_snippet, quoted};
use crate::config::problem::TextEdit;
use crate::config::templates::{Placeholder, Template, templates as all};
use crate::config::tree::{Kind, Node};
use crate::ide::config_view::ConfigView;
use crate::ide::markdown;

/// The skeleton of an empty file.
pub fn file(cursor: &Cursor<'_>) -> Item {
    let mut item = Item::new("servers", ItemKind::Template, cursor).detail("new mcp.json");
    item.text = "{ \"servers\": {} }".to_owned();
    item.snippet = Some("{\n\t\"servers\": {\n\t\t$0\n\t\\}\n\\}".to_owned());
    item
}

/// A server for each template, with an unused name.
pub fn templates(config: &ConfigView<'_>, entry: &NewEntry<'_>) -> Vec<Item> {
    if entry.has_value {
        return Vec::new();
    }
    let templates = all().iter().map(|template| item(config, entry, template));
    templates.chain(restrictions(config, entry)).collect()
}

/// The servers that files of lower precedence define. An entry here can disable them or restrict their tools.
fn restrictions(config: &ConfigView<'_>, entry: &NewEntry<'_>) -> Vec<Item> {
    let taken = |name: &str| entry.others().any(|member| member.key.text == name);
    let servers = config.visible_servers();
    let below =
        servers.filter(|(name, view)| view.definition.scope < config.file.source.scope && !taken(name.as_str()));
    below
        .map(|(name, view)| {
            let text = "{ \"enabled\": false }";
            let detail = format!("disable or restrict the server of scope {}", view.definition.scope);
            let item = entry.item(name.as_str(), ItemKind::Server, text, "{ \"enabled\": ${1|false,true|} \\}");
            item.detail(detail).docs(crate::ide::hover::server::describe(config, name.as_str()))
        })
        .collect()
}

fn item(config: &ConfigView<'_>, entry: &NewEntry<'_>, template: &Template) -> Item {
    let taken = |name: &str| entry.others().any(|member| member.key.text == name);
    let name = (1..100)
        .map(|number| if number == 1 { template.id.clone() } else { format!("{}-{number}", template.id) })
        .find(|name| !taken(name))
        .unwrap_or_else(|| template.id.clone());
    let lines = multiline(&template.config);
    let mut item = entry.item(&name, ItemKind::Template, &single_line(&template.config), &escape_snippet(&lines));
    if let Some(snippet) = &mut item.snippet {
        // The user can type over the name, and over the placeholder of a generic template.
        *snippet = snippet.replacen(&quoted(&name), &format!("\"${{1:{name}}}\""), 1);
        if let Some(Placeholder { value, .. }) = &template.placeholder {
            *snippet = snippet.replacen(&quoted(value), &format!("\"${{2:{value}}}\""), 1);
        }
    }
    item.edits.extend(inputs(config, template));
    let docs = format!("{}\n\n```json\n{}\n```", markdown::line(&template.description, 300), lines.replace('\t', "  "));
    item.detail(template.title.clone()).docs(docs)
}

/// The edit that adds the missing `inputs`.
fn inputs(config: &ConfigView<'_>, template: &Template) -> Option<TextEdit> {
    let root = config.tree.root.as_ref()?;
    let section = root.get("inputs").map(|member| &member.value);
    let existing = section.and_then(Node::items).unwrap_or_default();
    let known = |input: &&Value| {
        let id = input.get("id").and_then(Value::as_str);
        existing.iter().any(|item| item.get("id").and_then(|member| member.value.text()) == id)
    };
    let missing: Vec<String> = template.inputs.iter().filter(|input| !known(input)).map(single_line).collect();
    if missing.is_empty() {
        return None;
    }
    let missing = missing.join(", ");
    match section {
        Some(Node { kind: Kind::List(items), span }) => Some(match items.last() {
            Some(last) => TextEdit { span: last.span.end..last.span.end, text: format!(", {missing}") },
            None => TextEdit { span: span.start + 1..span.start + 1, text: missing },
        }),
        // Not a list, which is already a diagnostic.
        Some(_) => None,
        None => {
            // Before the first entry, with the same layout.
            let first = root.members()?.first()?;
            let start = root.span.start + 1;
            let gap = config.text.get(start..first.key.span.start)?;
            let gap = if gap.trim().is_empty() { gap } else { "\n  " };
            Some(TextEdit { span: start..start, text: format!("{gap}\"inputs\": [{missing}],") })
        }
    }
}

/// An object with one key per line. The editor indents it.
fn multiline(value: &Value) -> String {
    let Some(fields) = value.as_object() else { return single_line(value) };
    let lines: Vec<String> =
        fields.iter().map(|(key, value)| format!("\t{}: {}", quoted(key), single_line(value))).collect();
    format!("{{\n{}\n}}", lines.join(",\n"))
}

/// `{ "a": [1, 2] }`
fn single_line(value: &Value) -> String {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            let fields: Vec<String> =
                fields.iter().map(|(key, value)| format!("{}: {}", quoted(key), single_line(value))).collect();
            format!("{{ {} }}", fields.join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(single_line).collect::<Vec<_>>().join(", ")),
        _ => value.to_string(),
    }
}
