//! The handle to one MCP server. Its actor owns all of its state; the holder of a [`Server`] sends the actor requests,
//! reads the latest state, or calls tools directly through the open connection.

mod activity;
mod actor;
pub(crate) mod backoff;
pub(crate) mod cache;
pub(crate) mod client;
pub mod connection;
pub(crate) mod connector;
pub mod extensions;
pub mod guardian;
mod heavy;
pub mod host;
pub(crate) mod logs;
pub mod oauth;
pub mod process;
mod shared;
mod start_queue;
pub mod transport;
mod values;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::config::spec::Input;
use crate::config::{Definition, Environment};
use crate::model::{
    CallId, CallKind, CallResult, Error, LogLine, Result, ServerName, ServerState, Status, Subject, UnknownNotification,
};
use crate::policy::permit::Permitted;
use crate::policy::trust::Trusted;
use crate::settings::Settings;
use activity::Activity;
use actor::{Actor, ActorRequest, AutoStart, Link};
use cache::{MemoryCache, ServerCache};
use connection::{CallOptions, Connection, Request};
use connector::{Connector, DefaultConnector};
pub(crate) use heavy::heavy;
use host::Host;
use logs::Logs;
use oauth::{OpenPage, ServerAuth};
use shared::Lease;
pub use shared::SharedServers;
pub use start_queue::StartQueue;
pub use values::Resolver;

/// Requests that may wait for the actor.
const REQUEST_QUEUE: usize = 64;
/// How long a call whose connection broke waits for the actor to find the reason.
const EXIT_REASON_WAIT: Duration = Duration::from_millis(500);
/// How long a server may take to settle, in addition to its startup timeout.
const SETTLE_MARGIN: Duration = Duration::from_secs(10);

/// What a server reports to the hub. `State` is always the complete state, so a skipped one does no harm.
#[derive(Debug, Clone)]
pub enum Event {
    State(Arc<ServerState>),
    Log {
        line: LogLine,
        /// The calls that it may be about.
        calls: Vec<CallId>,
    },
    /// A subscribed resource has changed.
    ResourceUpdated {
        uri: String,
    },
    /// The server sent a notification that we do not know.
    Notification {
        notification: Arc<UnknownNotification>,
        /// As for a log line.
        calls: Vec<CallId>,
    },
}

/// What a user can do with a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Start,
    Stop,
    Restart,
    /// Ask for the lists again.
    Refresh,
}

/// What all servers of an engine share.
#[derive(Clone)]
pub struct Context {
    pub settings: watch::Receiver<Arc<Settings>>,
    pub host: Arc<dyn Host>,
    pub events: mpsc::Sender<(ServerName, u64, Event)>,
    /// What `${input:…}` may refer to.
    pub inputs: Arc<Vec<Input>>,
    pub cache: Arc<dyn ServerCache>,
    pub connector: Arc<dyn Connector>,
    pub start_queue: Arc<StartQueue>,
    /// Starts every server on first use, as if its definition had `autoStart: false`.
    pub on_demand: bool,
}

impl Context {
    /// A context without inputs, whose cache lasts as long as this process.
    pub fn new(
        settings: watch::Receiver<Arc<Settings>>,
        host: Arc<dyn Host>,
        events: mpsc::Sender<(ServerName, u64, Event)>,
    ) -> Self {
        let cache = Arc::new(MemoryCache::default());
        Self {
            settings,
            host,
            events,
            inputs: Arc::default(),
            cache,
            connector: Arc::new(DefaultConnector),
            start_queue: Arc::default(),
            on_demand: false,
        }
    }

    /// Resolves the references of a definition, with the environment that it starts with.
    pub fn resolver<'a>(&'a self, definition: &'a Definition, environment: Environment) -> Resolver<'a> {
        Resolver { definition, inputs: &self.inputs, host: &*self.host, environment }
    }

    /// The same with the environment that it would start with now.
    pub fn resolver_now<'a>(&'a self, definition: &'a Definition) -> Resolver<'a> {
        let environments = self.host.environments().borrow().clone();
        self.resolver(definition, environments.of(definition))
    }
}

/// A handle to one server, with a lease if workspaces share it. The server stops when the last one is dropped.
#[derive(Clone)]
pub struct Server(Arc<Inner>, Option<Arc<Lease>>);

