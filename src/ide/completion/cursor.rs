//! The cursor position: what is missing there, what has been typed, and what a completion replaces.

use std::cell::Cell;

use super::MAX_ITEMS;
use crate::config::Span;
use crate::config::problem::TextEdit;
use crate::config::tree::{Kind, Node, Part, Step};
use crate::ide::config_view::ConfigView;

pub struct Cursor<'a> {
    /// The path of the object whose key is missing, or of the missing value.
    pub path: Vec<Step>,
    pub missing: Missing<'a>,
    pub span: Span,
    /// The text from the start of the word to the cursor, without a quote.
    pub typed: &'a str,
    /// Whether `span` starts with a quote.
    pub quoted: bool,
    /// Whether items were left out; see [`Cursor::limit`].
    pub truncated: Cell<bool>,
}

pub enum Missing<'a> {
    /// The file is empty.
    File,
    Key {
        object: &'a Node,
        /// The key already has a value.
        has_value: bool,
    },
    Value,
}

/// Finds out where the cursor is; `None` if there is nothing to complete.
pub fn find<'a>(config: &ConfigView<'a>, offset: usize) -> Option<Cursor<'a>> {
    let Some(root) = &config.tree.root else { return Some(Cursor::empty(Vec::new(), Missing::File, offset)) };
    let place = config.tree.locate(offset)?;
    let mut path = place.path;
    match place.part {
        Part::Between(node) => between(path, node, offset),
        Part::Key(member) => {
            path.pop();
            let object = config.tree.find(&path).unwrap_or(root);
            if offset == member.key.span.start {
                return between(path, object, offset);
            }
            let word = Word::at(config, &member.key.span, offset)?;
            let behind = config.text.get(word.span.end..).unwrap_or_default().trim_start();
            Some(word.cursor(path, Missing::Key { object, has_value: behind.starts_with(':') }))
        }
        Part::Value(node) => match &node.kind {
            Kind::Object(_) | Kind::List(_) if open(config, node, offset) => between(path, node, offset),
            Kind::Object(_) | Kind::List(_) => None,
            // Before a value that may belong to the next key.
            _ if offset < node.span.start => Some(Cursor::empty(path, Missing::Value, offset)),
            Kind::Missing if config.text.get(node.span.clone()).is_none_or(|text| text.trim().is_empty()) => {
                Some(Cursor::empty(path, Missing::Value, offset))
            }
            _ => Some(Word::at(config, &node.span, offset)?.cursor(path, Missing::Value)),
        },
    }
}

impl<'a> Cursor<'a> {
    fn empty(path: Vec<Step>, missing: Missing<'a>, offset: usize) -> Self {
        Self { path, missing, span: offset..offset, typed: "", quoted: false, truncated: Cell::default() }
    }

    /// A word with quotes if the typed text has a quote.
    pub fn quoted_as_typed(&self, word: &str) -> String {
        if self.quoted { super::quoted(word) } else { word.to_owned() }
    }

    /// Reduces a long list to the names that contain the typed text.
    pub fn limit<T>(&self, all: impl Iterator<Item = T>, name: impl Fn(&T) -> String) -> Vec<T> {
        let mut all: Vec<T> = all.collect();
        if all.len() > MAX_ITEMS {
            let typed = self.typed.to_lowercase();
            all.retain(|one| name(one).to_lowercase().contains(&typed));
            all.truncate(MAX_ITEMS);
            self.truncated.set(true);
        }
        all
    }

    /// The commas that a new entry of an object needs: an edit that adds one after the previous entry, and whether the new
    /// entry needs one after it.
    pub fn commas(&self, config: &ConfigView<'_>) -> (Option<TextEdit>, bool) {
        let Missing::Key { object, .. } = &self.missing else { return (None, false) };
        let members = object.members().unwrap_or_default();
        let before = members.iter().rev().find(|member| member.value.span.end <= self.span.start);
        let no_comma = before.filter(|member| {
            let real = member.value.kind != Kind::Missing;
            real && !without_comments(config, member.value.span.end..self.span.start).contains(',')
        });
        let edit = no_comma.map(|member| {
            let end = member.value.span.end;
            TextEdit { span: end..end, text: ",".to_owned() }
        });
        let behind = without_comments(config, self.span.end..config.text.len().min(self.span.end + 4_096));
        (edit, behind.trim_start().starts_with('"'))
    }
}

/// The word at the cursor.
struct Word<'a> {
    span: Span,
    typed: &'a str,
    quoted: bool,
}

impl<'a> Word<'a> {
    /// `None` after the closing quote.
    fn at(config: &ConfigView<'a>, span: &Span, offset: usize) -> Option<Self> {
        let raw = config.text.get(span.clone())?;
        let quoted = raw.starts_with(['"', '\'']);
        let inner = config.inner(span);
        if offset < inner.start || offset > inner.end {
            return None;
        }
        let closed = quoted && inner.end < span.end;
        // If the closing quote is missing, the string includes the text after it, possibly up to the next string.
        let tail = config.text.get(offset..inner.end)?;
        let own = !quoted || (closed && !tail.contains([':', ',', '{', '[', '}', ']']));
        let end = if own { span.end } else { offset };
        Some(Self { span: span.start..end, typed: config.text.get(inner.start..offset)?, quoted })
    }

    fn cursor(self, path: Vec<Step>, missing: Missing<'a>) -> Cursor<'a> {
        Cursor { path, missing, span: self.span, typed: self.typed, quoted: self.quoted, truncated: Cell::default() }
    }
}

fn between<'a>(mut path: Vec<Step>, node: &'a Node, offset: usize) -> Option<Cursor<'a>> {
    let missing = match &node.kind {
        Kind::Object(_) => Missing::Key { object: node, has_value: false },
        Kind::List(items) => {
            path.push(Step::Index(items.iter().filter(|item| item.span.end <= offset).count()));
            Missing::Value
        }
        _ => return None,
    };
    Some(Cursor::empty(path, missing, offset))
}

/// Whether the cursor is inside brackets whose closing bracket is missing.
fn open(config: &ConfigView<'_>, node: &Node, offset: usize) -> bool {
    let text = config.text.get(node.span.clone()).unwrap_or_default();
    offset > node.span.start && (text.len() < 2 || !text.ends_with(['}', ']']))
}

fn without_comments(config: &ConfigView<'_>, span: Span) -> String {
    let mut left = String::new();
    let mut at = span.start;
    for comment in config.tree.comments.iter().filter(|comment| span.start <= comment.start && comment.end <= span.end)
    {
        left.push_str(config.text.get(at..comment.start).unwrap_or_default());
        at = comment.end;
    }
    left.push_str(config.text.get(at..span.end).unwrap_or_default());
    left
}
