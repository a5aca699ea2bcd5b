//! An open connection to one MCP server, for every transport and era.
//!
//! rmcp handles ids, handshake and subscriptions; results bypass it as the original text. Starting, retrying and
//! stopping servers is the actor's job.

mod answer;
mod direct;
mod exchange;
mod handshake;
mod lists;
mod request;
mod subscription;
mod tasks;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, DiscoverRequest, DiscoverRequestParams, PingRequest,
    RequestMetaObject,
};
use rmcp::service::{Peer, RunningService};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::client::{Client, Questions};
use super::host::Host;
pub use super::transport::ledger::Sent;
use super::transport::ledger::{Ledger, Slot};
use crate::model::{CallResult, Error, PeerInfo, RawJson, Result, ServerName, ToolCall};
use crate::policy::permit::Permitted;
use crate::settings::Limits;
use answer::{Answer, Input};
use direct::DirectCalls;
use exchange::RequestLimits;
use subscription::Subscription;
use tasks::{Form, Task};

pub use super::transport::{Era, ListKind, OpenError, Progress, Remote, ServerNotice, Wire};
pub use lists::{Listing, Lists, conform, tools_from};
pub use request::Request;

/// How often a server may ask for input before it answers a request.
const INPUT_ROUNDS: usize = 10;
/// How long closing may take before the connection is dropped.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

/// What is needed to open a connection.
pub struct ConnectionOptions {
    pub name: ServerName,
    pub limits: Arc<Limits>,
    pub host: Arc<dyn Host>,
    /// The cached era of this definition. It is tried first, then the other one.
    pub era: Option<Era>,
    /// Covers the whole handshake.
    pub startup_timeout: Duration,
    /// The timeout of later requests without their own limit: lists, log level.
    pub timeout: Duration,
    /// The log level to request; empty for the server's default.
    pub log_level: String,
    pub notices: mpsc::Sender<ServerNotice>,
}

/// An open connection. Clones share it; dropping the last one closes it.
#[derive(Clone)]
pub struct Connection(Arc<Inner>);

struct Inner {
    name: ServerName,
    limits: Arc<Limits>,
    timeout: Duration,
    era: Era,
    info: Arc<PeerInfo>,
    peer: Peer<RoleClient>,
    ledger: Ledger,
    /// For calls on a stream of lines.
    direct: Option<DirectCalls>,
    questions: Questions,
    /// The memory used by its lists.
    budget: lists::ListBudget,
    /// Metadata of every request in the newer era.
    meta: Option<RequestMetaObject>,
    /// Taken on close. Locked for that move only.
    service: Mutex<Option<RunningService<RoleClient, Client>>>,
    subscription: Option<Subscription>,
    level_task: Mutex<Option<AbortOnDropHandle<()>>>,
}

/// The limits of a call, and where its progress goes.
#[derive(Debug, Default)]
pub struct CallOptions {
    /// The call times out after this time without a response or progress.
    pub timeout: Duration,
    /// The upper limit if there is progress.
    pub max_timeout: Duration,
    pub progress: Option<mpsc::Sender<Progress>>,
    /// Set once the request is sent.
    pub sent: Sent,
    /// The only connection that the call may be sent on.
    pub connection: Option<u64>,
    /// The server runs the tool only as a task (`execution.taskSupport`).
    pub as_task: bool,
}

impl Connection {
    /// Performs the handshake: in the cached era, or `initialize` first and `server/discover` if that is refused.
    pub async fn open(wire: Wire, options: ConnectionOptions) -> Result<Self, OpenError> {
        handshake::open(wire, options).await
    }

    pub fn peer(&self) -> Arc<PeerInfo> {
        self.0.info.clone()
    }

    pub fn era(&self) -> Era {
        self.0.era
    }

    /// All pages of all lists, requested concurrently. Those that are not complete by then are left out.
    pub async fn lists(&self, until: Instant) -> Result<Lists> {
        lists::all(self, until).await
    }

    /// Reloads one list.
    pub async fn list(&self, listed: ListKind) -> Result<Listing> {
        lists::one(self, listed).await
    }

    /// Makes a call. Dropping the future cancels it at the server. What few calls need is boxed, because the future of
    /// each call has room for everything else, and is moved several times.
    pub async fn call(&self, call: &Permitted, options: CallOptions) -> Result<CallResult> {
        let call = call.call();
        if let Some(request) = Request::of(call) {
            let _running = self.0.questions.call(&call.id);
            let raw = Box::pin(self.send(request, options.timeout, Some((call, options.sent)))).await?;
            return Ok(CallResult { raw, is_error: false });
        }
        let what = format!("`{}`", call.tool.tool);
        let since = Instant::now();
        let limits = RequestLimits { idle: options.timeout, total: options.max_timeout, since, setting: "timeout" };
        let _running = self.0.questions.call(&call.id);
        let name = call.tool.tool.to_string();
        let mut input = Input::default();
        let is_task = options.as_task && self.0.era == Era::Initialize;
        for _ in 0..INPUT_ROUNDS {
            let mut params = CallToolRequestParams::new(name.clone());
            params.arguments = Some(call.arguments.as_ref().clone());
            params.input_responses = input.responses.take();
            params.request_state = input.state.take();
            let keep = is_task.then_some(options.max_timeout);
            let request = match (keep, call.unknown_fields.is_empty()) {
                (None, true) => ClientRequest::CallToolRequest(CallToolRequest::new(params)),
                (keep, _) => request::custom_call(&params, keep, &call.unknown_fields),
            };
            let raw = match self.exchange_call(request, &what, &limits, call, &options).await {
                Ok(raw) => raw,
                Err(failure) => return Err(Box::pin(self.show_required_pages(failure, &call.id)).await),
            };
            let task = match is_task {
                true => Task::created(&raw).map(|task| (task, Form::Core)),
                false => None,
            };
            let answer = match task {
                None => Answer::of(raw),
                Some((task, form)) => {
                    Answer::of(Box::pin(self.follow_task(task, form, &what, &call.id, &limits, &options)).await?)
                }
            };
            let answer = match answer {
                Answer::Task(raw) => {
                    let unclear = || self.protocol(format!("cannot parse the task of {what}"));
                    let task = Task::of(&raw).ok_or_else(unclear)?;
                    let end =
                        Box::pin(self.follow_task(task, Form::Extension, &what, &call.id, &limits, &options)).await?;
                    Answer::of(end)
                }
                answer => answer,
            };
            match answer {
                Answer::Complete { raw, is_error, content } => {
                    return Ok(CallResult { raw: answer::with_content(raw, content), is_error });
                }
                Answer::Task(_) => return Err(self.protocol(format!("the task of {what} ended with another task"))),
                Answer::NeedsInput(needed) => input = Box::pin(needed.ask(&self.0.questions, Some(&call.id))).await,
                Answer::Other(kind) => {
                    return Err(self.protocol(format!(
                        "unsupported response to {what}: expected a complete result, found `{kind}`"
                    )));
                }
            }
        }
        Err(self.protocol(format!("{what} was cancelled: the server asked for input more than {INPUT_ROUNDS} times")))
    }

