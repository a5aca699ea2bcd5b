//! Atomic edits that keep comments, order, indentation and line endings.
//!
//! An edit uses the positions in the tree to change only the relevant characters. It can be written to disk, or sent to
//! an editor as a small change. No crate is used, because the edits must fit our [`tree`], and a file must never be
//! formatted again as a whole.

mod layout;
mod splice;
mod write;

use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value};

pub use splice::{changes, removal};
pub use write::{UpdateError, update, write_atomically};

use self::layout::Layout;
use super::interop::timeout_value;
use super::problem::TextEdit;
use super::sections::{self, SECTIONS, SERVERS};
use super::tree::{self, Member, Node, Step, Tree};
use crate::model::Level;

/// At least as deep as any limit for reading, so that every readable file can be edited.
const DEPTH: usize = 256;

/// A change of a config file.
#[derive(Debug, Clone, PartialEq)]
pub enum Edit {
    /// Sets the value at a path. Creates missing objects on the way. An existing object keeps its comments and the order
    /// of its keys.
    Set { path: Vec<Step>, value: Value },
    /// Inserts a value as it was written elsewhere, including comments. `above` are the comments above its key.
    Paste { path: Vec<Step>, above: Vec<String>, text: String },
    /// Removes a key and the comment directly above it. A missing key is not an error.
    Remove { path: Vec<Step> },
}

/// Why an edit is impossible. The text stays unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    #[error("the file cannot be parsed ({0}); fix it first, so that nothing is lost")]
    Broken(String),
    #[error("the file cannot be edited without changing the rest; change this yourself:\n\n{0}")]
    ByHand(String),
    #[error("`{0}` must be {1}, not {2}")]
    WrongType(String, &'static str, &'static str),
    #[error("`{0}` does not exist")]
    Missing(String),
}

impl Edit {
    pub fn set(path: &[&str], value: Value) -> Self {
        Self::Set { path: steps(path), value }
    }

    pub fn remove(path: &[&str]) -> Self {
        Self::Remove { path: steps(path) }
    }
}

fn steps(path: &[&str]) -> Vec<Step> {
    path.iter().map(|key| Step::Key((*key).to_owned())).collect()
}

/// Applies the edits one after the other.
pub fn apply(text: &str, edits: &[Edit]) -> Result<String, EditError> {
    edits.iter().try_fold(text.to_owned(), one)
}

fn one(text: String, edit: &Edit) -> Result<String, EditError> {
    let Some(tree) = parse(&text)? else {
        let Edit::Paste { path, .. } = edit else {
            return Ok(splice::apply_changes(&text, splice::initial(&text, edit)));
        };
        // Create an object to paste into, so that the text keeps its comments in an empty file too.
        let above = path.split_last().map(|(_, above)| above.to_vec()).unwrap_or_default();
        let around = Edit::Set { path: above, value: Value::Object(Map::new()) };
        return one(splice::apply_changes(&text, splice::initial(&text, &around)), edit);
    };
    match edit {
        Edit::Set { path, value: Value::Object(map) } => {
            let node = tree.find(path);
            let members = node.and_then(Node::members).unwrap_or_default();
            if members.iter().any(|member| map.contains_key(&member.key.text)) {
                return apply(&text, &parts(path, members, map));
            }
        }
        // Remove all duplicates of the key. Otherwise an earlier one would take effect.
        Edit::Remove { .. } => {
            let changes = splice::changes(&text, &tree, edit)?;
            return if changes.is_empty() { Ok(text) } else { one(splice::apply_changes(&text, changes), edit) };
        }
        _ => {}
    }
    Ok(splice::apply_changes(&text, splice::changes(&text, &tree, edit)?))
}

/// Sets an object key by key, so that unchanged keys keep their comments and their position.
fn parts(path: &[Step], members: &[Member], map: &Map<String, Value>) -> Vec<Edit> {
    let below = |key: &str| path.iter().cloned().chain([Step::Key(key.to_owned())]).collect();
    let gone = members.iter().filter(|member| !map.contains_key(&member.key.text));
    let removed = gone.map(|member| Edit::Remove { path: below(&member.key.text) });
    removed.chain(map.iter().map(|(key, value)| Edit::Set { path: below(key), value: value.clone() })).collect()
}

/// The smallest single edit that changes one text into the other.
pub fn difference(old: &str, new: &str) -> Option<TextEdit> {
    if old == new {
        return None;
    }
    let mut start = old.bytes().zip(new.bytes()).take_while(|(one, other)| one == other).count();
    while !old.is_char_boundary(start) || !new.is_char_boundary(start) {
        start -= 1;
    }
    let longest = old.len().min(new.len()) - start;
    let mut end = old.bytes().rev().zip(new.bytes().rev()).take_while(|(one, other)| one == other).count().min(longest);
    while !old.is_char_boundary(old.len() - end) || !new.is_char_boundary(new.len() - end) {
        end -= 1;
    }
    Some(TextEdit::replace(start..old.len() - end, new.get(start..new.len() - end).unwrap_or_default()))
}

