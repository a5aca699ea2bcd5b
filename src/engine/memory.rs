//! What is known about servers across sessions: the MCP version each speaks, and the tools of servers that start on
//! demand.

use std::sync::Arc;

use serde_json::Value;
use serde_json::value::to_raw_value;
use sha2::{Digest, Sha256};

use crate::config::Definition;
use crate::model::Tool;
use crate::server::cache::{CachedServer, MemoryCache, ServerCache};
use crate::server::connection::tools_from;
use crate::server::transport::Era;
use crate::store::Store;

const ERA: &str = "era";
const TOOLS: &str = "tools";

/// Reads from memory. Loads each definition from the store once before its server starts, and writes in the background.
pub struct PersistentCache {
    cache: MemoryCache,
    store: Store,
}

impl PersistentCache {
    pub fn new(store: Store) -> Self {
        Self { cache: MemoryCache::default(), store }
    }

    /// Loads what is stored about a definition.
    pub async fn prepare(&self, definition: &Definition) {
        let known = self.cache.recall(definition);
        if known.era.is_some() || !known.tools.is_empty() {
            return;
        }
        let key = key(definition);
        let [era, tools] = self.store.recall(&key, [ERA, TOOLS]).await;
        let era = match era.as_deref() {
            Some("initialize") => Some(Era::Initialize),
            Some("discover") => Some(Era::Discover),
            _ => None,
        };
        let tools: Vec<Value> = tools.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        self.cache.remember(definition, CachedServer { era, tools: Arc::new(tools_from(tools)) });
    }
}

impl ServerCache for PersistentCache {
    fn recall(&self, definition: &Definition) -> CachedServer {
        self.cache.recall(definition)
    }

    fn remember(&self, definition: &Definition, cached: CachedServer) {
        let before = self.cache.recall(definition);
        self.cache.remember(definition, cached.clone());
        let era = cached.era.filter(|era| before.era != Some(*era)).map(|era| match era {
            Era::Initialize => "initialize",
            Era::Discover => "discover",
        });
        let has_new_tools = !Arc::ptr_eq(&before.tools, &cached.tools);
        if era.is_none() && !has_new_tools {
            return;
        }
        let (store, key) = (self.store.clone(), key(definition));
        tokio::spawn(async move {
            let era = era.map(|era| (ERA, era.to_owned()));
            let tools = has_new_tools.then(|| (TOOLS, text(&cached.tools)));
            store.remember(&key, era.into_iter().chain(tools)).await;
        });
    }
}

fn text(tools: &[Arc<Tool>]) -> String {
    // As text one by one: all of them as values would take much more memory.
    let raw: Vec<_> = tools.iter().filter_map(|tool| to_raw_value(&tool.definition()).ok()).collect();
    serde_json::to_string(&raw).unwrap_or_default()
}

/// Two definitions share an entry if they have the same launch. Levels and descriptions do not matter.
fn key(definition: &Definition) -> String {
    let folder = definition.folder.as_deref().map(|folder| folder.display().to_string()).unwrap_or_default();
    let (launch, fallback) = (&definition.spec.launch, &definition.spec.fallback);
    let digest = Sha256::digest(format!("{folder}\n{}\n{launch:?}\n{fallback:?}", definition.name));
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
