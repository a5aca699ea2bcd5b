//! Notifications for agents: changed lists, changed resources, log messages of servers, and what we do not know.
#![allow(deprecated, reason = "agents before 2026-07-28 use logging")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use rmcp::RoleServer;
use rmcp::model::{
    CustomNotification, LoggingLevel, LoggingMessageNotificationParam, ProtocolVersion,
    ResourceUpdatedNotificationParam, ServerNotification,
};
use rmcp::service::{Peer, SubscriptionContext};
use serde_json::Value;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::Endpoint;
use super::catalog::Catalog;
use super::lookup::MAX_URI_BYTES;
use super::session::{AgentView, Session};
use crate::engine::Notice;
use crate::engine::agents::Connected;
use crate::engine::reads::Caller;
use crate::engine::snapshot::Snapshot;
use crate::model::{LogLine, LogSource, ServerName, UnknownNotification};
use crate::policy::AgentAccessTable;

/// Which lists have changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ChangedLists {
    tools: bool,
    resources: bool,
    prompts: bool,
}

impl ChangedLists {
    const ALL: Self = Self { tools: true, resources: true, prompts: true };

    fn between(before: &Catalog, after: &Catalog) -> Self {
        Self {
            tools: !Arc::ptr_eq(&before.tools, &after.tools),
            resources: !Arc::ptr_eq(&before.resources, &after.resources)
                || !Arc::ptr_eq(&before.templates, &after.templates),
            prompts: !Arc::ptr_eq(&before.prompts, &after.prompts),
        }
    }
}

/// The minimum time between two reports. When many servers start, their changes come in a burst, and each report compares all
/// lists.
const PAUSE: Duration = Duration::from_millis(10);

/// Everything that changes what an agent is offered: the servers, the settings, and the set of the agent.
struct Offers {
    snapshots: watch::Receiver<Arc<Snapshot>>,
    views: watch::Receiver<Arc<AgentAccessTable>>,
    agents: watch::Receiver<Connected>,
    /// The earliest time of the next report.
    next: Instant,
}

impl Offers {
    fn new(endpoint: &Endpoint) -> Self {
        let engine = &endpoint.engine;
        let (snapshots, views, agents) = (engine.snapshot(), engine.views(), engine.agents().subscribe());
        Self { snapshots, views, agents, next: Instant::now() }
    }

    /// Whether something has changed since the last look.
    fn have_changed(&self) -> bool {
        let changed = [self.snapshots.has_changed(), self.views.has_changed(), self.agents.has_changed()];
        changed.into_iter().any(|changed| changed.unwrap_or(true))
    }

    /// Waits for a change; `false` if there will be none. Safe to cancel.
    async fn changed(&mut self) -> bool {
        sleep_until(self.next).await;
        let changed = tokio::select! {
            changed = self.snapshots.changed() => changed.is_ok(),
            changed = self.views.changed() => changed.is_ok(),
            changed = self.agents.changed() => changed.is_ok(),
        };
        self.next = Instant::now() + PAUSE;
        changed
    }
}

/// How many subscriptions can begin at the same time without missing a change.
const MAX_UNUSED: usize = 16;

/// What an agent was offered before it could list anything. The task that notifies it starts later, and would miss what
/// changed between a list and that start. The `std` lock is held to put something in or to take it out.
#[derive(Default)]
pub struct FirstOffers(Mutex<Unused>);

#[derive(Default)]
struct Unused {
    /// When the agent initialized the session, with what was offered then.
    initialized: Option<(Offers, Arc<Catalog>)>,
    /// When it subscribed.
    subscribed: Vec<Offers>,
}

impl FirstOffers {
    /// The agent initializes the session.
    pub fn initializing(&self, endpoint: &Endpoint, agent: &AgentView) {
        let offers = Offers::new(endpoint);
        let known = endpoint.catalog(agent);
        self.lock().initialized.get_or_insert((offers, known));
    }

    /// The agent subscribes to notifications.
    pub fn subscribing(&self, endpoint: &Endpoint) {
        let mut unused = self.lock();
        // A subscription that is cancelled at once takes none of them.
        if unused.subscribed.len() == MAX_UNUSED {
            unused.subscribed.remove(0);
        }
        unused.subscribed.push(Offers::new(endpoint));
    }