    /// Sends a request that needs no permission.
    pub async fn request(&self, request: Request, timeout: Duration) -> Result<RawJson> {
        self.send(request, timeout, None).await
    }

    /// Sends a request other than a tool call; returns the result as it was sent.
    async fn send(&self, request: Request, timeout: Duration, call: Option<(&ToolCall, Sent)>) -> Result<RawJson> {
        let limits = RequestLimits { idle: timeout, total: timeout, since: Instant::now(), setting: "timeout" };
        if let (Request::Subscribe { uri } | Request::Unsubscribe { uri }, Some(subscription)) =
            (&request, &self.0.subscription)
        {
            subscription.watch(uri, matches!(request, Request::Subscribe { .. }));
            return Ok(answer::empty());
        }
        let what = &*format!("`{}`", request.method());
        let slot = || match &call {
            Some((call, sent)) => Slot::for_call(None, &call.id, sent.clone()),
            None => Slot::new(None),
        };
        let id = call.as_ref().map(|(call, _)| &call.id);
        let meta = call.as_ref().map(|(call, _)| call.meta.clone()).unwrap_or_default();
        let mut input = Input::default();
        for _ in 0..INPUT_ROUNDS {
            let answer = self.exchange_with(request.to_message(&mut input), what, &limits, slot(), &meta).await;
            let raw = answer.map_err(|failure| match &request {
                Request::ReadResource { .. } => self.resource_error(failure),
                _ => self.to_error(failure),
            })?;
            match Answer::of(raw) {
                Answer::Complete { raw, .. } => return Ok(raw),
                Answer::NeedsInput(needed) => input = needed.ask(&self.0.questions, id).await,
                Answer::Task(_) => return Err(self.protocol(format!("unsupported response to {what}: a task"))),
                Answer::Other(kind) => {
                    return Err(self.protocol(format!(
                        "unsupported response to {what}: expected a complete result, found `{kind}`"
                    )));
                }
            }
        }
        Err(self.protocol(format!("{what} was cancelled: the server asked for input more than {INPUT_ROUNDS} times")))
    }

    /// Returns how long the server takes to answer a ping.
    pub async fn ping(&self, timeout: Duration) -> Result<Duration> {
        let started = Instant::now();
        let request = match self.0.era {
            Era::Initialize => ClientRequest::PingRequest(PingRequest::default()),
            // The newer era has no ping; this is the cheapest request that every server answers.
            Era::Discover => ClientRequest::DiscoverRequest(DiscoverRequest::new(DiscoverRequestParams {})),
        };
        let limits = RequestLimits { idle: timeout, total: timeout, since: started, setting: "servers.ping-interval" };
        match self.ask(request, "a ping", &limits, None).await {
            // A server that rejects `ping` is alive, too.
            Ok(_) | Err(Error::Protocol { .. }) => Ok(started.elapsed()),
            Err(error) => Err(error),
        }
    }

    /// Waits until the connection closes and returns the reason.
    pub async fn closed(&self) -> String {
        self.0.ledger.closed().await
    }

    /// Whether the server waits for an answer of the user.
    pub fn is_asking(&self) -> bool {
        self.0.questions.is_asking()
    }

    /// Lines that were not messages, so far.
    pub fn skipped(&self) -> u64 {
        self.0.ledger.skipped().0
    }

    /// Closes the connection: pending messages are sent, then the server's input ends.
    pub async fn close(&self) {
        let service = self.0.service.lock().ok().and_then(|mut service| service.take());
        if let Some(mut service) = service
            && let Ok(None) | Err(_) = service.close_with_timeout(CLOSE_TIMEOUT).await
        {
            tracing::debug!(server = %self.0.name, "did not close cleanly");
        }
        self.0.ledger.close("the connection was closed");
    }

    /// Notifies the server that the workspace folders have changed.
    pub async fn roots_changed(&self) {
        if self.0.era == Era::Initialize && self.0.peer.notify_roots_list_changed().await.is_err() {
            tracing::debug!(server = %self.0.name, "cannot send the new roots");
        }
    }

    fn protocol(&self, message: String) -> Error {
        Error::Protocol { server: self.0.name.clone(), message }
    }
}