struct Inner {
    trusted: Trusted,
    context: Context,
    auth: ServerAuth,
    logs: Logs,
    activity: Arc<Activity>,
    requests: mpsc::Sender<ActorRequest>,
    state: watch::Receiver<Arc<ServerState>>,
    link: watch::Receiver<Link>,
    stop: CancellationToken,
    _stop_when_dropped: DropGuard,
    /// Cancelled when the actor and all of its processes have ended.
    ended: CancellationToken,
}

/// Whether the editor starts this server itself. A second process of it then starts only when an agent uses it.
fn is_left_to_editor(definition: &Definition, context: &Context) -> bool {
    let settings = context.settings.borrow();
    let file = definition.file.as_deref();
    file.is_some_and(|file| settings.editor.own_files.iter().any(|own| file.ends_with(own)))
}

impl Server {
    /// Creates a server and starts it immediately, unless it is lazy or disabled. Every event carries `generation`, so
    /// that events of a replaced server are not attributed to its successor.
    pub fn spawn(trusted: Trusted, generation: u64, context: Context) -> Self {
        let auto_start = match AutoStart::of(trusted.definition()) {
            AutoStart::Now if context.on_demand || is_left_to_editor(trusted.definition(), &context) => {
                AutoStart::OnFirstUse
            }
            auto_start => auto_start,
        };
        Self::create(trusted, generation, context, auto_start)
    }

    /// Starts a definition once, even a lazy or disabled one, returns the outcome, and stops it again.
    pub async fn trial(trusted: Trusted, context: Context) -> Arc<ServerState> {
        let mut settings = Settings::clone(&context.settings.borrow());
        settings.servers.attempts = 1;
        // Only the caller sees the outcome, so its events are dropped.
        let (events, _) = mpsc::channel(1);
        let (_settings, only) = watch::channel(Arc::new(settings));
        let context = Context { settings: only, events, ..context };
        let server = Self::create(trusted, 0, context, AutoStart::Now);
        let mut state = server.0.state.clone();
        let outcome = state.wait_for(|state| !matches!(state.status, Status::Pending(_))).await;
        let outcome = outcome.map_or_else(|_| server.state(), |state| state.clone());
        server.shutdown().await;
        outcome
    }

    fn create(trusted: Trusted, generation: u64, context: Context, auto_start: AutoStart) -> Self {
        let name = trusted.definition().name.clone();
        let limit = context.settings.borrow().limits.stderr_bytes;
        let logs = Logs::new(name.clone(), generation, limit, context.events.clone());
        let activity = Arc::new(Activity::default());
        let auth = ServerAuth::new(context.host.tokens());
        let (requests, received) = mpsc::channel(REQUEST_QUEUE);
        let stop = CancellationToken::new();
        let ended = CancellationToken::new();
        let actor = Actor::new(
            &trusted,
            auto_start,
            context.clone(),
            auth.clone(),
            generation,
            logs.clone(),
            activity.clone(),
            received,
            stop.clone(),
        );
        let (state, link) = (actor.state.subscribe(), actor.link.subscribe());
        tokio::spawn(report(state.clone(), name, generation, context.events.clone()));
        let over = ended.clone().drop_guard();
        tokio::spawn(async move {
            actor.run().await;
            drop(over);
        });
        let _stop_when_dropped = stop.clone().drop_guard();
        let inner =
            Inner { trusted, context, auth, logs, activity, requests, state, link, stop, _stop_when_dropped, ended };
        Self(Arc::new(inner), None)
    }

    pub fn name(&self) -> &ServerName {
        &self.0.trusted.definition().name
    }

    /// The definition that this server runs.
    pub fn trusted(&self) -> &Trusted {
        &self.0.trusted
    }

    /// The latest state.
    pub fn state(&self) -> Arc<ServerState> {
        self.0.state.borrow().clone()
    }

    /// Why the server cannot be used at the moment, if so.
    pub fn unavailable(&self) -> Option<Error> {
        match &*self.0.link.borrow() {
            Link::Closed(error) => Some(error.clone()),
            Link::Asleep | Link::Connecting | Link::Open(..) => None,
        }
    }

    /// The number of the open connection. Each connection of a server has another.
    pub fn connection_number(&self) -> Option<u64> {
        match &*self.0.link.borrow() {
            Link::Open(_, number) => Some(*number),
            Link::Asleep | Link::Connecting | Link::Closed(_) => None,
        }
    }