/// Writes a server's entry to the section with the servers. `file` determines the name of a new section.
pub fn set_server(text: &str, file: &Path, name: &str, value: Value) -> Result<String, EditError> {
    let section = section_for(text, file, name)?;
    apply(text, &[Edit::set(&[section, name], value)])
}

pub fn remove_server(text: &str, name: &str) -> Result<String, EditError> {
    let section = section_of(text, name)?;
    apply(text, &[Edit::remove(&[section, name])])
}

/// Removes a server, and the inputs that nothing else in the file refers to.
pub fn remove_server_and_inputs(text: &str, name: &str) -> Result<String, EditError> {
    let section = section_of(text, name)?;
    let tree = parse(text)?;
    let entry = tree.as_ref().and_then(|tree| tree.find(&steps(&[section, name])));
    let entry = entry.and_then(|entry| text.get(entry.span.clone())).unwrap_or_default();
    let mut rest = remove_server(text, name)?;
    for id in input_references(entry) {
        if !input_references(&rest).contains(&id) {
            rest = remove_input(&rest, id)?;
        }
    }
    Ok(rest)
}

fn input_references(text: &str) -> Vec<&str> {
    text.split("${input:").skip(1).filter_map(|rest| rest.split_once('}').map(|(id, _)| id)).collect()
}

fn remove_input(text: &str, id: &str) -> Result<String, EditError> {
    let tree = parse(text)?;
    let list = tree.as_ref().and_then(|tree| tree.find(&steps(&["inputs"])));
    let items = list.and_then(Node::items).unwrap_or_default();
    let is_it = |item: &Node| item.get("id").and_then(|member| member.value.text()) == Some(id);
    let Some(place) = items.iter().position(is_it) else { return Ok(text.to_owned()) };
    let (before, after) = (place.checked_sub(1).and_then(|place| items.get(place)), items.get(place + 1));
    let span = match (items.get(place), before, after) {
        (Some(item), _, Some(after)) => item.span.start..after.span.start,
        (Some(item), Some(before), None) => before.span.end..item.span.end,
        _ => return apply(text, &[Edit::remove(&["inputs"])]),
    };
    Ok(splice::apply_changes(text, vec![TextEdit::replace(span, "")]))
}

/// Moves a server from one text to another as it was written, including its comments. Returns the new `(from, to)`.
pub fn move_server(from: &str, to: &str, file: &Path, name: &str) -> Result<(String, String), EditError> {
    let section = section_of(from, name)?;
    let missing = || EditError::Missing(name.to_owned());
    let tree = parse(from)?.ok_or_else(missing)?;
    let parent = tree.find(&steps(&[section])).ok_or_else(missing)?;
    let member = parent.get(name).ok_or_else(missing)?;
    let written = Layout::of(from).unindented(from, &member.value);
    let above = splice::comments_of(from, &tree, parent, member);
    let target = section_for(to, file, name)?;
    let moved = apply(
        to,
        &[Edit::remove(&[target, name]), Edit::Paste { path: steps(&[target, name]), above, text: written }],
    )?;
    Ok((apply(from, &[Edit::remove(&[section, name])])?, moved))
}

/// Enables or disables a server with the key that its entry already uses.
pub fn set_enabled(text: &str, name: &str, enabled: bool) -> Result<String, EditError> {
    let section = section_of(text, name)?;
    let tree = parse(text)?;
    let entry = tree.as_ref().and_then(|tree| tree.find(&steps(&[section, name])));
    let has = |key: &str| entry.is_some_and(|entry| entry.get(key).is_some());
    let mut edits = Vec::new();
    if has("disabled") {
        edits.push(Edit::set(&[section, name, "disabled"], Value::from(!enabled)));
    }
    if has("enabled") || (!has("disabled") && !enabled) {
        edits.push(Edit::set(&[section, name, "enabled"], Value::from(enabled)));
    }
    apply(text, &edits)
}

/// Sets `timeout`, and removes its other spelling.
pub fn set_timeout(text: &str, name: &str, timeout: Duration) -> Result<String, EditError> {
    let section = section_of(text, name)?;
    let other = Edit::remove(&[section, name, "request_timeout_ms"]);
    apply(text, &[other, Edit::set(&[section, name, "timeout"], timeout_value(timeout))])
}

/// Sets the level of a tool or glob. `None` removes the entry, and an empty `tools`.
pub fn set_tool_level(text: &str, name: &str, tool: &str, level: Option<Level>) -> Result<String, EditError> {
    let section = section_of(text, name)?;
    if let Some(level) = level {
        return apply(text, &[Edit::set(&[section, name, "tools", tool], Value::from(level.as_str()))]);
    }
    let text = apply(text, &[Edit::remove(&[section, name, "tools", tool])])?;
    let tree = parse(&text)?;
    let tools = tree.as_ref().and_then(|tree| tree.find(&steps(&[section, name, "tools"])));
    let empty = tools.and_then(Node::members).is_some_and(<[_]>::is_empty);
    if empty { without_empty(&apply(&text, &[Edit::remove(&[section, name, "tools"])])?, name) } else { Ok(text) }
}

