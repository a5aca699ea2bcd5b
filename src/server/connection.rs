//! A live connection to one MCP server, whatever the wire and the era: ask, call, list, and hear how it ended.
//!
//! rmcp keeps the conversation (ids, handshake, subscriptions); answers pass by it as the text that was sent. Starting,
//! retrying and stopping servers is left to the actor.

mod answer;
mod handshake;
mod listen;
mod lists;
mod request;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotificationParam, ClientRequest, DiscoverRequest,
    DiscoverRequestParams, ErrorCode, ErrorData, GetExtensions, PingRequest, RequestId, RequestMetaObject,
    ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, RunningService, ServiceError};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::client::{Client, Questions};
use super::host::Host;
use super::transport::ledger::{Ledger, Slot};
use crate::model::{CallResult, Error, PeerInfo, Result, ServerName};
use crate::policy::permit::Permitted;
use crate::settings::Limits;
use crate::text::{mask, one_line};
use answer::{Answer, Input};
use listen::Listening;

pub use super::transport::{Era, Happening, Listed, OpenError, Progress, Remote, Wire};
pub use lists::{Listing, Lists};
pub use request::Request;

/// How often a server may ask for more before it answers a request.
const ROUNDS: usize = 10;
/// How long closing may take before the connection is simply dropped.
const CLOSING: Duration = Duration::from_secs(3);

/// What a connection needs to begin.
pub struct Opening {
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
    pub happenings: mpsc::Sender<Happening>,
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
    /// What every request carries in the newer era.
    meta: Option<RequestMetaObject>,
    /// Taken by whoever closes. Held for that move only.
    service: Mutex<Option<RunningService<RoleClient, Client>>>,
    listening: Option<Listening>,
    levelling: Mutex<Option<AbortOnDropHandle<()>>>,
}

/// How long a call may take, and who hears how far it is.
#[derive(Debug, Default)]
pub struct CallOptions {
    /// Without an answer or progress for this long, the call is given up.
    pub timeout: Duration,
    /// With progress, it may take this long.
    pub max_timeout: Duration,
    pub progress: Option<mpsc::Sender<Progress>>,
}

/// The limits of one exchange.
struct Patience {
    idle: Duration,
    most: Duration,
    setting: &'static str,
}

impl Connection {
    /// Shakes hands: in the era that is known, otherwise `initialize` first and `server/discover` where it is refused.
    pub async fn open(wire: Wire, opening: Opening) -> Result<Self, OpenError> {
        handshake::open(wire, opening).await
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
        let patience = Patience { idle: options.timeout, most: options.max_timeout, setting: "timeout" };
        let _running = self.0.questions.call();
        let name = call.tool.tool.to_string();
        let mut input = Input::default();
        for _ in 0..ROUNDS {
            let mut params = CallToolRequestParams::new(name.clone());
            params.arguments = Some(call.arguments.as_ref().clone());
            params.input_responses = input.responses.take();
            params.request_state = input.state.take();
            let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
            let raw = self.ask(request, &what, &patience, options.progress.clone()).await?;
            match Answer::of(raw) {
                Answer::Complete { raw, is_error } => {
                    return Ok(CallResult { raw: answer::with_content(raw), is_error });
                }
                Answer::NeedsInput(needed) => input = needed.ask(&self.0.questions).await,
                Answer::Other(kind) => {
                    return Err(self.protocol(format!("answered {what} with a `{kind}`, which is not supported")));
                }
            }
        }
        Err(self.protocol(format!("asked for input more than {ROUNDS} times during {what}")))
    }

    /// Asks for something else; the result as it was sent.
    pub async fn request(&self, request: Request, timeout: Duration) -> Result<Arc<RawValue>> {
        let patience = Patience { idle: timeout, most: timeout, setting: "timeout" };
        if let (Request::Subscribe { uri } | Request::Unsubscribe { uri }, Some(listening)) =
            (&request, &self.0.listening)
        {
            listening.watch(uri, matches!(request, Request::Subscribe { .. }));
            return Ok(answer::empty());
        }
        let what = request.method();
        let mut input = Input::default();
        for _ in 0..ROUNDS {
            let raw = self.ask(request.to_message(&mut input), what, &patience, None).await?;
            match Answer::of(raw) {
                Answer::Complete { raw, .. } => return Ok(raw),
                Answer::NeedsInput(needed) => input = needed.ask(&self.0.questions).await,
                Answer::Other(kind) => {
                    return Err(self.protocol(format!("answered {what} with a `{kind}`, which is not supported")));
                }
            }
        }
        Err(self.protocol(format!("asked for input more than {ROUNDS} times during {what}")))
    }

    /// How long the server takes to say that it is there.
    pub async fn ping(&self, timeout: Duration) -> Result<Duration> {
        let started = Instant::now();
        let request = match self.0.era {
            Era::Initialize => ClientRequest::PingRequest(PingRequest::default()),
            // The newer era has no ping; this is the cheapest question that every server answers.
            Era::Discover => ClientRequest::DiscoverRequest(DiscoverRequest::new(DiscoverRequestParams {})),
        };
        let patience = Patience { idle: timeout, most: timeout, setting: "ping_interval" };
        match self.ask(request, "a ping", &patience, None).await {
            // A server that does not know `ping` has shown that it lives.
            Ok(_) | Err(Error::Protocol { .. }) => Ok(started.elapsed()),
            Err(error) => Err(error),
        }
    }

    /// Ends when the connection has, and says why.
    pub async fn closed(&self) -> String {
        self.0.ledger.closed().await
    }

    /// Lines that were no messages so far.
    pub fn skipped(&self) -> u64 {
        self.0.ledger.skipped().0
    }

