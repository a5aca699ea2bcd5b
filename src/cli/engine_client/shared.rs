//! The engine that already runs for this workspace, reached over its socket like an editor would.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::net::UnixStream;
use tokio::sync::watch;

use super::super::terminal;
use super::Questions;
use crate::lsp_client::{Event, Events, LspClient};
use crate::paths::Paths;
use crate::protocol::answers::ApprovalList;
use crate::protocol::commands::Approvals;
use crate::protocol::events::ApprovalsChanged;
use crate::session::{self, Front, Hello};

/// How many ended questions are kept, for a reader that misses a change.
const MAX_CLOSED: usize = 256;

/// Joins the engine of exactly this workspace; `None` if there is none or it does not respond.
pub async fn join(
    folder: &Path,
    paths: &Paths,
    changes: watch::Sender<u64>,
    questions: watch::Sender<Questions>,
) -> Option<LspClient> {
    let (root, paths) = (folder.canonicalize().ok()?, paths.clone());
    let joined = tokio::task::spawn_blocking(move || {
        // Another workspace of the repository has other servers.
        let hello = Hello { only_open: true, ..Hello::of(Front::Editor, &root) };
        session::join_listening(&root, &paths, &hello).ok().flatten()
    });
    let stream = joined.await.ok().flatten()?.stream;
    stream.set_nonblocking(true).ok()?;
    let (input, output) = UnixStream::from_std(stream).ok()?.into_split();
    let (client, events) = LspClient::connect(input, output);
    tokio::spawn(follow(events, changes, questions.clone()));
    // Without a user at the terminal, an editor answers the questions.
    let version = env!("CARGO_PKG_VERSION");
    let is_interactive = terminal::is_interactive();
    let abilities = json!({ "version": version, "approvals": true, "elicitation": is_interactive, "shell": true });
    client.initialize(Some(folder), abilities).await.ok()?;
    let list = client.call(Approvals::default()).await.ok()?;
    questions.send_if_modified(|known| take_first(known, list));
    Some(client)
}

/// Takes the list that was asked for, unless a notification has overtaken it, which is newer then. Returns whether it did.
fn take_first(known: &mut Questions, list: ApprovalList) -> bool {
    let is_first = **known == ApprovalsChanged::default();
    if is_first {
        let ApprovalList { approvals, groups } = list;
        *known = Arc::new(ApprovalsChanged { approvals, groups, closed: Vec::new() });
    }
    is_first
}

async fn follow(mut events: Events, changes: watch::Sender<u64>, questions: watch::Sender<Questions>) {
    while let Some(event) = events.recv().await {
        match event {
            Event::Request(request) if request.method == "window/showDocument" => {
                let page = request.params.get("uri").and_then(Value::as_str).unwrap_or_default();
                request.respond(&json!({ "success": terminal::show_page(page) }));
            }
            Event::Request(request) => request.respond(&Value::Null),
            Event::Notification(notification) => match notification.parse::<ApprovalsChanged>() {
                Some(mut changed) => questions.send_modify(|before| {
                    let kept = before.closed.len().saturating_sub(MAX_CLOSED);
                    changed.closed.splice(0..0, before.closed.iter().skip(kept).cloned());
                    *before = Arc::new(changed);
                }),
                None if notification.method.starts_with("mcp/") => changes.send_modify(|count| *count += 1),
                None => {}
            },
            Event::Invalid(reason) => tracing::warn!(reason, "ignored a message of the engine"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_that_was_asked_for_does_not_replace_a_newer_one() {
        let one = json!({ "id": "1", "kind": "tool", "title": "All of one file", "ids": ["2", "3"], "answers": [] });
        let list = |groups: Value| serde_json::from_value(json!({ "approvals": [], "groups": groups })).unwrap();
        let mut known = Questions::default();
        assert!(take_first(&mut known, list(json!([one]))));
        assert_eq!(known.groups.len(), 1);
        assert!(!take_first(&mut known, list(json!([]))));
        assert_eq!(known.groups.len(), 1);
    }
}
