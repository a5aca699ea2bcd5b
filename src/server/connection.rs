//! A live connection to one MCP server, whatever the wire and the era: ask, call, list, and hear how it ended.
//!
//! rmcp keeps the conversation (ids, handshake, subscriptions); answers pass by it as the text that was sent. Starting,
//! retrying and stopping servers is left to the actor.

mod answer;
mod exchange;
mod handshake;
mod lists;
mod request;
mod subscription;
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
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::client::{Client, Questions};
use super::host::Host;
pub use super::transport::ledger::Sent;
use super::transport::ledger::{Ledger, Slot};
use crate::model::{CallResult, Error, PeerInfo, Result, ServerName};
use crate::policy::permit::Permitted;
use crate::settings::Limits;
use answer::{Answer, Input};
use exchange::RequestLimits;
use subscription::Subscription;

pub use super::transport::{Era, Listed, OpenError, Progress, Remote, ServerNotice, Wire};
pub use lists::{Listing, Lists, tools_from};
pub use request::Request;

/// How often a server may ask for more before it answers a request.
const INPUT_ROUNDS: usize = 10;
/// How long closing may take before the connection is simply dropped.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

/// What a connection needs to begin.
pub struct ConnectionOptions {
    pub name: ServerName,
    pub limits: Arc<Limits>,
    pub host: Arc<dyn Host>,
    /// What was found out about this definition before. It is tried first, the other one where it is refused.
    pub era: Option<Era>,
    /// Covers the whole handshake.
    pub startup_timeout: Duration,
    /// For what is asked later without a limit of its own: lists, levels.
    pub timeout: Duration,
    /// The log level asked of the server; empty for whatever it sends by itself.
    pub log_level: String,
    pub notices: mpsc::Sender<ServerNotice>,
}

/// A live connection. Clones share it; the last one gone closes it.
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
    questions: Questions,
    /// What its lists take.
    budget: lists::ListBudget,
    /// What every request carries in the newer era.
    meta: Option<RequestMetaObject>,
    /// Taken by whoever closes. Held for that move only.
    service: Mutex<Option<RunningService<RoleClient, Client>>>,
    subscription: Option<Subscription>,
    level_task: Mutex<Option<AbortOnDropHandle<()>>>,
}

/// How long a call may take, and who hears how far it is.
#[derive(Debug, Default)]
pub struct CallOptions {
    /// Without an answer or progress for this long, the call is given up.
    pub timeout: Duration,
    /// With progress, it may take this long.
    pub max_timeout: Duration,
    pub progress: Option<mpsc::Sender<Progress>>,
    /// Set once the request is on its way.
    pub sent: Sent,
}

impl Connection {
    /// Shakes hands: in the era that is known, default `initialize` first and `server/discover` where it is refused.
    pub async fn open(wire: Wire, options: ConnectionOptions) -> Result<Self, OpenError> {
        handshake::open(wire, options).await
    }

    pub fn peer(&self) -> Arc<PeerInfo> {
        self.0.info.clone()
    }

    pub fn era(&self) -> Era {
        self.0.era
    }

    /// Everything that the server offers, all pages, asked for at the same time.
    pub async fn lists(&self) -> Result<Lists> {
        lists::all(self).await
    }

    /// One list anew.
    pub async fn list(&self, listed: Listed) -> Result<Listing> {
        lists::one(self, listed).await
    }

