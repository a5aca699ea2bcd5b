//! Resources that agents want to be told about. A server hears of the first who wants it and of the last who does no
//! longer, so that one agent's leave does not make another deaf; and a server that was restarted hears of it anew.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Endpoint;
use crate::engine::Engine;
use crate::model::{Requester, Result, ServerName, Status, Timestamp};

type Address = (ServerName, String);

/// Who is watched. Behind a `std` lock that is private to this file and held for a look-up.
#[derive(Clone, Default)]
pub struct Watching(Arc<Mutex<BTreeMap<Address, Watched>>>);

/// A resource that somebody watches.
#[derive(Debug, Clone, Default)]
struct Watched {
    by: usize,
    who: Requester,
    /// The start of the server that was told.
    told: Option<Timestamp>,
}

/// One who watches a resource, until it is dropped.
pub struct Watch {
    engine: Engine,
    watching: Watching,
    who: Requester,
    address: Address,
}

impl Endpoint {
    pub async fn watch(&self, who: &Requester, server: &ServerName, uri: &str) -> Result<Watch> {
        let address = (server.clone(), uri.to_owned());
        let told = self.started(server);
        {
            let mut watching = self.watching.lock();
            let watched = watching.entry(address.clone()).or_default();
            *watched = Watched { by: watched.by + 1, who: who.clone(), told };
        }
        let (engine, watching, who) = (self.engine.clone(), self.watching.clone(), who.clone());
        let watch = Watch { engine, watching, who, address };
        // Said each time: it costs little, and the first who said it may have said it to a server that is gone.
        self.engine.subscribe(&watch.who, server, uri.to_owned(), true).await?;
        Ok(watch)
    }

    /// Tells servers anew that have been restarted since they were told. Whoever follows the pictures calls it; the
    /// first to do so is the one who tells.
    pub fn watch_anew(&self) {
        let mut restarted = Vec::new();
        for ((server, uri), watched) in self.watching.lock().iter_mut() {
            let now = self.started(server);
            if now.is_some() && now != watched.told {
                watched.told = now;
                restarted.push((watched.who.clone(), server.clone(), uri.clone()));
            }
        }
        for (who, server, uri) in restarted {
            let engine = self.engine.clone();
            tokio::spawn(async move { engine.subscribe(&who, &server, uri, true).await.ok() });
        }
    }

    /// When this server started, once it is connected.
    fn started(&self, server: &ServerName) -> Option<Timestamp> {
        let snapshot = self.engine.now();
        let state = &snapshot.servers.get(server)?.state;
        state.started_at.filter(|_| state.status == Status::Connected)
    }
}

impl Watching {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Address, Watched>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether that was the last one.
    fn leave(&self, address: &Address) -> bool {
        let mut watching = self.lock();
        let Some(watched) = watching.get_mut(address) else { return false };
        watched.by = watched.by.saturating_sub(1);
        let last = watched.by == 0;
        if last {
            watching.remove(address);
        }
        last
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if !self.watching.leave(&self.address) {
            return;
        }
        let (engine, who, (server, uri)) = (self.engine.clone(), self.who.clone(), self.address.clone());
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            // A server that has gone does not need to be told; one that does not answer is waited for no longer than
            // for any request.
            runtime.spawn(async move { engine.subscribe(&who, &server, uri, false).await.ok() });
        }
    }
}
