//! What could be typed next: keys, words, variables, programs, names of servers and live tools, whole servers.
//!
//! Works while the file is broken, as it always is in the middle of a word. Every item of an answer replaces the same
//! stretch of text, the opening quote included where one is typed.

mod cursor;
mod keys;
mod servers;
mod values;
mod variables;

use super::page::Page;
use crate::config::Span;
use crate::config::problem::TextEdit;
use crate::config::shape::quoted;
use cursor::{Cursor, Hole};

/// More than this nobody reads, and an answer must not take long; the editor asks again when more is typed.
const MOST: usize = 200;

/// An answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Completions {
    /// What every item takes the place of.
    pub span: Span,
    pub items: Vec<Item>,
    /// Some were left out; more letters bring others.
    pub incomplete: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    pub label: String,
    pub kind: ItemKind,
    pub detail: Option<String>,
    /// Markdown.
    pub docs: Option<String>,
    /// What the typed text is compared with; begins with a quote where the replaced text does.
    pub filter: String,
    pub text: String,
    /// The same with tab stops, for editors that know them.
    pub snippet: Option<String>,
    /// Changes elsewhere in the file that belong to it.
    pub edits: Vec<TextEdit>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemKind {
    Key,
    Word,
    Variable,
    Program,
    File,
    Server,
    Tool,
    Template,
}

/// Completes at an offset. `env_files` names the files with variables that lie in the folder of the file's workspace.
pub fn complete(page: &Page<'_>, offset: usize, env_files: impl FnOnce() -> Vec<String>) -> Completions {
    if page.in_comment(offset) {
        return Completions::default();
    }
    let Some(cursor) = cursor::find(page, offset) else { return Completions::default() };
    if let Some(completions) = variables::complete(page, &cursor, offset) {
        return completions;
    }
    let mut items = match &cursor.hole {
        Hole::File => vec![servers::file(&cursor)],
        Hole::Key { .. } => keys::keys(page, &cursor),
        Hole::Value if values::is_env_file(&cursor) => values::files(&cursor, &env_files()),
        Hole::Value => values::values(page, &cursor),
    };
    let incomplete = cursor.cut.get();
    if matches!(cursor.hole, Hole::Value) && page.text.get(..cursor.span.start).is_some_and(|text| text.ends_with(':'))
    {
        items.iter_mut().for_each(Item::set_apart);
    }
    Completions { span: cursor.span, items, incomplete }
}

impl Item {
    fn new(label: impl Into<String>, kind: ItemKind, cursor: &Cursor<'_>) -> Self {
        let label = label.into();
        let filter = cursor.as_typed(&label);
        Self { text: label.clone(), label, kind, detail: None, docs: None, filter, snippet: None, edits: Vec::new() }
    }

    fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// A blank between a colon and the value behind it.
    fn set_apart(&mut self) {
        self.text.insert(0, ' ');
        if let Some(snippet) = &mut self.snippet {
            snippet.insert(0, ' ');
        }
    }

    fn docs(mut self, docs: impl Into<String>) -> Self {
        self.docs = Some(docs.into());
        self
    }
}

/// Text in a snippet that is nothing but text.
fn plain(text: &str) -> String {
    text.replace('\\', "\\\\").replace('$', "\\$").replace('}', "\\}")
}

#[cfg(test)]
mod tests;
