//! The phase in which a server is connected: pings when it is idle, new lists when it says so, and the moment when it
//! is lost.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until, timeout};

use super::attempt::{Connected, exit_of};
use super::failure::{Failure, Kind, Next};
use super::sources::Sources;
use super::{Actor, Live, Phase, Wish};
use crate::model::{Error, LogSource, PendingReason, Result, ServerState, Status};
use crate::server::Event;
use crate::server::connection::{Connection, Listing};
use crate::server::process::Process;
use crate::server::transport::{Happening, Listed};

/// A server that has lived this long, or was of use, did start properly: its next failure is a first one.
const PROVEN: Duration = Duration::from_secs(10);
/// Pings without an answer in a row that mean the end.
const MISSED_PINGS: u32 = 2;
/// A server that announces changes without pause is asked for its lists this often.
const BETWEEN_LISTINGS: Duration = Duration::from_millis(200);
/// Time for a connection to say goodbye.
const GOODBYE: Duration = Duration::from_millis(500);
/// Time for a process to be seen ending after its pipes broke.
const LAST_BREATH: Duration = Duration::from_millis(300);
const MOST_WARNINGS: usize = 50;

/// Why a connection is over.
enum End {
    Stopped(Phase),
    Wished(Wish),
    SourcesChanged,
    Lost(Failure),
}

impl Actor {
    pub(super) async fn live(&mut self, connected: Connected) -> Phase {
        // Before anybody hears that it is connected: what is saved from then on counts.
        let mut sources = self.watch_sources().await;
        let Connected { connection, process, mut happenings, since, .. } = self.enter(connected);
        let begun = Instant::now();
        let used = self.activity.begun();
        let interval = self.context.settings.borrow().servers.ping_interval;
        let mut ticks = interval_at(begun + interval, interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut seen = used;
        let mut missed = 0;
        let mut ping: Option<BoxFuture<'static, Result<Duration>>> = None;
        let mut changed: HashSet<Listed> = HashSet::new();
        let mut list_at = begun;
        let mut listing: Option<BoxFuture<'static, Relisted>> = None;
        self.activity.listen();

        let end = loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => break End::Stopped(Phase::End),
                wish = self.wishes.recv() => match wish {
                    None => break End::Stopped(Phase::End),
                    Some(Wish::Start(done)) => drop(done.send(())),
                    Some(Wish::Use) => {}
                    Some(wish) => break End::Wished(wish),
                },
                exit = exit_of(process.as_ref()) => {
                    let failure = Failure::retry(Kind::Process, exit.to_string());
                    break End::Lost(failure.with_last_words(&self.logs, since));
                }
                reason = connection.closed() => break End::Lost(self.lost(process.as_ref(), reason, since).await),
                relisted = done(&mut listing) => {
                    listing = None;
                    self.take_over(relisted, &connection);
                }
                () = sleep_until(list_at), if !changed.is_empty() && listing.is_none() => {
                    list_at = Instant::now() + BETWEEN_LISTINGS;
                    listing = Some(Box::pin(relist(connection.clone(), std::mem::take(&mut changed))));
                }
                pong = done(&mut ping) => {
                    ping = None;
                    match pong {
                        Ok(took) => {
                            missed = 0;
                            self.activity.note(took);
                        }
                        Err(error) => {
                            missed += 1;
                            self.logs.push(LogSource::Sidecar, "warning", &format!("ping: {error}"));
                        }
                    }
                    if missed >= MISSED_PINGS {
                        break End::Lost(Failure::retry(Kind::Connection, "it missed two pings in a row"));
                    }
                }
                _ = ticks.tick() => {
                    let begun = self.activity.begun();
                    let idle = begun == seen && self.activity.is_quiet();
                    seen = begun;
                    self.activity.listen();
                    // One at a time: a new ping in place of one that is still open would never let it be missed.
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
                () = sources_changed(&mut sources) => break End::SourcesChanged,
                // Last, so that a server that never stops talking keeps nothing else from happening.
                Some(happening) = happenings.recv() => {
                    if let Happening::ListChanged(listed) = happening {
                        changed.insert(listed);
                    } else {
                        self.note(happening);
                    }
                }
            }
        };

        if begun.elapsed() >= PROVEN || self.activity.begun() != used {
            self.backoff.forget();
        }
        self.leave(end, connection, process).await
    }

