//! Something to read, shown in the editor.

use std::path::{Path, PathBuf};

use tower_lsp::lsp_types::notification::ShowMessage;
use tower_lsp::lsp_types::request::ShowDocument;
use tower_lsp::lsp_types::{MessageType, ShowDocumentParams, ShowMessageParams};

use super::convert;
use super::seat::Seat;
use crate::text::visible;

/// Characters of a text that a message shows.
const MESSAGE: usize = 4_000;
/// Texts that lie in the state folder for looking at.
const KEPT: usize = 20;

/// Shows a text: as a document where the editor can, else as a message.
pub async fn show(seat: &Seat, title: &str, text: &str) {
    if seat.greeting().supports.show_document
        && let Some(path) = keep(&seat.engine.paths().state_dir.join("results"), title, text)
        && let Some(uri) = convert::uri(&path)
    {
        let params = ShowDocumentParams { uri, external: Some(false), take_focus: Some(true), selection: None };
        if seat.editor.request::<ShowDocument>(&params).await.is_ok_and(|answer| answer.success) {
            return;
        }
    }
    message(seat, MessageType::INFO, text).await;
}

pub async fn message(seat: &Seat, typ: MessageType, text: &str) {
    seat.editor.notify::<ShowMessage>(&ShowMessageParams { typ, message: visible(text, MESSAGE) }).await;
}

/// Writes a text to a file that only the user can read; the oldest ones go.
fn keep(folder: &Path, title: &str, text: &str) -> Option<PathBuf> {
    std::fs::create_dir_all(folder).ok()?;
    let mut old: Vec<(std::time::SystemTime, PathBuf)> = std::fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| entry.ok().and_then(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path()))))
        .collect();
    old.sort();
    for (_, path) in old.iter().rev().skip(KEPT - 1) {
        std::fs::remove_file(path).ok();
    }
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = title.chars().take(40).map(plain).collect();
    let file = tempfile::Builder::new().prefix(&format!("{name}-")).suffix(".md").tempfile_in(folder).ok()?;
    std::io::Write::write_all(&mut file.as_file(), text.as_bytes()).ok()?;
    file.keep().ok().map(|(_, path)| path)
}
