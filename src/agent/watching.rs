//! Resources that agents want to be told about. A server hears of the first who wants it and of the last who does no
//! longer, so that one agent's leave does not make another deaf.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Endpoint;
use crate::engine::Engine;
use crate::model::{Requester, Result, ServerName};

type Address = (ServerName, String);

/// How many watch each resource. Behind a `std` lock that is private to this file and held for a look-up.
#[derive(Clone, Default)]
pub struct Watching(Arc<Mutex<BTreeMap<Address, usize>>>);

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
        *self.watching.lock().entry(address.clone()).or_default() += 1;
        let (engine, watching, who) = (self.engine.clone(), self.watching.clone(), who.clone());
        let watch = Watch { engine, watching, who, address };
        // Said each time: it costs little, and the first who said it may have said it to a server that is gone.
        self.engine.subscribe(&watch.who, server, uri.to_owned(), true).await?;
        Ok(watch)
    }
}

impl Watching {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Address, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether that was the last one.
    fn leave(&self, address: &Address) -> bool {
        let mut watching = self.lock();
        let Some(count) = watching.get_mut(address) else { return false };
        *count = count.saturating_sub(1);
        let last = *count == 0;
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
