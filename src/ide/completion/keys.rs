//! Keys: those of the table, and the free ones of which something is known.

use serde_json::Value;

use super::cursor::{Cursor, Hole};
use super::{Item, ItemKind, plain, quoted, servers, values};
use crate::config::shape::keys::{Key, Of, Role, Table};
use crate::config::tree::{Member, Node};
use crate::engine::snapshot::OfferedTool;
use crate::ide::expected::{Expected, expected, server_of};
use crate::ide::markdown;
use crate::ide::page::Page;
use crate::model::{Level, ToolId};

pub fn keys(page: &Page<'_>, cursor: &Cursor<'_>) -> Vec<Item> {
    let Hole::Key { object, .. } = cursor.hole else { return Vec::new() };
    let entry = Entry::new(page, cursor, object);
    match expected(&cursor.path) {
        Some(Expected::Map(_)) => servers::templates(page, &entry),
        Some(Expected::Tools) => tools(page, &entry),
        Some(Expected::Conditions) => conditions(page, &entry),
        Some(Expected::Plain(key, _)) => match key.name {
            "env" => environment(page, &entry),
            "headers" => headers(&entry),
            "arguments" => arguments(page, &entry),
            _ => Vec::new(),
        },
        Some(expected) => expected.table().map(|table| of_table(table, &entry)).unwrap_or_default(),
        None => Vec::new(),
    }
}

/// An entry that is being written: makes items of it that leave a whole file behind.
pub struct Entry<'a> {
    pub cursor: &'a Cursor<'a>,
    pub object: &'a Node,
    pub has_value: bool,
    commas: (Option<crate::config::problem::TextEdit>, bool),
}

impl<'a> Entry<'a> {
    fn new(page: &Page<'_>, cursor: &'a Cursor<'a>, object: &'a Node) -> Self {
        let has_value = matches!(cursor.hole, Hole::Key { has_value: true, .. });
        Self { cursor, object, has_value, commas: cursor.commas(page) }
    }

    /// `"name": value`, as plain text and as a snippet; only the key where a value stands already.
    pub fn item(&self, name: &str, kind: ItemKind, text: &str, snippet: &str) -> Item {
        let mut item = Item::new(name, kind, self.cursor);
        let key = quoted(name);
        let (before, after) = &self.commas;
        item.edits.extend(before.clone());
        if self.has_value {
            item.text = key;
        } else {
            let comma = if *after { "," } else { "" };
            item.text = format!("{key}: {text}{comma}");
            item.snippet = Some(format!("{}: {snippet}{comma}", plain(&key)));
        }
        item
    }

    /// The entries beside the one that is being written.
    pub fn others(&self) -> impl Iterator<Item = &'a Member> {
        let own = self.cursor.span.start;
        self.object.members().unwrap_or_default().iter().filter(move |member| member.key.span.start != own)
    }

    fn has(&self, name: &str) -> bool {
        self.others().any(|member| member.key.text == name)
    }
}

fn of_table(table: &'static Table, entry: &Entry<'_>) -> Vec<Item> {
    let kind = kind_of(entry);
    let there = |key: &Key| {
        entry.others().any(|member| {
            let same = |known: &Key| known.role == Role::Alias(key.name);
            member.key.text == key.name || table.key(&member.key.text).is_some_and(same)
        })
    };
    let fits = |key: &Key| key.types.is_empty() || kind.is_none_or(|kind| key.types.contains(&kind));
    let wanted = table.own().filter(|key| fits(key) && !there(key));
    wanted
        .map(|key| {
            let (text, snippet) = form(key);
            entry.item(key.name, ItemKind::Key, &text, &snippet).detail(noun(key)).docs(key.docs)
        })
        .collect()
}

