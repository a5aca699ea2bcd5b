//! Config files of other programs: reads their servers, and adds or removes one.

use std::path::Path;

use serde_json::{Map, Value};

use super::incoming::Permissions;
use super::{Dialect, toml};
use crate::config::edit::{self, Edit, EditError};
use crate::config::tree::{self, Step};

/// Deeper than any settings file.
const DEPTH: usize = 256;

/// The relevant contents of a foreign file.
#[derive(Debug, Default)]
pub struct ForeignFile {
    pub servers: Vec<(String, Value)>,
    /// VS Code's `inputs`.
    pub inputs: Vec<Value>,
    /// Servers that only the other program can host, with the reason.
    pub unreachable: Vec<(String, &'static str)>,
    /// The permissions of Zed, which are not part of the entries.
    pub permissions: Permissions,
}

/// Reads the servers of a file. An error describes what is wrong with the whole file. `folder` is the project whose
/// private section in the user's file applies.
pub fn read(dialect: Dialect, text: &str, folder: Option<&Path>) -> Result<ForeignFile, String> {
    let root = if dialect.is_toml() { toml::value(text)? } else { json(text)? };
    let mut found = ForeignFile::default();
    let mut add = |section: Option<&Value>| {
        for (name, entry) in section.and_then(Value::as_object).into_iter().flatten() {
            if !found.servers.iter().any(|(known, _)| known == name) {
                found.servers.push((name.clone(), entry.clone()));
            }
        }
    };
    if let Some(folder) = folder.and_then(Path::to_str).filter(|_| dialect == Dialect::Claude) {
        // Claude Code's local scope takes precedence over the user's servers.
        add(root.get("projects").and_then(|projects| projects.get(folder)).and_then(|own| own.get("mcpServers")));
    }
    match dialect {
        Dialect::Codex | Dialect::Zed => add(root.get(dialect.section())),
        Dialect::McpHub if root.get("servers").is_some() => add(root.get("servers")),
        _ => {
            add(root.get("servers"));
            add(root.get("mcpServers"));
        }
    }
    if dialect == Dialect::VsCode {
        // The settings of the user, and of a development container.
        let devcontainer = root.pointer("/customizations/vscode/mcp");
        for holder in [root.get("mcp"), devcontainer].into_iter().flatten() {
            add(holder.get("servers"));
        }
        let holders = [Some(&root), root.get("mcp"), devcontainer].into_iter().flatten();
        let inputs = holders.filter_map(|holder| holder.get("inputs")?.as_array());
        found.inputs = inputs.flatten().cloned().collect();
    }
    if dialect == Dialect::Zed {
        found.permissions = Permissions::read(&root);
    }
    if dialect == Dialect::McpHub {
        let native = root.get("nativeMCPServers").and_then(Value::as_object).into_iter().flatten();
        let native = native.map(|(name, _)| (name.clone(), "it is written in Lua and runs inside mcphub"));
        found.unreachable = native.collect();
    }
    Ok(found)
}

/// A foreign file may be JSON5, which our parser reads as far as it can recover from.
fn json(text: &str) -> Result<Value, String> {
    let tree = tree::parse(text, DEPTH);
    let root = tree.root.as_ref().filter(|root| tree.whole && root.members().is_some());
    let problem =
        || tree.problems.first().map_or("it is not a JSON object".to_owned(), |problem| problem.message.clone());
    root.map(tree::Node::to_value).ok_or_else(problem)
}

/// Adds an entry to the file or replaces the one with the same name. Everything else stays unchanged.
pub fn put(
    dialect: Dialect,
    text: &str,
    name: &str,
    entry: &Map<String, Value>,
    comments: &[String],
) -> Result<String, EditError> {
    if dialect.is_toml() {
        return toml::put(text, name, entry, comments);
    }
    let path = [dialect.section(), name];
    if comments.is_empty() || !dialect.has_comments() {
        return edit::apply(text, &[Edit::set(&path, Value::Object(entry.clone()))]);
    }
    // `Paste` requires an object to insert into.
    let section = edit::apply(text, &[Edit::remove(&path)])?;
    let section = if section.trim().is_empty() {
        edit::apply(&section, &[Edit::set(&path[..1], Value::Object(Map::new()))])?
    } else {
        section
    };
    let path = path.iter().map(|key| Step::Key((*key).to_owned())).collect();
    edit::apply(&section, &[Edit::Paste { path, above: Vec::new(), text: commented(entry, comments) }])
}

/// Removes an entry from the file.
pub fn remove(dialect: Dialect, text: &str, name: &str) -> Result<String, EditError> {
    if dialect.is_toml() {
        return toml::remove(text, name);
    }
    edit::apply(text, &[Edit::remove(&[dialect.section(), name])])
}

/// The entry with this name, from the section that the program itself reads.
pub fn entry(dialect: Dialect, text: &str, name: &str) -> Result<Option<Value>, String> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    let root = if dialect.is_toml() { toml::value(text)? } else { json(text)? };
    Ok(root.get(dialect.section()).and_then(|section| section.get(name)).cloned())
}

/// A multi-line entry with comments above its keys.
fn commented(entry: &Map<String, Value>, comments: &[String]) -> String {
    let object = Value::Object(entry.clone());
    let written = edit::apply("", &[Edit::set(&["x"], object)]).unwrap_or_default();
    let tree = tree::parse(&written, DEPTH);
    let keys = tree.find(&[Step::Key("x".to_owned())]).and_then(|node| written.get(node.span.clone())).unwrap_or("{}");
    let comments: String = comments.iter().map(|comment| format!("\n    // {comment}")).collect();
    let keys = keys.strip_prefix('{').unwrap_or_default();
    // Remove one level of indentation.
    format!("{{{comments}{keys}")
        .lines()
        .map(|line| line.strip_prefix("  ").unwrap_or(line))
        .collect::<Vec<_>>()
        .join("\n")
}
