//! Where the cursor is: what is missing there, what has been typed of it, and what an answer takes the place of.

use std::cell::Cell;

use super::MOST;
use crate::config::Span;
use crate::config::problem::TextEdit;
use crate::config::tree::{Kind, Node, Part, Step};
use crate::ide::page::Page;

pub struct Cursor<'a> {
    /// Of the object whose key is missing, or of the missing value.
    pub path: Vec<Step>,
    pub hole: Hole<'a>,
    pub span: Span,
    /// From the beginning of the word to the cursor, without a quote.
    pub typed: &'a str,
    /// Whether `span` begins with a quote.
    pub quoted: bool,
    /// Whether something that could be offered was left out; see [`Cursor::few`].
    pub cut: Cell<bool>,
}

pub enum Hole<'a> {
    /// The file is empty.
    File,
    Key {
        object: &'a Node,
        /// A value stands behind the key already.
        has_value: bool,
    },
    Value,
}

/// Looks where the cursor is; `None` where nothing can be typed that we know of.
pub fn find<'a>(page: &Page<'a>, offset: usize) -> Option<Cursor<'a>> {
    let Some(root) = &page.tree.root else { return Some(Cursor::empty(Vec::new(), Hole::File, offset)) };
    let place = page.tree.locate(offset)?;
    let mut path = place.path;
    match place.part {
        Part::Between(node) => between(path, node, offset),
        Part::Key(member) => {
            path.pop();
            let object = page.tree.find(&path).unwrap_or(root);
            if offset == member.key.span.start {
                return between(path, object, offset);
            }
            let word = Word::at(page, &member.key.span, offset)?;
            let behind = page.text.get(word.span.end..).unwrap_or_default().trim_start();
            Some(word.cursor(path, Hole::Key { object, has_value: behind.starts_with(':') }))
        }
        Part::Value(node) => match &node.kind {
            Kind::Object(_) | Kind::List(_) if open(page, node, offset) => between(path, node, offset),
            Kind::Object(_) | Kind::List(_) => None,
            // In front of a value that may belong to the next key.
            _ if offset < node.span.start => Some(Cursor::empty(path, Hole::Value, offset)),
            Kind::Missing if page.text.get(node.span.clone()).is_none_or(|text| text.trim().is_empty()) => {
                Some(Cursor::empty(path, Hole::Value, offset))
            }
            _ => Some(Word::at(page, &node.span, offset)?.cursor(path, Hole::Value)),
        },
    }
}

impl<'a> Cursor<'a> {
    fn empty(path: Vec<Step>, hole: Hole<'a>, offset: usize) -> Self {
        Self { path, hole, span: offset..offset, typed: "", quoted: false, cut: Cell::default() }
    }

    /// A word as the typed text would have it.
    pub fn as_typed(&self, word: &str) -> String {
        if self.quoted { super::quoted(word) } else { word.to_owned() }
    }

    /// Cuts a long list, before its items are made, to what fits to the typed letters.
    pub fn few<T>(&self, all: impl Iterator<Item = T>, name: impl Fn(&T) -> String) -> Vec<T> {
        let mut all: Vec<T> = all.collect();
        if all.len() > MOST {
            let typed = self.typed.to_lowercase();
            all.retain(|one| name(one).to_lowercase().contains(&typed));
            all.truncate(MOST);
            self.cut.set(true);
        }
        all
    }

    /// What a new entry of an object needs around it: a comma behind the entry before, as an edit, and whether one is
    /// needed behind itself.
    pub fn commas(&self, page: &Page<'_>) -> (Option<TextEdit>, bool) {
        let Hole::Key { object, .. } = &self.hole else { return (None, false) };
        let members = object.members().unwrap_or_default();
        let before = members.iter().rev().find(|member| member.value.span.end <= self.span.start);
        let missing = before.filter(|member| {
            let real = member.value.kind != Kind::Missing;
            real && !without_comments(page, member.value.span.end..self.span.start).contains(',')
        });
        let edit = missing.map(|member| {
            let end = member.value.span.end;
            TextEdit { span: end..end, text: ",".to_owned() }
        });
        let behind = without_comments(page, self.span.end..page.text.len().min(self.span.end + 4_096));
        (edit, behind.trim_start().starts_with('"'))
    }
}

/// A word under the cursor.
struct Word<'a> {
    span: Span,
    typed: &'a str,
    quoted: bool,
}

impl<'a> Word<'a> {
    /// `None` behind its closing quote.
    fn at(page: &Page<'a>, span: &Span, offset: usize) -> Option<Self> {
        let raw = page.text.get(span.clone())?;
        let quoted = raw.starts_with(['"', '\'']);
        let inner = page.inner(span);
        if offset < inner.start || offset > inner.end {
            return None;
        }
        let closed = quoted && inner.end < span.end;
        // Where the closing quote is missing, the string runs into what follows, perhaps up to the next string.
        let tail = page.text.get(offset..inner.end)?;
        let own = !quoted || (closed && !tail.contains([':', ',', '{', '[', '}', ']']));
        let end = if own { span.end } else { offset };
        Some(Self { span: span.start..end, typed: page.text.get(inner.start..offset)?, quoted })
    }

    fn cursor(self, path: Vec<Step>, hole: Hole<'a>) -> Cursor<'a> {
        Cursor { path, hole, span: self.span, typed: self.typed, quoted: self.quoted, cut: Cell::default() }
    }
}

fn between<'a>(mut path: Vec<Step>, node: &'a Node, offset: usize) -> Option<Cursor<'a>> {
    let hole = match &node.kind {
        Kind::Object(_) => Hole::Key { object: node, has_value: false },
        Kind::List(items) => {
            path.push(Step::Index(items.iter().filter(|item| item.span.end <= offset).count()));
            Hole::Value
        }
        _ => return None,
    };
    Some(Cursor::empty(path, hole, offset))
}

/// Whether the cursor is inside brackets of which the closing one is not typed yet.
fn open(page: &Page<'_>, node: &Node, offset: usize) -> bool {
    let text = page.text.get(node.span.clone()).unwrap_or_default();
    offset > node.span.start && (text.len() < 2 || !text.ends_with(['}', ']']))
}

fn without_comments(page: &Page<'_>, span: Span) -> String {
    let mut left = String::new();
    let mut at = span.start;
    for comment in page.tree.comments.iter().filter(|comment| span.start <= comment.start && comment.end <= span.end) {
        left.push_str(page.text.get(at..comment.start).unwrap_or_default());
        at = comment.end;
    }
    left.push_str(page.text.get(at..span.end).unwrap_or_default());
    left
}