    /// Shows the server as connected and opens it to calls.
    fn enter(&mut self, mut connected: Connected) -> Connected {
        let lists = std::mem::take(&mut connected.lists);
        let mut warnings = std::mem::take(&mut connected.warnings);
        warnings.extend(lists.warnings);
        warnings.truncate(MOST_WARNINGS);
        let pid = connected.process.as_ref().map(Process::pid);
        self.connections += 1;
        self.live.send_replace(Live::Up(connected.connection.clone(), self.connections));
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
            // All lists are asked for at once, so this is about one round trip; the first call tells better.
            state.latency = Some(connected.discover_time);
            state.start_time = Some(connected.start_time);
            state.discover_time = Some(connected.discover_time);
            state.warnings = warnings;
        });
        self.remember(connected.connection.era());
        connected
    }

    fn note(&mut self, happening: Happening) {
        match happening {
            Happening::Log { level, text } => self.logs.push(LogSource::Server, &level, &text),
            Happening::ResourceUpdated(uri) => self.tell(Event::ResourceUpdated { uri }),
            Happening::Warning(warning) => {
                self.logs.push(LogSource::Sidecar, "warning", &warning);
                self.publish(|state| warn(state, warning));
            }
            Happening::Skipped { lines, sample } => {
                let warning =
                    format!("{lines} lines on its stdout were no messages and were skipped, such as: {sample}");
                self.publish(|state| {
                    // The newest count replaces the one before.
                    state.warnings.retain(|warning| !warning.contains("were no messages and were skipped"));
                    warn(state, warning);
                });
            }
            Happening::ListChanged(_) => {}
        }
    }

    /// New lists replace the old; where one could not be had, the old one stays.
    fn take_over(&mut self, relisted: Relisted, connection: &Connection) {
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

    /// What a closed connection means: the exit behind it, where there is one.
    async fn lost(&self, process: Option<&Process>, reason: String, since: crate::model::Timestamp) -> Failure {
        let failure = match timeout(LAST_BREATH, exit_of(process)).await {
            Ok(exit) => Failure::retry(Kind::Process, exit.to_string()),
            Err(_) => Failure::retry(Kind::Connection, reason),
        };
        failure.with_last_words(&self.logs, since)
    }

    /// Closes the connection to calls first, so that none begins on a wire that is being cut.
    async fn leave(&mut self, end: End, connection: Connection, process: Option<Process>) -> Phase {
        let (wish, phase) = match end {
            End::Lost(failure) => {
                let phase = self.fail(&failure);
                (None, phase)
            }
            End::Wished(Wish::SignIn) => {
                let failure = Failure { next: Next::SignIn, ..Failure::stay("the server wants you to sign in again") };
                (None, self.fail(&failure))
            }
            End::Stopped(phase) => {
                self.live.send_replace(Live::Down(self.stopped()));
                (None, phase)
            }
            End::Wished(wish) => {
                self.live.send_replace(Live::Down(self.cut_off()));
                (Some(wish), Phase::Idle)
            }
            End::SourcesChanged => {
                self.live.send_replace(Live::Down(self.cut_off()));
                self.logs.push(LogSource::Sidecar, "info", "its sources have changed: restarting");
                self.backoff.forget();
                (None, Phase::Start)
            }
        };
        if matches!(phase, Phase::Start) || matches!(wish, Some(Wish::Restart(_))) {
            self.publish(|state| {
                state.status = Status::Pending(PendingReason::Starting);
                state.pid = None;
                state.restarts += 1;
            });
        }
        timeout(GOODBYE, connection.close()).await.ok();
        // From here the process has its ladder to go; whoever needs it gone waits for the tracker.
        drop(process);
        match wish {
            Some(wish) => self.turn(wish).await.unwrap_or(Phase::Idle),
            None => phase,
        }
    }

    fn cut_off(&self) -> Error {
        let message = "it was stopped or restarted while this ran".to_owned();
        Error::Connection { server: self.definition.name.clone(), message }
    }
}

/// What a new look at changed lists has brought.
#[derive(Default)]
struct Relisted {
    listings: Vec<Listing>,
    warnings: Vec<String>,
}

async fn relist(connection: Connection, changed: HashSet<Listed>) -> Relisted {
    let mut relisted = Relisted::default();
    for listed in changed {
        match connection.list(listed).await {
            Ok(listing) => relisted.listings.push(listing),
            Err(error) => {
                relisted.warnings.push(format!("a list has changed, but the new one could not be had: {error}"))
            }
        }
    }
    relisted
}

/// An empty list that came with the word that it failed is no list: the old one stays.
fn replace(state: &mut ServerState, listing: Listing) {
    let failed = |warnings: &[String]| warnings.iter().any(|warning| warning.contains("/list failed: "));
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
    if !state.warnings.contains(&warning) && state.warnings.len() < MOST_WARNINGS {
        state.warnings.push(warning);
    }
}

/// Never ends where nothing is under way. The caller takes the finished work out.
async fn done<T>(work: &mut Option<BoxFuture<'static, T>>) -> T {
    match work {
        Some(work) => work.await,
        None => std::future::pending().await,
    }
}

async fn sources_changed(sources: &mut Option<Sources>) {
    match sources {
        Some(sources) => sources.changed().await,
        None => std::future::pending().await,
    }
}
