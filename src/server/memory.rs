//! What is worth knowing about a server before it runs: which era of MCP it speaks, so that nobody asks twice, and which
//! tools it had, so that a lazy server has something to show.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::transport::Era;
use crate::config::{Definition, Launch};
use crate::model::{ServerName, Tool};

#[derive(Debug, Clone, Default)]
pub struct Remembered {
    pub era: Option<Era>,
    pub tools: Arc<Vec<Arc<Tool>>>,
}

/// Keeps what was learned, by what is launched: another launch is another server. Answers at once; what has to be
/// written is written behind.
pub trait Memory: Send + Sync + 'static {
    fn recall(&self, definition: &Definition) -> Remembered;
    fn remember(&self, definition: &Definition, remembered: Remembered);
}

/// Remembers for as long as the process lives. The lock is private to this file and never held over an await.
#[derive(Default)]
pub struct ShortMemory(Mutex<HashMap<ServerName, (Launch, Remembered)>>);

impl Memory for ShortMemory {
    fn recall(&self, definition: &Definition) -> Remembered {
        let Ok(known) = self.0.lock() else { return Remembered::default() };
        match known.get(&definition.name) {
            Some((launch, remembered)) if *launch == definition.spec.launch => remembered.clone(),
            _ => Remembered::default(),
        }
    }

    fn remember(&self, definition: &Definition, remembered: Remembered) {
        if let Ok(mut known) = self.0.lock() {
            known.insert(definition.name.clone(), (definition.spec.launch.clone(), remembered));
        }
    }
}
