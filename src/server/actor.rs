//! The life of one server: starting, running, failing, trying again, stopping. Whatever happens to it happens in
//! [`Actor::run`], one phase after another; the world sees whole pictures of it.

mod attempt;
mod failure;
mod live;
mod sources;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::activity::Activity;
use super::backoff::Backoff;
use super::connection::Connection;
use super::logs::Logs;
use super::memory::Remembered;
use super::{Context, Event};
use crate::config::Definition;
use crate::model::{Error, LogSource, PendingReason, ServerState, Status};
use crate::policy::trust::Trusted;
use attempt::{Attempt, Connected, Note};
use failure::{Failure, Next};
use sources::Sources;

/// A server's own word on when to come again is believed up to this long.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(3600);

/// When a server starts by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beginning {
    Now,
    AtFirstUse,
    Never,
}

impl Beginning {
    pub fn of(definition: &Definition) -> Self {
        match &definition.spec {
            spec if !spec.enabled => Self::Never,
            spec if !spec.auto_start => Self::AtFirstUse,
            _ => Self::Now,
        }
    }
}

/// What a handle asks of the actor. The sender is answered once the server has settled.
#[derive(Debug)]
pub(super) enum Wish {
    Start(oneshot::Sender<()>),
    Stop(oneshot::Sender<()>),
    Restart(oneshot::Sender<()>),
    /// Somebody needs a server that is asleep.
    Use,
    /// A call was told to sign in first.
    SignIn,
}

/// What a handle finds when it wants to talk to the server.
#[derive(Clone)]
pub(super) enum Live {
    /// Lazy and not used yet: the first use wakes it.
    Asleep,
    Coming,
    /// Open, and the how-manieth connection this is.
    Up(Connection, u64),
    Down(Error),
}

pub(super) struct Actor {
    pub definition: Arc<Definition>,
    pub context: Context,
    pub generation: u64,
    pub logs: Logs,
    pub activity: Arc<Activity>,
    pub wishes: mpsc::Receiver<Wish>,
    pub stop: CancellationToken,
    pub state: watch::Sender<Arc<ServerState>>,
    pub live: watch::Sender<Live>,
    backoff: Backoff,
    /// Everything that still has a process to end.
    processes: TaskTracker,
    /// Who waits for the server to settle.
    waiting: Vec<oneshot::Sender<()>>,
    connections: u64,
}

/// What comes next.
enum Phase {
    Idle,
    Start,
    Live(Box<Connected>),
    Retry(Instant),
    End,
}

impl Actor {
    #[expect(clippy::too_many_arguments, reason = "each is an end of a channel or a part that only its server has")]
    pub fn new(
        trusted: &Trusted,
        beginning: Beginning,
        context: Context,
        generation: u64,
        logs: Logs,
        activity: Arc<Activity>,
        wishes: mpsc::Receiver<Wish>,
        stop: CancellationToken,
    ) -> Self {
        let definition = trusted.definition().clone();
        let (status, live) = match beginning {
            Beginning::Now => (Status::Pending(PendingReason::Starting), Live::Coming),
            Beginning::AtFirstUse => (Status::Stopped, Live::Asleep),
            Beginning::Never => (Status::Disabled, Live::Down(disabled(&definition))),
        };
        let mut state = ServerState::new(status);
        if beginning == Beginning::AtFirstUse {
            // A lazy server shows what it had when it last ran.
            state.tools = context.memory.recall(&definition).tools;
        }
        Self {
            definition,
            context,
            generation,
            logs,
            activity,
            wishes,
            stop,
            state: watch::Sender::new(Arc::new(state)),
            live: watch::Sender::new(live),
            backoff: Backoff::default(),
            processes: TaskTracker::new(),
            waiting: Vec::new(),
            connections: 0,
        }
    }

