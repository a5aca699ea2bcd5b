//! Edits of files that are open in the editor. They are made in the buffer, so that undo works and unsaved text is kept.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use lsp_types::request::ApplyWorkspaceEdit;
use lsp_types::{
    ApplyWorkspaceEditParams, DocumentChanges, OneOf, OptionalVersionedTextDocumentIdentifier, TextDocumentEdit,
    TextEdit, WorkspaceEdit,
};

use super::convert::PositionMap;
use super::documents::Document;
use super::session::EditorSession;
use crate::config::edit;
use crate::engine::edit::OpenBuffers;

/// Applying an edit takes milliseconds, but the editor may ask the user first.
const TIMEOUT: Duration = Duration::from_secs(60);

impl OpenBuffers for EditorSession {
    fn open(&self, path: &Path) -> Option<Arc<str>> {
        let can = self.info().supports.apply_edit;
        self.document(path).filter(|_| can).map(|document| document.text)
    }

    fn put<'a>(&'a self, path: &'a Path, text: &'a str) -> BoxFuture<'a, bool> {
        async move {
            let Some(document) = self.document(path) else { return false };
            let Some(change) = edit::difference(&document.text, text) else { return true };
            let positions = PositionMap::new(&document.text, self.info().encoding);
            let edit = positions.text_edit(&change);
            self.apply(&document, vec![edit], "Edit the MCP config").await
        }
        .boxed()
    }
}

impl EditorSession {
    /// Asks the editor to edit a buffer; false if it does not.
    pub async fn apply(&self, document: &Document, edits: Vec<TextEdit>, label: &str) -> bool {
        if !self.info().supports.apply_edit {
            return false;
        }
        let params =
            ApplyWorkspaceEditParams { label: Some(label.to_owned()), edit: self.workspace_edit(document, edits) };
        match tokio::time::timeout(TIMEOUT, self.editor.request::<ApplyWorkspaceEdit>(&params)).await {
            Ok(Ok(answer)) => answer.applied,
            _ => false,
        }
    }

    /// An edit of one buffer, bound to its version if the editor supports versions.
    fn workspace_edit(&self, document: &Document, edits: Vec<TextEdit>) -> WorkspaceEdit {
        let version = document.known_version().filter(|_| self.info().supports.document_changes);
        let Some(version) = version else {
            let changes = HashMap::from([(document.uri.clone(), edits)]);
            return WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() };
        };
        let uri = document.uri.clone();
        let text_document = OptionalVersionedTextDocumentIdentifier { uri, version: Some(version) };
        let edits = edits.into_iter().map(OneOf::Left).collect();
        let changes = DocumentChanges::Edits(vec![TextDocumentEdit { text_document, edits }]);
        WorkspaceEdit { document_changes: Some(changes), ..WorkspaceEdit::default() }
    }

    /// The buffer of a file, even if the editor uses another link to it.
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
