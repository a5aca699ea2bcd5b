//! Completion of `${…}` in strings. Shows whether a variable is set, but never its value.

use std::collections::BTreeSet;

use super::cursor::{Cursor, Missing};
use super::{Completions, Item, ItemKind};
use crate::config::tree::Step;
use crate::ide::config_view::ConfigView;
use crate::ide::expected::{Expected, expected, server_of};
use crate::ide::occurrences::{Named, Occurrence, Role};
use crate::ide::value_docs;

/// Completes a partial reference or an empty value; `None` if the cursor is at neither.
pub fn complete(config: &ConfigView<'_>, cursor: &Cursor<'_>, offset: usize) -> Option<Completions> {
    if !cursor.quoted || !matches!(cursor.missing, Missing::Value) {
        return None;
    }
    let in_action = matches!(cursor.path.first(), Some(Step::Key(section)) if section == "actions");
    let in_condition = cursor.path.iter().any(|step| matches!(step, Step::Key(key) if key == "inside"));
    if !in_action && !in_condition && server_of(&cursor.path).is_none() {
        return None;
    }
    let length = match cursor.typed.rfind("${") {
        Some(start) if !cursor.typed.get(start..)?.contains('}') => cursor.typed.len() - start,
        _ if cursor.typed.ends_with('$') => 1,
        _ if config.inner(&cursor.span).is_empty() && prefers_variable(&cursor.path) => 0,
        _ => return None,
    };
    let start = offset - length;
    let typed = config.text.get(start..offset)?;
    let items = if in_action {
        value_docs::ACTION_VARIABLES.iter().map(|(name, docs)| item(typed, name, name).docs(*docs)).collect()
    } else {
        all(config, typed, start)
    };
    Some(Completions { span: start..end(config, offset), items, incomplete: false })
}

/// Whether a variable is the best value: there are no other completions, or a plain value would be a secret.
fn prefers_variable(path: &[Step]) -> bool {
    match expected(path) {
        Some(Expected::Value(key, _)) => key.name == "cwd",
        Some(Expected::Element(key, _)) => matches!(key.name, "env" | "headers" | "arguments"),
        _ => false,
    }
}

/// The end of the name at the cursor, including the closing brace.
fn end(config: &ConfigView<'_>, offset: usize) -> usize {
    let rest = config.text.get(offset..).unwrap_or_default();
    let name =
        rest.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '-' | '.'))).unwrap_or(rest.len());
    match rest.get(name..) {
        Some(behind) if behind.starts_with('}') => offset + name + 1,
        _ => offset,
    }
}

fn all(config: &ConfigView<'_>, typed: &str, start: usize) -> Vec<Item> {
    let mut items: Vec<Item> =
        value_docs::VARIABLES.iter().map(|(name, docs)| item(typed, name, name).docs(*docs)).collect();
    let occurrences = config.occurrences();
    items.extend(inputs(config, &occurrences).into_iter().map(|(id, docs)| {
        let name = format!("input:{id}");
        item(typed, &name, &name).detail("input").docs(docs)
    }));
    let variable = |name: &str, detail: &str| {
        // Both spellings are equivalent. Compare with the one that the user types.
        let compared = if typed.starts_with("${env:") { format!("env:{name}") } else { name.to_owned() };
        let mut item = item(typed, &format!("env:{name}"), &compared).detail(detail);
        item.label = name.to_owned();
        item
    };
    items.extend(config.variables.iter().map(|name| variable(name, "set")));
    let unset: BTreeSet<&str> = occurrences
        .iter()
        .filter(|occurrence| occurrence.around.start != start)
        .filter_map(|occurrence| match &occurrence.named {
            Named::Variable(name) if !config.variables.contains(name) => Some(name.as_str()),
            _ => None,
        })
        .collect();
    items.extend(unset.into_iter().map(|name| variable(name, "not set")));
    for (prefix, docs) in [
        ("input", "A value that you enter once. It is stored in the OS keyring."),
        ("keyring", "A value that you have stored in the OS keyring."),
    ] {
        let mut item = item(typed, &format!("{prefix}:name"), &format!("{prefix}:name")).docs(docs);
        item.snippet = Some(format!("\\${{{prefix}:${{1:name}}\\}}"));
        items.push(item);
    }
    items
}

/// The inputs of this file, then those of other files, with their descriptions.
fn inputs(config: &ConfigView<'_>, occurrences: &[Occurrence]) -> Vec<(String, String)> {
    let own = occurrences.iter().filter(|occurrence| occurrence.role == Role::Definition).filter_map(|occurrence| {
        match &occurrence.named {
            Named::Input(id) => Some((id.clone(), String::new())),
            _ => None,
        }
    });
    let mut inputs: Vec<(String, String)> = own.collect();
    for input in &config.loaded.config.inputs {
        let docs = crate::ide::markdown::line(&input.description, 200);
        match inputs.iter_mut().find(|(id, _)| *id == input.id) {
            Some(known) if known.1.is_empty() => known.1 = docs,
            Some(_) => {}
            None => inputs.push((input.id.clone(), docs)),
        }
    }
    inputs
}

fn item(typed: &str, name: &str, compared: &str) -> Item {
    let braced = |name: &str| format!("${{{name}}}");
    Item {
        label: name.to_owned(),
        kind: ItemKind::Variable,
        detail: None,
        docs: None,
        // Starts with `$`, in case only that is typed.
        filter: if typed.is_empty() { name.to_owned() } else { braced(compared) },
        text: braced(name),
        snippet: None,
        edits: Vec::new(),
    }
}
