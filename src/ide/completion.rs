//! Completion of keys, values, variables, programs, names of servers and tools, and whole servers.
//!
//! Works on invalid files, because a file is usually invalid while the user types. All items replace the same span, which
//! includes the opening quote if there is one.

mod cursor;
mod keys;
mod servers;
mod values;
mod variables;

use super::config_view::ConfigView;
use crate::config::Span;
use crate::config::problem::TextEdit;
use crate::config::shape::quoted;
use cursor::{Cursor, Missing};

/// The maximum number of items. The editor requests completions again when more is typed.
const MAX_ITEMS: usize = 200;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Completions {
    /// The text that every item replaces.
    pub span: Span,
    pub items: Vec<Item>,
    /// Some items were left out; typing more may show them.
    pub incomplete: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    pub label: String,
    pub kind: ItemKind,
    pub detail: Option<String>,
    /// Markdown.
    pub docs: Option<String>,
    /// What the typed text is compared with. Starts with a quote if the replaced text does.
    pub filter: String,
    pub text: String,
    /// The same with tab stops, for editors that support them.
    pub snippet: Option<String>,
    /// Additional edits elsewhere in the file.
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

/// Completes at an offset. `env_files` returns the names of the `.env` files in the workspace folder.
pub fn complete(config: &ConfigView<'_>, offset: usize, env_files: impl FnOnce() -> Vec<String>) -> Completions {
    if config.in_comment(offset) {
        return Completions::default();
    }
    let Some(cursor) = cursor::find(config, offset) else { return Completions::default() };
    if let Some(completions) = variables::complete(config, &cursor, offset) {
        return completions;
    }
    let mut items = match &cursor.missing {
        Missing::File => vec![servers::file(&cursor)],
        Missing::Key { .. } => keys::keys(config, &cursor),
        Missing::Value if values::is_env_file(&cursor) => values::files(&cursor, &env_files()),
        Missing::Value => values::values(config, &cursor),
    };
    let incomplete = cursor.truncated.get();
    if matches!(cursor.missing, Missing::Value)
        && config.text.get(..cursor.span.start).is_some_and(|text| text.ends_with(':'))
    {
        items.iter_mut().for_each(Item::add_leading_space);
    }
    Completions { span: cursor.span, items, incomplete }
}

impl Item {
    fn new(label: impl Into<String>, kind: ItemKind, cursor: &Cursor<'_>) -> Self {
        let label = label.into();
        let filter = cursor.quoted_as_typed(&label);
        Self { text: label.clone(), label, kind, detail: None, docs: None, filter, snippet: None, edits: Vec::new() }
    }

    fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Adds a space between the colon and the value.
    fn add_leading_space(&mut self) {
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

/// Escapes a text for use in a snippet.
pub(super) fn escape_snippet(text: &str) -> String {
    text.replace('\\', "\\\\").replace('$', "\\$").replace('}', "\\}")
}

#[cfg(test)]
mod tests;
