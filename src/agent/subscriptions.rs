//! Resource subscriptions of agents. A server is unsubscribed only when the last agent unsubscribes, and subscribed again
//! after a restart.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Endpoint;
use crate::engine::Engine;
use crate::engine::reads::Caller;
use crate::model::{Requester, Result, ServerName, Status, Timestamp};

type Address = (ServerName, String);

/// The `std` lock is private to this file and held for a lookup.
#[derive(Clone, Default)]
pub struct Subscriptions(Arc<Mutex<BTreeMap<Address, Subscription>>>);

/// A resource with at least one subscriber.
#[derive(Debug, Clone, Default)]
struct Subscription {
    subscribers: usize,
    requester: Requester,
    /// When the server that we subscribed to was started.
    server_start: Option<Timestamp>,
}

/// Unsubscribes one subscriber when it is dropped.
pub struct SubscriptionGuard {
    engine: Engine,
    subscriptions: Subscriptions,
    address: Address,
}

impl Endpoint {
    pub async fn subscribe(&self, caller: Caller, server: &ServerName, uri: &str) -> Result<SubscriptionGuard> {
        let address = (server.clone(), uri.to_owned());
        let server_start = self.server_start(server);
        {
            let mut subscriptions = self.subscriptions.lock();
            let subscription = subscriptions.entry(address.clone()).or_default();
            let subscribers = subscription.subscribers + 1;
            *subscription = Subscription { subscribers, requester: caller.requester.clone(), server_start };
        }
        let guard =
            SubscriptionGuard { engine: self.engine.clone(), subscriptions: self.subscriptions.clone(), address };
        // Sent for every subscriber: it is cheap, and the server may have been restarted since the first one.
        self.engine.subscribe(caller, server, uri).await?;
        Ok(guard)
    }

    /// Subscribes again to servers that were restarted. Every session calls it on a new snapshot; the first call does the
    /// work.
    pub fn resubscribe(&self) {
        let mut restarted = Vec::new();
        for ((server, uri), subscription) in self.subscriptions.lock().iter_mut() {
            let now = self.server_start(server);
            if now.is_some() && now != subscription.server_start {
                subscription.server_start = now;
                restarted.push((subscription.requester.clone(), server.clone(), uri.clone()));
            }
        }
        for (requester, server, uri) in restarted {
            let engine = self.engine.clone();
            // Nobody waits for this, so it does not ask again. A rule that denies it holds.
            let caller = Caller { requester, opened_in: Some("subscribed before".into()), ..Caller::default() };
            tokio::spawn(async move { engine.subscribe(caller, &server, &uri).await.ok() });
        }
    }

    /// When this server was started, if it is connected.
    fn server_start(&self, server: &ServerName) -> Option<Timestamp> {
        let snapshot = self.engine.now();
        let state = &snapshot.servers.get(server)?.state;
        state.started_at.filter(|_| state.status == Status::Connected)
    }
}

impl Subscriptions {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Address, Subscription>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes one subscriber. Returns whether it was the last one.
    fn remove(&self, address: &Address) -> bool {
        let mut subscriptions = self.lock();
        let Some(subscription) = subscriptions.get_mut(address) else { return false };
        subscription.subscribers = subscription.subscribers.saturating_sub(1);
        let last = subscription.subscribers == 0;
        if last {
            subscriptions.remove(address);
        }
        last
    }
}

impl Drop for SubscriptionGuard {
    fn drop(&mut self) {
        if !self.subscriptions.remove(&self.address) {
            return;
        }
        let (engine, (server, uri)) = (self.engine.clone(), self.address.clone());
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            // A failure does not matter: the server may have stopped.
            runtime.spawn(async move { engine.unsubscribe(&server, uri).await.ok() });
        }
    }
}
