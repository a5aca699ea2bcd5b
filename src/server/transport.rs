//! How messages travel: one file for each kind of wire, and what all of them share.
//!
//! Whatever the wire, the [`ledger`] knows which requests are open, takes each answer as the text it came as, and
//! keeps notices in order. What a message means is left to the connection above.

pub mod frame;
pub mod http;
pub mod ledger;
pub mod net;
pub mod proxy;
pub mod remote;
pub mod repair;
pub mod sdk;
pub(super) mod server_info;
pub mod sse;
pub mod stdio;
pub mod tcp;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, AsyncWrite};

use super::host::Tunnel;
use ledger::Ledger;

/// What a connection runs over.
pub enum Wire {
    /// A message a line: a child's pipes or a socket.
    Bytes { read: Box<dyn AsyncRead + Send + Unpin>, write: Box<dyn AsyncWrite + Send + Unpin> },
    /// A server inside the editor.
    Tunnel(Tunnel),
    /// A server behind HTTP, in whichever dialect.
    Remote(Remote),
}

/// A way to a remote server that can be taken more than once: where a server refuses the older handshake, the newer
/// one begins on a transport of its own.
pub struct Remote {
    /// Shared with the transports that `dial` makes: they hand every message that they receive to [`Ledger::read`].
    pub ledger: Ledger,
    pub dial: Box<dyn Fn() -> BoxFuture<'static, DialResult> + Send + Sync>,
}

/// What comes of dialling.
pub type DialResult = Result<Box<dyn AnyTransport>, OpenError>;

/// Why there is no connection, or why a message could not be sent. Every text is for people.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum OpenError {
    #[error("the server wants you to sign in first")]
    NeedsAuth,
    /// The server speaks the other era of MCP and has hung up: open a new wire with this era.
    #[error("{message}")]
    OtherEra { era: Era, message: String },
    /// The server answered, and said no.
    #[error("{message}")]
    Refused { message: String },
    /// What came is not MCP.
    #[error("{message}")]
    Protocol { message: String },
    #[error("{message}")]
    Io { message: String },
    /// The server is busy and said when to come again.
    #[error("{message}")]
    RetryAfter { after: Duration, message: String },
    #[error("{message}")]
    Closed { message: String },
    #[error("no answer to {what} in {} s (`startupTimeout` sets this limit){hint}", limit.as_secs_f64())]
    Timeout { what: &'static str, limit: Duration, hint: String },
}

/// How a server begins a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// `initialize`: 2024-11-05 to 2025-11-25.
    Initialize,
    /// `server/discover`, stateless: from 2026-07-28.
    Discover,
}

/// The lists that a server may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Listed {
    Tools,
    Resources,
    Prompts,
}

/// What a server lets us know without being asked.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerNotice {
    ListChanged(Listed),
    Log {
        level: String,
        text: String,
    },
    ResourceUpdated(String),
    Warning(String),
    /// Lines that were no messages, so far; replaces the one before. The sample is safe to show.
    Skipped {
        lines: u64,
        sample: String,
    },
}

/// How far a call has come.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    pub progress: f64,
    pub total: Option<f64>,
    pub message: Option<String>,
}

/// Any transport behind a pointer.
pub trait AnyTransport: Send {
    fn send(&mut self, message: ClientJsonRpcMessage) -> BoxFuture<'static, Result<(), OpenError>>;
    fn receive(&mut self) -> BoxFuture<'_, Option<ServerJsonRpcMessage>>;
    fn close(&mut self) -> BoxFuture<'_, ()>;
}

/// A transport of rmcp's kind behind a pointer, its errors turned into ours.
pub struct Boxed<T>(pub T);

impl<T> AnyTransport for Boxed<T>
where
    T: Transport<RoleClient>,
{
    fn send(&mut self, message: ClientJsonRpcMessage) -> BoxFuture<'static, Result<(), OpenError>> {
        let sent = self.0.send(message);
        Box::pin(async move { sent.await.map_err(|error| OpenError::from_chain(&error)) })
    }

    fn receive(&mut self) -> BoxFuture<'_, Option<ServerJsonRpcMessage>> {
        Box::pin(self.0.receive())
    }

    fn close(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            // Whoever closes has no more use for what went wrong.
            self.0.close().await.ok();
        })
    }
}

impl OpenError {
    /// Finds our own error in what a library has wrapped around it; otherwise takes the innermost text, because the
    /// outer ones name types and not troubles.
    pub fn from_chain(error: &(dyn std::error::Error + 'static)) -> Self {
        let mut innermost = error;
        let mut current = Some(error);
        while let Some(error) = current {
            if let Some(own) = error.downcast_ref::<Self>() {
                return own.clone();
            }
            if let Some(remote) = error.downcast_ref::<net::RemoteError>() {
                return remote.clone().into();
            }
            innermost = error;
            current = error.source();
        }
        let text = innermost.to_string();
        Self::Io { message: crate::text::one_line(&crate::text::mask(&text), 300) }
    }
}

/// The transport that a connection runs on: any wire, with the ledger watching both directions. Dropped before the
/// server has answered the handshake, it leaves the wire where it came from: a refusal is not the end of it.
pub(super) struct LedgerTransport {
    inner: Option<Box<dyn AnyTransport>>,
    parked: ParkedTransport,
    ledger: Ledger,
}

/// Where a wire stays between two handshakes. The lock is `std` and held for a move only.
pub(super) type ParkedTransport = Arc<Mutex<Option<Box<dyn AnyTransport>>>>;

impl LedgerTransport {
    pub(super) fn new(inner: Box<dyn AnyTransport>, parked: ParkedTransport, ledger: Ledger) -> Self {
        Self { inner: Some(inner), parked, ledger }
    }
}

impl Drop for LedgerTransport {
    fn drop(&mut self) {
        if self.ledger.handshake_result().is_some() {
            self.ledger.close("the connection was closed");
        } else if let Ok(mut parked) = self.parked.lock() {
            *parked = self.inner.take();
        }
    }
}

impl Transport<RoleClient> for LedgerTransport {
    type Error = OpenError;

    fn send(&mut self, message: ClientJsonRpcMessage) -> impl Future<Output = Result<(), OpenError>> + Send + 'static {
        self.ledger.sent(&message);
        match &mut self.inner {
            Some(inner) => inner.send(message),
            None => {
                Box::pin(std::future::ready(Err(OpenError::Closed { message: "the connection was closed".to_owned() })))
            }
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let inner = self.inner.as_mut()?;
            let Some(message) = inner.receive().await else {
                self.ledger.close("the server closed the connection");
                return None;
            };
            match self.ledger.screen(message) {
                ledger::Screened::Forward(message) => return Some(message),
                ledger::Screened::Respond(answer) => drop(tokio::spawn(inner.send(answer))),
                ledger::Screened::Handled => {}
            }
        }
    }

    async fn close(&mut self) -> Result<(), OpenError> {
        self.ledger.close("the connection was closed");
        if let Some(mut inner) = self.inner.take() {
            inner.close().await;
        }
        Ok(())
    }
}
