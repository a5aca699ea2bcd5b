//! MCP over the legacy HTTP+SSE transport (2024-11-05): one event stream carries everything from the server, and its
//! first event names the address that our messages are posted to. The stream is the connection: when it ends, the
//! connection has ended, and whoever holds it connects anew.

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
use super::net::{EVENT_STREAM, Events, Inbox, JSON, Origin, Outlet, RemoteError, Request, content_type, inbox};
use crate::config::expand::Endpoint;
use crate::server::oauth::TokenStore;

/// How long the server may take to say where messages go.
const ENDPOINT: Duration = Duration::from_secs(10);
/// How long a message may take to be accepted; the answer to it comes on the stream.
const ACCEPTED: Duration = Duration::from_secs(15);

pub struct SseTransport {
    line: Arc<Line>,
    inbox: Inbox,
    _closing: DropGuard,
}

struct Line {
    origin: Origin,
    outlet: Outlet,
    /// How long the server may take to say where messages go.
    patience: Duration,
    /// Where messages go, once the server has said so.
    place: watch::Sender<Option<Url>>,
}

/// Opens the stream in the background.
pub fn sse(endpoint: &Endpoint, tokens: Arc<dyn TokenStore>, ledger: Ledger) -> Result<SseTransport, RemoteError> {
    within(ENDPOINT, endpoint, tokens, ledger)
}

fn within(
    patience: Duration,
    endpoint: &Endpoint,
    tokens: Arc<dyn TokenStore>,
    ledger: Ledger,
) -> Result<SseTransport, RemoteError> {
    let origin = Origin::new(endpoint, ledger.limit(), tokens)?;
    let (inbox, outlet) = inbox(ledger);
    let line = Arc::new(Line { origin, outlet, patience, place: watch::Sender::new(None) });
    let closed = CancellationToken::new();
    tokio::spawn({
        let (line, closed) = (line.clone(), closed.clone());
        async move {
            let reason = tokio::select! {
                () = closed.cancelled() => RemoteError::Closed,
                reason = line.run() => reason,
            };
            line.outlet.lose(reason);
        }
    });
    Ok(SseTransport { line, inbox, _closing: closed.drop_guard() })
}

impl Transport<RoleClient> for SseTransport {
    type Error = RemoteError;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), RemoteError>> + Send + 'static {
        let line = self.line.clone();
        async move {
            tokio::select! {
                biased;
                () = line.outlet.lost.ended() => Err(line.outlet.lost.reason().unwrap_or(RemoteError::Closed)),
                outcome = line.post(&message) => outcome,
            }
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        self.inbox.next().await
    }

    async fn close(&mut self) -> Result<(), RemoteError> {
        self.line.outlet.lose(RemoteError::Closed);
        Ok(())
    }
}

impl Line {
    /// Reads the stream to its end, and says why it ended.
    async fn run(&self) -> RemoteError {
        let mut events = match self.open().await {
            Ok(events) => events,
            Err(reason) => return reason,
        };
        loop {
            match events.next().await {
                Ok(Some(event)) if event.name == "endpoint" => {}
                Ok(Some(event)) => self.outlet.pass(&event.data).await,
                Ok(None) => return RemoteError::Unreachable("the server closed its event stream".to_owned()),
                Err(reason) => return reason,
            }
        }
    }

    /// Opens the stream and waits for the event that names the address for messages.
    async fn open(&self) -> Result<Events, RemoteError> {
        let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(EVENT_STREAM))]);
        let request = Request { method: Method::GET, headers, body: None, head_limit: Some(ACCEPTED) };
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
                            "the event stream ended before its endpoint event".to_owned(),
                        ));
                    }
                }
            }
        };
        let named =
            tokio::time::timeout(self.patience, named).await.map_err(|_| RemoteError::NoEndpoint(self.patience))??;
        let place = self
            .origin
            .url
            .join(named.trim())
            .map_err(|_| RemoteError::NotMcp("an endpoint event without an address".to_owned()))?;
        if place.origin() != self.origin.url.origin() {
            return Err(RemoteError::Redirect(place.origin().ascii_serialization()));
        }
        self.place.send_replace(Some(place));
        Ok(events)
    }

    async fn post(&self, message: &ClientJsonRpcMessage) -> Result<(), RemoteError> {
        let mut places = self.place.subscribe();
        let place =
            places.wait_for(Option::is_some).await.ok().and_then(|place| place.clone()).ok_or(RemoteError::Closed)?;
        let body = serde_json::to_vec(message).map_err(|error| RemoteError::Address(format!("not JSON: {error}")))?;
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(JSON))]);
        let request = Request { method: Method::POST, headers, body: Some(body), head_limit: Some(ACCEPTED) };
        let outcome = match self.origin.fetch(&place, &request).await {
            Ok(answer) if answer.status().is_success() => Ok(()),
            Ok(answer) if answer.status() == StatusCode::NOT_FOUND => Err(RemoteError::SessionLost),
            Ok(answer) => Err(RemoteError::status(answer.status(), "")),
            Err(reason) => Err(reason),
        };
        if let Err(reason) = &outcome {
            self.outlet.judge(reason);
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::{ClientRequest, PingRequest, RequestId};
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    use super::*;
    use crate::model::ServerName;
    use crate::server::oauth::NoTokens;
    use crate::text::Secret;

    #[tokio::test]
    async fn a_stream_without_its_endpoint_event_is_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/sse", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let (mut mute, _) = listener.accept().await.unwrap();
            mute.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n: hello\n\n").await.unwrap();
            std::future::pending::<()>().await;
        });
        let endpoint = Endpoint { url: Secret::plain(url), headers: Default::default(), oauth: None };
        let ledger = Ledger::new(ServerName::new("mute").unwrap(), 1 << 20);
        let patience = Duration::from_millis(200);
        let mut transport = within(patience, &endpoint, Arc::new(NoTokens), ledger.clone()).unwrap();
        let ping = ClientRequest::PingRequest(PingRequest::default());
        let outcome = transport.send(ClientJsonRpcMessage::request(ping, RequestId::Number(1))).await;
        assert_eq!(outcome, Err(RemoteError::NoEndpoint(patience)));
        assert!(transport.receive().await.is_none());
        assert!(ledger.close_reason().unwrap().starts_with("no endpoint event within"));
    }
}