    pub async fn run(mut self) {
        let mut phase = match self.state.borrow().status {
            Status::Pending(_) => Phase::Start,
            _ => Phase::Idle,
        };
        loop {
            phase = match phase {
                Phase::Idle => self.idle().await,
                Phase::Start => self.start().await,
                Phase::Live(connected) => self.live(*connected).await,
                Phase::Retry(at) => self.wait_until(at).await,
                Phase::End => break,
            };
        }
        self.live.send_replace(Live::Down(self.stopped()));
        self.processes_gone().await;
        if self.state.borrow().status != Status::Disabled {
            self.publish(|state| rest(state, Status::Stopped));
        }
    }

    /// Nothing runs; a wish may change that.
    async fn idle(&mut self) -> Phase {
        loop {
            let wish = tokio::select! {
                () = self.stop.cancelled() => return Phase::End,
                wish = self.wishes.recv() => wish,
            };
            let Some(wish) = wish else { return Phase::End };
            if let Some(phase) = self.turn(wish).await {
                return phase;
            }
        }
    }

    /// A failed server waits for its next try.
    async fn wait_until(&mut self, at: Instant) -> Phase {
        loop {
            let wish = tokio::select! {
                () = self.stop.cancelled() => return Phase::End,
                () = sleep_until(at) => {
                    self.publish(|state| state.restarts += 1);
                    return Phase::Start;
                }
                wish = self.wishes.recv() => wish,
            };
            let Some(wish) = wish else { return Phase::End };
            if let Some(phase) = self.turn(wish).await {
                return phase;
            }
        }
    }

