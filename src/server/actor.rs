//! The lifecycle of one server: start, run, fail, retry, stop. [`Actor::run`] owns it, one phase after another, and
//! publishes complete states.

mod attempt;
mod environment;
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
use super::cache::CachedServer;
use super::connection::Connection;
use super::logs::Logs;
use super::oauth::ServerAuth;
use super::{Context, Event};
use crate::config::Definition;
use crate::model::{Error, LogSource, PendingReason, ServerState, Status};
use crate::policy::trust::Trusted;
use attempt::{Attempt, AttemptUpdate, Connected};
use environment::{EnvironmentChange, StartEnvironment};
use failure::{Failure, Next};
use sources::SourceWatcher;

/// The longest `Retry-After` that is honoured.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(3600);

/// When a server starts automatically.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AutoStart {
    Now,
    OnFirstUse,
    Never,
}

impl AutoStart {
    pub fn of(definition: &Definition) -> Self {
        match &definition.spec {
            spec if !spec.enabled => Self::Never,
            spec if !spec.auto_start => Self::OnFirstUse,
            _ => Self::Now,
        }
    }
}

/// A request of a handle to the actor. The sender is notified once the server has settled.
#[derive(Debug)]
pub(super) enum ActorRequest {
    Start(oneshot::Sender<()>),
    Stop(oneshot::Sender<()>),
    Restart(oneshot::Sender<()>),
    /// Asks a connected server for its lists again.
    Refresh(oneshot::Sender<()>),
    /// Starts a failed server if the environment has changed. The state then says so.
    CompareEnvironment(oneshot::Sender<()>),
    /// A call needs a server that is asleep.
    Use,
    /// The server rejected a call because the user is not signed in.
    SignIn,
}

/// The connection as a handle sees it.
#[derive(Clone)]
pub(super) enum Link {
    /// Lazy or idle: the next use starts it.
    Asleep,
    Connecting,
    /// The connection and the connection counter.
    Open(Connection, u64),
    Closed(Error),
}

pub(super) struct Actor {
    pub definition: Arc<Definition>,
    pub context: Context,
    auth: ServerAuth,
    pub generation: u64,
    pub logs: Logs,
    pub activity: Arc<Activity>,
    pub requests: mpsc::Receiver<ActorRequest>,
    pub stop: CancellationToken,
    pub state: watch::Sender<Arc<ServerState>>,
    pub link: watch::Sender<Link>,
    environment: StartEnvironment,
    backoff: Backoff,
    /// The processes that are still ending.
    processes: TaskTracker,
    /// Notified when the server settles.
    waiters: Vec<oneshot::Sender<()>>,
    connections: u64,
    /// It starts because a call needs it.
    is_used: bool,
}