    fn lock(&self) -> MutexGuard<'_, Unused> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Notifies an agent before 2026-07-28 until it disconnects.
pub async fn notify(session: Arc<Session>, peer: Peer<RoleServer>) {
    let endpoint = &session.endpoint;
    let view = || session.agent_view(peer.peer_info().map(|agent| agent.client_info.name.clone()));
    let mut agent = view();
    let mut notices = endpoint.engine.notices();
    let first = session.first_offers.lock().initialized.take();
    let (mut offers, mut known) = first.unwrap_or_else(|| (Offers::new(endpoint), endpoint.catalog(&agent)));
    loop {
        // Notifications fail if the agent has disconnected.
        tokio::select! {
            changed = offers.changed() => {
                if !changed {
                    return;
                }
                endpoint.resubscribe();
                agent = view();
                let now = endpoint.catalog(&agent);
                let changed = ChangedLists::between(&known, &now);
                known = now;
                if changed.tools {
                    peer.notify_tool_list_changed().await.ok();
                }
                if changed.resources {
                    peer.notify_resource_list_changed().await.ok();
                }
                if changed.prompts {
                    peer.notify_prompt_list_changed().await.ok();
                }
            }
            notice = notices.recv() => match notice {
                Ok(Notice::Log { server, line, calls })
                    if agent.view.shows_server(&server) && endpoint.callers.made_all(session.number, &calls) =>
                {
                    if let Some(message) = message(&server, line, session.log_level()) {
                        peer.notify_logging_message(message).await.ok();
                    }
                }
                Ok(Notice::Unknown { server, notification, calls })
                    if agent.view.shows_server(&server)
                        && endpoint.callers.made_all(session.number, &calls)
                        && takes_unknown(&peer) =>
                {
                    pass_on(&peer, &notification).await;
                }
                Ok(Notice::ResourceUpdated { server, uri }) if session.is_subscribed(&server, &uri) => {
                    let uri = endpoint.catalog(&agent).shown_uri(&server, &uri);
                    peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await.ok();
                }
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return,
            },
        }
    }
}

/// Notifies an agent since 2026-07-28. The sink drops what the subscription does not ask for.
pub async fn listen(session: &Session, view: impl Fn() -> AgentView, subscription: &SubscriptionContext) {
    let (endpoint, connection) = (&session.endpoint, &session.connection());
    let mut agent = view();
    let first = session.first_offers.lock().subscribed.pop();
    let mut offers = Offers::new(endpoint);
    let mut notices = endpoint.engine.notices();
    let sink = subscription.sink();
    let mut known = endpoint.catalog(&agent);
    let report = async |changed: ChangedLists| {
        if changed.tools {
            sink.notify_tool_list_changed().await.ok();
        }
        if changed.resources {
            sink.notify_resource_list_changed().await.ok();
        }
        if changed.prompts {
            sink.notify_prompt_list_changed().await.ok();
        }
    };
    // The subscription was confirmed before this, and the agent may have listed everything in between.
    if first.is_some_and(|first| first.have_changed()) {
        report(ChangedLists::ALL).await;
    }
    let uris = subscription.accepted().resource_subscriptions.clone().unwrap_or_default();
    let limit = endpoint.engine.settings().borrow().limits.subscriptions;
    let accepted = uris.iter().filter(|uri| uri.len() <= MAX_URI_BYTES).take(limit);
    if accepted.clone().count() < uris.len() {
        tracing::warn!(agent = %agent.requester.name, limit, "ignored some subscriptions of an agent: too many, or a URI is too long");
    }
    let found = accepted.filter_map(|uri| endpoint.catalog(&agent).find_uri(uri));
    // The user may be asked about each. The other notifications continue in the meantime.
    let requester = &agent.requester.clone();
    let mut asked: FuturesUnordered<_> = found
        .map(|(server, uri)| async move {
            let (requester, connection) = (requester.clone(), Some(connection.clone()));
            let caller = Caller { requester, connection, ..Caller::default() };
            let guard = endpoint.subscribe(caller, &server, &uri).await.ok()?;
            Some(((server, uri), guard))
        })
        .collect();
    // Dropped when this subscription ends.
    let mut guards = BTreeMap::new();
    loop {
        tokio::select! {
            () = subscription.cancelled() => break,
            Some(subscribed) = asked.next() => guards.extend(subscribed),
            changed = offers.changed() => {
                if !changed {
                    break;
                }
                endpoint.resubscribe();
                agent = view();
                let now = endpoint.catalog(&agent);
                let changed = ChangedLists::between(&known, &now);
                known = now;
                report(changed).await;
            }
            notice = notices.recv() => match notice {
                Ok(Notice::ResourceUpdated { server, uri }) if guards.contains_key(&(server.clone(), uri.clone())) => {
                    let uri = endpoint.catalog(&agent).shown_uri(&server, &uri);
                    sink.notify_resource_updated(uri).await.ok();
                }
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => break,
            },
        }
    }
}

/// Whether an agent gets notifications that we do not know. Agents of older versions were written before servers sent any.
fn takes_unknown(peer: &Peer<RoleServer>) -> bool {
    peer.peer_info().is_some_and(|agent| agent.protocol_version >= ProtocolVersion::V_2025_06_18)
}

/// Passes on a notification that we do not know, as the server sent it.
pub async fn pass_on(peer: &Peer<RoleServer>, notification: &UnknownNotification) {
    let UnknownNotification { method, params } = notification.clone();
    let notification = ServerNotification::CustomNotification(CustomNotification::new(method, params));
    peer.send_notification(notification).await.ok();
}

/// The notification for a log line; `None` if it is not a message of the server or not severe enough.
pub fn message(server: &ServerName, line: LogLine, minimum: LoggingLevel) -> Option<LoggingMessageNotificationParam> {
    if line.source != LogSource::Server {
        return None;
    }
    let level: LoggingLevel = serde_json::from_value(Value::from(line.level.as_str())).ok()?;
    let message =
        || LoggingMessageNotificationParam::new(level, Value::String(line.text)).with_logger(server.to_string());
    (level as u8 >= minimum as u8).then(message)
}
