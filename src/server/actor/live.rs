//! The connected phase: pings an idle server, reloads changed lists, and detects a lost connection.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::oneshot;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until, timeout};

use super::attempt::{Connected, exit_of};
use super::failure::{Failure, Kind, Next};
use super::sources::SourceWatcher;
use super::{Actor, ActorRequest, Link, Phase};
use crate::model::{LogSource, PendingReason, Result, ServerState, Status};
use crate::server::connection::{Connection, Listing};
use crate::server::process::Process;
use crate::server::transport::{ListKind, ServerNotice};
use crate::server::{Event, interrupted};

/// A server that ran this long, or answered a request, started properly: its next failure counts as the first.
const STABLE_AFTER: Duration = Duration::from_secs(10);
/// Unanswered pings in a row after which the connection is lost.
const MISSED_PINGS: u32 = 2;
/// The minimum time between two reloads of changed lists.
const LISTING_INTERVAL: Duration = Duration::from_millis(200);
/// How long closing the connection may take.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);
/// How long to wait for the exit of a process after its pipes broke.
const EXIT_WAIT: Duration = Duration::from_millis(300);
const MAX_WARNINGS: usize = 50;
const SKIPPED: &str = "skipped lines on stdout that are not MCP messages";

/// Why a connection ended.
enum End {
    Stopped,
    Requested(ActorRequest),
    SourcesChanged,
    Idle,
    Lost(Failure),
}

impl Actor {
    pub(super) async fn live(&mut self, connected: Connected) -> Phase {
        // Before the server is shown as connected: every later save counts.
        let mut sources = self.watch_sources().await;
        let mut changed = HashSet::from_iter(connected.lists.unanswered.iter().copied());
        let Connected { connection, process, mut notices, since, .. } = self.publish_connected(connected);
        let started = Instant::now();
        let used = self.activity.request_count();
        let interval = self.context.settings.borrow().servers.ping_interval;
        let mut ticks = interval_at(started + interval, interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut seen = used;
        let mut missed = 0;
        let mut ping: Option<BoxFuture<'static, Result<Duration>>> = None;
        let mut list_at = started;
        let mut listing: Option<BoxFuture<'static, Relisted>> = None;
        // Who waits for the next reload, and for the running one.
        let (mut refreshes, mut refreshing) = (Vec::new(), Vec::new());
        self.activity.notify_next();
        let idle_timeout = self.definition.spec.idle_timeout;
        let mut idle_at = idle_timeout.map(|idle| started + idle);

        let end = loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => break End::Stopped,
                request = self.requests.recv() => match request {
                    None => break End::Stopped,
                    Some(ActorRequest::Start(done)) => drop(done.send(())),
                    Some(ActorRequest::CompareEnvironment(done)) => drop(done),
                    Some(ActorRequest::Use) => {}
                    Some(ActorRequest::Refresh(done)) => {
                        changed.extend(ListKind::ALL);
                        refreshes.push(done);
                    }
                    Some(request) => break End::Requested(request),
                },
                exit = exit_of(process.as_ref()) => {
                    let failure = Failure::retry(Kind::Process, format!("the server {exit}"));
                    break End::Lost(failure.with_stderr(&self.logs, since));
                }
                reason = connection.closed() => break End::Lost(self.lost(process.as_ref(), reason, since).await),
                relisted = done(&mut listing) => {
                    listing = None;
                    self.apply_lists(relisted, &connection);
                    for done in refreshing.drain(..) {
                        oneshot::Sender::send(done, ()).ok();
                    }
                }
                () = sleep_until(list_at), if !changed.is_empty() && listing.is_none() => {
                    refreshing = std::mem::take(&mut refreshes);
                    list_at = Instant::now() + LISTING_INTERVAL;
                    listing = Some(Box::pin(relist(connection.clone(), std::mem::take(&mut changed))));
                }
                pong = done(&mut ping) => {
                    ping = None;
                    match pong {
                        Ok(took) => {
                            missed = 0;
                            self.activity.record_latency(took);
                        }
                        Err(error) => {
                            missed += 1;
                            self.logs.push(LogSource::Sidecar, "warning", &format!("ping failed: {error}"));
                        }
                    }
                    if missed >= MISSED_PINGS {
                        break End::Lost(Failure::retry(Kind::Connection, "the server did not answer two pings in a row"));
                    }
                }
                _ = ticks.tick() => {
                    let count = self.activity.request_count();
                    let idle = count == seen && self.activity.is_idle();
                    seen = count;
                    self.activity.notify_next();
                    // One at a time: replacing an open ping would never let it time out.
                    if idle && ping.is_none() {
                        let connection = connection.clone();
                        let limit = interval.min(Duration::from_secs(10));
                        ping = Some(Box::pin(async move { connection.ping(limit).await }));
                    }
                }
                () = self.activity.answered() => {
                    let latency = self.activity.latency();
                    self.publish(|state| state.latency = latency);
                }
                () = sleep_until(idle_at.unwrap_or(started)), if idle_at.is_some() => {
                    let last_use = self.activity.last_use().unwrap_or(started).max(started);
                    let due = idle_timeout.map(|idle| last_use + idle);
                    let is_used = self.activity.has_subscriptions() || connection.is_asking();
                    if due > Some(Instant::now()) {
                        idle_at = due;
                    } else if !is_used && self.fall_asleep(&connection) {
                        break End::Idle;
                    } else {
                        idle_at = idle_timeout.map(|idle| Instant::now() + idle);
                    }
                }
                () = sources_changed(&mut sources) => break End::SourcesChanged,
                change = self.environment.changed(&self.definition) => {
                    if change.has_editor && change.names != self.state.borrow().changed_variables {
                        self.publish(|state| state.changed_variables = change.names);
                    }
                }
                // Last, so that a noisy server does not starve the other branches.
                Some(notice) = notices.recv() => {
                    if let ServerNotice::ListChanged(listed) = notice {
                        changed.insert(listed);
                    } else {
                        self.handle_notice(notice);
                    }
                }
            }
        };