/// The next phase.
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
        auto_start: AutoStart,
        context: Context,
        auth: ServerAuth,
        generation: u64,
        logs: Logs,
        activity: Arc<Activity>,
        requests: mpsc::Receiver<ActorRequest>,
        stop: CancellationToken,
    ) -> Self {
        let definition = trusted.definition().clone();
        let (status, link) = match auto_start {
            AutoStart::Now => (Status::Pending(PendingReason::Starting), Link::Connecting),
            AutoStart::OnFirstUse => (Status::Stopped, Link::Asleep),
            AutoStart::Never => (Status::Disabled, Link::Closed(disabled(&definition))),
        };
        let mut state = ServerState::new(status);
        if auto_start == AutoStart::OnFirstUse {
            // A lazy server shows the tools of its last run.
            state.tools = context.cache.recall(&definition).tools;
        }
        Self {
            environment: StartEnvironment::new(context.host.environments()),
            definition,
            context,
            auth,
            generation,
            logs,
            activity,
            requests,
            stop,
            state: watch::Sender::new(Arc::new(state)),
            link: watch::Sender::new(link),
            backoff: Backoff::default(),
            processes: TaskTracker::new(),
            waiters: Vec::new(),
            connections: 0,
            is_used: false,
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
                Phase::Retry(at) => self.wait_for_retry(at).await,
                Phase::End => break,
            };
        }
        self.link.send_replace(Link::Closed(self.ended()));
        self.wait_for_processes().await;
        if self.state.borrow().status != Status::Disabled {
            self.publish(|state| clear(state, Status::Stopped));
        }
    }

    /// Nothing is running; waits for a request.
    async fn idle(&mut self) -> Phase {
        loop {
            let request = tokio::select! {
                () = self.stop.cancelled() => return Phase::End,
                request = self.requests.recv() => request,
                change = self.environment.changed(&self.definition), if self.has_failed() => {
                    match self.start_again(&change) {
                        Some(phase) => return phase,
                        None => continue,
                    }
                }
            };
            let Some(request) = request else { return Phase::End };
            if let Some(phase) = self.handle(request).await {
                return phase;
            }
        }
    }

    /// Waits for the next retry of a failed server.
    async fn wait_for_retry(&mut self, at: Instant) -> Phase {
        loop {
            let request = tokio::select! {
                () = self.stop.cancelled() => return Phase::End,
                () = sleep_until(at) => {
                    self.publish(|state| state.restarts += 1);
                    return Phase::Start;
                }
                request = self.requests.recv() => request,
            };
            let Some(request) = request else { return Phase::End };
            if let Some(phase) = self.handle(request).await {
                return phase;
            }
        }
    }

    /// Makes one attempt, which a request may interrupt.
    async fn start(&mut self) -> Phase {
        self.link.send_replace(Link::Connecting);
        self.publish(|state| state.status = Status::Pending(PendingReason::Starting));
        // The previous process must have ended: a server never runs twice.
        self.wait_for_processes().await;
        let requested = CancellationToken::new();
        if !self.waiters.is_empty() || std::mem::take(&mut self.is_used) {
            requested.cancel();
        }
        let (updates, mut received_updates) = mpsc::channel(8);
        let attempt = Attempt {
            definition: self.definition.clone(),
            environment: self.environment.take(&self.definition),
            context: self.context.clone(),
            auth: self.auth.clone(),
            settings: self.context.settings.borrow().clone(),
            logs: self.logs.clone(),
            tracker: self.processes.clone(),
            updates,
            era: self.context.cache.recall(&self.definition).era,
            requested: requested.clone(),
        };
        let mut attempt = Box::pin(attempt.run());
        let done = loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return Phase::End,
                request = self.requests.recv() => match request {
                    None => return Phase::End,
                    Some(ActorRequest::Start(done) | ActorRequest::Refresh(done)) => {
                        self.waiters.push(done);
                        requested.cancel();
                    }
                    Some(ActorRequest::CompareEnvironment(done)) => drop(done),
                    Some(ActorRequest::Use) => requested.cancel(),
                    Some(ActorRequest::SignIn) => {}
                    Some(request) => {
                        // The attempt must end before anything else starts.
                        drop(attempt);
                        return self.handle(request).await.unwrap_or(Phase::Idle);
                    }
                },
                Some(update) = received_updates.recv() => self.publish(|state| match update {
                    AttemptUpdate::Asking => state.status = Status::Pending(PendingReason::Input),
                    AttemptUpdate::Starting => state.status = Status::Pending(PendingReason::Starting),
                    AttemptUpdate::Running(pid, since) => (state.pid, state.started_at) = (Some(pid), Some(since)),
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

    /// Handles a request while there is no connection. Returns `None` if the phase does not change.
    async fn handle(&mut self, request: ActorRequest) -> Option<Phase> {
        match request {
            ActorRequest::Start(done) | ActorRequest::Restart(done)
                if self.state.borrow().status == Status::Disabled =>
            {
                done.send(()).ok();
                None
            }
            ActorRequest::Start(done) | ActorRequest::Restart(done) => {
                self.waiters.push(done);
                self.backoff.reset();
                Some(Phase::Start)
            }
            ActorRequest::Stop(done) => {
                if self.state.borrow().status != Status::Disabled {
                    self.link.send_replace(Link::Closed(self.stopped()));
                    self.wait_for_processes().await;
                    self.publish(|state| clear(state, Status::Stopped));
                }
                done.send(()).ok();
                Some(Phase::Idle)
            }
            ActorRequest::Use => {
                self.is_used = matches!(*self.link.borrow(), Link::Asleep);
                self.is_used.then_some(Phase::Start)
            }
            ActorRequest::CompareEnvironment(done) => {
                let phase = match self.has_failed() {
                    true => {
                        let change = self.environment.compare(&self.definition).await;
                        self.start_again(&change)
                    }
                    false => None,
                };
                done.send(()).ok();
                phase
            }
            // It reads its lists when it starts.
            ActorRequest::Refresh(_) | ActorRequest::SignIn => None,
        }
    }

    /// Publishes a failure and chooses the next phase.
    fn fail(&mut self, failure: &Failure) -> Phase {
        let settings = self.context.settings.borrow().clone();
        self.link.send_replace(Link::Closed(failure.error(&self.definition.name)));
        self.logs.push(LogSource::Sidecar, "error", &failure.message);
        let wait = match failure.next {
            Next::GiveUp | Next::SignIn => None,
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
        if status == Status::Failed && failure.next != Next::GiveUp && self.backoff.failures() > 1 {
            let failures = self.backoff.failures();
            shown.message.push_str(&format!(" (failed {failures} times in a row; restart the server to try again)"));
        }
        tracing::warn!(server = %name, status = status.as_str(), error = %crate::text::one_line(&failure.message, 200), "not connected");
        self.publish(|state| {
            clear(state, status);
            state.error = Some(shown.shown());
        });
        at.map_or(Phase::Idle, Phase::Retry)
    }

    /// Publishes a new state, and notifies those who wait for it to settle.
    fn publish(&mut self, change: impl FnOnce(&mut ServerState)) {
        let mut state = ServerState::clone(&self.state.borrow());
        change(&mut state);
        let settled = state.status.settled();
        self.state.send_replace(Arc::new(state));
        if settled {
            for waiter in self.waiters.drain(..) {
                waiter.send(()).ok();
            }
        }
    }

    /// Sends one event to the hub; drops it if the hub is too busy.
    fn send_event(&self, event: Event) {
        self.context.events.try_send((self.definition.name.clone(), self.generation, event)).ok();
    }

    /// Starts a failed server with another environment, if that may be why it failed.
    fn start_again(&mut self, change: &EnvironmentChange) -> Option<Phase> {
        if change.names.is_empty() {
            return None;
        }
        let message = format!("the environment has changed ({}); starting again", change.names.join(", "));
        self.logs.push(LogSource::Sidecar, "info", &message);
        self.backoff.reset();
        self.link.send_replace(Link::Connecting);
        self.publish(|state| clear(state, Status::Pending(PendingReason::Starting)));
        Some(Phase::Start)
    }

    fn has_failed(&self) -> bool {
        self.state.borrow().status == Status::Failed
    }

    async fn wait_for_processes(&self) {
        self.processes.close();
        self.processes.wait().await;
        self.processes.reopen();
    }

    fn stopped(&self) -> Error {
        let message = "the server is stopped; start it first".to_owned();
        Error::Connection { server: self.definition.name.clone(), message }
    }

    /// For a server that cannot be started again: another one has replaced it, or none.
    fn ended(&self) -> Error {
        let message = "its entry in the config was removed or changed; a call that was running may have been executed";
        Error::Connection { server: self.definition.name.clone(), message: message.to_owned() }
    }

    async fn watch_sources(&self) -> Option<SourceWatcher> {
        let dev = self.definition.spec.dev.clone()?;
        let file_folder = || self.definition.file.as_deref().and_then(|file| file.parent());
        let folder = self.definition.folder.as_deref().or_else(file_folder)?.to_owned();
        // Watching a large tree takes a while.
        let watching = tokio::task::spawn_blocking(move || SourceWatcher::watch(&dev, &folder)).await.ok()?;
        watching.inspect_err(|error| self.logs.push(LogSource::Sidecar, "warning", error)).ok()
    }

    fn remember(&self, era: super::transport::Era) {
        let cached = CachedServer { era: Some(era), tools: self.state.borrow().tools.clone() };
        self.context.cache.remember(&self.definition, cached);
    }
}

pub(super) fn disabled(definition: &Definition) -> Error {
    Error::Disabled { server: definition.name.clone(), in_file: true }
}

/// Clears what belongs to the running server. A server that retries keeps its lists, so that its tools do not disappear
/// in between.
fn clear(state: &mut ServerState, status: Status) {
    state.status = status;
    state.error = None;
    state.pid = None;
    state.started_at = None;
    state.latency = None;
    state.changed_variables.clear();
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
