//! Tells the editor that lenses and hints would look different now, whenever something they show has changed.
//!
//! Nothing is sent while the editor still works on the request before: a burst of changes comes to one refresh.

use std::sync::Arc;
use std::time::Duration;

use tower_lsp::lsp_types::request::{CodeLensRefresh, InlayHintRefreshRequest};

use super::seat::Seat;
use crate::ide::live::Facts;

/// An editor that takes longer than this to say that it has heard is not waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs until the session drops it. Editors that cannot be told ask again by themselves.
pub async fn refresh(seat: Arc<Seat>) {
    let supports = seat.greeting().supports;
    if !supports.code_lens_refresh && !supports.inlay_hint_refresh {
        return;
    }
    let mut snapshot = seat.engine.snapshot();
    let mut loaded = seat.engine.loaded();
    let mut settings = seat.engine.settings();
    let mut shown = Facts::of(&snapshot.borrow_and_update());
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
        let facts = Facts::of(&snapshot.borrow_and_update());
        if !other && facts == shown {
            continue;
        }
        shown = facts;
        let lenses = async {
            if supports.code_lens_refresh {
                seat.editor.request::<CodeLensRefresh>(&()).await.ok();
            }
        };
        let hints = async {
            if supports.inlay_hint_refresh {
                seat.editor.request::<InlayHintRefreshRequest>(&()).await.ok();
            }
        };
        let told = async { tokio::join!(lenses, hints) };
        if tokio::time::timeout(PATIENCE, told).await.is_err() {
            tracing::debug!("the editor did not answer a refresh");
        }
    }
}
