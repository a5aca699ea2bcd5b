//! Completion of keys: those of the schema, and names such as tools, arguments and variables.

use serde_json::Value;

use super::cursor::{Cursor, Missing};
use super::{Item, ItemKind, escape_snippet, quoted, servers, values};
use crate::config::sections;
use crate::config::shape::keys::{Key, Role, Table, ValueType};
use crate::config::tree::{Member, Node};
use crate::engine::snapshot::OfferedTool;
use crate::ide::config_view::ConfigView;
use crate::ide::expected::{Expected, expected, server_of};
use crate::ide::markdown;
use crate::model::{Level, ToolId};

pub fn keys(config: &ConfigView<'_>, cursor: &Cursor<'_>) -> Vec<Item> {
    let Missing::Key { object, .. } = cursor.missing else { return Vec::new() };
    let entry = NewEntry::new(config, cursor, object);
    match expected(&cursor.path) {
        Some(Expected::Map(_)) => servers::templates(config, &entry),
        Some(Expected::Tools) => tools(config, &entry),
        Some(Expected::Conditions) => conditions(config, &entry),
        Some(Expected::Value(key, _)) => match key.name {
            "env" => environment(config, &entry),
            "headers" => headers(&entry),
            "arguments" => arguments(config, &entry),
            _ => Vec::new(),
        },
        Some(expected) => expected.table().map(|table| of_table(config, table, &entry)).unwrap_or_default(),
        None => Vec::new(),
    }
}

/// The entry at the cursor. Its items leave a valid file.
pub struct NewEntry<'a> {
    pub cursor: &'a Cursor<'a>,
    pub object: &'a Node,
    pub has_value: bool,
    commas: (Option<crate::config::problem::TextEdit>, bool),
}

impl<'a> NewEntry<'a> {
    fn new(config: &ConfigView<'_>, cursor: &'a Cursor<'a>, object: &'a Node) -> Self {
        let has_value = matches!(cursor.missing, Missing::Key { has_value: true, .. });
        Self { cursor, object, has_value, commas: cursor.commas(config) }
    }

    /// `"name": value`, as plain text and as a snippet; only the key if it already has a value.
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
            item.snippet = Some(format!("{}: {snippet}{comma}", escape_snippet(&key)));
        }
        item
    }

    /// The other entries of the object.
    pub fn others(&self) -> impl Iterator<Item = &'a Member> {
        let own = self.cursor.span.start;
        self.object.members().unwrap_or_default().iter().filter(move |member| member.key.span.start != own)
    }

    fn has(&self, name: &str) -> bool {
        self.others().any(|member| member.key.text == name)
    }
}

fn of_table(config: &ConfigView<'_>, table: &'static Table, entry: &NewEntry<'_>) -> Vec<Item> {
    let known = sections::known_keys(config.path, table.noun);
    let kind = kind_of(entry);
    let is_present = |key: &Key| {
        entry.others().any(|member| {
            let same = |known: &Key| known.role == Role::Alias(key.name);
            member.key.text == key.name || table.key(&member.key.text).is_some_and(same)
        })
    };
    let fits = |key: &Key| key.types.is_empty() || kind.is_none_or(|kind| key.types.contains(&kind));
    let is_known = |key: &Key| known.is_none_or(|known| known.contains(&key.name));
    let wanted = table.own().filter(|key| fits(key) && is_known(key) && !is_present(key));
    wanted
        .map(|key| {
            let (text, snippet) = initial_value(key);
            entry.item(key.name, ItemKind::Key, &text, &snippet).detail(type_name(key)).docs(key.docs)
        })
        .collect()
}

