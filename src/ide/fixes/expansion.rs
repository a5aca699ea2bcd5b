//! What removes a problem with a `${…}`.

use serde_json::json;

use crate::config::edit;
use crate::config::expand::{Piece, Reference, pieces};
use crate::config::problem::{Fix, Span, TextEdit};
use crate::config::shape::did_you_mean::closest;
use crate::config::tree::Node;
use crate::config::{Problem, tree::Tree};
use crate::ide::page::Page;
use crate::ide::words;
use crate::text::one_line;

/// What may stand before a colon.
const PREFIXES: &[&str] = &["input", "env", "keyring"];
/// Shorter names of variables are near to any word.
const SHORTEST: usize = 6;

/// A reference of the text that a problem is about.
struct Found<'a> {
    reference: Reference,
    /// As it is written, without its braces.
    inner: &'a str,
    /// Where that stands in the file.
    span: Span,
}

/// A word that nobody knows, and one that is like it.
pub fn spelling(page: &Page<'_>, problem: &Problem) -> Option<Fix> {
    let in_actions = in_actions(page.tree, &problem.span);
    let known: Vec<&str> = match in_actions {
        true => words::ACTION_VARIABLES.iter().map(|(name, _)| *name).collect(),
        false => words::VARIABLES.iter().map(|(name, _)| *name).collect(),
    };
    find(page, problem, |found| {
        let name = found.inner.split_once(":-").map_or(found.inner, |(name, _)| name);
        let (word, meant) = match name.split_once(':') {
            Some(_) if in_actions => return None,
            Some((prefix, _)) => (prefix, closest(prefix, PREFIXES)?),
            None => (name, closest(name, &known)?),
        };
        Some(replace(found, word, meant)).filter(|_| word != meant)
    })
}

/// A variable that is not set may be a word of ours, in other letters.
pub fn word_of_ours(page: &Page<'_>, problem: &Problem) -> Option<Fix> {
    let known: Vec<&str> = words::VARIABLES.iter().map(|(name, _)| *name).collect();
    find(page, problem, |found| match &found.reference {
        Reference::Variable { name, default: None } if found.inner == name => {
            let same = known.iter().copied().find(|word| word.eq_ignore_ascii_case(name));
            let meant = same.or_else(|| closest(name, &known).filter(|_| name.len() >= SHORTEST))?;
            Some(replace(found, name, meant))
        }
        _ => None,
    })
}

/// An empty default: the server starts, and whatever should stand there can be typed in.
pub fn default(page: &Page<'_>, problem: &Problem) -> Option<Fix> {
    find(page, problem, |found| match &found.reference {
        Reference::Variable { name, default: None } => {
            let title = format!("give `{name}` a default");
            Some(Fix { title, edits: vec![TextEdit::replace(found.span.end..found.span.end, ":-")] })
        }
        _ => None,
    })
}

pub fn declare(page: &Page<'_>, problem: &Problem) -> Option<Fix> {
    find(page, problem, |found| {
        let Reference::Input(id) = &found.reference else { return None };
        let input = json!({ "id": id, "type": "promptString", "description": id, "password": true });
        let after = edit::add_inputs(page.text, &[input]).ok()?;
        let title = format!("declare the input `{}`", one_line(id, 40));
        Some(Fix { title, edits: vec![edit::difference(page.text, &after)?] })
    })
}

/// The fix for the reference that a problem names; several may stand in one text.
fn find(page: &Page<'_>, problem: &Problem, fix: impl Fn(&Found<'_>) -> Option<Fix>) -> Option<Fix> {
    let text = page.inner(&problem.span);
    pieces(page.text.get(text.clone())?).into_iter().find_map(|piece| {
        let Piece::Reference { reference, span } = piece else { return None };
        let span = text.start + span.start + 2..text.start + span.end - 1;
        let inner = page.text.get(span.clone())?;
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

/// Whether a place is in the section whose placeholders are those of the editor.
fn in_actions(tree: &Tree, span: &Span) -> bool {
    let actions = tree.root.as_ref().and_then(|root: &Node| root.get("actions"));
    actions.is_some_and(|actions| actions.value.span.start <= span.start && span.end <= actions.value.span.end)
}
