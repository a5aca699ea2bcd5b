//! Config files that the editor has open are changed there, so that its undo works and unsaved text is not lost.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tower_lsp::lsp_types::request::ApplyWorkspaceEdit;
use tower_lsp::lsp_types::{
    ApplyWorkspaceEditParams, DocumentChanges, OneOf, OptionalVersionedTextDocumentIdentifier, TextDocumentEdit,
    TextEdit, WorkspaceEdit,
};

use super::convert::Places;
use super::documents::Document;
use super::seat::Seat;
use crate::config::edit;
use crate::engine::edit::OpenBuffers;

/// Putting a few characters in is a matter of milliseconds, but an editor may ask its user.
const PATIENCE: Duration = Duration::from_secs(60);

impl OpenBuffers for Seat {
    fn open(&self, path: &Path) -> Option<Arc<str>> {
        let can = self.greeting().supports.apply_edit;
        self.document(path).filter(|_| can).map(|document| document.text)
    }

    fn put<'a>(&'a self, path: &'a Path, text: &'a str) -> BoxFuture<'a, bool> {
        async move {
            let Some(document) = self.document(path) else { return false };
            let Some(change) = edit::difference(&document.text, text) else { return true };
            let places = Places::new(&document.text, self.greeting().encoding);
            let edit = TextEdit { range: places.range(&change.span), new_text: change.text };
            self.apply(&document, vec![edit], "Change the config").await
        }
        .boxed()
    }
}

impl Seat {
    /// Has the editor change a buffer that stands as it is here; false when it would not.
    pub async fn apply(&self, document: &Document, edits: Vec<TextEdit>, label: &str) -> bool {
        let params = ApplyWorkspaceEditParams { label: Some(label.to_owned()), edit: self.change(document, edits) };
        match tokio::time::timeout(PATIENCE, self.editor.request::<ApplyWorkspaceEdit>(&params)).await {
            Ok(Ok(answer)) => answer.applied,
            _ => false,
        }
    }

    /// A change of one buffer, bound to its version where the editor can tell one from another.
    fn change(&self, document: &Document, edits: Vec<TextEdit>) -> WorkspaceEdit {
        let open = self.documents.get(&document.uri).is_some();
        if !open || !self.greeting().supports.document_changes {
            let changes = HashMap::from([(document.uri.clone(), edits)]);
            return WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() };
        }
        let uri = document.uri.clone();
        let text_document = OptionalVersionedTextDocumentIdentifier { uri, version: Some(document.version) };
        let edits = edits.into_iter().map(OneOf::Left).collect();
        let changes = DocumentChanges::Edits(vec![TextDocumentEdit { text_document, edits }]);
        WorkspaceEdit { document_changes: Some(changes), ..WorkspaceEdit::default() }
    }

    /// The buffer of a file, whichever link the editor came to it by.
    fn document(&self, path: &Path) -> Option<Document> {
        let all = self.documents.all();
        let real = || path.canonicalize().ok();
        let exact = all.iter().find(|document| document.path.as_deref() == Some(path));
        let linked = || {
            let real = real()?;
            all.iter()
                .find(|document| document.path.as_ref().and_then(|path| path.canonicalize().ok()) == Some(real.clone()))
        };
        exact.or_else(linked).cloned()
    }
}
