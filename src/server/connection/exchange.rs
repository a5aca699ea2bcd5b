//! One request and its response, with timeouts and cancellation.

use std::time::Duration;

use rmcp::model::{
    CancelledNotificationParam, ClientRequest, ErrorCode, ErrorData, GetExtensions, RequestId, ServerResult,
};
use rmcp::service::{PeerRequestOptions, ServiceError};
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{Connection, Inner, OpenError, Progress};
use crate::model::{CallId, Error, RawJson, Result};
use crate::server::transport::Era;
use crate::server::transport::ledger::Slot;
use crate::text::{mask, one_line};

/// The error code of a server that requires the user to visit a page first.
const URL_ELICITATION_REQUIRED: ErrorCode = ErrorCode(-32042);

/// The timeouts of one request.
pub(super) struct RequestLimits {
    /// Without a response, progress or a log message.
    pub idle: Duration,
    /// In total, from `since` on: a call may need several requests.
    pub total: Duration,
    pub since: Instant,
    /// The setting to name when `idle` is exceeded.
    pub setting: &'static str,
}

impl Connection {
    /// Sends a request and waits for its response.
    pub(super) async fn ask(
        &self,
        request: ClientRequest,
        what: &str,
        limits: &RequestLimits,
        progress: Option<mpsc::Sender<Progress>>,
    ) -> Result<RawJson> {
        self.exchange(request, what, limits, Slot::new(progress)).await.map_err(|failure| self.to_error(failure))
    }

    /// Like `ask`, but returns the server's error unchanged. Dropping the future cancels the request at the server.
    pub(super) async fn exchange(
        &self,
        request: ClientRequest,
        what: &str,
        limits: &RequestLimits,
        slot: Slot,
    ) -> Result<RawJson, RequestFailure> {
        self.exchange_with(request, what, limits, slot, &Map::new()).await
    }

    /// The same with the metadata of the caller.
    pub(super) async fn exchange_with(
        &self,
        mut request: ClientRequest,
        what: &str,
        limits: &RequestLimits,
        slot: Slot,
        caller: &Map<String, Value>,
    ) -> Result<RawJson, RequestFailure> {
        let Inner { peer, ledger, .. } = self.0.as_ref();
        request.extensions_mut().insert(slot.clone());
        let mut options = PeerRequestOptions::no_options();
        if self.0.meta.is_some() || !caller.is_empty() {
            let mut meta = self.0.meta.clone().unwrap_or_default();
            for (key, value) in caller {
                meta.insert(key.clone(), value.clone());
            }
            options = options.with_meta(meta);
        }
        let started = Instant::now();
        let mut handle = peer.send_cancellable_request(request, options).await?;
        slot.mark_sent();
        let answer = async {
            tokio::select! {
                biased;
                answer = &mut handle.rx => answer.unwrap_or(Err(ServiceError::TransportClosed)),
                _ = ledger.closed() => Err(ServiceError::TransportClosed),
            }
        };
        let result = self.wait(answer, &handle.id, &slot, started, what, limits).await?;
        match slot.take() {
            Some(raw) => Ok(raw),
            // A transport that keeps no raw results has a typed one.
            None => typed(&result)
                .ok_or_else(|| RequestFailure::Local(self.protocol(format!("cannot parse the response to {what}")))),
        }
    }

    /// Waits for the answer to a request that was sent, within its limits.
    pub(super) async fn wait<T>(
        &self,
        answer: impl Future<Output = Result<T, ServiceError>>,
        id: &RequestId,
        slot: &Slot,
        started: Instant,
        what: &str,
        limits: &RequestLimits,
    ) -> Result<T, RequestFailure> {
        let mut abandoned = CancelOnDrop { connection: self, id: Some(id.clone()) };
        let timer = tokio::time::sleep_until(deadline(started, limits.idle).min(deadline(limits.since, limits.total)));
        tokio::pin!(answer, timer);
        let answer = loop {
            tokio::select! {
                biased;
                answer = &mut answer => break answer,
                () = &mut timer => {
                    let now = Instant::now();
                    let asked = self.0.questions.asked(slot.call().as_ref());
                    let active = [slot.last_sign(), asked.last].into_iter().flatten().fold(started, Instant::max);
                    let latest = deadline(limits.since, limits.total.saturating_add(asked.total));
                    let deadline = latest.min(deadline(active, limits.idle));
                    if deadline <= now {
                        let limit = if now < latest { limits.idle } else { limits.total };
                        // Checked before the cancellation is sent, which the server cannot have read yet.
                        let late = self.timeout_error(what, limit, limits);
                        Box::pin(abandoned.cancel()).await;
                        return Err(RequestFailure::Local(late));
                    }
                    timer.as_mut().reset(deadline);
                }
            }
        };
        abandoned.id = None;
        Ok(answer?)
    }

