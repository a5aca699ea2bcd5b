//! Completion, hover, and everything that leads from a name to its places, in LSP's words.

use std::collections::HashMap;

use tower_lsp::lsp_types::{
    CompletionItem, CompletionItemKind, CompletionList, CompletionTextEdit, DocumentHighlight, DocumentHighlightKind,
    Documentation, Hover as LspHover, HoverContents, InsertTextFormat, Location, MarkupContent, MarkupKind,
    SelectionRange, TextEdit, Url, WorkspaceEdit,
};

use super::{Places, uri};
use crate::config::{Loaded, Span, problem};
use crate::ide::completion::{Completions, Item, ItemKind};
use crate::ide::definition::Spot;
use crate::ide::hover::Hover;
use crate::ide::markdown;
use crate::ide::rename::Renamed;
use crate::ide::uses::{Role, Use};

/// Whether the editor knows tab stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Snippets {
    Known,
    Unknown,
}

/// What the editor shows our words as.
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

impl Places {
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
        let snippet = item.snippet.as_ref().filter(|_| snippets == Snippets::Known);
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
            // Ours is the order that helps, not the alphabet's.
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

    /// Places in this file, whose uri is given, and in others.
    pub fn locations(&self, spots: &[Spot], own: &Url, loaded: &Loaded) -> Vec<Location> {
        // One index for each file, however many places are in it.
        let mut others: HashMap<&std::path::Path, Places> = HashMap::new();
        let mut locate = |spot: &Spot| -> Option<Location> {
            let Some(file) = spot.file.as_deref() else {
                return Some(Location { uri: own.clone(), range: self.range(&spot.span) });
            };
            let known = &loaded.file(file)?.source.path;
            let places = others.entry(&**known).or_insert_with(|| {
                Places::new(&loaded.file(known).map(|file| file.text.clone()).unwrap_or_default(), self.encoding)
            });
            Some(Location { uri: uri(file)?, range: places.range(&spot.span) })
        };
        spots.iter().filter_map(&mut locate).collect()
    }

    pub fn highlight(&self, used: &Use) -> DocumentHighlight {
        let kind = match used.role {
            Role::Definition => DocumentHighlightKind::WRITE,
            Role::Use => DocumentHighlightKind::READ,
        };
        DocumentHighlight { range: self.range(&used.span), kind: Some(kind) }
    }

    /// All files' edits as one, so that they are undone as one.
    pub fn renamed(&self, all: &[Renamed], own: &Url, loaded: &Loaded) -> WorkspaceEdit {
        let of_file = |renamed: &Renamed| {
            let edits = |places: &Places| renamed.edits.iter().map(|edit| places.text_edit(edit)).collect();
            match renamed.file.as_deref() {
                None => Some((own.clone(), edits(self))),
                Some(path) => Some((uri(path)?, edits(&Places::new(&loaded.file(path)?.text, self.encoding)))),
            }
        };
        WorkspaceEdit { changes: Some(all.iter().filter_map(of_file).collect()), ..WorkspaceEdit::default() }
    }

    /// Spans from the innermost on, each a part of the next.
    pub fn selection(&self, spans: &[Span]) -> SelectionRange {
        let mut outer: Option<SelectionRange> = None;
        for span in spans.iter().rev() {
            outer = Some(SelectionRange { range: self.range(span), parent: outer.map(Box::new) });
        }
        outer.unwrap_or(SelectionRange { range: self.range(&(0..0)), parent: None })
    }

    fn text_edit(&self, edit: &problem::TextEdit) -> TextEdit {
        TextEdit { range: self.range(&edit.span), new_text: edit.text.clone() }
    }
}
