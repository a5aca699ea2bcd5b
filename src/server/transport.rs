//! How messages travel: one file per transport, and what all of them share.
//!
//! The [`ledger`] tracks open requests, takes each response as its original text, and keeps notices in order. The
//! connection above interprets the messages.

pub mod frame;
pub mod http;
pub mod ledger;
pub mod line_writer;
pub mod net;
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
use crate::model::{CallId, UnknownNotification};
use ledger::Ledger;

/// What a connection runs over.
pub enum Wire {
    /// One message per line: a child's pipes or a socket.
    Bytes {
        read: Box<dyn AsyncRead + Send + Unpin>,
        write: Box<dyn AsyncWrite + Send + Unpin>,
        /// Resolves when the server has closed its end of `write`, if that can be noticed without writing.
        input_closed: Option<BoxFuture<'static, ()>>,
    },
    /// An editor-hosted server.
    Tunnel(Tunnel),
    /// A remote server over HTTP.
    Remote(Remote),
}

/// A remote server that can be connected to more than once: if the server refuses the older handshake, the newer one
/// starts on a new transport.
pub struct Remote {
    /// Shared with the transports that `dial` creates: they pass every received message to [`Ledger::read`].
    pub ledger: Ledger,
    pub dial: Box<dyn Fn() -> BoxFuture<'static, DialResult> + Send + Sync>,
}

pub type DialResult = Result<Box<dyn AnyTransport>, OpenError>;

/// Why there is no connection, or why a message could not be sent. Every message is for users.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum OpenError {
    #[error("the server requires authentication; sign in to it")]
    NeedsAuth,
    /// The server requires the other era of MCP and closed the connection: connect again with this era.
    #[error("{message}")]
    OtherEra { era: Era, message: String },
    /// The server rejected the connection.
    #[error("{message}")]
    Refused { message: String },
    /// The server did not send MCP.
    #[error("{message}")]
    Protocol { message: String },
    #[error("{message}")]
    Io { message: String },
    /// Nothing listens at the address.
    #[error("{message}")]
    PortClosed { message: String },
    /// The server is busy and said when to retry.
    #[error("{message}")]
    RetryAfter { after: Duration, message: String },
    #[error("{message}")]
    Closed { message: String },
    #[error("the server did not answer `{what}` within {} s (`startupTimeout` sets this limit){hint}", limit.as_secs_f64())]
    Timeout { what: &'static str, limit: Duration, hint: String },
}

/// How the handshake starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// `initialize`: 2024-11-05 to 2025-11-25.
    Initialize,
    /// `server/discover`, stateless: from 2026-07-28.
    Discover,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ListKind {
    Tools,
    Resources,
    Prompts,
}

impl ListKind {
    pub const ALL: [Self; 3] = [Self::Tools, Self::Resources, Self::Prompts];
}

/// What a server reports without being asked.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerNotice {
    ListChanged(ListKind),
    Log {
        level: String,
        text: String,
        /// The calls that it may be about: those that were open when it arrived.
        calls: Vec<CallId>,
    },
    ResourceUpdated(String),
    /// A notification that we do not know. Known secrets are masked.
    Unknown {
        notification: UnknownNotification,
        /// As for a log message.
        calls: Vec<CallId>,
    },
    Warning(String),
    /// The number of lines so far that were not messages; replaces the previous notice. The sample is safe to show.
    Skipped {
        lines: u64,
        sample: String,
    },
}

/// The progress of a call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Progress {
    pub progress: f64,
    pub total: Option<f64>,
    pub message: Option<String>,
    /// The call waits for the user: `message` says where, and `progress` has no meaning.
    pub is_waiting: bool,
}

/// An object-safe transport.
pub trait AnyTransport: Send {
    fn send(&mut self, message: ClientJsonRpcMessage) -> BoxFuture<'static, Result<(), OpenError>>;
    fn receive(&mut self) -> BoxFuture<'_, Option<ServerJsonRpcMessage>>;
    fn close(&mut self) -> BoxFuture<'_, ()>;
}

/// An rmcp transport as an [`AnyTransport`], with its errors converted.
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
            // The caller closes the connection anyway, so an error does not matter.
            self.0.close().await.ok();
        })
    }
}

impl OpenError {
    /// Finds our own error in a library's error chain; otherwise takes the innermost text, because the outer ones only
    /// name types.
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

/// The transport of a connection: any other transport, with the ledger observing both directions. If it is dropped
/// before the handshake has succeeded, it puts the inner transport back, so that the other handshake can use it.
pub(super) struct LedgerTransport {
    inner: Option<Box<dyn AnyTransport>>,
    parked: ParkedTransport,
    ledger: Ledger,
}

/// Holds a transport between two handshakes. The lock is `std` and held for a move only.
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
