//! The editor's open buffers.
//!
//! The reader updates them in the order of the messages and never waits. Tasks that use buffers are notified of a change
//! and read the latest texts, so a burst of changes is handled once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lsp_types::{DidCloseTextDocumentParams, DidOpenTextDocumentParams, TextDocumentContentChangeEvent, Url};
use serde::Deserialize;
use tokio::sync::watch;

use super::convert;
use crate::paths::read_file;
use crate::text::edited::EditedText;
use crate::text::lines::{Encoding, Position};

/// In bytes. Config files are much smaller.
const MAX_BUFFER_SIZE: usize = 16 << 20;
const MAX_BUFFERS: usize = 4_096;
/// How many bytes and lines the ranges of one message may move. It is read before any other message of the editor.
const MAX_EDIT_WORK: usize = 64 << 20;

/// One open buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// As the editor spells it. Responses must use the same spelling.
    pub uri: Url,
    /// Absent for buffers that are not files.
    pub path: Option<PathBuf>,
    pub language: String,
    pub version: i32,
    pub text: Arc<str>,
}

impl Document {
    /// The version of a text that was read from the disk, or that the editor sent without one.
    pub const UNKNOWN: i32 = i32::MIN;

    /// The text, if this is the buffer of `file`, a canonical path, and has unsaved changes. Reads the disk.
    pub fn unsaved(&self, file: &Path) -> Option<String> {
        let is_same = self.path.as_deref()?.canonicalize().is_ok_and(|path| path == file);
        let saved = is_same.then(|| read_file(file, MAX_BUFFER_SIZE).ok().flatten()).flatten()?;
        // Some editors read line ends and byte order marks differently.
        let bare = |text: &str| text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
        (bare(&String::from_utf8_lossy(&saved)) != bare(&self.text)).then(|| self.text.to_string())
    }

    pub fn known_version(&self) -> Option<i32> {
        Some(self.version).filter(|version| *version != Self::UNKNOWN)
    }
}

/// `DidChangeTextDocumentParams`, except that an editor may send no version.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DidChange {
    text_document: ChangedDocument,
    content_changes: Vec<TextDocumentContentChangeEvent>,
}

#[derive(Debug, Deserialize)]
struct ChangedDocument {
    uri: Url,
    version: Option<i32>,
}

/// All open buffers. They have a lock because the reader writes while requests read; each holds it only briefly.
pub struct Documents {
    open: Mutex<BTreeMap<Url, Document>>,
    changed: watch::Sender<()>,
}

impl Default for Documents {
    fn default() -> Self {
        Self { open: Mutex::default(), changed: watch::Sender::new(()) }
    }
}

impl Documents {
    pub fn get(&self, uri: &Url) -> Option<Document> {
        self.lock().get(uri).cloned()
    }

    pub fn all(&self) -> Vec<Document> {
        self.filter(|_| true)
    }

    pub fn filter(&self, wanted: impl Fn(&Document) -> bool) -> Vec<Document> {
        self.lock().values().filter(|document| wanted(document)).cloned().collect()
    }

    /// Signals changes from now on; several changes may be signalled as one.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Returns the path of the buffer.
    pub fn open(&self, params: DidOpenTextDocumentParams) -> Option<PathBuf> {
        let item = params.text_document;
        let document = Document {
            path: convert::path(&item.uri),
            uri: item.uri,
            language: item.language_id,
            version: item.version,
            text: item.text.into(),
        };
        let path = document.path.clone();
        self.keep(document);
        path
    }

    pub fn change(&self, params: DidChange, encoding: Encoding) {
        let Some(mut document) = self.get(&params.text_document.uri) else {
            return tracing::debug!("ignored a change of a buffer that is not open");
        };
        document.version = params.text_document.version.unwrap_or(Document::UNKNOWN);
        match apply(&document.text, params.content_changes, encoding) {
            Some(text) => self.keep(Document { text, ..document }),
            None => {
                tracing::warn!(uri = %document.uri, "ignored a buffer: too many changes at once, or it is too large");
                self.forget(&document.uri);
            }
        }
    }

