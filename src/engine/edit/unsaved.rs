//! Servers that only an editor knows so far.

use std::sync::Arc;

use crate::config::Definition;
use crate::engine::snapshot::{ServerView, Trust};
use crate::model::{ServerState, Status};

/// A server that exists only in an unsaved buffer.
pub fn unsaved_view(definition: &Arc<Definition>) -> ServerView {
    let needed = Trust::Needed { difference: None, refused: false };
    ServerView {
        definition: definition.clone(),
        state: Arc::new(ServerState::new(Status::Stopped)),
        trust: if definition.scope.needs_trust() { needed } else { Trust::Given },
        trust_checked: true,
        fingerprint: None,
        checked: None,
        forbidden: false,
        switched_on: true,
        tools: Arc::default(),
        server: None,
        actions: 0,
        remarks: vec!["its config file has unsaved changes in the editor".to_owned()],
    }
}
