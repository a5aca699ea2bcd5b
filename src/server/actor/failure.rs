//! Why a start or a connection failed, and whether to retry.

use std::time::Duration;

use crate::model::{Error, ServerError, ServerName, Timestamp};
use crate::server::logs::Logs;
use crate::server::transport::OpenError;
use crate::text::mask;

/// Lines of stderr in an error.
const STDERR_LINES: usize = 8;

#[derive(Debug, Clone)]
pub struct Failure {
    pub message: String,
    /// The last lines of stderr.
    pub stderr: Vec<String>,
    pub kind: Kind,
    pub next: Next,
}

/// Which error a call gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Process,
    Connection,
    /// Nothing listens at the address: a failed connection.
    PortClosed,
    Protocol,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    Retry,
    /// The server said when to retry.
    RetryAfter(Duration),
    /// Retrying cannot help; the user has to act.
    GiveUp,
    SignIn,
}

impl Failure {
    pub fn permanent(message: impl Into<String>) -> Self {
        Self { message: message.into(), stderr: Vec::new(), kind: Kind::Connection, next: Next::GiveUp }
    }

    pub fn retry(kind: Kind, message: impl Into<String>) -> Self {
        Self { message: message.into(), stderr: Vec::new(), kind, next: Next::Retry }
    }

    /// A failed connection attempt. If a program cannot be started, it is a process failure.
    pub fn from_open(error: &OpenError, is_process: bool) -> Self {
        let next = match error {
            OpenError::NeedsAuth => Next::SignIn,
            OpenError::Refused { .. } => Next::GiveUp,
            OpenError::RetryAfter { after, .. } => Next::RetryAfter(*after),
            _ => Next::Retry,
        };
        let kind = match error {
            OpenError::Protocol { .. } => Kind::Protocol,
            OpenError::PortClosed { .. } => Kind::PortClosed,
            _ if is_process => Kind::Process,
            _ => Kind::Connection,
        };
        Self { message: error.to_string(), stderr: Vec::new(), kind, next }
    }

    /// A failed request during the start.
    pub fn from_call(error: Error) -> Self {
        let (kind, next, message) = match error {
            Error::NeedsAuth(_) => (Kind::Connection, Next::SignIn, error.to_string()),
            Error::Protocol { message, .. } => (Kind::Protocol, Next::Retry, message),
            Error::Process { message, .. } => (Kind::Process, Next::Retry, message),
            Error::Connection { message, .. } => (Kind::Connection, Next::Retry, message),
            error => (Kind::Connection, Next::Retry, error.to_string()),
        };
        Self { message, stderr: Vec::new(), kind, next }
    }

    /// Adds the last lines of stderr since this time.
    pub fn with_stderr(mut self, logs: &Logs, since: Timestamp) -> Self {
        self.stderr = logs.recent_stderr(since, STDERR_LINES);
        self
    }

    /// What is shown to the user.
    pub fn shown(&self) -> ServerError {
        ServerError {
            message: mask(&self.message).into_owned(),
            stderr: self.stderr.clone(),
            port_closed: self.kind == Kind::PortClosed,
        }
    }

    pub fn error(&self, server: &ServerName) -> Error {
        let (server, message) = (server.clone(), self.shown().to_string());
        match (self.next, self.kind) {
            (Next::SignIn, _) => Error::NeedsAuth(server),
            (_, Kind::Process) => Error::Process { server, message },
            (_, Kind::Connection | Kind::PortClosed) => Error::Connection { server, message },
            (_, Kind::Protocol) => Error::Protocol { server, message },
        }
    }
}
