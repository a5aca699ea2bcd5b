//! Completion of values: choices, names of servers and tools, programs.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::cursor::Cursor;
use super::keys::describe;
use super::{Item, ItemKind, quoted};
use crate::config::shape::keys::{self, Key, Table, ValueType};
use crate::config::templates::templates;
use crate::config::tree::{Node, Step};
use crate::engine::snapshot::{OfferedTool, ServerView};
use crate::ide::config_view::ConfigView;
use crate::ide::expected::{Expected, expected, server_of};
use crate::ide::occurrences::{Named, Role};
use crate::ide::value_docs;
use crate::model::{Level, ServerName, ToolId};
use crate::policy::NameGlob;

pub fn values(config: &ConfigView<'_>, cursor: &Cursor<'_>) -> Vec<Item> {
    match expected(&cursor.path) {
        Some(Expected::Rule) => of_levels(cursor),
        Some(Expected::Value(key, table)) => plain(config, cursor, key, table),
        Some(Expected::Element(key, table)) => inside(config, cursor, key, table),
        Some(Expected::Table(_) | Expected::Map(_) | Expected::Tools | Expected::Conditions) if !cursor.quoted => {
            vec![brackets(cursor, "{}", "{ $1 }")]
        }
        Some(Expected::List(_)) if !cursor.quoted => vec![brackets(cursor, "[]", "[{ $1 }]")],
        Some(Expected::Condition) if !cursor.quoted => conditions(cursor),
        _ => Vec::new(),
    }
}

/// Whether the value is the path of a `.env` file.
pub fn is_env_file(cursor: &Cursor<'_>) -> bool {
    matches!(expected(&cursor.path), Some(Expected::Value(key, _)) if key.name == "envFile")
}

pub fn files(cursor: &Cursor<'_>, names: &[String]) -> Vec<Item> {
    cursor
        .limit(names.iter(), |name| (*name).clone())
        .into_iter()
        .map(|name| text(cursor, name, ItemKind::File))
        .collect()
}

/// The names of all levels, most restrictive first.
pub fn levels() -> Vec<&'static str> {
    Level::ALL.iter().map(|level| level.as_str()).collect()
}

fn plain(config: &ConfigView<'_>, cursor: &Cursor<'_>, key: &Key, table: &'static Table) -> Vec<Item> {
    let is = |other: &'static Table| std::ptr::eq(table, other);
    match (key.of, key.name) {
        (ValueType::Flag, _) if cursor.quoted => Vec::new(),
        (ValueType::Flag, _) => ["true", "false"].map(|word| Item::new(word, ItemKind::Word, cursor)).into(),
        (ValueType::Choice(choices), _) => choices.iter().map(|choice| word(cursor, choice)).collect(),
        (ValueType::Level, _) => of_levels(cursor),
        (_, "command") if !is(&keys::INPUT) => programs(config, cursor),
        (_, "server") if is(&keys::MATCHER) => servers(config, cursor),
        (_, "tool") if is(&keys::MATCHER) => matched_tools(config, cursor),
        (_, "tool") if is(&keys::ACTION) => tool_ids(config, cursor),
        (_, "id") if is(&keys::INPUT) => missing_inputs(config, cursor),
        (_, "url") => addresses(cursor),
        (ValueType::Texts, _) if !cursor.quoted => vec![brackets(cursor, "[]", "[\"$1\"]")],
        (ValueType::Environment | ValueType::TextMap, _) if !cursor.quoted => vec![brackets(cursor, "{}", "{ $1 }")],
        _ => Vec::new(),
    }
}

