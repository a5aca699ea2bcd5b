//! One agent's session: who it is, what it sees of the workspace, and what it has asked to be told.
#![allow(deprecated, reason = "logging is what peers before 2026-07-28 know")]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::LoggingLevel;

use super::catalog::{Catalog, is_coming};
use super::watching::Watch;
use super::{AgentOptions, Endpoint};
use crate::model::{Requester, RequesterKind, Result, ServerName};
use crate::policy::View;
use crate::text::one_line;

/// How long a list waits for servers that are just starting: many agents ask once, right after they came.
const SETTLING: Duration = Duration::from_secs(5);

static SESSIONS: AtomicU64 = AtomicU64::new(0);

/// Behind `std` locks that are private to this file and held for a moment.
pub struct Session {
    pub endpoint: Endpoint,
    /// Tells it from every other.
    pub number: u64,
    options: AgentOptions,
    log_level: Mutex<Option<LoggingLevel>>,
    watched: Mutex<BTreeMap<(ServerName, String), Watch>>,
}

/// Who asks, and what is there for him.
#[derive(Clone)]
pub struct Sight {
    pub who: Requester,
    pub view: Arc<View>,
    /// Tools are searched in place of listed.
    pub search: bool,
}

impl Session {
    pub fn new(endpoint: Endpoint, options: AgentOptions) -> Self {
        let number = SESSIONS.fetch_add(1, Ordering::Relaxed);
        let (log_level, watched) = Default::default();
        Self { endpoint, number, options, log_level, watched }
    }

    /// Whether its host is an editor of ours, which asks its user before calls that are more than a look.
    pub fn host_asks(&self) -> bool {
        self.options.ticket.as_deref().is_some_and(|ticket| self.endpoint.engine.editors().issued(ticket))
    }

    /// What an agent sees that calls itself this. What its user calls it comes first.
    pub fn sight(&self, own_name: Option<String>) -> Sight {
        let name = one_line(&self.options.label.clone().or(own_name).unwrap_or_default(), 80);
        let who = Requester { kind: RequesterKind::Agent, name };
        let view = View::excluding(self.endpoint.engine.view(&who), &self.options.without);
        Sight { search: self.options.search || view.search, who, view }
    }

    /// What is offered, once the servers that are just starting have started.
    pub async fn settled(&self, sight: &Sight) -> Arc<Catalog> {
        let mut pictures = self.endpoint.engine.snapshot();
        let coming = |view: &_| is_coming(view, &sight.view);
        let settled = pictures.wait_for(|snapshot| !snapshot.servers.values().any(|view| coming(view)));
        tokio::time::timeout(SETTLING, settled).await.ok();
        self.endpoint.catalog(sight)
    }

    pub fn log_level(&self) -> LoggingLevel {
        lock(&self.log_level).unwrap_or(LoggingLevel::Info)
    }

    pub fn set_log_level(&self, level: LoggingLevel) {
        *lock(&self.log_level) = Some(level);
    }

    pub async fn watch(&self, sight: &Sight, server: ServerName, uri: String) -> Result<()> {
        let watch = self.endpoint.watch(&sight.who, &server, &uri).await?;
        lock(&self.watched).insert((server, uri), watch);
        Ok(())
    }

    pub fn watch_no_longer(&self, server: ServerName, uri: String) {
        let watch = lock(&self.watched).remove(&(server, uri));
        drop(watch);
    }

    pub fn watches(&self, server: &ServerName, uri: &str) -> bool {
        lock(&self.watched).keys().any(|(name, own)| name == server && own == uri)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
