//! The state of a server, which is always published as a whole.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Prompt, Resource, ResourceTemplate, Timestamp, Tool};

/// The status of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Pending(PendingReason),
    Connected,
    Failed,
    NeedsAuth,
    Disabled,
    /// Stopped by the user, or lazy and not used yet.
    Stopped,
}

/// Why a pending server is not connected yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PendingReason {
    Starting,
    Trust,
    Input,
    /// Retries at this time.
    Retry(Instant),
}

impl Status {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending(_) => "pending",
            Self::Connected => "connected",
            Self::Failed => "failed",
            Self::NeedsAuth => "needs-auth",
            Self::Disabled => "disabled",
            Self::Stopped => "stopped",
        }
    }

    /// Why it is pending, as on the wire.
    pub fn reason(self) -> Option<String> {
        let Self::Pending(waiting) = self else { return None };
        Some(match waiting {
            PendingReason::Starting => "starting".to_owned(),
            PendingReason::Trust => "awaiting-trust".to_owned(),
            PendingReason::Input => "awaiting-input".to_owned(),
            PendingReason::Retry(at) => {
                let left = at.saturating_duration_since(Instant::now());
                format!("retrying in {} s", left.as_secs_f64().ceil().max(1.0))
            }
        })
    }

    /// Whether the status will not change by itself.
    pub fn settled(self) -> bool {
        !matches!(self, Self::Pending(PendingReason::Starting | PendingReason::Retry(_)))
    }
}

/// How a connected server describes itself.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PeerInfo {
    pub name: String,
    pub version: String,
    pub protocol_version: String,
    pub instructions: Option<String>,
    /// The capabilities it declared: `tools`, `resources`, `prompts`, `logging`, `completions`, …
    pub capabilities: Vec<String>,
    pub raw: Arc<Value>,
}

/// Why a server is not connected. Shown as the message and the lines of stderr.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerError {
    pub message: String,
    /// The last lines of stderr.
    pub stderr: Vec<String>,
    /// Nothing listens at its address.
    pub port_closed: bool,
}

impl From<String> for ServerError {
    fn from(message: String) -> Self {
        Self { message, ..Self::default() }
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match self.stderr.is_empty() {
            true => Ok(()),
            false => write!(f, "; last lines of its stderr:\n  {}", self.stderr.join("\n  ")),
        }
    }
}

/// The complete state of a server, published by its actor.
#[derive(Debug, Clone)]
pub struct ServerState {
    pub status: Status,
    pub error: Option<ServerError>,
    pub peer: Option<Arc<PeerInfo>>,
    pub tools: Arc<Vec<Arc<Tool>>>,
    pub resources: Arc<Vec<Resource>>,
    pub templates: Arc<Vec<ResourceTemplate>>,
    pub prompts: Arc<Vec<Prompt>>,
    pub pid: Option<u32>,
    pub started_at: Option<Timestamp>,
    /// How long the server took for the last ping or call.
    pub latency: Option<Duration>,
    /// The time from the start to the end of the handshake, and from there to complete lists.
    pub start_time: Option<Duration>,
    pub discover_time: Option<Duration>,
    pub restarts: u32,
    /// Problems that do not stop the server: skipped junk lines, dropped tools, plain http.
    pub warnings: Vec<String>,
    /// The variables that have changed in the environment of the editor since the server started. Only their names.
    pub changed_variables: Vec<String>,
}

impl ServerState {
    pub fn new(status: Status) -> Self {
        Self {
            status,
            error: None,
            peer: None,
            tools: Arc::default(),
            resources: Arc::default(),
            templates: Arc::default(),
            prompts: Arc::default(),
            pid: None,
            started_at: None,
            latency: None,
            start_time: None,
            discover_time: None,
            restarts: 0,
            warnings: Vec::new(),
            changed_variables: Vec::new(),
        }
    }
}

/// The source of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogSource {
    Stderr,
    Server,
    Sidecar,
}

/// A notification of a server that we do not know. Known secrets are masked.
#[derive(Debug, Clone, PartialEq)]
pub struct UnknownNotification {
    pub method: String,
    pub params: Option<Value>,
}

/// One line of a server's log, already made safe to show.
#[derive(Debug, Clone, PartialEq)]
pub struct LogLine {
    pub time: Timestamp,
    pub source: LogSource,
    pub level: String,
    pub text: String,
}
