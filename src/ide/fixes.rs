//! Quick fixes: those that a problem contains, and those that depend on the surrounding text. A fix never removes comments
//! outside of the text that it removes.

mod expansion;
mod launch;
mod tools;

pub use tools::show_hidden_tools;

use super::config_view::ConfigView;
use crate::config::problem::{Code, Fix, TextEdit};
use crate::config::shape::keys::{Role, SERVER};
use crate::config::shape::quoted;
use crate::config::tree::{Kind, Member, Node};
use crate::config::{Problem, Span, edit};
use crate::text::{Secret, one_line};

/// All fixes for a problem, best first.
pub fn fixes(config: &ConfigView<'_>, problem: &Problem) -> Vec<Fix> {
    let mut fixes: Vec<Fix> = problem.fix.iter().cloned().collect();
    match problem.code {
        Code::DuplicateKey | Code::NameClash => {
            fixes.extend(remove_duplicate(config, &problem.span).or_else(|| remove_input(config, &problem.span)));
        }
        Code::SameKey => fixes.extend(remove_other_spelling(config, &problem.span)),
        Code::IgnoredKey | Code::UnusedKey => fixes.extend(remove_key(config, &problem.span)),
        Code::ConflictingKeys => fixes.extend(resolve_conflict(config, &problem.span)),
        Code::UnsetVariable => {
            fixes.extend(expansion::known_variable(config, problem));
            fixes.extend(expansion::default(config, problem));
        }
        Code::UnknownExpansion => fixes.extend(expansion::spelling(config, problem)),
        Code::UnknownInput => fixes.extend(expansion::declare(config, problem)),
        Code::UnknownKey if fixes.is_empty() => fixes.extend(remove_key(config, &problem.span)),
        Code::CommandNotFound => fixes.extend(launch::split_command(config, &problem.span)),
        Code::MissingKey => fixes.extend(launch::add_port(config, &problem.span)),
        Code::UnusedTools => fixes.extend(tools::hide_unused(config, &problem.span)),
        _ => {}
    }
    fixes
}

/// A secret to move from a file to the keyring.
pub struct SecretMove {
    /// Its name in the keyring; the file refers to it as `${keyring:name}`.
    pub name: String,
    pub value: Secret,
    pub edit: TextEdit,
}

/// The secret that a problem reports. The fix of the problem contains its position in the string.
pub fn move_secret(config: &ConfigView<'_>, problem: &Problem) -> Option<SecretMove> {
    let fix = problem.fix.as_ref().filter(|_| problem.code == Code::RawSecret)?.edits.first()?;
    let old: String = serde_json::from_str(config.text.get(fix.span.clone())?).ok()?;
    let new: String = serde_json::from_str(&fix.text).ok()?;
    let before = edit::difference(&old, &new)?.span.start;
    let before = new.get(..before + 2)?.rfind("${").unwrap_or(before).min(before);
    let (name, after) = new.get(before..)?.strip_prefix("${env:")?.split_once('}')?;
    let value = old.get(before..)?.strip_suffix(after)?;
    let written = format!("{}${{keyring:{name}}}{after}", old.get(..before)?);
    let edit = TextEdit::replace(fix.span.clone(), quoted(&written));
    Some(SecretMove { name: name.to_owned(), value: Secret::new(value), edit })
}

/// Adds `type` at the start of an entry.
pub fn add_type(config: &ConfigView<'_>, entry: &Node, kind: &str) -> Option<Fix> {
    let first = entry.members()?.first()?;
    let gap = config.text.get(entry.span.start + 1..first.key.span.start)?;
    let gap = if gap.trim().is_empty() && !gap.is_empty() { gap } else { " " };
    let start = first.key.span.start;
    let edit = TextEdit::replace(start..start, format!("\"type\": \"{kind}\",{gap}"));
    Some(Fix { title: format!("add `\"type\": \"{kind}\"`"), edits: vec![edit] })
}