fn inside(config: &ConfigView<'_>, cursor: &Cursor<'_>, key: &Key, table: &'static Table) -> Vec<Item> {
    match key.name {
        "command" if cursor.path.last() == Some(&Step::Index(0)) => programs(config, cursor),
        "commands" if std::ptr::eq(table, &keys::POLICY) => programs(config, cursor),
        "args" => packages(config, cursor),
        "disabled_tools" | "disabledTools" | "excludeTools" | "enabled_tools" | "includeTools" => {
            let view = server_of(&cursor.path).and_then(|name| config.server(name));
            let tools = view.iter().flat_map(|view| view.tools.values());
            let tools = cursor.limit(tools, |offered| offered.tool.name.to_string());
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
    match value_docs::describe_value(word) {
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

/// Common programs, and those that other servers of this file use.
fn programs(config: &ConfigView<'_>, cursor: &Cursor<'_>) -> Vec<Item> {
    let known = value_docs::PROGRAMS.iter().map(|(name, docs)| text(cursor, name, ItemKind::Program).docs(*docs));
    let occurrence: BTreeSet<&str> = config
        .tree
        .servers()
        .filter_map(|server| server.value.get("command"))
        .filter(|member| !(member.value.span.start <= cursor.span.start && cursor.span.end <= member.value.span.end))
        .filter_map(|member| member.value.text().or_else(|| member.value.items()?.first()?.text()))
        .filter(|name| !name.is_empty() && value_docs::PROGRAMS.iter().all(|(known, _)| known != name))
        .collect();
    known.chain(occurrence.into_iter().map(|name| text(cursor, name, ItemKind::Program).detail("used here"))).collect()
}

/// The packages and options that templates use with the same program.
fn packages(config: &ConfigView<'_>, cursor: &Cursor<'_>) -> Vec<Item> {
    let [server @ .., _, _] = cursor.path.as_slice() else { return Vec::new() };
    let entry = config.tree.find(server);
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
            let is_placeholder = matches!(arg, "package" | "image") || arg.contains("${");
            if !is_placeholder && !given.contains(&arg) && seen.insert(arg) {
                items.push(text(cursor, arg, ItemKind::Word).detail(if arg.starts_with('-') {
                    format!("option of {program}")
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

/// All servers in this file and in others.
fn servers(config: &ConfigView<'_>, cursor: &Cursor<'_>) -> Vec<Item> {
    let own = config.tree.servers().map(|member| member.key.text.as_str());
    let names: BTreeSet<&str> = own.chain(config.visible_servers().map(|(name, _)| name.as_str())).collect();
    let every = text(cursor, "*", ItemKind::Word).docs("All servers.");
    let named = cursor.limit(names.into_iter(), |name| (*name).to_owned());
    let named = named.into_iter().map(|name| {
        let item = text(cursor, name, ItemKind::Server);
        match config.server(name) {
            Some(view) => item.detail(view.state.status.as_str()),
            None => item,
        }
    });
    std::iter::once(every).chain(named).collect()
}

/// The tools of the servers that the matcher names.
fn matched_tools(config: &ConfigView<'_>, cursor: &Cursor<'_>) -> Vec<Item> {
    let [before @ .., _] = cursor.path.as_slice() else { return Vec::new() };
    let server = config.tree.find(before).and_then(|entry| entry.get("server")?.value.text()).unwrap_or("*");
    let glob = NameGlob::new(server);
    let views = config.visible_servers().filter(|(name, _)| glob.is_match(name.as_str()));
    let mut seen = BTreeSet::new();
    let tools =
        views.flat_map(|(_, view)| view.tools.values()).filter(|offered| seen.insert(offered.tool.name.clone()));
    let tools = cursor.limit(tools, |offered| offered.tool.name.to_string());
    let every = text(cursor, "*", ItemKind::Word).docs("All tools.");
    std::iter::once(every).chain(tools.into_iter().map(|offered| tool(cursor, offered))).collect()
}

fn tool(cursor: &Cursor<'_>, offered: &OfferedTool) -> Item {
    describe(text(cursor, &offered.tool.name, ItemKind::Tool), offered)
}

fn tool_ids<'a>(config: &ConfigView<'a>, cursor: &Cursor<'_>) -> Vec<Item> {
    let named = |(name, view): (&'a ServerName, &'a Arc<ServerView>)| {
        let name = name.clone();
        view.shown_tools().map(move |offered| (ToolId::new(name.clone(), &offered.tool.name).to_string(), offered))
    };
    let tools = cursor.limit(config.visible_servers().flat_map(named), |(id, _)| id.clone());
    tools.into_iter().map(|(id, offered)| describe(text(cursor, &id, ItemKind::Tool), offered)).collect()
}

/// Inputs that are used in this file but not defined.
fn missing_inputs(config: &ConfigView<'_>, cursor: &Cursor<'_>) -> Vec<Item> {
    let occurrences = config.occurrences();
    let defined = |id: &str| occurrences.iter().any(|occurrence| occurrence.defines(&Named::Input(id.to_owned())));
    let wanted: BTreeSet<&str> = occurrences
        .iter()
        .filter_map(|occurrence| match &occurrence.named {
            Named::Input(id) if occurrence.role == Role::Reference && !defined(id) => Some(id.as_str()),
            _ => None,
        })
        .collect();
    wanted.into_iter().map(|id| text(cursor, id, ItemKind::Variable).detail("used but not defined")).collect()
}
