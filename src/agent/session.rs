//! One agent's session: its identity, its view of the workspace, and its subscriptions.
#![allow(deprecated, reason = "logging is what peers before 2026-07-28 know")]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use rmcp::model::LoggingLevel;
use tokio_util::sync::CancellationToken;

use super::catalog::{Catalog, is_starting};
use super::notices::FirstOffers;
use super::subscriptions::SubscriptionGuard;
use super::{AgentOptions, Endpoint, names};
use crate::engine::agents::{AgentGuard, ConnectedAgent};
use crate::engine::asking::AgentConnection;
use crate::engine::reads::Caller;
use crate::model::{CallId, Requester, RequesterKind, Result, ServerName, Timestamp};
use crate::policy::AgentAccess;
use crate::server::process;
use crate::text::one_line;

/// How long a list waits for servers that are starting: many agents list tools only once, right after they connect.
const STARTUP_WAIT: Duration = Duration::from_secs(5);

static SESSIONS: AtomicU64 = AtomicU64::new(0);

/// The `std` locks are private to this file and held only briefly.
pub struct Session {
    pub endpoint: Endpoint,
    /// Unique among all sessions.
    pub number: u64,
    /// Groups the calls of the session, unless they name a workflow.
    pub workflow: String,
    /// Cancelled when the agent has disconnected. Its calls end immediately, because nothing waits for them.
    pub gone: CancellationToken,
    options: AgentOptions,
    /// Cancelled when the user disconnects the agent.
    pub cut_off: CancellationToken,
    /// Set while the agent is listed among the connected ones.
    registered: OnceLock<AgentGuard>,
    pub first_offers: FirstOffers,
    log_level: Mutex<Option<LoggingLevel>>,
    subscriptions: Mutex<BTreeMap<(ServerName, String), SubscriptionGuard>>,
}

/// What an agent is called, and which servers and tools it sees.
#[derive(Clone)]
pub struct AgentView {
    pub requester: Requester,
    pub view: Arc<AgentAccess>,
    /// Tools are searched instead of listed.
    pub search: bool,
    /// How long the names may be that the agent gets.
    pub name_limit: usize,
}

impl Session {
    pub fn new(endpoint: Endpoint, options: AgentOptions, gone: CancellationToken, cut_off: CancellationToken) -> Self {
        let number = SESSIONS.fetch_add(1, Ordering::Relaxed);
        let (registered, first_offers, log_level, subscriptions) = Default::default();
        Self {
            endpoint,
            number,
            workflow: new_workflow(),
            gone,
            options,
            cut_off,
            registered,
            first_offers,
            log_level,
            subscriptions,
        }
    }

    /// Lists the agent among the connected ones. A session for a single request is not listed.
    pub fn register(&self) {
        let agent = ConnectedAgent {
            name: self.options.label.clone().unwrap_or_default(),
            reported: String::new(),
            folder: self.options.folder.clone(),
            started_by: self.options.process.and_then(|process| process::ancestors(process).next()),
            since: Timestamp::now(),
            set: self.set(),
            is_paused: false,
            cut_off: self.cut_off.clone(),
        };
        self.registered.get_or_init(|| self.endpoint.engine.agents().join(self.number, agent));
    }

    fn set(&self) -> Option<Arc<str>> {
        self.options.set.as_deref().map(Arc::from)
    }

    pub fn connection(&self) -> AgentConnection {
        // The set of an agent that is listed can be switched.
        let set = if self.registered.get().is_some() { None } else { self.set() };
        AgentConnection { number: self.number, set, gone: self.gone.clone() }
    }

    /// Whether the agent runs in an editor that asks the user itself before each call that is not read-only.
    pub fn host_asks(&self) -> bool {
        self.options.ticket.as_deref().is_some_and(|ticket| self.endpoint.engine.editors().issued(ticket))
    }

    /// The view of an agent that reports this name. The name that its user chose takes precedence.
    pub fn agent_view(&self, own_name: Option<String>) -> AgentView {
        let name_limit = names::limit(own_name.as_deref());
        let reported = one_line(&own_name.unwrap_or_default(), 80);
        let name = self.options.label.as_deref().map_or_else(|| reported.clone(), |label| one_line(label, 80));
        if let Some(registered) = self.registered.get().filter(|_| !name.is_empty()) {
            registered.named(&name, &reported);
        }
        let requester = Requester { kind: RequesterKind::Agent, name };
        let view = self.endpoint.engine.view_of(&requester, Some(&self.connection()));
        let view = AgentAccess::excluding(&view, &self.options.without);
        AgentView { search: self.options.search || view.search, requester, view, name_limit }
    }

    /// What is offered after the servers that are starting have started.
    pub async fn settled_catalog(&self, agent: &AgentView) -> Arc<Catalog> {
        let mut snapshots = self.endpoint.engine.snapshot();
        let starting = |view: &_| is_starting(view, &agent.view);
        let settled = snapshots.wait_for(|snapshot| !snapshot.servers.values().any(|view| starting(view)));
        tokio::time::timeout(STARTUP_WAIT, settled).await.ok();
        self.endpoint.catalog(agent)
    }

    pub fn log_level(&self) -> LoggingLevel {
        lock(&self.log_level).unwrap_or(LoggingLevel::Info)
    }

    pub fn set_log_level(&self, level: LoggingLevel) {
        *lock(&self.log_level) = Some(level);
    }

    pub async fn subscribe(&self, caller: Caller, server: ServerName, uri: String) -> Result<()> {
        let guard = self.endpoint.subscribe(caller, &server, &uri).await?;
        lock(&self.subscriptions).insert((server, uri), guard);
        Ok(())
    }

    pub fn unsubscribe(&self, server: ServerName, uri: String) {
        // The lock must be released before the guard is dropped.
        let guard = lock(&self.subscriptions).remove(&(server, uri));
        drop(guard);
    }

    pub fn subscription_count(&self) -> usize {
        lock(&self.subscriptions).len()
    }

    pub fn is_subscribed(&self, server: &ServerName, uri: &str) -> bool {
        lock(&self.subscriptions).contains_key(&(server.clone(), uri.to_owned()))
    }
}

pub fn new_workflow() -> String {
    format!("agent-{}", CallId::random().0)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
