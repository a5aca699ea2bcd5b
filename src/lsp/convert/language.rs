//! Converts completion, hover, navigation and rename.

use std::collections::HashMap;

use lsp_types::{
    CompletionItem, CompletionItemKind, CompletionList, CompletionTextEdit, DocumentHighlight, DocumentHighlightKind,
    Documentation, Hover as LspHover, HoverContents, InsertTextFormat, Location, MarkupContent, MarkupKind,
    SelectionRange, TextEdit, Url, WorkspaceEdit,
};

use super::{PositionMap, uri};
use crate::config::{Loaded, Span};
use crate::ide::completion::{Completions, Item, ItemKind};
use crate::ide::definition::FileSpan;
use crate::ide::hover::Hover;
use crate::ide::markdown;
use crate::ide::occurrences::{Occurrence, Role};
use crate::ide::rename::Renamed;

/// Whether the editor supports tab stops in completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Snippets {
    Supported,
    Unsupported,
}

/// The text format that the editor supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Markdown,
    Plain,
}

impl Format {
    pub fn of(plain: bool) -> Self {
        if plain { Self::Plain } else { Self::Markdown }
    }

    fn content(self, text: &str) -> MarkupContent {
        match self {
            Self::Markdown => MarkupContent { kind: MarkupKind::Markdown, value: text.to_owned() },
            Self::Plain => MarkupContent { kind: MarkupKind::PlainText, value: markdown::plain(text) },
        }
    }
}

impl PositionMap {
    pub fn completions(&self, completions: &Completions, snippets: Snippets, format: Format) -> CompletionList {
        let items = completions.items.iter().enumerate();
        CompletionList {
            is_incomplete: completions.incomplete,
            items: items
                .map(|(index, item)| self.completion(index, item, &completions.span, snippets, format))
                .collect(),
        }
    }

    fn completion(&self, index: usize, item: &Item, span: &Span, snippets: Snippets, format: Format) -> CompletionItem {
        let snippet = item.snippet.as_ref().filter(|_| snippets == Snippets::Supported);
        let edits: Vec<TextEdit> = item.edits.iter().map(|edit| self.text_edit(edit)).collect();
        CompletionItem {
            label: item.label.clone(),
            kind: Some(match item.kind {
                ItemKind::Key => CompletionItemKind::PROPERTY,
                ItemKind::Word => CompletionItemKind::ENUM_MEMBER,
                ItemKind::Variable => CompletionItemKind::VARIABLE,
                ItemKind::Program | ItemKind::File => CompletionItemKind::FILE,
                ItemKind::Server => CompletionItemKind::MODULE,
                ItemKind::Tool => CompletionItemKind::FUNCTION,
                ItemKind::Template => CompletionItemKind::SNIPPET,
            }),
            detail: item.detail.clone(),
            documentation: item.docs.as_deref().map(|docs| Documentation::MarkupContent(format.content(docs))),
            // Keep our order instead of the alphabetical one.
            sort_text: Some(format!("{index:05}")),
            filter_text: Some(item.filter.clone()),
            insert_text_format: Some(match snippet {
                Some(_) => InsertTextFormat::SNIPPET,
                None => InsertTextFormat::PLAIN_TEXT,
            }),
            text_edit: Some(CompletionTextEdit::Edit(TextEdit {
                range: self.range(span),
                new_text: snippet.unwrap_or(&item.text).clone(),
            })),
            additional_text_edits: (!edits.is_empty()).then_some(edits),
            ..CompletionItem::default()
        }
    }

    pub fn hover(&self, hover: &Hover, format: Format) -> LspHover {
        LspHover {
            contents: HoverContents::Markup(format.content(&hover.markdown)),
            range: Some(self.range(&hover.span)),
        }
    }

    /// Locations in this file, whose URI is `own`, and in other files.
    pub fn locations(&self, locations: &[FileSpan], own: &Url, loaded: &Loaded) -> Vec<Location> {
        // One map per file, however many locations are in it.
        let mut others: HashMap<&std::path::Path, PositionMap> = HashMap::new();
        let mut locate = |location: &FileSpan| -> Option<Location> {
            let Some(file) = location.file.as_deref() else {
                return Some(Location { uri: own.clone(), range: self.range(&location.span) });
            };
            let known = &loaded.file(file)?.source.path;
            let positions = others.entry(&**known).or_insert_with(|| {
                PositionMap::new(&loaded.file(known).map(|file| file.text.clone()).unwrap_or_default(), self.encoding)
            });
            Some(Location { uri: uri(file)?, range: positions.range(&location.span) })
        };
        locations.iter().filter_map(&mut locate).collect()
    }

    pub fn highlight(&self, occurrence: &Occurrence) -> DocumentHighlight {
        let kind = match occurrence.role {
            Role::Definition => DocumentHighlightKind::WRITE,
            Role::Reference => DocumentHighlightKind::READ,
        };
        DocumentHighlight { range: self.range(&occurrence.span), kind: Some(kind) }
    }

    /// The edits of all files as one edit, so that one undo reverts them.
    pub fn renamed(&self, all: &[Renamed], own: &Url, loaded: &Loaded) -> WorkspaceEdit {
        let of_file = |renamed: &Renamed| {
            let edits = |positions: &PositionMap| renamed.edits.iter().map(|edit| positions.text_edit(edit)).collect();
            match renamed.file.as_deref() {
                None => Some((own.clone(), edits(self))),
                Some(path) => Some((uri(path)?, edits(&PositionMap::new(&loaded.file(path)?.text, self.encoding)))),
            }
        };
        WorkspaceEdit { changes: Some(all.iter().filter_map(of_file).collect()), ..WorkspaceEdit::default() }
    }

    /// Converts spans, innermost first, each inside the next.
    pub fn selection(&self, spans: &[Span]) -> SelectionRange {
        let mut outer: Option<SelectionRange> = None;
        for span in spans.iter().rev() {
            outer = Some(SelectionRange { range: self.range(span), parent: outer.map(Box::new) });
        }
        outer.unwrap_or(SelectionRange { range: self.range(&(0..0)), parent: None })
    }
}
