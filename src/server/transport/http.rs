//! MCP over streamable HTTP: every message is a POST, and its response is JSON or an event stream. Up to revision
//! 2025-11-25 there are sessions, a background stream and resumption; from 2026-07-28 on requests are independent. A
//! lost connection is not repaired here: it ends with its reason, and the actor reconnects.
//!
//! The HTTP transport of `rmcp` is not used: it parses every message into types, so the raw results that we pass on would
//! be lost, and it reconnects on its own, while here only the actor does. It has no transport for legacy SSE (`sse`).

mod exchange;
mod headers;
mod session;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ClientNotification, ClientRequest, RequestId};
use rmcp::transport::Transport;
use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::ledger::Ledger;
use super::net::{Answers, Inbox, InboxSender, Origin, RemoteError, inbox};
use crate::config::expand::Endpoint;
use crate::server::oauth::ServerAuth;
use headers::MarkedTools;
use session::Session;

/// How long response headers may take for quick requests, and the limit of a notification.
const HEAD_TIMEOUT: Duration = Duration::from_secs(15);
/// How long ending a session may take.
const END_SESSION_TIMEOUT: Duration = Duration::from_secs(2);

pub struct HttpTransport {
    state: Arc<HttpState>,
    inbox: Inbox,
    /// Cancels the tasks of the connection.
    _closing: DropGuard,
}

/// State that the tasks of one connection share.
struct HttpState {
    origin: Origin,
    /// How long response headers may take for quick requests.
    head: Duration,
    sender: InboxSender,
    session: Mutex<Session>,
    tools: Mutex<MarkedTools>,
    /// The running requests, so that each can be cancelled. Locked briefly.
    running: Mutex<HashMap<RequestId, CancellationToken>>,
    answers: Answers,
    closed: CancellationToken,
    /// Cancelled when there is no background stream.
    no_background_stream: CancellationToken,
    /// Cancelled when the server has accepted or refused the background stream for the first time.
    background_settled: CancellationToken,
}

/// Creates the transport; nothing is sent before the first message.
pub fn http(endpoint: &Endpoint, auth: ServerAuth, ledger: Ledger) -> Result<HttpTransport, RemoteError> {
    with_timeout(HEAD_TIMEOUT, endpoint, auth, ledger)
}

fn with_timeout(
    head: Duration,
    endpoint: &Endpoint,
    auth: ServerAuth,
    ledger: Ledger,
) -> Result<HttpTransport, RemoteError> {
    let origin = Origin::new(endpoint, ledger.limit(), auth)?;
    let (inbox, sender) = inbox(ledger);
    let closed = CancellationToken::new();
    let state = Arc::new(HttpState {
        origin,
        head,
        sender,
        session: Mutex::default(),
        tools: Mutex::default(),
        running: Mutex::default(),
        answers: Answers::default(),
        closed: closed.clone(),
        no_background_stream: CancellationToken::new(),
        background_settled: CancellationToken::new(),
    });
    Ok(HttpTransport { state, inbox, _closing: closed.drop_guard() })
}

impl Transport<RoleClient> for HttpTransport {
    type Error = RemoteError;

    /// For a request the future lasts until the response has arrived, so that an error reaches the sender. The
    /// handshake returns at the first message, because a server may send requests before it answers.
    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), RemoteError>> + Send + 'static {
        let state = self.state.clone();
        let (done, outcome) = oneshot::channel();
        if let Some(reason) = state.sender.closed.reason() {
            done.send(Err(reason)).ok();
        } else {
            state.start(message, done);
        }
        async move { outcome.await.unwrap_or(Err(RemoteError::Closed)) }
    }

    async fn receive(&mut self) -> Option<rmcp::model::ServerJsonRpcMessage> {
        self.inbox.next().await
    }

    async fn close(&mut self) -> Result<(), RemoteError> {
        let running: Vec<_> = lock(&self.state.running).drain().map(|(_, stop)| stop).collect();
        running.iter().for_each(CancellationToken::cancel);
        if self.state.sender.closed.reason().is_none() {
            tokio::time::timeout(END_SESSION_TIMEOUT, self.state.end_session()).await.ok();
        }
        self.state.sender.close(RemoteError::Closed);
        self.state.closed.cancel();
        Ok(())
    }
}

