//! State between requests: the session id and the negotiated version; for servers up to 2025-11-25 also the background
//! stream for messages of the server.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{ACCEPT, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Response, StatusCode};
use rmcp::model::ProtocolVersion;

use super::super::net::{EVENT_STREAM, Events, RemoteError, Request, content_type};
use super::{HttpState, lock};

pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The delay before a stream is reopened if the server does not set one; doubled while nothing arrives.
const PAUSE: Duration = Duration::from_secs(1);
/// The shortest delay before a broken stream is resumed; doubled a few times while it carries no message.
const RESUME_PAUSE: Duration = Duration::from_millis(100);
/// How long requests wait until the server has answered the first request for a background stream. Some servers send no headers
/// before the first event.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(2);
/// The longest delay, even if the server sets a longer one.
const MAX_PAUSE: Duration = Duration::from_secs(60);

#[derive(Default)]
pub(super) struct Session {
    pub id: Option<HeaderValue>,
    pub version: Option<ProtocolVersion>,
    /// A changed id is reported only once.
    warned: bool,
}

impl Session {
    /// Whether the server uses a revision with sessions, as far as is known.
    pub fn has_sessions(&self) -> bool {
        self.version.as_ref().is_none_or(ProtocolVersion::has_initialize)
    }

    /// The headers of every request in the session.
    pub fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(id) = &self.id {
            headers.insert(SESSION_ID, id.clone());
        }
        if let Some(version) = self.version.as_ref().and_then(|version| HeaderValue::from_str(version.as_str()).ok()) {
            headers.insert(VERSION, version);
        }
        headers
    }

    /// Reads the session id of a response. The first one is kept; a different one is reported and ignored.
    pub fn note(&mut self, answer: &Response, handshake: bool) {
        let Some(id) = answer.headers().get(SESSION_ID) else { return };
        match &self.id {
            None if handshake => {
                let mut id = id.clone();
                id.set_sensitive(true);
                self.id = Some(id);
            }
            Some(kept) if kept != id && !self.warned => {
                self.warned = true;
                tracing::warn!("the server changed its session id; the first one is kept");
            }
            _ => {}
        }
    }
}

/// The delay before a stream is reopened.
pub(super) fn pause(retry: Option<u64>, failures: u32) -> Duration {
    let pause = match retry {
        Some(milliseconds) => Duration::from_millis(milliseconds),
        None => PAUSE.saturating_mul(1 << failures.min(6)),
    };
    pause.min(MAX_PAUSE)
}

/// The delay before a stream is resumed after some streams in a row without a message.
pub(super) fn resume_pause(retry: Option<u64>, failures: u32, empty: u32) -> Duration {
    pause(retry, failures).max(RESUME_PAUSE.saturating_mul(1 << empty.min(4)))
}

impl HttpState {
    pub(super) fn has_sessions(&self) -> bool {
        lock(&self.session).has_sessions()
    }

    /// Keeps the background stream open while the connection lives, if the server offers one.
    pub(super) fn open_background_stream(self: Arc<Self>) {
        {
            let session = lock(&self.session);
            if !session.has_sessions() {
                return;
            }
        }
        let closed = self.closed.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = closed.cancelled() => {}
                () = self.sender.closed.ended() => {}
                () = self.background() => self.no_background_stream.cancel(),
            }
        });
    }

    /// Waits until the background stream is open, or is known not to exist. Servers drop questions about a request if there is
    /// no stream yet to send them on.
    pub(super) async fn background_settled(&self) {
        if self.has_sessions() {
            tokio::time::timeout(SETTLE_TIMEOUT, self.background_settled.cancelled()).await.ok();
        }
    }

    async fn background(&self) {
        let mut last_id: Option<String> = None;
        let mut retry = None;
        let mut failures = 0;
        loop {
            let stream = self.stream(last_id.as_deref()).await;
            self.background_settled.cancel();
            match stream {
                Ok(mut events) => {
                    while let Ok(Some(event)) = events.next().await {
                        failures = 0;
                        self.sender.deliver(&event.data).await;
                    }
                    last_id = events.last_id().map(str::to_owned).or(last_id);
                    retry = events.retry().or(retry);
                }
                Err(RemoteError::Refused(_) | RemoteError::Unreachable(_) | RemoteError::HeadersTimeout(_)) => {}
                // The server does not offer a background stream. Calls work without it.
                Err(reason) => {
                    tracing::debug!(%reason, "no background stream");
                    return;
                }
            }
            // A server that asks for no delay would be asked again without end.
            tokio::time::sleep(pause(retry, failures).max(PAUSE)).await;
            failures += 1;
        }
    }

    /// Opens an event stream: the background stream, or the rest of a broken one.
    pub(super) async fn stream(&self, last_id: Option<&str>) -> Result<Events, RemoteError> {
        let mut headers = lock(&self.session).headers();
        headers.insert(ACCEPT, HeaderValue::from_static(EVENT_STREAM));
        if let Some(id) = last_id.and_then(|id| HeaderValue::from_str(id).ok()) {
            headers.insert(LAST_EVENT_ID, id);
        }
        let request = Request { method: Method::GET, headers, body: None, head_timeout: Some(self.head) };
        let answer = self.origin.fetch(&self.origin.url, &request).await?;
        match (answer.status(), content_type(&answer)) {
            (StatusCode::OK, kind) if kind == EVENT_STREAM => Ok(Events::new(answer, self.origin.limit)),
            (StatusCode::OK, kind) => Err(RemoteError::NotMcp(kind)),
            (status, _) => Err(RemoteError::status(status, "")),
        }
    }

    /// Ends the session, if there is one.
    pub(super) async fn end_session(&self) {
        let headers = {
            let session = lock(&self.session);
            if session.id.is_none() {
                return;
            }
            session.headers()
        };
        let request = Request { method: Method::DELETE, headers, body: None, head_timeout: None };
        if let Err(error) = self.origin.fetch(&self.origin.url, &request).await {
            tracing::debug!(%error, "cannot end the session");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_retry_delay_is_limited_to_a_minute() {
        assert_eq!(pause(Some(500), 4), Duration::from_millis(500));
        assert_eq!(pause(Some(86_400_000), 0), MAX_PAUSE);
        assert_eq!(pause(None, 0), PAUSE);
        assert_eq!(pause(None, 40), MAX_PAUSE);
        assert_eq!(resume_pause(Some(500), 1, 2), Duration::from_millis(500));
        assert_eq!(resume_pause(Some(0), 1, 0), RESUME_PAUSE);
        assert_eq!(resume_pause(Some(0), 1, 40), 16 * RESUME_PAUSE);
    }
}
