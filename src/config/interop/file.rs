//! Config files of other programs: reads their servers, and adds or removes one.

use std::path::PathBuf;

use serde_json::{Map, Value};

use super::format::Syntax;
use super::incoming::Permissions;
use super::{Dialect, toml, yaml};
use crate::config::edit::{self, Edit, EditError};
use crate::config::sections::SECTIONS;
use crate::config::tree::{self, Step};

/// Deeper than any settings file.
const DEPTH: usize = 256;

/// The relevant contents of a foreign file.
#[derive(Debug, Default)]
pub struct ForeignFile {
    pub servers: Vec<(String, Value)>,
    /// The servers that the user has only in one project, by the folder of that project.
    pub projects: Vec<(PathBuf, Vec<(String, Value)>)>,
    /// VS Code's `inputs`.
    pub inputs: Vec<Value>,
    /// Servers that only the other program can host, with the reason.
    pub unreachable: Vec<(String, &'static str)>,
    /// The permissions of Zed, which are not part of the entries.
    pub permissions: Permissions,
}

impl ForeignFile {
    /// The servers of one section.
    pub fn of_section(root: &Value, key: &str) -> Self {
        let mut found = Self::default();
        found.add(root.get(key));
        found
    }

    /// The servers of the sections that most programs have.
    pub fn of_sections(root: &Value) -> Self {
        let mut found = Self::default();
        found.add_sections(root);
        found
    }

    fn add_sections(&mut self, root: &Value) {
        SECTIONS.iter().for_each(|key| self.add(root.get(key)));
    }

    /// Adds the servers of a section, unless there is already one with the same name.
    pub fn add(&mut self, section: Option<&Value>) {
        for (name, entry) in section.into_iter().flat_map(entries) {
            if !self.servers.iter().any(|(known, _)| known == name) {
                self.servers.push((name.to_owned(), entry.clone()));
            }
        }
    }
}

/// The entries of an object, or of a list of entries with a `name`.
fn entries(section: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let members = section.as_object().into_iter().flatten().map(|(name, entry)| (name.as_str(), entry));
    let items = section.as_array().into_iter().flatten();
    members.chain(items.filter_map(|entry| Some((entry.get("name")?.as_str()?, entry))))
}

/// Gives a key of an entry the name that most programs use.
pub fn rename(entry: &mut Value, theirs: &str, common: &str) {
    if let Value::Object(entry) = entry
        && let Some(value) = entry.remove(theirs)
    {
        entry.insert(common.to_owned(), value);
    }
}

/// Removes a key that says nothing about the server.
pub fn forget(entry: &mut Value, key: &str) {
    if let Value::Object(entry) = entry {
        entry.remove(key);
    }
}

/// Reads the servers of a file. An error describes what is wrong with the whole file.
pub fn read(dialect: Dialect, text: &str) -> Result<ForeignFile, String> {
    Ok((dialect.format().read)(&value(dialect, text)?))
}

/// The whole file as a value.
pub fn value(dialect: Dialect, text: &str) -> Result<Value, String> {
    match dialect.format().syntax {
        Syntax::Json => json(text),
        Syntax::Toml => toml::value(text),
        Syntax::Yaml { .. } => yaml::value(text),
    }
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
    let text = if text.trim().is_empty() { dialect.format().preamble } else { text };
    match dialect.format().syntax {
        Syntax::Json => {}
        Syntax::Toml => return toml::put(text, name, entry, comments),
        Syntax::Yaml { is_list } => return yaml_section(dialect, is_list).put(text, name, entry, comments),
    }
    let path = [dialect.format().section, name];
    if comments.is_empty() || !dialect.format().has_comments {
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
    match dialect.format().syntax {
        Syntax::Json => {
            let section = dialect.format().section;
            edit::without_empty_section(&edit::apply(text, &[Edit::remove(&[section, name])])?, section)
        }
        Syntax::Toml => toml::remove(text, name),
        Syntax::Yaml { is_list } => yaml_section(dialect, is_list).remove(text, name),
    }
}

fn yaml_section(dialect: Dialect, is_list: bool) -> yaml::Section {
    yaml::Section { key: dialect.format().section, is_list }
}

/// The entry with this name.
pub fn entry(dialect: Dialect, text: &str, name: &str) -> Result<Option<Value>, String> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    let servers = read(dialect, text)?.servers;
    Ok(servers.into_iter().find(|(known, _)| known == name).map(|(_, entry)| entry))
}

/// Disables exactly these servers, in a file with a list of disabled servers.
pub fn disable(text: &str, list: [&str; 2], names: &[String]) -> Result<String, EditError> {
    let root = if text.trim().is_empty() { Value::Null } else { json(text).map_err(EditError::Broken)? };
    let [holder, key] = list;
    let known = root.get(holder).and_then(|holder| holder.get(key)).and_then(Value::as_array);
    let mut all: Vec<Value> = known.cloned().unwrap_or_default();
    all.extend(
        names.iter().map(|name| Value::from(name.as_str())).filter(|name| !all.contains(name)).collect::<Vec<_>>(),
    );
    edit::apply(text, &[Edit::set(&list, Value::Array(all))])
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
