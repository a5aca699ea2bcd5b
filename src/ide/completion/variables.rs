//! `${…}` inside a string. Names only: whether a variable is set is told, its value never.

use std::collections::BTreeSet;

use super::cursor::{Cursor, Hole};
use super::{Completions, Item, ItemKind};
use crate::config::tree::Step;
use crate::ide::expected::{Expected, expected, server_of};
use crate::ide::page::Page;
use crate::ide::uses::{self, Named};
use crate::ide::words;

/// Completes a reference that has been begun, or one for a value that is empty; `None` when there is neither.
pub fn complete(page: &Page<'_>, cursor: &Cursor<'_>, offset: usize) -> Option<Completions> {
    if !cursor.quoted || !matches!(cursor.hole, Hole::Value) {
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
        _ if page.inner(&cursor.span).is_empty() && best_a_variable(&cursor.path) => 0,
        _ => return None,
    };
    let start = offset - length;
    let begun = page.text.get(start..offset)?;
    let items = if in_action {
        words::ACTION_VARIABLES.iter().map(|(name, docs)| item(begun, name, name).docs(*docs)).collect()
    } else {
        all(page, begun, start)
    };
    Some(Completions { span: start..end(page, offset), items, incomplete: false })
}

/// Whether a variable is the best that can stand here: there are no other words for it, or a plain one would be a secret.
fn best_a_variable(path: &[Step]) -> bool {
    match expected(path) {
        Some(Expected::Plain(key, _)) => key.name == "cwd",
        Some(Expected::Inside(key, _)) => matches!(key.name, "env" | "headers" | "arguments"),
        _ => false,
    }
}

/// Behind the rest of the name that the cursor is in, and the brace behind it.
fn end(page: &Page<'_>, offset: usize) -> usize {
    let rest = page.text.get(offset..).unwrap_or_default();
    let name =
        rest.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '-' | '.'))).unwrap_or(rest.len());
    match rest.get(name..) {
        Some(behind) if behind.starts_with('}') => offset + name + 1,
        _ => offset,
    }
}

fn all(page: &Page<'_>, begun: &str, start: usize) -> Vec<Item> {
    let mut items: Vec<Item> =
        words::VARIABLES.iter().map(|(name, docs)| item(begun, name, name).docs(*docs)).collect();
    let uses = uses::uses(page.text, page.tree);
    items.extend(inputs(page, &uses).into_iter().map(|(id, docs)| {
        let name = format!("input:{id}");
        item(begun, &name, &name).detail("input").docs(docs)
    }));
    let variable = |name: &str, detail: &str| {
        // Both spellings are the same; what has been typed decides which one is compared.
        let compared = if begun.starts_with("${env:") { format!("env:{name}") } else { name.to_owned() };
        let mut item = item(begun, &format!("env:{name}"), &compared).detail(detail);
        item.label = name.to_owned();
        item
    };
    items.extend(page.variables.iter().map(|name| variable(name, "set")));
    let unset: BTreeSet<&str> = uses
        .iter()
        .filter(|used| used.around.start != start)
        .filter_map(|used| match &used.named {
            Named::Variable(name) if !page.variables.contains(name) => Some(name.as_str()),
            _ => None,
        })
        .collect();
    items.extend(unset.into_iter().map(|name| variable(name, "not set")));
    for (prefix, docs) in [
        ("input", "A value that you are asked for once; it is kept in the OS keyring."),
        ("keyring", "A value that you have put into the OS keyring."),
    ] {
        let mut item = item(begun, &format!("{prefix}:name"), &format!("{prefix}:name")).docs(docs);
        item.snippet = Some(format!("\\${{{prefix}:${{1:name}}\\}}"));
        items.push(item);
    }
    items
}

/// The inputs of this file, then those of the others, with what each asks.
fn inputs(page: &Page<'_>, uses: &[uses::Use]) -> Vec<(String, String)> {
    let own = uses.iter().filter(|used| used.role == uses::Role::Definition).filter_map(|used| match &used.named {
        Named::Input(id) => Some((id.clone(), String::new())),
        _ => None,
    });
    let mut inputs: Vec<(String, String)> = own.collect();
    for input in &page.loaded.config.inputs {
        let docs = crate::ide::markdown::line(&input.description, 200);
        match inputs.iter_mut().find(|(id, _)| *id == input.id) {
            Some(known) if known.1.is_empty() => known.1 = docs,
            Some(_) => {}
            None => inputs.push((input.id.clone(), docs)),
        }
    }
    inputs
}

fn item(begun: &str, name: &str, compared: &str) -> Item {
    let braced = |name: &str| format!("${{{name}}}");
    Item {
        label: name.to_owned(),
        kind: ItemKind::Variable,
        detail: None,
        docs: None,
        // Where only `$` is typed, that is all that can be compared, and this begins with it.
        filter: if begun.is_empty() { name.to_owned() } else { braced(compared) },
        text: braced(name),
        snippet: None,
        edits: Vec::new(),
    }
}