        if started.elapsed() >= STABLE_AFTER || self.activity.request_count() != used {
            self.backoff.reset();
        }
        self.disconnect(end, connection, process).await
    }

    /// Rejects new requests, unless one has just begun.
    fn fall_asleep(&self, connection: &Connection) -> bool {
        self.link.send_replace(Link::Asleep);
        if !self.activity.is_idle() {
            self.link.send_replace(Link::Open(connection.clone(), self.connections));
            return false;
        }
        true
    }

    /// Publishes the server as connected and accepts calls.
    fn publish_connected(&mut self, mut connected: Connected) -> Connected {
        let lists = std::mem::take(&mut connected.lists);
        let mut warnings = std::mem::take(&mut connected.warnings);
        warnings.extend(lists.warnings);
        warnings.truncate(MAX_WARNINGS);
        let pid = connected.process.as_ref().map(Process::pid);
        self.connections += 1;
        self.link.send_replace(Link::Open(connected.connection.clone(), self.connections));
        tracing::info!(server = %self.definition.name, tools = lists.tools.len(), "connected");
        self.publish(|state| {
            state.status = Status::Connected;
            state.error = None;
            state.peer = Some(connected.connection.peer());
            state.tools = Arc::new(lists.tools);
            state.resources = Arc::new(lists.resources);
            state.templates = Arc::new(lists.templates);
            state.prompts = Arc::new(lists.prompts);
            state.pid = pid;
            state.started_at = Some(connected.since);
            // All lists are requested concurrently, so this is about one round trip; the first call replaces it.
            state.latency = Some(connected.discover_time);
            state.start_time = Some(connected.start_time);
            state.discover_time = Some(connected.discover_time);
            state.warnings = warnings;
            state.changed_variables.clear();
        });
        self.remember(connected.connection.era());
        connected
    }

    fn handle_notice(&mut self, notice: ServerNotice) {
        match notice {
            ServerNotice::Log { level, text, calls } => {
                self.logs.push_during(calls, LogSource::Server, &level, &text);
            }
            ServerNotice::Unknown { notification, calls } => {
                self.logs.pass_on(Event::Notification { notification: Arc::new(notification), calls });
            }
            ServerNotice::ResourceUpdated(uri) => self.send_event(Event::ResourceUpdated { uri }),
            ServerNotice::Warning(warning) => {
                self.logs.push(LogSource::Sidecar, "warning", &warning);
                self.publish(|state| warn(state, warning));
            }
            ServerNotice::Skipped { lines, sample } => {
                let warning = format!("{SKIPPED}: {lines} so far, for example: {sample}");
                self.publish(|state| {
                    // The new count replaces the previous one.
                    state.warnings.retain(|warning| !warning.starts_with(SKIPPED));
                    warn(state, warning);
                });
            }
            ServerNotice::ListChanged(_) => {}
        }
    }

    /// Replaces the reloaded lists; a list that could not be reloaded stays.
    fn apply_lists(&mut self, relisted: Relisted, connection: &Connection) {
        for warning in &relisted.warnings {
            self.logs.push(LogSource::Sidecar, "warning", warning);
        }
        self.publish(|state| {
            for listing in relisted.listings {
                replace(state, listing);
            }
            for warning in relisted.warnings {
                warn(state, warning);
            }
        });
        self.remember(connection.era());
    }

    /// Why the connection closed: the exit of the process, if there is one.
    async fn lost(&self, process: Option<&Process>, reason: String, since: crate::model::Timestamp) -> Failure {
        let failure = match timeout(EXIT_WAIT, exit_of(process)).await {
            Ok(exit) => Failure::retry(Kind::Process, format!("the server {exit}")),
            Err(_) => Failure::retry(Kind::Connection, reason),
        };
        failure.with_stderr(&self.logs, since)
    }

    /// Rejects calls first, so that none starts on a closing connection.
    async fn disconnect(&mut self, end: End, connection: Connection, process: Option<Process>) -> Phase {
        let (request, phase) = match end {
            End::Lost(failure) => {
                let phase = self.fail(&failure);
                (None, phase)
            }
            End::Requested(ActorRequest::SignIn) => {
                let failure =
                    Failure { next: Next::SignIn, ..Failure::permanent("the server requires you to sign in again") };
                (None, self.fail(&failure))
            }
            End::Stopped => {
                self.link.send_replace(Link::Closed(self.ended()));
                (None, Phase::End)
            }
            End::Requested(request) => {
                self.link.send_replace(Link::Closed(interrupted(&self.definition.name)));
                (Some(request), Phase::Idle)
            }
            End::Idle => {
                self.logs.push(LogSource::Sidecar, "info", "stopped because it was idle (`idleTimeout`)");
                self.backoff.reset();
                // Its lists stay, so that its tools can be called.
                self.publish(|state| {
                    state.status = Status::Stopped;
                    state.pid = None;
                    state.started_at = None;
                    state.latency = None;
                    state.changed_variables.clear();
                });
                (None, Phase::Idle)
            }
            End::SourcesChanged => {
                self.link.send_replace(Link::Closed(interrupted(&self.definition.name)));
                self.logs.push(LogSource::Sidecar, "info", "source files have changed; restarting the server");
                self.backoff.reset();
                (None, Phase::Start)
            }
        };
        if matches!(phase, Phase::Start) || matches!(request, Some(ActorRequest::Restart(_))) {
            self.publish(|state| {
                state.status = Status::Pending(PendingReason::Starting);
                state.pid = None;
                state.started_at = None;
                state.restarts += 1;
            });
        }
        self.activity.clear_subscriptions();
        timeout(CLOSE_TIMEOUT, connection.close()).await.ok();
        // The process now ends in the background; the tracker tracks it.
        drop(process);
        match request {
            Some(request) => self.handle(request).await.unwrap_or(Phase::Idle),
            None => phase,
        }
    }
}