/// Sets the level of a tool in an entry that only restricts a server, and creates the entry if necessary.
pub fn restrict_tool(text: &str, file: &Path, name: &str, tool: &str, level: Level) -> Result<String, EditError> {
    let section = section_for(text, file, name)?;
    apply(text, &[Edit::set(&[section, name, "tools", tool], Value::from(level.as_str()))])
}

/// Disables a server with an entry that does not define it, and creates the entry if necessary.
pub fn disable(text: &str, file: &Path, name: &str) -> Result<String, EditError> {
    let section = section_for(text, file, name)?;
    let text = apply(text, &[Edit::remove(&[section, name, "disabled"])])?;
    apply(&text, &[Edit::set(&[section, name, "enabled"], Value::from(false))])
}

/// Takes back `disable`.
pub fn stop_disabling(text: &str, name: &str) -> Result<String, EditError> {
    let section = section_of(text, name)?;
    let keys = ["enabled", "disabled"].map(|key| Edit::remove(&[section, name, key]));
    without_empty(&apply(text, &keys)?, name)
}

/// Removes an entry that neither defines nor restricts a server any more.
fn without_empty(text: &str, name: &str) -> Result<String, EditError> {
    let section = section_of(text, name)?;
    let tree = parse(text)?;
    let entry = tree.as_ref().and_then(|tree| tree.find(&steps(&[section, name])));
    let is_empty =
        |entry: &Node| entry.members().is_some_and(|all| all.iter().all(|one| one.key.text == "description"));
    if entry.is_some_and(is_empty) { apply(text, &[Edit::remove(&[section, name])]) } else { Ok(text.to_owned()) }
}

/// Appends entries to `inputs`, except those whose `id` already exists.
pub fn add_inputs(text: &str, inputs: &[Value]) -> Result<String, EditError> {
    let tree = parse(text)?;
    let list = tree.as_ref().and_then(|tree| tree.find(&steps(&["inputs"])));
    if let Some(other) = list.filter(|list| list.items().is_none()) {
        return Err(EditError::WrongType("inputs".to_owned(), "a list", other.noun()));
    }
    let items = list.and_then(Node::items).unwrap_or_default();
    let id = |item: &Node| item.get("id").and_then(|member| member.value.text()).map(str::to_owned);
    let known = |input: &Value| items.iter().any(|item| id(item).as_deref() == input.get("id").and_then(Value::as_str));
    let new: Vec<Value> = inputs.iter().filter(|input| !known(input)).cloned().collect();
    let Some(last) = items.last().filter(|_| !new.is_empty()) else {
        return if new.is_empty() { Ok(text.to_owned()) } else { apply(text, &[Edit::set(&["inputs"], new.into())]) };
    };
    let written: String = new.iter().map(|input| format!(", {}", layout::one_line(input))).collect();
    Ok(splice::apply_changes(text, vec![TextEdit::replace(last.span.end..last.span.end, written)]))
}

/// Removes a section that contains neither entries nor comments.
pub fn without_empty_section(text: &str, section: &str) -> Result<String, EditError> {
    let tree = parse(text)?;
    let found = tree.as_ref().and_then(|tree| tree.find(&steps(&[section])));
    let is_bare = |node: &&Node| {
        let inside = text.get(node.span.clone()).and_then(|text| text.strip_prefix('{')?.strip_suffix('}'));
        inside.is_some_and(|inside| inside.trim().is_empty())
    };
    if found.filter(is_bare).is_some() { apply(text, &[Edit::remove(&[section])]) } else { Ok(text.to_owned()) }
}

/// The section that contains a server.
fn section_of(text: &str, name: &str) -> Result<&'static str, EditError> {
    let section = parse(text)?.and_then(|tree| tree.section_of(name));
    section.ok_or_else(|| EditError::Missing(name.to_owned()))
}

/// The section for a server: where it is, else where others are, else the section that the program of the file uses.
fn section_for(text: &str, file: &Path, name: &str) -> Result<&'static str, EditError> {
    if let Ok(section) = section_of(text, name) {
        return Ok(section);
    }
    let tree = parse(text)?;
    let has = |section: &&str| tree.as_ref().is_some_and(|tree| tree.section(section).is_some());
    let present: Vec<&str> = SECTIONS.into_iter().filter(has).collect();
    Ok(match present[..] {
        [only] => only,
        _ => sections::host(file).map_or(SERVERS, |(_, section)| section),
    })
}

/// Parses a valid text; `None` if it contains only blanks and comments.
fn parse(text: &str) -> Result<Option<Tree>, EditError> {
    let tree = tree::parse(text, DEPTH);
    match tree.problems.first() {
        None => Ok(Some(tree)),
        // Behind a comment without an end, everything that is added would be part of it.
        Some(problem) if tree.root.is_none() && problem.span.is_empty() => Ok(None),
        Some(problem) => Err(EditError::Broken(problem.message.clone())),
    }
}

#[cfg(test)]
mod tests;