/// The type of the server that is being written, as far as its entries tell.
fn kind_of(entry: &Entry<'_>) -> Option<&'static str> {
    let written = entry.others().find(|member| matches!(member.key.text.as_str(), "type" | "transport"));
    if let Some(word) = written.and_then(|member| member.value.text()) {
        return crate::config::shape::keys::TYPES.iter().find(|kind| **kind == word).copied();
    }
    [("command", "stdio"), ("url", "http"), ("port", "tcp")]
        .into_iter()
        .find(|(key, _)| entry.has(key))
        .map(|(_, kind)| kind)
}

/// What a value looks like to begin with.
fn form(key: &Key) -> (String, String) {
    let (text, snippet) = match key.of {
        Of::Text | Of::TextOrTexts => ("\"\"", "\"$1\""),
        Of::Flag if matches!(key.name, "enabled" | "autoStart") => ("false", "${1|false,true|}"),
        Of::Flag => ("true", "${1|true,false|}"),
        Of::Seconds => match key.name {
            "request_timeout_ms" => ("60000", "${1:60000}"),
            "timeout" => ("60", "${1:60}"),
            _ => ("30", "${1:30}"),
        },
        Of::Port => ("3001", "${1:3001}"),
        Of::Texts => ("[]", "[\"$1\"]"),
        Of::List(_) => ("[]", "[{ $1 }]"),
        Of::Choice(words) => return choice(words),
        Of::Level => return choice(&values::levels()),
        Of::Any => match key.name {
            "options" | "in" => ("[]", "[$1]"),
            "max" => ("0", "${1:100}"),
            _ => ("{}", "{ $1 }"),
        },
        Of::Environment | Of::TextMap | Of::Tools | Of::Conditions | Of::Object(_) | Of::Map(_) => ("{}", "{ $1 }"),
    };
    (text.to_owned(), snippet.to_owned())
}

fn choice(words: &[&str]) -> (String, String) {
    let first = words.first().copied().unwrap_or_default();
    (quoted(first), format!("\"${{1|{}|}}\"", words.join(",")))
}

fn noun(key: &Key) -> String {
    let noun = match key.of {
        Of::Text => "string",
        Of::Flag => "true or false",
        Of::Seconds => "number",
        Of::Port => "port",
        Of::Texts => "list of strings",
        Of::TextOrTexts => "string or list of strings",
        Of::Choice(words) => return words.join(" | "),
        Of::Level => "level",
        Of::List(_) => "list",
        Of::Any => "value",
        Of::Environment | Of::TextMap | Of::Tools | Of::Conditions | Of::Object(_) | Of::Map(_) => "object",
    };
    noun.to_owned()
}

/// The live tools of the server that have no rule yet.
fn tools(page: &Page<'_>, entry: &Entry<'_>) -> Vec<Item> {
    let level = Level::RequireApproval.as_str();
    let levels = values::levels().join(",");
    let rule = |item: Item| item.detail("tool");
    let make = |name: &str| rule(entry.item(name, ItemKind::Tool, &quoted(level), &format!("\"${{1|{levels}|}}\"")));
    let view = server_of(&entry.cursor.path).and_then(|name| page.server(name));
    let tools = view.iter().flat_map(|view| view.tools.values()).filter(|offered| !entry.has(&offered.tool.name));
    let tools = entry.cursor.few(tools, |offered| offered.tool.name.to_string());
    let every = (!entry.has("*")).then(|| make("*").docs("Every tool of this server that no other entry names."));
    let named = tools.into_iter().map(|offered| describe(make(&offered.tool.name), offered));
    every.into_iter().chain(named).collect()
}

/// The words of a server about its tool, for an item of it.
pub fn describe(item: Item, offered: &OfferedTool) -> Item {
    let docs = format!(
        "{}\n\nLevel now: {}",
        markdown::block(&offered.tool.description, 1_000),
        markdown::code(offered.ruling.level.as_str())
    );
    item.detail(offered.id.server.to_string()).docs(docs)
}

/// The arguments of the tool whose rule it is.
fn conditions(page: &Page<'_>, entry: &Entry<'_>) -> Vec<Item> {
    use crate::config::tree::Step;
    let server = server_of(&entry.cursor.path).and_then(|name| page.server(name));
    let Some(Step::Key(pattern)) = entry.cursor.path.get(3) else { return Vec::new() };
    let glob = crate::policy::NameGlob::new(pattern);
    let mut items: Vec<Item> = Vec::new();
    for offered in
        server.iter().flat_map(|view| view.tools.values()).filter(|offered| glob.is_match(&offered.tool.name))
    {
        for item in properties(offered, entry, "\"\"", "$1") {
            if !items.iter().any(|known| known.label == item.label) {
                items.push(item);
            }
        }
    }
    items
}

/// The arguments of the tool that an action calls.
fn arguments(page: &Page<'_>, entry: &Entry<'_>) -> Vec<Item> {
    let [before @ .., _] = entry.cursor.path.as_slice() else { return Vec::new() };
    let action = page.tree.find(before);
    let tool = action.and_then(|action| ToolId::parse(action.get("tool")?.value.text()?));
    let offered = tool.and_then(|id| page.server(id.server.as_str())?.tools.get(&*id.tool));
    offered
        .map(|offered| properties(offered, entry, "\"${selection}\"", "\"${1:\\${selection\\}}\""))
        .unwrap_or_default()
}

fn properties(offered: &OfferedTool, entry: &Entry<'_>, text: &str, snippet: &str) -> Vec<Item> {
    let whole = &offered.tool.input_schema;
    let properties = whole.get("properties").and_then(Value::as_object);
    let make = |(name, schema): (&String, &Value)| {
        let item =
            entry.item(name, ItemKind::Key, text, snippet).detail(crate::ide::hover::schema::kind_of(schema, whole));
        match schema.get("description").and_then(Value::as_str) {
            Some(words) => item.docs(markdown::block(words, 500)),
            None => item,
        }
    };
    properties.into_iter().flatten().filter(|(name, _)| !entry.has(name)).map(make).collect()
}

/// Variables that are set, to be handed on.
fn environment(page: &Page<'_>, entry: &Entry<'_>) -> Vec<Item> {
    let names = page.variables.iter().filter(|name| !entry.has(name) && !name.starts_with('_'));
    names
        .map(|name| {
            let value = format!("\"${{env:{name}}}\"");
            entry.item(name, ItemKind::Variable, &value, &plain(&value)).detail("set")
        })
        .collect()
}

fn headers(entry: &Entry<'_>) -> Vec<Item> {
    let known = [
        (
            "Authorization",
            "\"Bearer \"",
            "\"Bearer \\${${1:env:TOKEN}\\}\"",
            "Who you are; write the token as a variable.",
        ),
        ("X-API-Key", "\"\"", "\"\\${${1:env:API_KEY}\\}\"", "A key; write it as a variable."),
    ];
    let new = known.into_iter().filter(|(name, ..)| !entry.has(name));
    new.map(|(name, text, snippet, docs)| entry.item(name, ItemKind::Key, text, snippet).docs(docs)).collect()
}