/// The type of the server, if its entries reveal it.
fn kind_of(entry: &NewEntry<'_>) -> Option<&'static str> {
    let written = entry.others().find(|member| matches!(member.key.text.as_str(), "type" | "transport"));
    if let Some(word) = written.and_then(|member| member.value.text()) {
        return crate::config::shape::keys::TYPES.iter().find(|kind| **kind == word).copied();
    }
    [("command", "stdio"), ("url", "http"), ("port", "tcp")]
        .into_iter()
        .find(|(key, _)| entry.has(key))
        .map(|(_, kind)| kind)
}

/// An initial value, as plain text and as a snippet.
fn initial_value(key: &Key) -> (String, String) {
    let (text, snippet) = match key.of {
        ValueType::Text | ValueType::TextOrTexts => ("\"\"", "\"$1\""),
        ValueType::Flag if matches!(key.name, "enabled" | "autoStart") => ("false", "${1|false,true|}"),
        ValueType::Flag => ("true", "${1|true,false|}"),
        ValueType::Seconds => match key.name {
            "request_timeout_ms" => ("60000", "${1:60000}"),
            "timeout" => ("60", "${1:60}"),
            _ => ("30", "${1:30}"),
        },
        ValueType::Port => ("3001", "${1:3001}"),
        ValueType::Texts => ("[]", "[\"$1\"]"),
        ValueType::List(_) => ("[]", "[{ $1 }]"),
        ValueType::Choice(words) => return choice(words),
        ValueType::Level => return choice(&values::levels()),
        ValueType::Any => match key.name {
            "options" | "in" => ("[]", "[$1]"),
            "max" => ("0", "${1:100}"),
            _ => ("{}", "{ $1 }"),
        },
        ValueType::Environment
        | ValueType::TextMap
        | ValueType::Tools
        | ValueType::Conditions
        | ValueType::Object(_)
        | ValueType::Map(_) => ("{}", "{ $1 }"),
    };
    (text.to_owned(), snippet.to_owned())
}

fn choice(words: &[&str]) -> (String, String) {
    let first = words.first().copied().unwrap_or_default();
    (quoted(first), format!("\"${{1|{}|}}\"", words.join(",")))
}

fn type_name(key: &Key) -> String {
    let name = match key.of {
        ValueType::Text => "string",
        ValueType::Flag => "true or false",
        ValueType::Seconds => "number",
        ValueType::Port => "port",
        ValueType::Texts => "list of strings",
        ValueType::TextOrTexts => "string or list of strings",
        ValueType::Choice(words) => return words.join(" | "),
        ValueType::Level => "level",
        ValueType::List(_) => "list",
        ValueType::Any => "value",
        ValueType::Environment
        | ValueType::TextMap
        | ValueType::Tools
        | ValueType::Conditions
        | ValueType::Object(_)
        | ValueType::Map(_) => "object",
    };
    name.to_owned()
}

/// The tools of the server that have no rule yet.
fn tools(config: &ConfigView<'_>, entry: &NewEntry<'_>) -> Vec<Item> {
    let level = Level::RequireApproval.as_str();
    let levels = values::levels().join(",");
    let rule = |item: Item| item.detail("tool");
    let make = |name: &str| rule(entry.item(name, ItemKind::Tool, &quoted(level), &format!("\"${{1|{levels}|}}\"")));
    let view = server_of(&entry.cursor.path).and_then(|name| config.server(name));
    let tools = view.iter().flat_map(|view| view.tools.values()).filter(|offered| !entry.has(&offered.tool.name));
    let tools = entry.cursor.limit(tools, |offered| offered.tool.name.to_string());
    let every = (!entry.has("*")).then(|| make("*").docs("All tools of this server without their own entry."));
    let named = tools.into_iter().map(|offered| describe(make(&offered.tool.name), offered));
    every.into_iter().chain(named).collect()
}

/// Adds the description of a tool to its item.
pub fn describe(item: Item, offered: &OfferedTool) -> Item {
    let docs = format!(
        "{}\n\nCurrent level: {}",
        markdown::block(&offered.tool.description, 1_000),
        markdown::code(offered.ruling.level.as_str())
    );
    item.detail(offered.id.server.to_string()).docs(docs)
}

/// The arguments of the tool that a rule applies to.
fn conditions(config: &ConfigView<'_>, entry: &NewEntry<'_>) -> Vec<Item> {
    use crate::config::tree::Step;
    let server = server_of(&entry.cursor.path).and_then(|name| config.server(name));
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
fn arguments(config: &ConfigView<'_>, entry: &NewEntry<'_>) -> Vec<Item> {
    let [before @ .., _] = entry.cursor.path.as_slice() else { return Vec::new() };
    let action = config.tree.find(before);
    let tool = action.and_then(|action| ToolId::parse(action.get("tool")?.value.text()?));
    let offered = tool.and_then(|id| config.server(id.server.as_str())?.tools.get(&*id.tool));
    offered
        .map(|offered| properties(offered, entry, "\"${selection}\"", "\"${1:\\${selection\\}}\""))
        .unwrap_or_default()
}

fn properties(offered: &OfferedTool, entry: &NewEntry<'_>, text: &str, snippet: &str) -> Vec<Item> {
    let whole = &offered.tool.input_schema;
    let properties = whole.get("properties").and_then(Value::as_object);
    let make = |(name, schema): (&String, &Value)| {
        let item =
            entry.item(name, ItemKind::Key, text, snippet).detail(crate::ide::hover::schema::kind_of(schema, whole));
        match schema.get("description").and_then(Value::as_str) {
            Some(description) => item.docs(markdown::block(description, 500)),
            None => item,
        }
    };
    properties.into_iter().flatten().filter(|(name, _)| !entry.has(name)).map(make).collect()
}

/// Environment variables to pass on to the server.
fn environment(config: &ConfigView<'_>, entry: &NewEntry<'_>) -> Vec<Item> {
    let names = config.variables.iter().filter(|name| !entry.has(name) && !name.starts_with('_'));
    names
        .map(|name| {
            let value = format!("\"${{env:{name}}}\"");
            entry.item(name, ItemKind::Variable, &value, &escape_snippet(&value)).detail("set")
        })
        .collect()
}

fn headers(entry: &NewEntry<'_>) -> Vec<Item> {
    let known = [
        (
            "Authorization",
            "\"Bearer \"",
            "\"Bearer \\${${1:env:TOKEN}\\}\"",
            "Your credentials. Use a variable for the token.",
        ),
        ("X-API-Key", "\"\"", "\"\\${${1:env:API_KEY}\\}\"", "An API key. Use a variable for it."),
    ];
    let new = known.into_iter().filter(|(name, ..)| !entry.has(name));
    new.map(|(name, text, snippet, docs)| entry.item(name, ItemKind::Key, text, snippet).docs(docs)).collect()
}
