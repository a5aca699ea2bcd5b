//! Approvals in an editor that has no prompt of its own for them: a message with buttons for each.

use std::collections::BTreeMap;

use tokio::task::{AbortHandle, JoinSet};
use tower_lsp::lsp_types::request::ShowMessageRequest;
use tower_lsp::lsp_types::{MessageActionItem, MessageType, ShowMessageRequestParams};

use super::editor::Editor;
use crate::engine::Engine;
use crate::engine::approvals::{Approval, Kind};

/// Runs until the editor has gone. Closing the message of a call is a no to that call, unless another editor shows the
/// question in a prompt of its own; trust that is not given now may be given later.
pub async fn ask(engine: Engine, editor: Editor) {
    let mut approvals = engine.approvals().subscribe();
    approvals.mark_changed();
    let mut shown: BTreeMap<String, AbortHandle> = BTreeMap::new();
    let mut messages = JoinSet::new();
    loop {
        tokio::select! {
            Ok(()) = approvals.changed() => {
                let waiting = approvals.borrow_and_update().clone();
                shown.retain(|id, message| {
                    let waits = waiting.iter().any(|approval| approval.id == *id);
                    if !waits {
                        // Answered elsewhere, or too late: aborting takes the message off the screen where it can.
                        message.abort();
                    }
                    waits
                });
                for approval in waiting.iter().filter(|approval| askable(approval)) {
                    if !shown.contains_key(&approval.id) {
                        let message = messages.spawn(show(engine.clone(), editor.clone(), approval.clone()));
                        shown.insert(approval.id.clone(), message);
                    }
                }
            }
            Some(_) = messages.join_next() => {}
            () = editor.gone() => return,
        }
    }
}

/// Buttons can say yes or no, but not fill in a form.
fn askable(approval: &Approval) -> bool {
    match approval.kind {
        Kind::Tool | Kind::Trust => true,
        Kind::Elicitation => approval.schema.is_none(),
        Kind::Input => false,
    }
}

async fn show(engine: Engine, editor: Editor, approval: Approval) {
    let title = |option: &str| MessageActionItem { title: label(option).to_owned(), properties: Default::default() };
    let params = ShowMessageRequestParams {
        typ: MessageType::WARNING,
        message: text(&approval),
        actions: Some(approval.options.iter().map(|option| title(option)).collect()),
    };
    let Ok(chosen) = editor.request::<ShowMessageRequest>(&params).await else { return };
    let (option, note) = match chosen {
        Some(chosen) => (approval.options.iter().copied().find(|option| label(option) == chosen.title), None),
        None if approval.kind == Kind::Tool && engine.editors().any(|able| able.approvals).is_none() => {
            (Some("deny"), Some("the question was closed".to_owned()))
        }
        None => (None, None),
    };
    let Some(option) = option else { return };
    if let Err(error) = engine.resolve(&approval.id, option, note, None) {
        tracing::debug!(%error, "answered elsewhere first");
    }
}

fn text(approval: &Approval) -> String {
    let mut text = approval.title.clone();
    for part in [Some(&approval.detail), approval.diff.as_ref(), approval.url.as_ref()].into_iter().flatten() {
        if !part.is_empty() {
            text.push('\n');
            text.push_str(part);
        }
    }
    if let Some(arguments) = &approval.arguments {
        let shown = serde_json::to_string_pretty(arguments).unwrap_or_default();
        text.push('\n');
        text.push_str(&crate::text::visible(&shown, usize::MAX));
    }
    text
}

fn label(option: &str) -> &'static str {
    match option {
        "allow-once" => "Allow once",
        "allow-session" => "Allow for this session",
        "allow-project" => "Allow for this project",
        "allow-always" => "Always allow",
        "deny" => "Deny",
        "disable" => "Disable this tool",
        "accept" => "Accept",
        "decline" => "Decline",
        _ => "Cancel",
    }
}