    /// One try, which any wish may cut short.
    async fn start(&mut self) -> Phase {
        self.live.send_replace(Live::Coming);
        self.publish(|state| state.status = Status::Pending(PendingReason::Starting));
        // The one before is gone for good before the next begins: there are never two of one server.
        self.processes_gone().await;
        let (notes, mut noted) = mpsc::channel(8);
        let attempt = Attempt {
            definition: self.definition.clone(),
            context: self.context.clone(),
            settings: self.context.settings.borrow().clone(),
            logs: self.logs.clone(),
            tracker: self.processes.clone(),
            notes,
            era: self.context.memory.recall(&self.definition).era,
        };
        let mut attempt = Box::pin(attempt.run());
        let done = loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return Phase::End,
                wish = self.wishes.recv() => match wish {
                    None => return Phase::End,
                    Some(Wish::Start(done)) => self.waiting.push(done),
                    Some(Wish::Use | Wish::SignIn) => {}
                    Some(wish) => {
                        // What was begun ends before anything else begins.
                        drop(attempt);
                        return self.turn(wish).await.unwrap_or(Phase::Idle);
                    }
                },
                Some(note) = noted.recv() => self.publish(|state| match note {
                    Note::Asking => state.status = Status::Pending(PendingReason::Input),
                    Note::Starting => state.status = Status::Pending(PendingReason::Starting),
                    Note::Running(pid) => state.pid = Some(pid),
                }),
                done = &mut attempt => break done,
            }
        };
        match done {
            Ok(connected) => {
                self.logs.push(LogSource::Sidecar, "info", "connected");
                Phase::Live(Box::new(connected))
            }
            Err(failure) => self.fail(&failure),
        }
    }

    /// Takes a wish while nothing is connected. `None`: nothing changes by it.
    async fn turn(&mut self, wish: Wish) -> Option<Phase> {
        match wish {
            Wish::Start(done) | Wish::Restart(done) if self.state.borrow().status == Status::Disabled => {
                done.send(()).ok();
                None
            }
            Wish::Start(done) | Wish::Restart(done) => {
                self.waiting.push(done);
                self.backoff.forget();
                Some(Phase::Start)
            }
            Wish::Stop(done) => {
                if self.state.borrow().status != Status::Disabled {
                    self.live.send_replace(Live::Down(self.stopped()));
                    self.processes_gone().await;
                    self.publish(|state| rest(state, Status::Stopped));
                }
                done.send(()).ok();
                Some(Phase::Idle)
            }
            Wish::Use => matches!(*self.live.borrow(), Live::Asleep).then_some(Phase::Start),
            Wish::SignIn => None,
        }
    }

    /// Shows a failure and decides what follows from it.
    fn fail(&mut self, failure: &Failure) -> Phase {
        let settings = self.context.settings.borrow().clone();
        self.live.send_replace(Live::Down(failure.error(&self.definition.name)));
        self.logs.push(LogSource::Sidecar, "error", &failure.message);
        let wait = match failure.next {
            Next::Stay | Next::SignIn => None,
            Next::Retry => self.backoff.fail(&settings.servers),
            Next::RetryAfter(after) => {
                self.backoff.fail(&settings.servers).map(|wait| wait.max(after.min(LONGEST_RETRY_AFTER)))
            }
        };
        let name = &self.definition.name;
        let at = wait.map(|wait| Instant::now() + wait);
        let status = match (failure.next, at) {
            (Next::SignIn, _) => Status::NeedsAuth,
            (_, Some(at)) => Status::Pending(PendingReason::Retry(at.into_std())),
            (_, None) => Status::Failed,
        };
        let mut shown = failure.clone();
        if status == Status::Failed && failure.next != Next::Stay && self.backoff.failures() > 1 {
            let failures = self.backoff.failures();
            shown.message.push_str(&format!(" ({failures} failures in a row; restart it to try again)"));
        }
        tracing::warn!(server = %name, status = status.as_str(), error = %crate::text::one_line(&failure.message, 200), "not connected");
        self.publish(|state| {
            rest(state, status);
            state.error = Some(shown.text());
        });
        at.map_or(Phase::Idle, Phase::Retry)
    }

    /// Replaces the picture, and answers those who waited for it to settle.
    fn publish(&mut self, change: impl FnOnce(&mut ServerState)) {
        let mut state = ServerState::clone(&self.state.borrow());
        change(&mut state);
        let settled = state.status.settled();
        self.state.send_replace(Arc::new(state));
        if settled {
            for waiting in self.waiting.drain(..) {
                waiting.send(()).ok();
            }
        }
    }

    /// Tells the hub of a single event; one that is too busy misses it.
    fn tell(&self, event: Event) {
        self.context.events.try_send((self.definition.name.clone(), self.generation, event)).ok();
    }

    async fn processes_gone(&self) {
        self.processes.close();
        self.processes.wait().await;
        self.processes.reopen();
    }

    fn stopped(&self) -> Error {
        let message = "it is stopped; `mcp.server.start` starts it".to_owned();
        Error::Connection { server: self.definition.name.clone(), message }
    }

    async fn watch_sources(&self) -> Option<Sources> {
        let dev = self.definition.spec.dev.clone()?;
        let file_folder = || self.definition.file.as_deref().and_then(|file| file.parent());
        let folder = self.definition.folder.as_deref().or_else(file_folder)?.to_owned();
        // Watching a large tree takes its time.
        let watching = tokio::task::spawn_blocking(move || Sources::watch(&dev, &folder)).await.ok()?;
        watching.inspect_err(|error| self.logs.push(LogSource::Sidecar, "warning", error)).ok()
    }

    fn remember(&self, era: super::transport::Era) {
        let remembered = Remembered { era: Some(era), tools: self.state.borrow().tools.clone() };
        self.context.memory.remember(&self.definition, remembered);
    }
}

pub(super) fn disabled(definition: &Definition) -> Error {
    Error::Disabled { server: definition.name.clone(), hint: "set `enabled` in its file" }
}

/// Nothing runs: what belonged to the running server is no longer true. One that comes back soon keeps its lists, so
/// that nobody sees its tools go and come.
fn rest(state: &mut ServerState, status: Status) {
    state.status = status;
    state.error = None;
    state.pid = None;
    state.started_at = None;
    state.latency = None;
    if !matches!(status, Status::Pending(_)) {
        state.tools = Arc::default();
        state.resources = Arc::default();
        state.templates = Arc::default();
        state.prompts = Arc::default();
        state.warnings.clear();
    }
}

#[cfg(test)]
mod tests;
