//! Shows texts in the editor.

use std::path::{Path, PathBuf};

use lsp_types::notification::ShowMessage;
use lsp_types::request::ShowDocument;
use lsp_types::{MessageType, ShowDocumentParams, ShowMessageParams};

use super::convert;
use super::session::EditorSession;
use crate::text::visible;

/// The maximum length of a message, in characters.
const MAX_MESSAGE: usize = 4_000;
/// How many shown documents are kept in the state folder.
const MAX_DOCUMENTS: usize = 20;

/// Shows a text as a document if the editor supports that, else as a message.
pub async fn show(session: &EditorSession, title: &str, text: &str) {
    if session.info().supports.show_document
        && let Some(path) = write_document(&session.engine.paths().state_dir.join("results"), title, text)
        && let Some(uri) = convert::uri(&path)
    {
        let params = ShowDocumentParams { uri, external: Some(false), take_focus: Some(true), selection: None };
        if session.editor.request::<ShowDocument>(&params).await.is_ok_and(|answer| answer.success) {
            return;
        }
    }
    message(session, MessageType::INFO, text).await;
}

pub async fn message(session: &EditorSession, typ: MessageType, text: &str) {
    session.editor.notify::<ShowMessage>(&ShowMessageParams { typ, message: visible(text, MAX_MESSAGE) }).await;
}

/// Writes a text to a file that only the user can read, and deletes the oldest files.
fn write_document(folder: &Path, title: &str, text: &str) -> Option<PathBuf> {
    std::fs::create_dir_all(folder).ok()?;
    let mut old: Vec<(std::time::SystemTime, PathBuf)> = std::fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| entry.ok().and_then(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path()))))
        .collect();
    old.sort();
    for (_, path) in old.iter().rev().skip(MAX_DOCUMENTS - 1) {
        std::fs::remove_file(path).ok();
    }
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = title.chars().take(40).map(plain).collect();
    let file = tempfile::Builder::new().prefix(&format!("{name}-")).suffix(".md").tempfile_in(folder).ok()?;
    std::io::Write::write_all(&mut file.as_file(), text.as_bytes()).ok()?;
    file.keep().ok().map(|(_, path)| path)
}
