//! Fixes for problems with `${…}`.

use serde_json::json;

use crate::config::edit;
use crate::config::expand::{Piece, Reference, pieces};
use crate::config::problem::{Fix, Span, TextEdit};
use crate::config::shape::did_you_mean::closest;
use crate::config::tree::Node;
use crate::config::{Problem, tree::Tree};
use crate::ide::config_view::ConfigView;
use crate::ide::value_docs;
use crate::text::one_line;

/// The valid prefixes before a colon.
const PREFIXES: &[&str] = &["input", "env", "keyring"];
/// Shorter variable names are similar to too many words.
const MIN_LENGTH: usize = 6;

/// The reference that a problem reports.
struct Found<'a> {
    reference: Reference,
    /// The text between the braces.
    inner: &'a str,
    /// Its position in the file.
    span: Span,
}

/// Replaces an unknown name with a similar one.
pub fn spelling(config: &ConfigView<'_>, problem: &Problem) -> Option<Fix> {
    let in_actions = in_actions(config.tree, &problem.span);
    let known: Vec<&str> = match in_actions {
        true => value_docs::ACTION_VARIABLES.iter().map(|(name, _)| *name).collect(),
        false => value_docs::VARIABLES.iter().map(|(name, _)| *name).collect(),
    };
    find(config, problem, |found| {
        let name = found.inner.split_once(":-").map_or(found.inner, |(name, _)| name);
        let (word, meant) = match name.split_once(':') {
            Some(_) if in_actions => return None,
            Some((prefix, _)) => (prefix, closest(prefix, PREFIXES)?),
            None => (name, closest(name, &known)?),
        };
        Some(replace(found, word, meant)).filter(|_| word != meant)
    })
}

/// An unset variable may be a misspelled built-in variable.
pub fn known_variable(config: &ConfigView<'_>, problem: &Problem) -> Option<Fix> {
    let known: Vec<&str> = value_docs::VARIABLES.iter().map(|(name, _)| *name).collect();
    find(config, problem, |found| match &found.reference {
        Reference::Variable { name, default: None } if found.inner == name => {
            let same = known.iter().copied().find(|word| word.eq_ignore_ascii_case(name));
            let meant = same.or_else(|| closest(name, &known).filter(|_| name.len() >= MIN_LENGTH))?;
            Some(replace(found, name, meant))
        }
        _ => None,
    })
}

/// Adds an empty default, so that the server can start.
pub fn default(config: &ConfigView<'_>, problem: &Problem) -> Option<Fix> {
    find(config, problem, |found| match &found.reference {
        Reference::Variable { name, default: None } => {
            let title = format!("give `{name}` a default");
            Some(Fix { title, edits: vec![TextEdit::replace(found.span.end..found.span.end, ":-")] })
        }
        _ => None,
    })
}

pub fn declare(config: &ConfigView<'_>, problem: &Problem) -> Option<Fix> {
    find(config, problem, |found| {
        let Reference::Input(id) = &found.reference else { return None };
        let input = json!({ "id": id, "type": "promptString", "description": id, "password": true });
        let after = edit::add_inputs(config.text, &[input]).ok()?;
        let title = format!("declare the input `{}`", one_line(id, 40));
        Some(Fix { title, edits: vec![edit::difference(config.text, &after)?] })
    })
}

/// The fix for the reference that a problem names. A text may contain several references.
fn find(config: &ConfigView<'_>, problem: &Problem, fix: impl Fn(&Found<'_>) -> Option<Fix>) -> Option<Fix> {
    let text = config.inner(&problem.span);
    pieces(config.text.get(text.clone())?).into_iter().find_map(|piece| {
        let Piece::Reference { reference, span } = piece else { return None };
        let span = text.start + span.start + 2..text.start + span.end - 1;
        let inner = config.text.get(span.clone())?;
        let named = match &reference {
            Reference::Variable { name, .. } => format!("`{name}`"),
            Reference::Input(id) => format!("`{}`", one_line(id, 40)),
            _ => String::new(),
        };
        let whole =
            |longest: usize| problem.message.contains(&format!("`{}`", one_line(&format!("${{{inner}}}"), longest)));
        let is_named = (!named.is_empty() && problem.message.contains(&named)) || whole(60) || whole(40);
        is_named.then(|| fix(&Found { reference, inner, span }))?
    })
}

fn replace(found: &Found<'_>, word: &str, meant: &str) -> Fix {
    let start = found.span.start;
    let written = format!("${{{}}}", found.inner.replacen(word, meant, 1));
    let edit = TextEdit::replace(start..start + word.len(), meant);
    Fix { title: format!("change to `{}`", one_line(&written, 60)), edits: vec![edit] }
}

/// Whether a span is in the `actions` section, which has its own variables.
fn in_actions(tree: &Tree, span: &Span) -> bool {
    let actions = tree.root.as_ref().and_then(|root: &Node| root.get("actions"));
    actions.is_some_and(|actions| actions.value.span.start <= span.start && span.end <= actions.value.span.end)
}
