//! Why a remote server could not be reached or understood, in words for its status line.

use std::error::Error as _;
use std::io;
use std::time::Duration;

use url::Url;

use super::host_and_port;
use crate::server::transport::OpenError;
use crate::text::{mask, one_line};

/// One variant for each thing that somebody above does differently.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RemoteError {
    /// What the config says cannot work; trying again cannot help.
    #[error("{0}")]
    InvalidConfig(String),
    #[error("connection refused {0}")]
    Refused(String),
    #[error("{0}")]
    Unreachable(String),
    #[error("the server wants you to sign in (401)")]
    NeedsAuth,
    #[error("the server wants more rights than you gave it ({0}); sign in again")]
    InsufficientScope(String),
    #[error("403 forbidden; the server knows you and says no, so check its headers or your account there")]
    Forbidden,
    #[error("{status}{}", waiting(*.wait))]
    Busy { status: &'static str, wait: Option<Duration> },
    #[error(
        "redirects to another host ({0}); it was not followed, put the new address into the config if you trust it"
    )]
    Redirect(String),
    #[error("{text}")]
    Status { code: u16, text: String },
    #[error("expected JSON or event stream, got {0} (captive portal?)")]
    NotMcp(String),
    #[error("stream ended before the answer")]
    StreamEnded,
    #[error("the server has forgotten this session; connecting anew")]
    SessionLost,
    #[error("the answer is larger than {} MiB (`limits.message-bytes` sets this limit)", .0 >> 20)]
    TooLarge(usize),
    #[error("the head of the answer is larger than 64 KiB")]
    HeadersTooLarge,
    #[error("no complete head of an answer within {} s", .0.as_secs())]
    HeadersTimeout(Duration),
    #[error("no endpoint event within {} s; is this a legacy SSE server?", .0.as_secs())]
    NoEndpoint(Duration),
    #[error("the connection is closed")]
    Closed,
}

impl RemoteError {
    /// Whether the connection as a whole is gone, not only the exchange that failed.
    pub fn ends_connection(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::Unreachable(_) | Self::NeedsAuth | Self::SessionLost | Self::Closed)
    }

    /// Whether signing in is what helps.
    pub fn needs_auth(&self) -> bool {
        matches!(self, Self::NeedsAuth | Self::InsufficientScope(_))
    }

    /// What went wrong on the way to `url`. The URL itself stays out of it: its query may hold a key.
    pub fn from_reqwest(error: reqwest::Error, url: &Url) -> Self {
        let place = host_and_port(url);
        let mut cause = error.source();
        let mut last = None;
        while let Some(current) = cause {
            if let Some(io) = current.downcast_ref::<io::Error>()
                && io.kind() == io::ErrorKind::ConnectionRefused
            {
                return Self::Refused(place);
            }
            last = Some(current.to_string());
            cause = current.source();
        }
        let reason = last.unwrap_or_else(|| error.without_url().to_string());
        Self::Unreachable(format!("no connection to {place}: {}", one_line(&mask(&reason), 200)))
    }

    /// A status that is no success, with what the server says about it.
    pub fn status(status: reqwest::StatusCode, said: &str) -> Self {
        let name = status.canonical_reason().unwrap_or("unknown status").to_lowercase();
        let said = one_line(&mask(said), 200);
        let colon = if said.is_empty() { "" } else { ": " };
        Self::Status { code: status.as_u16(), text: format!("HTTP {} {name}{colon}{said}", status.as_u16()) }
    }
}

impl From<RemoteError> for OpenError {
    fn from(error: RemoteError) -> Self {
        let message = error.to_string();
        match error {
            RemoteError::NeedsAuth | RemoteError::InsufficientScope(_) => Self::NeedsAuth,
            RemoteError::Busy { wait: Some(after), .. } => Self::RetryAfter { after, message },
            RemoteError::InvalidConfig(_) | RemoteError::Forbidden | RemoteError::Redirect(_) => {
                Self::Refused { message }
            }
            RemoteError::Status { code: 400..500, .. } => Self::Refused { message },
            RemoteError::NotMcp(_)
            | RemoteError::TooLarge(_)
            | RemoteError::HeadersTooLarge
            | RemoteError::NoEndpoint(_) => Self::Protocol { message },
            RemoteError::StreamEnded | RemoteError::SessionLost | RemoteError::Closed => Self::Closed { message },
            RemoteError::Refused(_)
            | RemoteError::Unreachable(_)
            | RemoteError::Busy { wait: None, .. }
            | RemoteError::Status { .. }
            | RemoteError::HeadersTimeout(_) => Self::Io { message },
        }
    }
}

fn waiting(wait: Option<Duration>) -> String {
    match wait {
        Some(wait) => format!("; the server asks to wait {} s", wait.as_secs()),
        None => String::new(),
    }
}
