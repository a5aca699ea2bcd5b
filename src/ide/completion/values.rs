//! Values: words of a choice, names of servers and tools, programs.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::cursor::Cursor;
use super::keys::describe;
use super::{Item, ItemKind, quoted};
use crate::config::shape::keys::{self, Key, Of, Table};
use crate::config::templates::templates;
use crate::config::tree::{Node, Step};
use crate::engine::snapshot::{OfferedTool, ServerView};
use crate::ide::expected::{Expected, expected, server_of};
use crate::ide::page::Page;
use crate::ide::uses::{self, Named, Role};
use crate::ide::words;
use crate::model::{Level, ServerName, ToolId};
use crate::policy::NameGlob;

pub fn values(page: &Page<'_>, cursor: &Cursor<'_>) -> Vec<Item> {
    match expected(&cursor.path) {
        Some(Expected::Rule) => of_levels(cursor),
        Some(Expected::Plain(key, table)) => plain(page, cursor, key, table),
        Some(Expected::Inside(key, table)) => inside(page, cursor, key, table),
        Some(Expected::Table(_) | Expected::Map(_) | Expected::Tools | Expected::Conditions) if !cursor.quoted => {
            vec![brackets(cursor, "{}", "{ $1 }")]
        }
        Some(Expected::List(_)) if !cursor.quoted => vec![brackets(cursor, "[]", "[{ $1 }]")],
        Some(Expected::Condition) if !cursor.quoted => conditions(cursor),
        _ => Vec::new(),
    }
}

/// Whether a file with variables is named here.
pub fn is_env_file(cursor: &Cursor<'_>) -> bool {
    matches!(expected(&cursor.path), Some(Expected::Plain(key, _)) if key.name == "envFile")
}

pub fn files(cursor: &Cursor<'_>, names: &[String]) -> Vec<Item> {
    cursor
        .few(names.iter(), |name| (*name).clone())
        .into_iter()
        .map(|name| text(cursor, name, ItemKind::File))
        .collect()
}

/// All levels by name, narrowest first.
pub fn levels() -> Vec<&'static str> {
    Level::ALL.iter().map(|level| level.as_str()).collect()
}

fn plain(page: &Page<'_>, cursor: &Cursor<'_>, key: &Key, table: &'static Table) -> Vec<Item> {
    let is = |other: &'static Table| std::ptr::eq(table, other);
    match (key.of, key.name) {
        (Of::Flag, _) if cursor.quoted => Vec::new(),
        (Of::Flag, _) => ["true", "false"].map(|word| Item::new(word, ItemKind::Word, cursor)).into(),
        (Of::Choice(choices), _) => choices.iter().map(|choice| word(cursor, choice)).collect(),
        (Of::Level, _) => of_levels(cursor),
        (_, "command") if !is(&keys::INPUT) => programs(page, cursor),
        (_, "server") if is(&keys::MATCHER) => servers(page, cursor),
        (_, "tool") if is(&keys::MATCHER) => matched_tools(page, cursor),
        (_, "tool") if is(&keys::ACTION) => tool_ids(page, cursor),
        (_, "id") if is(&keys::INPUT) => missing_inputs(page, cursor),
        (_, "url") => addresses(cursor),
        (Of::Texts, _) if !cursor.quoted => vec![brackets(cursor, "[]", "[\"$1\"]")],
        (Of::Environment | Of::TextMap, _) if !cursor.quoted => vec![brackets(cursor, "{}", "{ $1 }")],
        _ => Vec::new(),
    }
}

fn inside(page: &Page<'_>, cursor: &Cursor<'_>, key: &Key, table: &'static Table) -> Vec<Item> {
    match key.name {
        "command" if cursor.path.last() == Some(&Step::Index(0)) => programs(page, cursor),
        "commands" if std::ptr::eq(table, &keys::POLICY) => programs(page, cursor),
        "args" => packages(page, cursor),
        "disabled_tools" | "disabledTools" | "excludeTools" | "enabled_tools" | "includeTools" => {
            let view = server_of(&cursor.path).and_then(|name| page.server(name));
            let tools = view.iter().flat_map(|view| view.tools.values());
            let tools = cursor.few(tools, |offered| offered.tool.name.to_string());
            tools.into_iter().map(|offered| tool(cursor, offered)).collect()
        }
        _ => Vec::new(),
    }
}

fn text(cursor: &Cursor<'_>, word: &str, kind: ItemKind) -> Item {
    let mut item = Item::new(word, kind, cursor);
    item.text = quoted(word);
    item
}

fn word(cursor: &Cursor<'_>, word: &str) -> Item {
    let item = text(cursor, word, ItemKind::Word);
    match words::meaning(word) {
        Some(meaning) => item.docs(meaning),
        None => item,
    }
}

fn of_levels(cursor: &Cursor<'_>) -> Vec<Item> {
    levels().into_iter().map(|level| word(cursor, level).detail("level")).collect()
}

fn brackets(cursor: &Cursor<'_>, text: &str, snippet: &str) -> Item {
    let mut item = Item::new(text, ItemKind::Word, cursor);
    item.snippet = Some(snippet.to_owned());
    item
}

fn conditions(cursor: &Cursor<'_>) -> Vec<Item> {
    let forms = [
        ("inside", "\"${workspaceFolder}\"", "\"${1:\\${workspaceFolder\\}}\""),
        ("in", "[]", "[$1]"),
        ("matches", "\"\"", "\"$1\""),
        ("max", "100", "${1:100}"),
    ];
    forms
        .into_iter()
        .map(|(name, value, snippet)| {
            let mut item = Item::new(name, ItemKind::Word, cursor);
            item.docs = keys::CONDITION.key(name).map(|key| key.docs.to_owned());
            item.text = format!("{{ \"{name}\": {value} }}");
            item.snippet = Some(format!("{{ \"{name}\": {snippet} \\}}"));
            item
        })
        .collect()
}

