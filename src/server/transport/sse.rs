//! MCP over the legacy HTTP+SSE transport (2024-11-05): one event stream carries all messages of the server, and its
//! first event contains the URL for our messages. When the stream ends, the connection ends, and the actor reconnects.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Method, StatusCode};
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};
use url::Url;

use super::ledger::Ledger;
use super::net::{
    Answers, EVENT_STREAM, Events, Inbox, InboxSender, JSON, Origin, RemoteError, Request, content_type, inbox,
};
use crate::config::expand::Endpoint;
use crate::server::oauth::ServerAuth;

/// How long the server may take to send the URL for messages.
const ENDPOINT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a message may take to be accepted; its response comes on the stream.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(15);

pub struct SseTransport {
    state: Arc<SseState>,
    inbox: Inbox,
    _closing: DropGuard,
}

struct SseState {
    origin: Origin,
    sender: InboxSender,
    answers: Answers,
    /// How long the server may take to send the URL for messages.
    endpoint_timeout: Duration,
    /// The URL for messages, once the server has sent it.
    post_url: watch::Sender<Option<Url>>,
}

/// Opens the stream in the background.
pub fn sse(endpoint: &Endpoint, auth: ServerAuth, ledger: Ledger) -> Result<SseTransport, RemoteError> {
    with_timeout(ENDPOINT_TIMEOUT, endpoint, auth, ledger)
}

fn with_timeout(
    endpoint_timeout: Duration,
    endpoint: &Endpoint,
    auth: ServerAuth,
    ledger: Ledger,
) -> Result<SseTransport, RemoteError> {
    let origin = Origin::new(endpoint, ledger.limit(), auth)?;
    let (inbox, sender) = inbox(ledger);
    let (answers, post_url) = (Answers::default(), watch::Sender::new(None));
    let state = Arc::new(SseState { origin, sender, answers, endpoint_timeout, post_url });
    let closed = CancellationToken::new();
    tokio::spawn({
        let (state, closed) = (state.clone(), closed.clone());
        async move {
            let reason = tokio::select! {
                () = closed.cancelled() => RemoteError::Closed,
                reason = state.run() => reason,
            };
            state.sender.close(reason);
        }
    });
    Ok(SseTransport { state, inbox, _closing: closed.drop_guard() })
}

impl Transport<RoleClient> for SseTransport {
    type Error = RemoteError;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), RemoteError>> + Send + 'static {
        let state = self.state.clone();
        async move {
            tokio::select! {
                biased;
                () = state.sender.closed.ended() => Err(state.sender.closed.reason().unwrap_or(RemoteError::Closed)),
                outcome = state.answers.send(&message, state.post(&message)) => {
                    if let Err(reason) = &outcome {
                        state.sender.close_if_fatal(reason);
                    }
                    outcome
                }
            }
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        self.inbox.next().await
    }

    async fn close(&mut self) -> Result<(), RemoteError> {
        self.state.sender.close(RemoteError::Closed);
        Ok(())
    }
}

impl SseState {
    /// Reads the stream to its end and returns the reason.
    async fn run(&self) -> RemoteError {
        let mut events = match self.open().await {
            Ok(events) => events,
            Err(reason) => return reason,
        };
        loop {
            match events.next().await {
                Ok(Some(event)) if event.name == "endpoint" => {}
                Ok(Some(event)) => self.sender.deliver(&event.data).await,
                Ok(None) => return RemoteError::Unreachable("the server closed its event stream".to_owned()),
                Err(reason) => return reason,
            }
        }
    }

    /// Opens the stream and waits for the URL for messages.
    async fn open(&self) -> Result<Events, RemoteError> {
        let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(EVENT_STREAM))]);
        let request = Request { method: Method::GET, headers, body: None, head_timeout: Some(ACCEPT_TIMEOUT) };
        let answer = self.origin.fetch(&self.origin.url, &request).await?;
        let mut events = match (answer.status(), content_type(&answer)) {
            (StatusCode::OK, kind) if kind == EVENT_STREAM => Events::new(answer, self.origin.limit),
            (StatusCode::OK, kind) => return Err(RemoteError::NotMcp(kind)),
            (status, _) => return Err(RemoteError::status(status, "")),
        };
        let named = async {
            loop {
                match events.next().await? {
                    Some(event) if event.name == "endpoint" => return Ok(event.data),
                    Some(_) => {}
                    None => {
                        return Err(RemoteError::Unreachable(
                            "the event stream ended before the `endpoint` event".to_owned(),
                        ));
                    }
                }
            }
        };
        let named = tokio::time::timeout(self.endpoint_timeout, named)
            .await
            .map_err(|_| RemoteError::NoEndpoint(self.endpoint_timeout))??;
        let post_url = self
            .origin
            .url
            .join(named.trim())
            .map_err(|_| RemoteError::NotMcp("an `endpoint` event without a URL".to_owned()))?;
        if post_url.origin() != self.origin.url.origin() {
            return Err(RemoteError::Redirect(post_url.origin().ascii_serialization()));
        }
        self.post_url.send_replace(Some(post_url));
        Ok(events)
    }

    async fn post(&self, message: &ClientJsonRpcMessage) -> Result<(), RemoteError> {
        let mut post_urls = self.post_url.subscribe();
        let post_url = post_urls
            .wait_for(Option::is_some)
            .await
            .ok()
            .and_then(|post_url| post_url.clone())
            .ok_or(RemoteError::Closed)?;
        let body = serde_json::to_vec(message)
            .map_err(|error| RemoteError::InvalidConfig(format!("cannot serialize the message as JSON: {error}")))?;
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(JSON))]);
        let request = Request { method: Method::POST, headers, body: Some(body), head_timeout: Some(ACCEPT_TIMEOUT) };
        match self.origin.fetch(&post_url, &request).await {
            Ok(answer) if answer.status().is_success() => Ok(()),
            Ok(answer) if answer.status() == StatusCode::NOT_FOUND => Err(RemoteError::SessionLost),
            Ok(answer) => Err(RemoteError::status(answer.status(), "")),
            Err(reason) => Err(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::{ClientRequest, PingRequest, RequestId};
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    use super::*;
    use crate::model::ServerName;
    use crate::text::Secret;

    #[tokio::test]
    async fn a_stream_without_an_endpoint_event_times_out() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/sse", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let (mut mute, _) = listener.accept().await.unwrap();
            mute.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n: hello\n\n").await.unwrap();
            std::future::pending::<()>().await;
        });
        let endpoint = Endpoint { url: Secret::plain(url), headers: Default::default(), oauth: None, client: None };
        let ledger = Ledger::new(ServerName::new("mute").unwrap(), 1 << 20);
        let endpoint_timeout = Duration::from_millis(200);
        let mut transport = with_timeout(endpoint_timeout, &endpoint, ServerAuth::default(), ledger.clone()).unwrap();
        let ping = ClientRequest::PingRequest(PingRequest::default());
        let outcome = transport.send(ClientJsonRpcMessage::request(ping, RequestId::Number(1))).await;
        assert_eq!(outcome, Err(RemoteError::NoEndpoint(endpoint_timeout)));
        assert!(transport.receive().await.is_none());
        assert!(ledger.close_reason().unwrap().starts_with("the server sent no `endpoint` event within"));
    }
}