    fn timeout_error(&self, what: &str, limit: Duration, limits: &RequestLimits) -> Error {
        // The request was sent shortly after the clock started, so half of the time is enough.
        if let Some(unread) = self.0.ledger.unread_for(limit / 2) {
            let message = format!(
                "the server does not read its input: {unread} bytes have been waiting for {} s",
                limit.as_secs_f64()
            );
            return Error::Connection { server: self.0.name.clone(), message };
        }
        let setting = if limit > limits.idle { "servers.max-timeout" } else { limits.setting };
        Error::Timeout { server: self.0.name.clone(), what: what.to_owned(), limit, setting }
    }

    /// If the server requires the user to visit a page first, shows the page to the user.
    pub(super) async fn show_required_pages(&self, failure: RequestFailure, call: &CallId) -> Error {
        if let RequestFailure::Remote(ServiceError::McpError(error)) = &failure
            && error.code == URL_ELICITATION_REQUIRED
        {
            for page in error
                .data
                .as_ref()
                .and_then(|data| data.get("elicitations"))
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                self.0.questions.elicit(page.clone(), vec![call.clone()]).await;
            }
        }
        self.to_error(failure)
    }

    /// Why a resource could not be read; a missing resource is a separate error.
    pub(super) fn resource_error(&self, failure: RequestFailure) -> Error {
        let absent = match &failure {
            RequestFailure::Remote(ServiceError::McpError(error)) => {
                error.code == ErrorCode::RESOURCE_NOT_FOUND
                    || (error.code == ErrorCode::INVALID_PARAMS && self.0.era == Era::Discover)
            }
            _ => false,
        };
        match self.to_error(failure) {
            Error::Protocol { server, message } if absent => {
                let message = format!("server `{server}`: {message}");
                Error::Missing { server, message }
            }
            error => error,
        }
    }

    pub(super) fn to_error(&self, failure: RequestFailure) -> Error {
        let server = self.0.name.clone();
        let closed = || self.0.ledger.close_reason().unwrap_or_else(|| "the server closed the connection".to_owned());
        let error = match failure {
            RequestFailure::Local(error) => return error,
            RequestFailure::Remote(error) => error,
        };
        match error {
            ServiceError::McpError(error) => self.protocol(describe_error(&error)),
            ServiceError::TransportSend(error) => self.not_sent(OpenError::from_chain(error.error.as_ref())),
            ServiceError::Cancelled { .. } => Error::Cancelled,
            ServiceError::UnexpectedResponse => {
                self.protocol("cannot parse the response: unexpected result".to_owned())
            }
            _ => Error::Connection { server, message: closed() },
        }
    }
}

impl Connection {
    /// Why a request could not be sent.
    pub(super) fn not_sent(&self, error: OpenError) -> Error {
        let server = self.0.name.clone();
        match error {
            OpenError::NeedsAuth => Error::NeedsAuth(server),
            OpenError::Protocol { message } | OpenError::Refused { message } => Error::Protocol { server, message },
            other => Error::Connection { server, message: other.to_string() },
        }
    }
}

/// Why a request has no result.
pub(super) enum RequestFailure {
    Local(Error),
    /// The server or the transport rejected the request.
    Remote(ServiceError),
}

impl From<ServiceError> for RequestFailure {
    fn from(error: ServiceError) -> Self {
        Self::Remote(error)
    }
}

/// Cancels the request at the server when dropped with its id.
struct CancelOnDrop<'a> {
    connection: &'a Connection,
    id: Option<RequestId>,
}

impl CancelOnDrop<'_> {
    /// Cancels now, so that the cancellation is sent before anything else.
    async fn cancel(&mut self) {
        if let Some(cancel) = self.take_cancel() {
            cancel.await;
        }
    }

    fn take_cancel(&mut self) -> Option<impl Future<Output = ()> + Send + 'static> {
        let id = self.id.take()?;
        self.connection.0.ledger.forget(&id);
        let peer = self.connection.0.peer.clone();
        Some(async move {
            let reason = "the caller no longer waits for the response".to_owned();
            peer.notify_cancelled(CancelledNotificationParam::new(Some(id), Some(reason))).await.ok();
        })
    }
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if let (Some(cancel), Ok(runtime)) = (self.take_cancel(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(cancel);
        }
    }
}

fn typed(result: &ServerResult) -> Option<RawJson> {
    serde_json::value::to_raw_value(result).ok().map(RawJson::from)
}

/// A server's error, safe to show.
pub(super) fn describe_error(error: &ErrorData) -> String {
    let message = one_line(&mask(&error.message), 2_000);
    match error.code {
        URL_ELICITATION_REQUIRED => {
            let url = error.data.as_ref().and_then(|data| data.pointer("/elicitations/0/url")).and_then(Value::as_str);
            let page = url.map(|url| format!(" at {}", one_line(&mask(url), 500))).unwrap_or_default();
            format!("{message}: complete the page{page}, then try again (error -32042)")
        }
        ErrorCode(code) => match &error.data {
            None | Some(Value::Null) => format!("{message} (error {code})"),
            Some(data) => format!("{message} (error {code}): {}", one_line(&mask(&data.to_string()), 2_000)),
        },
    }
}

/// `start + wait`, bounded so that it cannot overflow.
fn deadline(start: Instant, wait: Duration) -> Instant {
    start.checked_add(wait).unwrap_or_else(|| start + Duration::from_secs(1 << 30))
}