    pub fn close(&self, params: &DidCloseTextDocumentParams) {
        self.forget(&params.text_document.uri);
    }

    fn forget(&self, uri: &Url) {
        self.lock().remove(uri);
        self.changed.send_replace(());
    }

    fn keep(&self, document: Document) {
        let mut open = self.lock();
        if document.text.len() > MAX_BUFFER_SIZE {
            tracing::warn!(bytes = document.text.len(), limit = MAX_BUFFER_SIZE, "ignored a buffer that is too large");
            open.remove(&document.uri);
        } else if open.len() < MAX_BUFFERS || open.contains_key(&document.uri) {
            open.insert(document.uri.clone(), document);
        } else {
            tracing::warn!(limit = MAX_BUFFERS, "ignored a buffer: too many are open");
        }
        drop(open);
        self.changed.send_replace(());
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Url, Document>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// We request full texts, but some editors send ranges anyway. `None` if they would take too long.
fn apply(text: &Arc<str>, changes: Vec<TextDocumentContentChangeEvent>, encoding: Encoding) -> Option<Arc<str>> {
    let mut text = text.clone();
    let mut edited: Option<EditedText> = None;
    let mut work = 0;
    for change in changes {
        let Some(range) = change.range else {
            work += edited.take().map_or(0, |edited| edited.work()) + change.text.len();
            text = change.text.into();
            continue;
        };
        let edits = edited.get_or_insert_with(|| EditedText::new(&text));
        edits.replace(position(range.start), position(range.end), encoding, &change.text);
        if edits.bytes() > MAX_BUFFER_SIZE || work + edits.work() > MAX_EDIT_WORK {
            return None;
        }
    }
    Some(edited.map_or(text, Arc::from))
}

fn position(position: lsp_types::Position) -> Position {
    Position { line: position.line, column: position.character }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn documents(changes: serde_json::Value) -> String {
        let documents = Documents::default();
        let uri = "untitled:one";
        documents.open(
            serde_json::from_value(json!({
                "textDocument": { "uri": uri, "languageId": "json", "version": 1, "text": "one\ntwö three\n" }
            }))
            .unwrap(),
        );
        let change = json!({ "textDocument": { "uri": uri, "version": 2 }, "contentChanges": changes });
        documents.change(serde_json::from_value(change).unwrap(), Encoding::Utf16);
        let document = documents.get(&Url::parse(uri).unwrap()).unwrap();
        format!("{}:{}", document.version, document.text)
    }

    #[test]
    fn the_last_full_text_wins() {
        assert_eq!(documents(json!([{ "text": "a" }, { "text": "b" }])), "2:b");
    }

    #[test]
    fn a_range_is_replaced() {
        let range = json!({ "start": { "line": 1, "character": 4 }, "end": { "line": 1, "character": 9 } });
        assert_eq!(documents(json!([{ "range": range, "text": "2" }])), "2:one\ntwö 2\n");
    }

    #[test]
    fn changes_that_would_block_the_editor_for_long_are_ignored_with_their_buffer() {
        let documents = Documents::default();
        let uri = Url::parse("untitled:one").unwrap();
        let text = "x".repeat(1 << 20);
        let opened = json!({ "textDocument": { "uri": uri, "languageId": "json", "version": 1, "text": text } });
        documents.open(serde_json::from_value(opened).unwrap());
        let range = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 0, "character": 1 } });
        let changes = vec![json!({ "range": range, "text": "y" }); 20_000];
        let change = json!({ "textDocument": { "uri": uri, "version": 2 }, "contentChanges": changes });
        documents.change(serde_json::from_value(change).unwrap(), Encoding::Utf16);
        assert_eq!(documents.get(&uri), None);
    }

    #[test]
    fn a_buffer_that_is_not_a_file_has_no_path() {
        for uri in ["file://", "untitled:Untitled-1", "mcp-call://fs/write_file", "file://host/share/x"] {
            assert_eq!(convert::path(&Url::parse(uri).unwrap()), None, "{uri}");
        }
    }
}