/// Those that servers are usually started with, and those that servers of this workspace are.
fn programs(page: &Page<'_>, cursor: &Cursor<'_>) -> Vec<Item> {
    let known = words::PROGRAMS.iter().map(|(name, docs)| text(cursor, name, ItemKind::Program).docs(*docs));
    let used: BTreeSet<&str> = page
        .servers()
        .filter_map(|server| server.value.get("command"))
        .filter(|member| !(member.value.span.start <= cursor.span.start && cursor.span.end <= member.value.span.end))
        .filter_map(|member| member.value.text().or_else(|| member.value.items()?.first()?.text()))
        .filter(|name| !name.is_empty() && words::PROGRAMS.iter().all(|(known, _)| known != name))
        .collect();
    known.chain(used.into_iter().map(|name| text(cursor, name, ItemKind::Program).detail("used here"))).collect()
}

/// The packages and options that templates give to the same program.
fn packages(page: &Page<'_>, cursor: &Cursor<'_>) -> Vec<Item> {
    let [server @ .., _, _] = cursor.path.as_slice() else { return Vec::new() };
    let entry = page.tree.find(server);
    let Some(program) = entry.and_then(|entry| entry.get("command")?.value.text()) else { return Vec::new() };
    let given: Vec<&str> = entry
        .and_then(|entry| entry.get("args")?.value.items())
        .unwrap_or_default()
        .iter()
        .filter_map(Node::text)
        .collect();
    let mut seen = BTreeSet::new();
    let mut items = Vec::new();
    for template in
        templates().iter().filter(|template| template.config.get("command").is_some_and(|command| command == program))
    {
        for arg in template.config.get("args").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
        {
            let general = matches!(arg, "package" | "image") || arg.contains("${");
            if !general && !given.contains(&arg) && seen.insert(arg) {
                items.push(text(cursor, arg, ItemKind::Word).detail(if arg.starts_with('-') {
                    format!("of {program}")
                } else {
                    template.title.clone()
                }));
            }
        }
    }
    items
}

fn addresses(cursor: &Cursor<'_>) -> Vec<Item> {
    let known = templates().iter().filter_map(|template| Some((template, template.config.get("url")?.as_str()?)));
    known
        .filter(|(template, _)| template.id != "http")
        .map(|(template, url)| {
            text(cursor, url, ItemKind::Word).detail(template.title.clone()).docs(template.description.clone())
        })
        .collect()
}

/// Every server that this file or another one defines.
fn servers(page: &Page<'_>, cursor: &Cursor<'_>) -> Vec<Item> {
    let own = page.servers().map(|member| member.key.text.as_str());
    let names: BTreeSet<&str> = own.chain(page.spoken_of().map(|(name, _)| name.as_str())).collect();
    let every = text(cursor, "*", ItemKind::Word).docs("Every server.");
    let named = cursor.few(names.into_iter(), |name| (*name).to_owned());
    let named = named.into_iter().map(|name| {
        let item = text(cursor, name, ItemKind::Server);
        match page.server(name) {
            Some(view) => item.detail(view.state.status.as_str()),
            None => item,
        }
    });
    std::iter::once(every).chain(named).collect()
}

/// The tools of the server that the matcher names.
fn matched_tools(page: &Page<'_>, cursor: &Cursor<'_>) -> Vec<Item> {
    let [before @ .., _] = cursor.path.as_slice() else { return Vec::new() };
    let server = page.tree.find(before).and_then(|entry| entry.get("server")?.value.text()).unwrap_or("*");
    let glob = NameGlob::new(server);
    let views = page.spoken_of().filter(|(name, _)| glob.is_match(name.as_str()));
    let mut seen = BTreeSet::new();
    let tools =
        views.flat_map(|(_, view)| view.tools.values()).filter(|offered| seen.insert(offered.tool.name.clone()));
    let tools = cursor.few(tools, |offered| offered.tool.name.to_string());
    let every = text(cursor, "*", ItemKind::Word).docs("Every tool.");
    std::iter::once(every).chain(tools.into_iter().map(|offered| tool(cursor, offered))).collect()
}

fn tool(cursor: &Cursor<'_>, offered: &OfferedTool) -> Item {
    describe(text(cursor, &offered.tool.name, ItemKind::Tool), offered)
}

fn tool_ids<'a>(page: &Page<'a>, cursor: &Cursor<'_>) -> Vec<Item> {
    let named = |(name, view): (&'a ServerName, &'a Arc<ServerView>)| {
        let name = name.clone();
        view.shown_tools().map(move |offered| (ToolId::new(name.clone(), &offered.tool.name).to_string(), offered))
    };
    let tools = cursor.few(page.spoken_of().flat_map(named), |(id, _)| id.clone());
    tools.into_iter().map(|(id, offered)| describe(text(cursor, &id, ItemKind::Tool), offered)).collect()
}

/// Inputs that are used in this file and stand nowhere yet.
fn missing_inputs(page: &Page<'_>, cursor: &Cursor<'_>) -> Vec<Item> {
    let uses = uses::uses(page.text, page.tree);
    let defined =
        |id: &str| uses.iter().any(|used| used.role == Role::Definition && used.named == Named::Input(id.to_owned()));
    let wanted: BTreeSet<&str> = uses
        .iter()
        .filter_map(|used| match &used.named {
            Named::Input(id) if used.role == Role::Use && !defined(id) => Some(id.as_str()),
            _ => None,
        })
        .collect();
    wanted.into_iter().map(|id| text(cursor, id, ItemKind::Variable).detail("used, not defined yet")).collect()
}
