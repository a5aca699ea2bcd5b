//! List changes in the newer era: a long-running request that the server answers with notifications.
//!
//! The ledger handles the notifications; this only keeps the request open.

use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::SubscriptionFilter;
use rmcp::service::Peer;
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use super::{ListKind, ServerNotice};
use crate::model::PeerInfo;
use crate::server::transport::ledger::Ledger;

/// A server that refuses this many times in a row is not asked again.
const REFUSALS: u32 = 3;

pub struct Subscription {
    filter: watch::Sender<SubscriptionFilter>,
    _task: AbortOnDropHandle<()>,
}

impl Subscription {
    pub fn start(peer: Peer<RoleClient>, info: &PeerInfo, ledger: Ledger) -> Self {
        let changes = |name: &str| {
            let changes = info.raw.pointer(&format!("/capabilities/{name}/listChanged")).and_then(Value::as_bool);
            (changes == Some(true)).then_some(true)
        };
        let mut wanted = SubscriptionFilter::new();
        wanted.tools_list_changed = changes("tools");
        wanted.resources_list_changed = changes("resources");
        wanted.prompts_list_changed = changes("prompts");
        let (filter, changed) = watch::channel(wanted);
        let task = tokio::spawn(listen(peer, changed, ledger));
        Self { filter, _task: AbortOnDropHandle::new(task) }
    }

    /// Subscribes to a resource or unsubscribes from it.
    pub fn watch(&self, uri: &str, on: bool) {
        self.filter.send_if_modified(|filter| {
            let uris = filter.resource_subscriptions.get_or_insert_default();
            let known = uris.iter().any(|known| known == uri);
            match on {
                true if !known => uris.push(uri.to_owned()),
                false if known => uris.retain(|known| known != uri),
                _ => return false,
            }
            if uris.is_empty() {
                filter.resource_subscriptions = None;
            }
            true
        });
    }
}

async fn listen(peer: Peer<RoleClient>, mut filter: watch::Receiver<SubscriptionFilter>, ledger: Ledger) {
    let mut refusals = 0;
    let mut gap = false;
    loop {
        let wanted = filter.borrow_and_update().clone();
        if wanted == SubscriptionFilter::new() || refusals >= REFUSALS {
            if filter.changed().await.is_err() {
                return;
            }
            refusals = 0;
            continue;
        }
        match peer.listen(wanted.clone()).await {
            Ok(mut subscription) => {
                refusals = 0;
                if gap {
                    catch_up(&wanted, &ledger);
                }
                tokio::select! {
                    changed = filter.changed() => {
                        subscription.cancel().await.ok();
                        if changed.is_err() {
                            return;
                        }
                        continue;
                    }
                    // Only the end is delivered here.
                    ended = subscription.next() => tracing::debug!(server = %ledger.server(), ok = ended.is_ok(), "subscription ended"),
                }
            }
            Err(error) => {
                refusals += 1;
                tracing::debug!(server = %ledger.server(), %error, "the server refused the subscription");
            }
        }
        gap = true;
        tokio::select! {
            () = tokio::time::sleep(Duration::from_secs(1 << refusals)) => {}
            _ = ledger.closed() => return,
        }
    }
}

/// Reports every list as changed, because changes may have been missed.
fn catch_up(wanted: &SubscriptionFilter, ledger: &Ledger) {
    let lists = [
        (wanted.tools_list_changed, ListKind::Tools),
        (wanted.resources_list_changed, ListKind::Resources),
        (wanted.prompts_list_changed, ListKind::Prompts),
    ];
    for (_, listed) in lists.into_iter().filter(|(changes, _)| *changes == Some(true)) {
        ledger.notify(ServerNotice::ListChanged(listed));
    }
}
