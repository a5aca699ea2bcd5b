//! What the thing under the cursor is: a server and how it is doing, a tool and what it may, a key, a word, a
//! variable. Values of variables are never told.

pub mod schema;
mod server;
mod tool;
mod variable;

use super::expected::{Expected, expected};
use super::page::Page;
use super::uses::{self, Named, Role};
use super::{markdown, words};
use crate::config::Span;
use crate::config::shape::keys::{Key, Role as KeyRole};
use crate::config::tree::{Kind, Part};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hover {
    pub span: Span,
    pub markdown: String,
}

/// What there is to say at an offset.
pub fn hover(page: &Page<'_>, offset: usize) -> Option<Hover> {
    if page.in_comment(offset) {
        return None;
    }
    let place = page.tree.locate(offset)?;
    if let Part::Value(node) = place.part
        && matches!(node.kind, Kind::Text(_))
        && let Some(hover) = variable::hover(page, &place.path, &node.span, offset)
    {
        return Some(hover);
    }
    if let Some(used) = uses::at(page.text, page.tree, offset) {
        let markdown = match &used.named {
            Named::Server(name) if used.role == Role::Definition => Some(server::card(page, name)),
            Named::Server(pattern) => Some(server::matched(page, pattern)),
            Named::Tool { server, tool } => Some(tool::card(page, server, tool)),
            Named::Input(id) => Some(variable::input(page, id)),
            Named::Variable(_) | Named::Key(_) => None,
        };
        if let Some(markdown) = markdown {
            return Some(Hover { span: used.around, markdown });
        }
    }
    match place.part {
        Part::Key(member) => {
            let (_, parent) = place.path.split_last()?;
            let key = expected(parent)?.table()?.key(&member.key.text)?;
            Some(Hover { span: member.key.span.clone(), markdown: docs(key) })
        }
        Part::Value(node) => {
            let word = node.text()?;
            let chosen = match expected(&place.path)? {
                Expected::Rule => true,
                Expected::Plain(key, _) => {
                    use crate::config::shape::keys::Of;
                    matches!(key.of, Of::Choice(_) | Of::Level)
                }
                _ => false,
            };
            let meaning = words::meaning(word).filter(|_| chosen)?;
            Some(Hover { span: node.span.clone(), markdown: format!("**{}**\n\n{meaning}", markdown::code(word)) })
        }
        Part::Between(_) => None,
    }
}

/// What a key is for.
fn docs(key: &Key) -> String {
    let name = markdown::code(key.name);
    let mut shown = match key.role {
        KeyRole::Ignored => format!("**{name}** has no effect here: {}", key.docs),
        KeyRole::Own | KeyRole::Alias(_) | KeyRole::Foreign => format!("**{name}**\n\n{}", key.docs),
    };
    if !key.types.is_empty() {
        let types: Vec<String> = key.types.iter().map(|kind| markdown::code(kind)).collect();
        shown.push_str(&format!("\n\nFor servers of type {}.", types.join(", ")));
    }
    shown
}

#[cfg(test)]
mod tests;
