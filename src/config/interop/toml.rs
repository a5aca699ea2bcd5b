//! The TOML file of Codex: reads it as JSON values, and edits it without changing the rest.

use serde_json::{Map, Value};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Key, Table};

use crate::config::edit::EditError;
use crate::text::toml_reason;

const SECTION: &str = "mcp_servers";

/// The whole file as a value.
pub fn value(text: &str) -> Result<Value, String> {
    // Only the message: the whole error quotes the file, which may contain secrets.
    toml::from_str::<Value>(text).map_err(|error| toml_reason(error.message()))
}

/// Writes one server, with comments above its keys.
pub fn server(name: &str, entry: &Map<String, Value>, comments: &[String]) -> String {
    let mut table = Table::new();
    for (key, value) in entry {
        if let Some(value) = inline(value) {
            table.insert(key, Item::Value(value));
        }
    }
    let mut servers = Table::new();
    servers.set_implicit(true);
    servers.insert(name, Item::Table(table));
    let mut document = DocumentMut::new();
    document.insert(SECTION, Item::Table(servers));
    let written = document.to_string();
    let comments: String = comments.iter().map(|comment| format!("# {comment}\n")).collect();
    // Below the header, so that they are removed together with the server.
    let (header, keys) = written.trim_start().split_once('\n').unwrap_or((&written, ""));
    format!("{header}\n{comments}{keys}")
}

/// Appends a server to the file.
pub fn put(text: &str, name: &str, entry: &Map<String, Value>, comments: &[String]) -> Result<String, EditError> {
    let kept = remove(text, name)?;
    let gap = match kept.as_str() {
        "" => "",
        kept if kept.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    let appended = format!("{kept}{gap}{}", server(name, entry, comments));
    if appended.parse::<DocumentMut>().is_ok() {
        return Ok(appended);
    }
    // The servers are in an inline table, so nothing can be appended.
    let mut document = parse(&kept)?;
    let servers = document.entry(SECTION).or_insert_with(toml_edit::table);
    let noun = servers.type_name();
    let servers = servers.as_table_like_mut().ok_or(EditError::WrongType(SECTION.to_owned(), "a table", noun))?;
    let table: InlineTable = entry.iter().filter_map(|(key, value)| Some((key.as_str(), inline(value)?))).collect();
    servers.insert(name, Item::Value(table.into()));
    Ok(document.to_string())
}

/// Removes a server from the file, without changing other lines.
pub fn remove(text: &str, name: &str) -> Result<String, EditError> {
    let mut document = parse(text)?;
    let Some(servers) = document.get_mut(SECTION).and_then(Item::as_table_like_mut) else { return Ok(text.to_owned()) };
    if servers.remove(name).is_none() {
        return Ok(text.to_owned());
    }
    if servers.is_empty() {
        document.remove(SECTION);
    }
    // Remove whole lines if this gives the same result, because then nothing else changes.
    let rest = document.to_string();
    let by_lines = without_lines_of(text, name);
    Ok(if value(&by_lines).ok() == value(&rest).ok() { by_lines } else { rest })
}

/// Removes the tables of a server and the blank line before them. Comments and blank lines after its last key belong to
/// what follows.
fn without_lines_of(text: &str, name: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut behind: Vec<&str> = Vec::new();
    let mut inside = false;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim();
        if let Some(keys) = header(trimmed) {
            let ours = keys.iter().take(2).map(String::as_str).eq([SECTION, name]);
            if !ours {
                kept.append(&mut behind);
            } else if kept.last().is_some_and(|last| last.trim().is_empty()) {
                kept.pop();
            }
            inside = ours;
        }
        match inside {
            false => kept.push(line),
            true if trimmed.is_empty() || trimmed.starts_with('#') => behind.push(line),
            true => behind.clear(),
        }
    }
    kept.append(&mut behind);
    kept.concat()
}

/// The keys of a table header; empty for an array of tables.
fn header(line: &str) -> Option<Vec<String>> {
    let inner = line.strip_prefix('[')?;
    if inner.starts_with('[') {
        return Some(Vec::new());
    }
    let keys = Key::parse(inner.get(..inner.rfind(']')?)?).ok()?;
    Some(keys.iter().map(|key| key.get().to_owned()).collect())
}

fn parse(text: &str) -> Result<DocumentMut, EditError> {
    text.parse().map_err(|error: toml_edit::TomlError| EditError::Broken(toml_reason(error.message())))
}

fn inline(value: &Value) -> Option<toml_edit::Value> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(flag) => (*flag).into(),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => whole.into(),
            None => number.as_f64()?.into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => items.iter().filter_map(inline).collect::<Array>().into(),
        Value::Object(map) => {
            let members = map.iter().filter_map(|(key, value)| Some((key.as_str(), inline(value)?)));
            members.collect::<InlineTable>().into()
        }
    })
}
