//! What is worth knowing about a server before it runs: which era of MCP it speaks, so that nobody asks twice, and which
//! tools it had, so that a lazy server has something to show.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::transport::Era;
use crate::config::{Definition, Launch};
use crate::model::{ServerName, Tool};

#[derive(Debug, Clone, Default)]
pub struct CachedServer {
    pub era: Option<Era>,
    pub tools: Arc<Vec<Arc<Tool>>>,
}

/// Keeps what was learned, by what is launched: another launch is another server. Answers at once; what has to be
/// written is written behind.
pub trait ServerCache: Send + Sync + 'static {
    fn recall(&self, definition: &Definition) -> CachedServer;
    fn remember(&self, definition: &Definition, cached: CachedServer);
}

/// Remembers for as long as the process lives. The lock is private to this file and never held over an await.
#[derive(Default)]
pub struct MemoryCache(Mutex<HashMap<ServerName, (Launch, CachedServer)>>);

impl ServerCache for MemoryCache {
    fn recall(&self, definition: &Definition) -> CachedServer {
        let Ok(servers) = self.0.lock() else { return CachedServer::default() };
        match servers.get(&definition.name) {
            Some((launch, cached)) if *launch == definition.spec.launch => cached.clone(),
            _ => CachedServer::default(),
        }
    }

    fn remember(&self, definition: &Definition, cached: CachedServer) {
        if let Ok(mut servers) = self.0.lock() {
            servers.insert(definition.name.clone(), (definition.spec.launch.clone(), cached));
        }
    }
}