    /// Says goodbye: last messages go out, then the server sees the end of its input.
    pub async fn close(&self) {
        let service = self.0.service.lock().ok().and_then(|mut service| service.take());
        if let Some(mut service) = service
            && let Ok(None) | Err(_) = service.close_with_timeout(CLOSING).await
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

    /// Sends a request and waits for its answer within the limits. Whoever stops waiting makes the server stop, too.
    async fn ask(
        &self,
        mut request: ClientRequest,
        what: &str,
        patience: &Patience,
        progress: Option<mpsc::Sender<Progress>>,
    ) -> Result<Arc<RawValue>> {
        let Inner { peer, ledger, .. } = self.0.as_ref();
        let slot = Slot::new(progress);
        request.extensions_mut().insert(slot.clone());
        let mut options = PeerRequestOptions::no_options();
        if let Some(meta) = &self.0.meta {
            options = options.with_meta(meta.clone());
        }
        let started = Instant::now();
        let mut handle = peer.send_cancellable_request(request, options).await.map_err(|error| self.failed(error))?;
        let mut abandoned = Abandoned { connection: self, id: Some(handle.id.clone()) };
        let latest = started + patience.most;
        let timer = tokio::time::sleep_until(latest.min(started + patience.idle));
        let closed = ledger.closed();
        tokio::pin!(timer, closed);
        let answer = loop {
            tokio::select! {
                biased;
                answer = &mut handle.rx => break answer.unwrap_or(Err(ServiceError::TransportClosed)),
                _ = &mut closed => break Err(ServiceError::TransportClosed),
                () = &mut timer => {
                    let now = Instant::now();
                    let heard = if self.0.questions.is_open() { now } else { slot.heard().unwrap_or(started) };
                    let deadline = latest.min(heard + patience.idle);
                    if deadline <= now {
                        abandoned.cancel().await;
                        let limit = if now < latest { patience.idle } else { patience.most };
                        return Err(self.late(what, limit, patience));
                    }
                    timer.as_mut().reset(deadline);
                }
            }
        };
        abandoned.id = None;
        let result = answer.map_err(|error| self.failed(error))?;
        match slot.take() {
            Some(raw) => Ok(raw),
            // A wire that keeps no raw answers has a typed one.
            None => {
                typed(&result).ok_or_else(|| self.protocol(format!("gave an answer to {what} that cannot be read")))
            }
        }
    }

    fn late(&self, what: &str, limit: Duration, patience: &Patience) -> Error {
        let unread = self.0.ledger.unread_bytes();
        if unread > 0 {
            let message = format!(
                "the server does not read: {unread} bytes of its input have been waiting for {} s",
                limit.as_secs_f64()
            );
            return Error::Connection { server: self.0.name.clone(), message };
        }
        let setting = if limit > patience.idle { "max_timeout" } else { patience.setting };
        Error::Timeout { server: self.0.name.clone(), what: what.to_owned(), limit, setting }
    }

    fn failed(&self, error: ServiceError) -> Error {
        let server = self.0.name.clone();
        let closed = || self.0.ledger.close_reason().unwrap_or_else(|| "the server closed the connection".to_owned());
        match error {
            ServiceError::McpError(error) => self.protocol(in_words(&error)),
            ServiceError::TransportSend(error) => match OpenError::from_chain(error.error.as_ref()) {
                OpenError::NeedsAuth { .. } => Error::NeedsAuth(server),
                OpenError::Protocol { message } | OpenError::Refused { message } => Error::Protocol { server, message },
                other => Error::Connection { server, message: other.to_string() },
            },
            ServiceError::Cancelled { .. } => Error::Cancelled,
            ServiceError::UnexpectedResponse => self.protocol("gave an answer that cannot be read".to_owned()),
            _ => Error::Connection { server, message: closed() },
        }
    }

    fn protocol(&self, message: String) -> Error {
        Error::Protocol { server: self.0.name.clone(), message }
    }
}

/// A request whose caller may go away. Dropped with its id, it tells the server that nobody waits any more.
struct Abandoned<'a> {
    connection: &'a Connection,
    id: Option<RequestId>,
}

impl Abandoned<'_> {
    /// Tells the server now, so that whatever is sent next comes after.
    async fn cancel(&mut self) {
        if let Some(cancel) = self.telling() {
            cancel.await;
        }
    }

    fn telling(&mut self) -> Option<impl Future<Output = ()> + Send + 'static> {
        let id = self.id.take()?;
        self.connection.0.ledger.forget(&id);
        let peer = self.connection.0.peer.clone();
        Some(async move {
            let reason = "nobody waits for the answer any more".to_owned();
            peer.notify_cancelled(CancelledNotificationParam::new(Some(id), Some(reason))).await.ok();
        })
    }
}

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        if let (Some(cancel), Ok(runtime)) = (self.telling(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(cancel);
        }
    }
}

fn typed(result: &ServerResult) -> Option<Arc<RawValue>> {
    serde_json::value::to_raw_value(result).ok().map(Arc::from)
}

/// An error of the server, safe to show. Codes that everybody sends for everything are left out.
fn in_words(error: &ErrorData) -> String {
    let said = one_line(&mask(&error.message), 2_000);
    match error.code {
        ErrorCode(-32042) => {
            let url = error.data.as_ref().and_then(|data| data.pointer("/elicitations/0/url")).and_then(Value::as_str);
            let page = url.map(|url| format!(" at {}", one_line(&mask(url), 500))).unwrap_or_default();
            format!("{said}: finish what it asks for{page}, then try again (error -32042)")
        }
        ErrorCode(code) => format!("{said} (error {code})"),
    }
}
