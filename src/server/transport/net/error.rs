//! Why a remote server could not be reached or understood, as text for its status.

use std::error::Error as _;
use std::io;
use std::time::Duration;

use url::Url;

use super::host_and_port;
use crate::server::transport::OpenError;
use crate::text::{mask, one_line};

/// One variant for each case that callers handle differently.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RemoteError {
    /// The configuration is invalid; retrying cannot help.
    #[error("{0}")]
    InvalidConfig(String),
    #[error("cannot connect to {0}: connection refused; is the server running?")]
    Refused(String),
    #[error("{0}")]
    Unreachable(String),
    #[error("the server requires authentication (HTTP 401); sign in to it")]
    NeedsAuth,
    #[error("the server requires more permissions ({0}); sign in again")]
    InsufficientScope(String),
    #[error("HTTP 403 forbidden: access denied; check `headers` or your account on the server")]
    Forbidden,
    #[error("{status}{}", retry_hint(*.wait))]
    Busy { status: &'static str, wait: Option<Duration> },
    #[error("the server redirects to another host ({0}), which is not allowed; change `url` if you trust that host")]
    Redirect(String),
    #[error("{text}")]
    Status { code: u16, text: String },
    #[error("expected JSON or an event stream, found {0}; check `url` (or is this a captive portal?)")]
    NotMcp(String),
    #[error("the connection ended before the response was complete")]
    StreamEnded,
    #[error("the server no longer knows this session; reconnecting")]
    SessionLost,
    #[error("the response is larger than {} MiB (`limits.message-bytes` sets this limit)", .0 >> 20)]
    TooLarge(usize),
    #[error("the response headers are larger than 64 KiB")]
    HeadersTooLarge,
    #[error("the server did not send complete response headers within {} s", .0.as_secs())]
    HeadersTimeout(Duration),
    #[error("the server sent no `endpoint` event within {} s; if it is not a legacy SSE server, use `http` instead of `sse`", .0.as_secs())]
    NoEndpoint(Duration),
    #[error("the connection is closed")]
    Closed,
}

impl RemoteError {
    /// Whether the whole connection is lost, not only one request.
    pub fn ends_connection(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::Unreachable(_) | Self::NeedsAuth | Self::SessionLost | Self::Closed)
    }

    /// Whether signing in helps.
    pub fn needs_auth(&self) -> bool {
        matches!(self, Self::NeedsAuth | Self::InsufficientScope(_))
    }

    /// A failed request to `url`. The URL is not shown: its query may contain a key.
    pub fn from_reqwest(error: reqwest::Error, url: &Url) -> Self {
        let address = host_and_port(url);
        let mut cause = error.source();
        let mut last = None;
        while let Some(current) = cause {
            if let Some(io) = current.downcast_ref::<io::Error>()
                && io.kind() == io::ErrorKind::ConnectionRefused
            {
                return Self::Refused(address);
            }
            if is_plain_text(current) {
                let text = format!("{address} does not answer in TLS; if it is not encrypted, use `http://` in `url`");
                return Self::Unreachable(text);
            }
            last = Some(current.to_string());
            cause = current.source();
        }
        let reason = last.unwrap_or_else(|| error.without_url().to_string());
        Self::Unreachable(format!("cannot connect to {address}: {}", one_line(&mask(&reason), 200)))
    }

    /// An error status, with the server's message.
    pub fn status(status: reqwest::StatusCode, detail: &str) -> Self {
        let name = status.canonical_reason().unwrap_or("unknown status").to_lowercase();
        let detail = one_line(&mask(detail), 200);
        let colon = if detail.is_empty() { "" } else { ": " };
        Self::Status { code: status.as_u16(), text: format!("HTTP {} {name}{colon}{detail}", status.as_u16()) }
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

/// Whether the other side answers, but not in TLS.
fn is_plain_text(error: &(dyn std::error::Error + 'static)) -> bool {
    match (error.downcast_ref::<rustls::Error>(), error.downcast_ref::<io::Error>()) {
        (Some(tls), _) => matches!(tls, rustls::Error::InvalidMessage(_)),
        // It is not a source of the error that contains it.
        (None, io) => io.and_then(io::Error::get_ref).is_some_and(|inner| is_plain_text(inner)),
    }
}

fn retry_hint(wait: Option<Duration>) -> String {
    match wait {
        Some(wait) => format!("; the server asks to wait {} s", wait.as_secs()),
        None => String::new(),
    }
}