    /// Runs a tool. Dropping the future tells the server to stop.
    pub async fn call(&self, call: &Permitted, options: CallOptions) -> Result<CallResult> {
        let call = call.call();
        let what = format!("`{}`", call.tool.tool);
        let limits = RequestLimits { idle: options.timeout, total: options.max_timeout, setting: "timeout" };
        let _running = self.0.questions.call(&call.id);
        let name = call.tool.tool.to_string();
        let mut input = Input::default();
        for _ in 0..INPUT_ROUNDS {
            let mut params = CallToolRequestParams::new(name.clone());
            params.arguments = Some(call.arguments.as_ref().clone());
            params.input_responses = input.responses.take();
            params.request_state = input.state.take();
            let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
            let slot = Slot::for_call(options.progress.clone(), &call.id, options.sent.clone());
            let raw = match self.exchange(request, &what, &limits, slot).await {
                Ok(raw) => raw,
                Err(failure) => return Err(self.show_required_pages(failure, &call.id).await),
            };
            match Answer::of(raw) {
                Answer::Complete { raw, is_error, content } => {
                    return Ok(CallResult { raw: answer::with_content(raw, content), is_error });
                }
                Answer::NeedsInput(needed) => input = needed.ask(&self.0.questions, Some(&call.id)).await,
                Answer::Other(kind) => {
                    return Err(self.protocol(format!("answered {what} with a `{kind}`, which is not supported")));
                }
            }
        }
        Err(self.protocol(format!("asked for input more than {INPUT_ROUNDS} times during {what}")))
    }

    /// Asks for something else; the result as it was sent.
    pub async fn request(&self, request: Request, timeout: Duration) -> Result<Arc<RawValue>> {
        let limits = RequestLimits { idle: timeout, total: timeout, setting: "timeout" };
        if let (Request::Subscribe { uri } | Request::Unsubscribe { uri }, Some(subscription)) =
            (&request, &self.0.subscription)
        {
            subscription.watch(uri, matches!(request, Request::Subscribe { .. }));
            return Ok(answer::empty());
        }
        let what = request.method();
        let mut input = Input::default();
        for _ in 0..INPUT_ROUNDS {
            let answer = self.exchange(request.to_message(&mut input), what, &limits, Slot::new(None)).await;
            let raw = answer.map_err(|failure| match &request {
                Request::ReadResource { .. } => self.resource_error(failure),
                _ => self.to_error(failure),
            })?;
            match Answer::of(raw) {
                Answer::Complete { raw, .. } => return Ok(raw),
                Answer::NeedsInput(needed) => input = needed.ask(&self.0.questions, None).await,
                Answer::Other(kind) => {
                    return Err(self.protocol(format!("answered {what} with a `{kind}`, which is not supported")));
                }
            }
        }
        Err(self.protocol(format!("asked for input more than {INPUT_ROUNDS} times during {what}")))
    }

    /// How long the server takes to say that it is there.
    pub async fn ping(&self, timeout: Duration) -> Result<Duration> {
        let started = Instant::now();
        let request = match self.0.era {
            Era::Initialize => ClientRequest::PingRequest(PingRequest::default()),
            // The newer era has no ping; this is the cheapest question that every server answers.
            Era::Discover => ClientRequest::DiscoverRequest(DiscoverRequest::new(DiscoverRequestParams {})),
        };
        let limits = RequestLimits { idle: timeout, total: timeout, setting: "servers.ping-interval" };
        match self.ask(request, "a ping", &limits, None).await {
            // A server that does not know `ping` has shown that it lives.
            Ok(_) | Err(Error::Protocol { .. }) => Ok(started.elapsed()),
            Err(error) => Err(error),
        }
    }

    /// Ends when the connection has, and says why.
    pub async fn closed(&self) -> String {
        self.0.ledger.closed().await
    }

    /// LineTransport that were no messages so far.
    pub fn skipped(&self) -> u64 {
        self.0.ledger.skipped().0
    }

    /// Says goodbye: last messages go out, then the server sees the end of its input.
    pub async fn close(&self) {
        let service = self.0.service.lock().ok().and_then(|mut service| service.take());
        if let Some(mut service) = service
            && let Ok(None) | Err(_) = service.close_with_timeout(CLOSE_TIMEOUT).await
        {
            tracing::debug!(server = %self.0.name, "did not close cleanly");
        }
        self.0.ledger.close("the connection was closed");
    }

    /// Tells the server that the workspace folders are others now.
    pub async fn roots_changed(&self) {
        if self.0.era == Era::Initialize && self.0.peer.notify_roots_list_changed().await.is_err() {
            tracing::debug!(server = %self.0.name, "could not be told about the new roots");
        }
    }

    fn protocol(&self, message: String) -> Error {
        Error::Protocol { server: self.0.name.clone(), message }
    }
}