/// The reloaded lists.
#[derive(Default)]
struct Relisted {
    listings: Vec<Listing>,
    warnings: Vec<String>,
}

async fn relist(connection: Connection, changed: HashSet<ListKind>) -> Relisted {
    let mut relisted = Relisted::default();
    for listing in futures::future::join_all(changed.into_iter().map(|listed| connection.list(listed))).await {
        match listing {
            Ok(listing) => relisted.listings.push(listing),
            Err(error) => relisted.warnings.push(format!("cannot reload a list: {error}")),
        }
    }
    relisted
}

/// An empty list with a failure warning means that the request failed: the old list stays.
fn replace(state: &mut ServerState, listing: Listing) {
    let failed = |warnings: &[String]| warnings.iter().any(|warning| warning.contains("/list` failed: "));
    let mut outdated = |methods: &[&str]| {
        let is_about =
            |warning: &String| methods.iter().any(|method| warning.starts_with(&format!("`{method}` failed: ")));
        state.warnings.retain(|warning| !is_about(warning));
    };
    match listing {
        Listing::Tools { .. } => outdated(&["tools/list"]),
        Listing::Resources { .. } => outdated(&["resources/list", "resources/templates/list"]),
        Listing::Prompts { .. } => outdated(&["prompts/list"]),
    }
    let news = match listing {
        Listing::Tools { tools, warnings } => {
            if !(tools.is_empty() && failed(&warnings)) {
                state.tools = Arc::new(tools);
            }
            warnings
        }
        Listing::Resources { resources, templates, warnings } => {
            if !(resources.is_empty() && failed(&warnings)) {
                state.resources = Arc::new(resources);
                state.templates = Arc::new(templates);
            }
            warnings
        }
        Listing::Prompts { prompts, warnings } => {
            if !(prompts.is_empty() && failed(&warnings)) {
                state.prompts = Arc::new(prompts);
            }
            warnings
        }
    };
    for warning in news {
        warn(state, warning);
    }
}

fn warn(state: &mut ServerState, warning: String) {
    if !state.warnings.contains(&warning) && state.warnings.len() < MAX_WARNINGS {
        state.warnings.push(warning);
    }
}

/// Never returns if there is no work. The caller removes finished work.
async fn done<T>(work: &mut Option<BoxFuture<'static, T>>) -> T {
    match work {
        Some(work) => work.await,
        None => std::future::pending().await,
    }
}

async fn sources_changed(sources: &mut Option<SourceWatcher>) {
    match sources {
        Some(sources) => sources.changed().await,
        None => std::future::pending().await,
    }
}
