//! What is known about a server before it runs: its MCP era, which saves a handshake, and its tools, which a lazy
//! server shows.

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

/// A cache keyed by server name and launch: another launch is another server. Returns immediately; writes happen in the
/// background.
pub trait ServerCache: Send + Sync + 'static {
    fn recall(&self, definition: &Definition) -> CachedServer;
    fn remember(&self, definition: &Definition, cached: CachedServer);
}

/// A cache that lasts as long as the process. The lock is private to this file and never held over an await.
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