    /// Whether it is lazy or idle. The next use starts it.
    pub fn is_asleep(&self) -> bool {
        matches!(*self.0.link.borrow(), Link::Asleep)
    }

    /// A caller waits for it, so it starts before those that start by themselves.
    pub fn hurry(&self) {
        self.0.requests.try_send(ActorRequest::Use).ok();
    }

    /// The last lines of its log, oldest first.
    pub fn logs(&self, limit: usize) -> Vec<LogLine> {
        self.0.logs.last(limit)
    }

    /// Makes a call directly through the connection, without the actor. Starts a lazy server first.
    pub async fn call(&self, call: Permitted, options: CallOptions) -> Result<CallResult> {
        let _flight = self.0.activity.begin();
        let (connection, number) = self.connection(options.timeout).await?;
        if options.connection.is_some_and(|allowed| allowed != number) {
            let message = format!("the server `{}` was restarted after the user allowed this call", self.name());
            return Err(Error::Conflict(message));
        }
        let result = self.guard(number, connection.call(&call, options)).await?;
        if call.call().kind == CallKind::Subscription {
            let uri = call.call().tool.tool.trim_start_matches(Subject::RESOURCE);
            self.0.activity.subscribed(uri);
            self.1.iter().for_each(|lease| lease.subscribed(uri));
        }
        Ok(result)
    }

    /// Ends a subscription. Everything else needs a permission.
    pub async fn unsubscribe(&self, uri: String, limit: Duration) -> Result<()> {
        if self.1.as_ref().is_some_and(|lease| !lease.unsubscribed(&uri)) {
            return Ok(());
        }
        let _flight = self.0.activity.begin();
        self.0.activity.unsubscribed(&uri);
        let (connection, number) = self.connection(limit).await?;
        self.guard(number, connection.request(Request::Unsubscribe { uri }, limit)).await.map(drop)
    }

    /// Runs the sign-in in the user's browser.
    pub async fn sign_in(&self, open: OpenPage) -> Result<()> {
        self.0.context.resolver_now(self.0.trusted.definition()).sign_in(&self.0.auth, open).await
    }

    /// Ends a sign-in with the address that the browser was sent to.
    pub fn paste_address(&self, address: &str) -> Result<()> {
        self.0.auth.paste(address)
    }

    /// Deletes its tokens. The connection stays as it is.
    pub async fn sign_out(&self) -> Result<()> {
        self.0.context.resolver_now(self.0.trusted.definition()).sign_out(&self.0.auth).await
    }

    /// Notifies the server that the workspace folders have changed.
    pub async fn roots_changed(&self) {
        let link = self.0.link.borrow().clone();
        if let Link::Open(connection, _) = link {
            connection.roots_changed().await;
        }
    }

    /// Starts the server and returns when it has settled. Does nothing if it is running.
    pub async fn start(&self) -> Result<Arc<ServerState>> {
        Ok(self.begin_action(Action::Start)?.await)
    }

    /// Stops the server and returns when its process has ended.
    pub async fn stop(&self) -> Result<Arc<ServerState>> {
        Ok(self.begin_action(Action::Stop)?.await)
    }

    /// Restarts the server, resets its backoff, and returns when it has settled.
    pub async fn restart(&self) -> Result<Arc<ServerState>> {
        Ok(self.begin_action(Action::Restart)?.await)
    }

    /// Queues an action immediately, so that actions take effect in order. The future ends when the server has settled.
    pub fn begin_action(&self, action: Action) -> Result<impl Future<Output = Arc<ServerState>> + Send + use<>> {
        let (done, settled) = oneshot::channel();
        let request = match action {
            Action::Start => ActorRequest::Start(done),
            Action::Stop => ActorRequest::Stop(done),
            Action::Restart => ActorRequest::Restart(done),
            Action::Refresh => ActorRequest::Refresh(done),
        };
        if action != Action::Stop {
            self.enabled()?;
        }
        self.0.requests.try_send(request).map_err(|error| match error {
            TrySendError::Closed(_) => self.gone(),
            TrySendError::Full(_) => Error::Connection {
                server: self.name().clone(),
                message: format!("{REQUEST_QUEUE} start and stop requests are already waiting; try again later"),
            },
        })?;
        let definition = self.0.trusted.definition();
        let startup =
            definition.spec.startup_timeout.unwrap_or(self.0.context.settings.borrow().servers.startup_timeout);
        let server = self.clone();
        Ok(async move {
            // A server that keeps retrying does not settle, so the wait is bounded.
            timeout(startup + SETTLE_MARGIN, settled).await.ok();
            server.state()
        })
    }

