//! Asks the editor to refresh code lenses and inlay hints when something that they show has changed.
//!
//! Sends nothing while the editor processes the previous request: a burst of changes results in one refresh.

use std::sync::Arc;
use std::time::Duration;

use lsp_types::request::{CodeLensRefresh, InlayHintRefreshRequest};

use super::session::EditorSession;
use crate::ide::live::LiveState;

/// How long to wait for the response of an editor.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Runs until the session drops this future. Editors without support for refreshes request the data again themselves.
pub async fn refresh(session: Arc<EditorSession>) {
    let supports = session.info().supports;
    if !supports.code_lens_refresh && !supports.inlay_hint_refresh {
        return;
    }
    let mut snapshot = session.engine.snapshot();
    let mut loaded = session.engine.loaded();
    let mut settings = session.engine.settings();
    let mut shown = LiveState::of(&snapshot.borrow_and_update());
    loop {
        let mut other = false;
        tokio::select! {
            alive = snapshot.changed() => if alive.is_err() { return },
            alive = loaded.changed() => {
                if alive.is_err() {
                    return;
                }
                loaded.mark_unchanged();
                other = true;
            }
            alive = settings.changed() => {
                if alive.is_err() {
                    return;
                }
                settings.mark_unchanged();
                other = true;
            }
        }
        let live = LiveState::of(&snapshot.borrow_and_update());
        if !other && live == shown {
            continue;
        }
        shown = live;
        let lenses = async {
            if supports.code_lens_refresh {
                session.editor.request::<CodeLensRefresh>(&()).await.ok();
            }
        };
        let hints = async {
            if supports.inlay_hint_refresh {
                session.editor.request::<InlayHintRefreshRequest>(&()).await.ok();
            }
        };
        let refreshes = async { tokio::join!(lenses, hints) };
        if tokio::time::timeout(TIMEOUT, refreshes).await.is_err() {
            tracing::debug!("the editor did not respond to a refresh request");
        }
    }
}