/// Removes the one of two members with the same name that has no effect.
fn remove_duplicate(config: &ConfigView<'_>, span: &Span) -> Option<Fix> {
    let (parent, index) = member_at(config.tree.root.as_ref()?, span)?;
    let members = parent.members()?;
    let name = &members.get(index)?.key.text;
    let earlier = members.get(..index)?.iter().rposition(|member| member.key.text == *name);
    let (index, which) = match earlier {
        Some(earlier) => (earlier, "the first"),
        // The other one is in the other section and takes precedence.
        None => (index, "this"),
    };
    let title = format!("remove {which} `{}`", one_line(name, 40));
    Some(Fix { title, edits: edit::removal(config.text, config.tree, parent, index) })
}

/// Removes the second of two inputs with the same id; the first takes precedence.
fn remove_input(config: &ConfigView<'_>, span: &Span) -> Option<Fix> {
    let inputs = &config.tree.root.as_ref()?.get("inputs")?.value;
    let id =
        |item: &Node| item.get("id").map(|member| (member.value.span.clone(), member.value.text().map(str::to_owned)));
    let index = inputs.items()?.iter().position(|item| id(item).is_some_and(|(place, _)| place == *span))?;
    let (_, name) = id(inputs.items()?.get(index)?)?;
    let title = format!("remove this `{}`", one_line(&name?, 40));
    Some(Fix { title, edits: edit::removal(config.text, config.tree, inputs, index) })
}

fn remove_other_spelling(config: &ConfigView<'_>, span: &Span) -> Option<Fix> {
    let (parent, index) = member_at(config.tree.root.as_ref()?, span)?;
    let members = parent.members()?;
    let canonical = |name: &str| match SERVER.key(name).map(|key| key.role) {
        Some(Role::Alias(target)) => target.to_owned(),
        _ => name.to_owned(),
    };
    let own = canonical(&members.get(index)?.key.text);
    let other = members.get(..index)?.iter().rposition(|member| canonical(&member.key.text) == own)?;
    let title = format!("remove `{}`", one_line(&members.get(other)?.key.text, 40));
    Some(Fix { title, edits: edit::removal(config.text, config.tree, parent, other) })
}

fn remove_key(config: &ConfigView<'_>, span: &Span) -> Option<Fix> {
    let (parent, index) = member_at(config.tree.root.as_ref()?, span)?;
    let title = format!("remove `{}`", one_line(&parent.members()?.get(index)?.key.text, 40));
    Some(Fix { title, edits: edit::removal(config.text, config.tree, parent, index) })
}

/// The user chooses which of two conflicting keys to use.
fn resolve_conflict(config: &ConfigView<'_>, span: &Span) -> Vec<Fix> {
    let Some((parent, index)) = config.tree.root.as_ref().and_then(|root| member_at(root, span)) else {
        return Vec::new();
    };
    let members = parent.members().unwrap_or_default();
    if members.get(index).is_some_and(|member| member.key.text == "disabled") {
        let enabled = members.iter().position(|member| member.key.text == "enabled");
        let fix = |index| Fix {
            title: "remove `enabled`".to_owned(),
            edits: edit::removal(config.text, config.tree, parent, index),
        };
        return enabled.map(fix).into_iter().collect();
    }
    let kinds = [("command", "stdio"), ("url", "http"), ("serverUrl", "http"), ("httpUrl", "http"), ("port", "tcp")];
    let there = kinds.iter().filter(|(key, _)| members.iter().any(|member| member.key.text == *key));
    there.filter_map(|(_, kind)| add_type(config, parent, kind)).collect()
}

/// The object that contains the member with this key, and the index of the member.
fn member_at<'a>(node: &'a Node, span: &Span) -> Option<(&'a Node, usize)> {
    member_where(node, span, &|member| member.key.span == *span)
}

/// The first matching member on the way to a span.
fn member_where<'a>(node: &'a Node, span: &Span, matches: &dyn Fn(&Member) -> bool) -> Option<(&'a Node, usize)> {
    let around = |inner: &Node| inner.span.start <= span.start && span.end <= inner.span.end;
    match &node.kind {
        Kind::Object(members) => {
            let here = members.iter().position(matches);
            let below = || members.iter().find(|member| around(&member.value));
            here.map(|index| (node, index)).or_else(|| member_where(&below()?.value, span, matches))
        }
        Kind::List(items) => member_where(items.iter().find(|item| around(item))?, span, matches),
        _ => None,
    }
}