    /// Starts a failed server if the environment has changed. The future ends when its state says so.
    pub fn compare_environment(&self) -> impl Future<Output = ()> + Send + use<> {
        let (done, compared) = oneshot::channel();
        self.0.requests.try_send(ActorRequest::CompareEnvironment(done)).ok();
        async move { drop(compared.await) }
    }

    fn enabled(&self) -> Result<()> {
        let definition = self.0.trusted.definition();
        if definition.spec.enabled { Ok(()) } else { Err(actor::disabled(definition)) }
    }

    /// The open connection; waits while the server is connecting.
    async fn connection(&self, limit: Duration) -> Result<(Connection, u64)> {
        let mut link = self.0.link.clone();
        let connecting = async {
            loop {
                let now = link.borrow_and_update().clone();
                match now {
                    Link::Open(connection, number) => return Ok((connection, number)),
                    Link::Closed(error) => return Err(error),
                    Link::Asleep => self.0.requests.send(ActorRequest::Use).await.map_err(|_| self.gone())?,
                    Link::Connecting => self.hurry(),
                }
                link.changed().await.map_err(|_| self.gone())?;
            }
        };
        match timeout(limit, connecting).await {
            Ok(found) => found,
            Err(_) => Err(Error::Timeout {
                server: self.name().clone(),
                what: "(it was still starting)".to_owned(),
                limit,
                setting: "timeout",
            }),
        }
    }

    /// Runs one request. If the connection is lost, it ends immediately with the reason.
    async fn guard<T>(&self, number: u64, work: impl Future<Output = Result<T>>) -> Result<T> {
        let started = Instant::now();
        let result = tokio::select! {
            biased;
            result = work => result,
            error = self.lost(number) => return Err(error),
        };
        match result {
            Ok(answer) => {
                self.0.activity.record_latency(started.elapsed());
                Ok(answer)
            }
            // The connection broke; how the process ended is the better reason.
            Err(error @ Error::Connection { .. }) => match timeout(EXIT_REASON_WAIT, self.lost(number)).await {
                Ok(reason) => Err(reason),
                Err(_) => Err(error),
            },
            Err(Error::NeedsAuth(name)) => {
                self.0.requests.try_send(ActorRequest::SignIn).ok();
                Err(Error::NeedsAuth(name))
            }
            Err(error) => Err(error),
        }
    }

    /// Ends when this connection is no longer the open one, with the reason.
    async fn lost(&self, number: u64) -> Error {
        let mut link = self.0.link.clone();
        // A server does not fall asleep during a request; it only seems so for a moment: see `Actor::fall_asleep`.
        let is_other = |link: &Link| {
            !matches!(link, Link::Asleep) && !matches!(link, Link::Open(_, current) if *current == number)
        };
        let lost = link.wait_for(is_other).await;
        match lost.as_deref() {
            Ok(Link::Closed(error)) => error.clone(),
            // Restarted in between, or stopped for good.
            _ => interrupted(self.name()),
        }
    }

    fn gone(&self) -> Error {
        let message = "the server was stopped".to_owned();
        Error::Connection { server: self.name().clone(), message }
    }
}

/// The connection was lost during a request, which may have been carried out.
fn interrupted(server: &ServerName) -> Error {
    let message = "the server was stopped or restarted during the request".to_owned();
    Error::Connection { server: server.clone(), message }
}

/// Forwards the latest state to the hub. A slow hub skips intermediate states but always gets the newest.
async fn report(
    mut state: watch::Receiver<Arc<ServerState>>,
    name: ServerName,
    generation: u64,
    events: mpsc::Sender<(ServerName, u64, Event)>,
) {
    state.mark_changed();
    while state.changed().await.is_ok() {
        let picture = state.borrow_and_update().clone();
        if events.send((name.clone(), generation, Event::State(picture))).await.is_err() {
            return;
        }
    }
}