impl HttpState {
    /// Starts the tasks of a message without waiting for them.
    fn start(self: Arc<Self>, message: ClientJsonRpcMessage, done: oneshot::Sender<Result<(), RemoteError>>) {
        let closed = self.closed.clone();
        match message {
            ClientJsonRpcMessage::Request(request) => {
                let stop = closed.child_token();
                lock(&self.running).insert(request.id.clone(), stop.clone());
                tokio::spawn(async move {
                    let id = request.id.clone();
                    let mut report = Report::new(&request.request, done);
                    tokio::select! {
                        () = stop.cancelled() => report.end(Ok(())),
                        outcome = self.exchange(request, &mut report) => {
                            if let Err(reason) = &outcome {
                                self.sender.close_if_fatal(reason);
                                // A handshake that has already returned and fails afterwards ends the connection.
                                if report.done.is_none() {
                                    self.sender.close(reason.clone());
                                }
                            }
                            report.end(outcome);
                        }
                    }
                    lock(&self.running).remove(&id);
                });
            }
            message => {
                if let Some(id) = cancelled(&message) {
                    let stop = lock(&self.running).remove(&id);
                    if let Some(stop) = stop {
                        stop.cancel();
                    }
                    if !self.has_sessions() {
                        // Since 2026-07-28, dropping the stream is the cancellation.
                        done.send(Ok(())).ok();
                        return;
                    }
                }
                let handshake = matches!(&message, ClientJsonRpcMessage::Notification(n)
                    if matches!(n.notification, ClientNotification::InitializedNotification(_)));
                // Only the handshake is waited for: a server that is slow to accept a notification must not delay a
                // cancellation or the timeout of a call.
                let done = if handshake {
                    Some(done)
                } else {
                    done.send(Ok(())).ok();
                    None
                };
                tokio::spawn(async move {
                    let outcome = tokio::select! {
                        () = closed.cancelled() => Err(RemoteError::Closed),
                        outcome = self.answers.send(&message, self.notify(&message)) => outcome,
                    };
                    if let Err(reason) = &outcome {
                        tracing::debug!(error = %reason, "the server did not accept a notification");
                        self.sender.close_if_fatal(reason);
                    } else if handshake {
                        self.clone().open_background_stream();
                    }
                    if let Some(done) = done {
                        done.send(outcome).ok();
                    }
                });
            }
        }
    }
}

/// Reports the outcome to the sender of a request, once.
struct Report {
    done: Option<oneshot::Sender<Result<(), RemoteError>>>,
    early: bool,
}

impl Report {
    fn new(request: &ClientRequest, done: oneshot::Sender<Result<(), RemoteError>>) -> Self {
        let early = matches!(request, ClientRequest::InitializeRequest(_) | ClientRequest::DiscoverRequest(_));
        Self { done: Some(done), early }
    }

    /// A message has arrived.
    fn message(&mut self) {
        if self.early {
            self.end(Ok(()));
        }
    }

    fn end(&mut self, outcome: Result<(), RemoteError>) {
        if let Some(done) = self.done.take() {
            done.send(outcome).ok();
        }
    }
}

fn cancelled(message: &ClientJsonRpcMessage) -> Option<RequestId> {
    let ClientJsonRpcMessage::Notification(notification) = message else { return None };
    let ClientNotification::CancelledNotification(cancelled) = &notification.notification else { return None };
    cancelled.params.request_id.clone()
}

/// The tables stay consistent if a thread panics.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use rmcp::model::PingRequest;
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    use super::*;
    use crate::model::ServerName;
    use crate::text::Secret;

    #[tokio::test]
    async fn endless_response_headers_time_out() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let (mut slow, _) = listener.accept().await.unwrap();
            slow.write_all(b"HTTP/1.1 200 OK\r\n").await.unwrap();
            while slow.write_all(b"x-more: to come\r\n").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        let endpoint = Endpoint { url: Secret::plain(url), headers: Default::default(), oauth: None, client: None };
        let ledger = Ledger::new(ServerName::new("slow").unwrap(), 1 << 20);
        let head = Duration::from_millis(200);
        let mut transport = with_timeout(head, &endpoint, ServerAuth::default(), ledger).unwrap();
        let ping = ClientRequest::PingRequest(PingRequest::default());
        let outcome = transport.send(ClientJsonRpcMessage::request(ping, RequestId::Number(1))).await;
        assert_eq!(outcome, Err(RemoteError::HeadersTimeout(head)));
    }
}
