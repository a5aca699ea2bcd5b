//! What removes a problem: the changes that it brings along, and those that need a look at the text around it. None of
//! them takes a comment away that stands outside of what is removed.

mod expansion;
mod launch;

use super::page::Page;
use crate::config::problem::{Fix, TextEdit};
use crate::config::shape::keys::{Role, SERVER};
use crate::config::shape::quoted;
use crate::config::tree::{Kind, Member, Node};
use crate::config::{Problem, Span, edit};
use crate::text::{Secret, one_line};

/// All changes that would remove a problem, the best one first.
pub fn fixes(page: &Page<'_>, problem: &Problem) -> Vec<Fix> {
    let mut fixes: Vec<Fix> = problem.fix.iter().cloned().collect();
    match problem.code {
        "duplicate-key" | "name-clash" => {
            fixes.extend(remove_duplicate(page, &problem.span).or_else(|| remove_input(page, &problem.span)));
        }
        "same-key" => fixes.extend(remove_other_spelling(page, &problem.span)),
        "ignored-key" | "unused-key" => fixes.extend(remove_key(page, &problem.span)),
        "conflicting-keys" => fixes.extend(say_which(page, &problem.span)),
        "unset-variable" => {
            fixes.extend(expansion::word_of_ours(page, problem));
            fixes.extend(expansion::default(page, problem));
        }
        "unknown-expansion" => fixes.extend(expansion::spelling(page, problem)),
        "unknown-input" => fixes.extend(expansion::declare(page, problem)),
        "unknown-key" if fixes.is_empty() => fixes.extend(remove_key(page, &problem.span)),
        "command-not-found" => fixes.extend(launch::split_command(page, &problem.span)),
        "missing-key" => fixes.extend(launch::add_port(page, &problem.span)),
        _ => {}
    }
    fixes
}

/// A secret on its way from a file into the keyring.
pub struct Kept {
    /// What the file calls it afterwards: `${keyring:name}`.
    pub name: String,
    pub value: Secret,
    pub edit: TextEdit,
}

/// The secret that a problem is about. Its fix tells where in the string it stands.
pub fn secret(page: &Page<'_>, problem: &Problem) -> Option<Kept> {
    let fix = problem.fix.as_ref().filter(|_| problem.code == "raw-secret")?.edits.first()?;
    let old: String = serde_json::from_str(page.text.get(fix.span.clone())?).ok()?;
    let new: String = serde_json::from_str(&fix.text).ok()?;
    let before = edit::difference(&old, &new)?.span.start;
    let before = new.get(..before + 2)?.rfind("${").unwrap_or(before).min(before);
    let (name, after) = new.get(before..)?.strip_prefix("${env:")?.split_once('}')?;
    let value = old.get(before..)?.strip_suffix(after)?;
    let written = format!("{}${{keyring:{name}}}{after}", old.get(..before)?);
    let edit = TextEdit::replace(fix.span.clone(), quoted(&written));
    Some(Kept { name: name.to_owned(), value: Secret::new(value), edit })
}

/// The change that gives an entry its `type`, before everything else in it.
pub fn add_type(page: &Page<'_>, entry: &Node, kind: &str) -> Option<Fix> {
    let first = entry.members()?.first()?;
    let gap = page.text.get(entry.span.start + 1..first.key.span.start)?;
    let gap = if gap.trim().is_empty() && !gap.is_empty() { gap } else { " " };
    let start = first.key.span.start;
    let edit = TextEdit::replace(start..start, format!("\"type\": \"{kind}\",{gap}"));
    Some(Fix { title: format!("add `\"type\": \"{kind}\"`"), edits: vec![edit] })
}

/// Of two with the same name, the one that has no effect.
fn remove_duplicate(page: &Page<'_>, span: &Span) -> Option<Fix> {
    let (parent, index) = member_at(page.tree.root.as_ref()?, span)?;
    let members = parent.members()?;
    let name = &members.get(index)?.key.text;
    let earlier = members.get(..index)?.iter().rposition(|member| member.key.text == *name);
    let (index, which) = match earlier {
        Some(earlier) => (earlier, "the first"),
        // The other one stands in the other section, and that one counts.
        None => (index, "this"),
    };
    let title = format!("remove {which} `{}`", one_line(name, 40));
    Some(Fix { title, edits: edit::removal(page.text, page.tree, parent, index) })
}

