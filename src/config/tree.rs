//! Parses JSON with comments into a tree with positions.
//!
//! Comments and trailing commas are allowed; everything else beyond JSON is a problem. The parser does not stop at the
//! first problem: a missing comma or an incomplete value leaves the rest of the tree usable, so that completion and
//! hover work while the user types. `shape` interprets the keys.
//!
//! This is why the parser is our own: crates for JSON with comments return the first error and no tree. Tests compare it
//! with `jsonc-parser` on valid texts.

mod parser;
mod scalars;

use std::sync::Arc;

use serde_json::{Number, Value};

use super::problem::{Problem, Span};

/// A parsed text. `root` may be partial when `problems` is not empty.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    pub root: Option<Node>,
    pub problems: Vec<Problem>,
    /// Every comment with its delimiters, in text order.
    pub comments: Vec<Span>,
    /// Whether the parser could recover from every problem.
    pub whole: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// From the first to the last character, quotes and brackets included.
    pub span: Span,
    pub kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Object(Vec<Member>),
    /// A missing value, which has been reported.
    Missing,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    pub key: Key,
    pub value: Node,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Key {
    /// With its quotes.
    pub span: Span,
    pub text: String,
}

/// One step of a path into the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Key(String),
    Index(usize),
}

/// What lies at an offset.
#[derive(Debug, Clone, PartialEq)]
pub struct Location<'a> {
    /// The path up to and including the key or element at the offset.
    pub path: Vec<Step>,
    pub part: Part<'a>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Part<'a> {
    Key(&'a Member),
    Value(&'a Node),
    /// Inside the brackets of an object or list, but not in any entry.
    Between(&'a Node),
}

/// Parses a text. Rejects nesting deeper than `depth`, so that no text can overflow the stack.
pub fn parse(text: &str, depth: usize) -> Tree {
    parser::parse(text, depth)
}

/// Decodes the bytes of a file as UTF-8, and removes a byte order mark.
pub fn decode(bytes: &[u8]) -> Result<Arc<str>, String> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    match std::str::from_utf8(bytes) {
        // Latin text in UTF-16 is valid UTF-8 with a NUL next to each letter.
        Ok(text) if !looks_like_utf16(bytes) => Ok(text.into()),
        Err(error) if !looks_like_utf16(bytes) => Err(format!(
            "the file is not UTF-8 (first invalid byte at offset {}); save it as UTF-8",
            error.valid_up_to()
        )),
        _ => Err("the file is not UTF-8 (it looks like UTF-16); save it as UTF-8".to_owned()),
    }
}

fn looks_like_utf16(bytes: &[u8]) -> bool {
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return true;
    }
    let start = bytes.get(..bytes.len().min(64)).unwrap_or_default();
    start.len() >= 4 && start.iter().filter(|&&byte| byte == 0).count() * 3 >= start.len()
}

impl Tree {
    /// Whether there are no problems.
    pub fn valid(&self) -> bool {
        self.problems.is_empty()
    }

    pub fn find(&self, path: &[Step]) -> Option<&Node> {
        path.iter().try_fold(self.root.as_ref()?, |node, step| match (step, &node.kind) {
            (Step::Key(key), Kind::Object(_)) => node.get(key).map(|member| &member.value),
            (Step::Index(index), Kind::List(items)) => items.get(*index),
            _ => None,
        })
    }

    /// The innermost key, value or gap at an offset. The end of a key or word is part of it.
    pub fn locate(&self, offset: usize) -> Option<Location<'_>> {
        let mut node = self.root.as_ref().filter(|root| contains(&root.span, offset))?;
        let mut path = Vec::new();
        'descend: loop {
            let inside = node.span.start < offset && (offset < node.span.end || node.open());
            match &node.kind {
                Kind::Object(members) if inside => {
                    for member in members {
                        if contains(&member.key.span, offset) {
                            path.push(Step::Key(member.key.text.clone()));
                            return Some(Location { path, part: Part::Key(member) });
                        }
                        if member.key.span.end < offset && offset <= member.value.span.end {
                            path.push(Step::Key(member.key.text.clone()));
                            node = &member.value;
                            continue 'descend;
                        }
                    }
                    return Some(Location { path, part: Part::Between(node) });
                }
                Kind::List(items) if inside => {
                    for (index, item) in items.iter().enumerate() {
                        if contains(&item.span, offset) {
                            path.push(Step::Index(index));
                            node = item;
                            continue 'descend;
                        }
                    }
                    return Some(Location { path, part: Part::Between(node) });
                }
                _ => return Some(Location { path, part: Part::Value(node) }),
            }
        }
    }
}

fn contains(span: &Span, offset: usize) -> bool {
    span.start <= offset && offset <= span.end
}

impl Node {
    pub fn members(&self) -> Option<&[Member]> {
        match &self.kind {
            Kind::Object(members) => Some(members),
            _ => None,
        }
    }

    pub fn items(&self) -> Option<&[Node]> {
        match &self.kind {
            Kind::List(items) => Some(items),
            _ => None,
        }
    }

    pub fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The member with this key. If there are several, the last one, as everywhere in JSON.
    pub fn get(&self, key: &str) -> Option<&Member> {
        self.members()?.iter().rev().find(|member| member.key.text == key)
    }

    /// The type, for messages.
    pub fn noun(&self) -> &'static str {
        match &self.kind {
            Kind::Null => "null",
            Kind::Bool(_) => "a boolean",
            Kind::Number(_) => "a number",
            Kind::Text(_) => "a string",
            Kind::List(_) => "a list",
            Kind::Object(_) => "an object",
            Kind::Missing => "nothing",
        }
    }

    pub fn to_value(&self) -> Value {
        match &self.kind {
            Kind::Null | Kind::Missing => Value::Null,
            Kind::Bool(flag) => Value::Bool(*flag),
            Kind::Number(number) => Value::Number(number.clone()),
            Kind::Text(text) => Value::String(text.clone()),
            Kind::List(items) => Value::Array(items.iter().map(Self::to_value).collect()),
            Kind::Object(members) => {
                Value::Object(members.iter().map(|member| (member.key.text.clone(), member.value.to_value())).collect())
            }
        }
    }

    /// Whether the closing bracket is missing.
    fn open(&self) -> bool {
        match &self.kind {
            Kind::Object(members) => members.last().is_some_and(|member| member.value.span.end >= self.span.end),
            Kind::List(items) => items.last().is_some_and(|item| item.span.end >= self.span.end),
            _ => false,
        }
    }
}

/// Formats a path for messages: `servers.fs.args[1]`.
pub fn show(path: &[Step]) -> String {
    let mut shown = String::new();
    for step in path {
        match step {
            Step::Index(index) => shown.push_str(&format!("[{index}]")),
            Step::Key(key) if plain(key) => {
                if !shown.is_empty() {
                    shown.push('.');
                }
                shown.push_str(key);
            }
            Step::Key(key) => {
                let key = crate::text::one_line(key, 64);
                shown.push_str(&format!("[\"{key}\"]"));
            }
        }
    }
    shown
}

fn plain(key: &str) -> bool {
    !key.is_empty()
        && key.len() <= 64
        && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '$' | '*'))
}

#[cfg(test)]
mod tests;
