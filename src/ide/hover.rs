//! Hover: describes the server, tool, key, value or variable at the cursor. Never shows the value of a variable.

pub mod schema;
pub mod server;
mod tool;
mod variable;

use super::config_view::ConfigView;
use super::expected::{Expected, expected};
use super::occurrences::{Named, Role};
use super::{markdown, value_docs};
use crate::config::Span;
use crate::config::shape::keys::{Key, Role as KeyRole};
use crate::config::tree::{Kind, Part};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hover {
    pub span: Span,
    pub markdown: String,
}

/// The hover at an offset.
pub fn hover(config: &ConfigView<'_>, offset: usize) -> Option<Hover> {
    if config.in_comment(offset) {
        return None;
    }
    let place = config.tree.locate(offset)?;
    if let Part::Value(node) = place.part
        && matches!(node.kind, Kind::Text(_))
        && let Some(hover) = variable::hover(config, &place.path, &node.span, offset)
    {
        return Some(hover);
    }
    if let Some(occurrence) = config.occurrence_at(offset) {
        let markdown = match &occurrence.named {
            Named::Server(name) if occurrence.role == Role::Definition => Some(server::describe(config, name)),
            Named::Server(pattern) => Some(server::describe_matches(config, pattern)),
            Named::Tool { server, tool } => Some(tool::describe(config, server, tool)),
            Named::Input(id) => Some(variable::input(config, id)),
            Named::Variable(_) | Named::Key(_) => None,
        };
        if let Some(markdown) = markdown {
            return Some(Hover { span: occurrence.around, markdown });
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
            let is_choice = match expected(&place.path)? {
                Expected::Rule => true,
                Expected::Value(key, _) => {
                    use crate::config::shape::keys::ValueType;
                    matches!(key.of, ValueType::Choice(_) | ValueType::Level)
                }
                _ => false,
            };
            let meaning = value_docs::describe_value(word).filter(|_| is_choice)?;
            Some(Hover { span: node.span.clone(), markdown: format!("**{}**\n\n{meaning}", markdown::code(word)) })
        }
        Part::Between(_) => None,
    }
}

/// The documentation of a key.
fn docs(key: &Key) -> String {
    let name = markdown::code(key.name);
    let mut shown = match key.role {
        KeyRole::Ignored => format!("**{name}** has no effect: {}", key.docs),
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