/// Of two inputs with the same id, the later one: the first counts.
fn remove_input(page: &Page<'_>, span: &Span) -> Option<Fix> {
    let inputs = &page.tree.root.as_ref()?.get("inputs")?.value;
    let id =
        |item: &Node| item.get("id").map(|member| (member.value.span.clone(), member.value.text().map(str::to_owned)));
    let index = inputs.items()?.iter().position(|item| id(item).is_some_and(|(place, _)| place == *span))?;
    let (_, name) = id(inputs.items()?.get(index)?)?;
    let title = format!("remove this `{}`", one_line(&name?, 40));
    Some(Fix { title, edits: edit::removal(page.text, page.tree, inputs, index) })
}

fn remove_other_spelling(page: &Page<'_>, span: &Span) -> Option<Fix> {
    let (parent, index) = member_at(page.tree.root.as_ref()?, span)?;
    let members = parent.members()?;
    let meant = |name: &str| match SERVER.key(name).map(|key| key.role) {
        Some(Role::Alias(target)) => target.to_owned(),
        _ => name.to_owned(),
    };
    let own = meant(&members.get(index)?.key.text);
    let other = members.get(..index)?.iter().rposition(|member| meant(&member.key.text) == own)?;
    let title = format!("remove `{}`", one_line(&members.get(other)?.key.text, 40));
    Some(Fix { title, edits: edit::removal(page.text, page.tree, parent, other) })
}

fn remove_key(page: &Page<'_>, span: &Span) -> Option<Fix> {
    let (parent, index) = member_at(page.tree.root.as_ref()?, span)?;
    let title = format!("remove `{}`", one_line(&parent.members()?.get(index)?.key.text, 40));
    Some(Fix { title, edits: edit::removal(page.text, page.tree, parent, index) })
}

/// Either is meant; the user says which.
fn say_which(page: &Page<'_>, span: &Span) -> Vec<Fix> {
    let Some((parent, index)) = page.tree.root.as_ref().and_then(|root| member_at(root, span)) else {
        return Vec::new();
    };
    let members = parent.members().unwrap_or_default();
    if members.get(index).is_some_and(|member| member.key.text == "disabled") {
        let enabled = members.iter().position(|member| member.key.text == "enabled");
        let fix = |index| Fix {
            title: "remove `enabled`".to_owned(),
            edits: edit::removal(page.text, page.tree, parent, index),
        };
        return enabled.map(fix).into_iter().collect();
    }
    let kinds = [("command", "stdio"), ("url", "http"), ("serverUrl", "http"), ("httpUrl", "http"), ("port", "tcp")];
    let there = kinds.iter().filter(|(key, _)| members.iter().any(|member| member.key.text == *key));
    there.filter_map(|(_, kind)| add_type(page, parent, kind)).collect()
}

/// The object whose member has its key here, and which of its members that is.
fn member_at<'a>(node: &'a Node, span: &Span) -> Option<(&'a Node, usize)> {
    member_where(node, span, &|member| member.key.span == *span)
}

/// The same for the member that fits, on the way to a place.
fn member_where<'a>(node: &'a Node, span: &Span, fits: &dyn Fn(&Member) -> bool) -> Option<(&'a Node, usize)> {
    let around = |inner: &Node| inner.span.start <= span.start && span.end <= inner.span.end;
    match &node.kind {
        Kind::Object(members) => {
            let here = members.iter().position(fits);
            let below = || members.iter().find(|member| around(&member.value));
            here.map(|index| (node, index)).or_else(|| member_where(&below()?.value, span, fits))
        }
        Kind::List(items) => member_where(items.iter().find(|item| around(item))?, span, fits),
        _ => None,
    }
}
