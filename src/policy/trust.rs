//! The proof that a definition may start.

use std::sync::Arc;

use crate::config::Definition;

/// A definition that may be started: of the user's own scope, or trusted by the user exactly as it is. Only this
/// module makes one, and `Server::spawn` takes nothing else.
#[derive(Debug, Clone)]
pub struct Trusted {
    definition: Arc<Definition>,
}

impl Trusted {
    pub fn definition(&self) -> &Arc<Definition> {
        &self.definition
    }
}
