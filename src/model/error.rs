//! Errors of the engine.

use std::sync::Arc;
use std::time::Duration;

use super::{ServerName, ToolId};

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A violation of a tool's schema: the position in the arguments, and what was expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// A JSON pointer into the arguments; empty for the arguments as a whole.
    pub path: String,
    pub message: String,
}

/// An error of the engine. There is one variant for each case that callers treat differently.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    InvalidParams(String),
    #[error("the arguments of `{tool}` do not match its schema: {}", first(violations))]
    InvalidArguments { tool: ToolId, violations: Vec<Violation> },
    #[error("no server named `{0}`; check the list of servers")]
    NoServer(String),
    #[error("server `{server}` has no tool `{tool}`; check the list of its tools")]
    NoTool { server: ServerName, tool: String },
    #[error("no grant has the id `{0}`; check the list of grants")]
    NoGrant(String),
    #[error("{0}")]
    NotFound(String),
    /// A missing entry, resource or prompt of a server.
    #[error("{message}")]
    Missing { server: ServerName, message: String },
    #[error("{0}")]
    Conflict(String),
    #[error("server `{server}` is disabled; {}", how_to_enable(*in_file))]
    Disabled {
        server: ServerName,
        /// In its config file; otherwise the user only hid its tools.
        in_file: bool,
    },
    /// The level of the tool is `disable`.
    #[error("{} is disabled; raise its level to use it{}", tool.describe(), in_parentheses(rule.as_deref()))]
    ToolDisabled {
        tool: ToolId,
        /// The location of the rule that disables it. Agents do not see it.
        rule: Option<Arc<str>>,
    },
    #[error("{} was denied: {reason}{}", tool.describe(), in_parentheses(rule.as_deref()))]
    Denied {
        tool: ToolId,
        reason: String,
        /// The location of the rule that denies it. Agents do not see it.
        rule: Option<Arc<str>>,
    },
    /// A decision of the user, sent by a process that this program started.
    #[error(
        "this program was started by {0}, so it can list and ask, but not decide for the user; decide in your own editor or terminal"
    )]
    StartedByAgent(String),
    /// It requires approval, and there was no answer.
    #[error("{} was not allowed: {reason}", tool.describe())]
    Unanswered {
        tool: ToolId,
        reason: String,
        /// Whether the user could have been asked.
        asked: bool,
    },
    #[error("server `{0}` is not trusted yet; review its definition and trust it first")]
    NeedsTrust(ServerName),
    #[error("server `{0}` requires you to sign in first")]
    NeedsAuth(ServerName),
    #[error("server `{0}` is not running; start it first")]
    NotRunning(ServerName),
    #[error("server `{server}` did not answer {what} within {} s (`{setting}` sets this limit)", limit.as_secs_f64())]
    Timeout { server: ServerName, what: String, limit: Duration, setting: &'static str },
    #[error("cancelled")]
    Cancelled,
    /// The caller is no longer connected, and why it is not.
    #[error("{0}")]
    CallerGone(&'static str),
    #[error("server `{server}`: {message}")]
    Connection { server: ServerName, message: String },
    #[error("server `{server}`: {message}")]
    Process { server: ServerName, message: String },
    #[error("server `{server}`: {message}")]
    Protocol { server: ServerName, message: String },
    #[error("{0}")]
    Io(String),
    /// Any of the above after the user has changed the arguments of a call.
    #[error("{cause} (the arguments had been changed: {difference})")]
    Edited {
        tool: ToolId,
        /// What the user changed: `a: 1 → 2`.
        difference: String,
        cause: Box<Error>,
    },
    /// Any of the above during a call.
    #[error("{cause}")]
    InCall { tool: ToolId, cause: Box<Error> },
}

impl Error {
    /// The `kind` on the wire.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::InvalidParams(_) => "invalid-params",
            Self::InvalidArguments { .. } => "invalid-arguments",
            Self::NoServer(_) | Self::NoTool { .. } | Self::NoGrant(_) | Self::NotFound(_) | Self::Missing { .. } => {
                "not-found"
            }
            Self::Conflict(_) => "conflict",
            Self::Disabled { .. } | Self::ToolDisabled { .. } => "disabled",
            Self::Denied { .. } | Self::Unanswered { .. } | Self::StartedByAgent(_) => "denied",
            Self::NeedsTrust(_) => "needs-trust",
            Self::NeedsAuth(_) => "needs-auth",
            Self::Timeout { .. } => "timeout",
            Self::Cancelled | Self::CallerGone(_) => "cancelled",
            Self::Connection { .. } | Self::NotRunning(_) => "connection-failed",
            Self::Process { .. } => "process-failed",
            Self::Protocol { .. } => "protocol-error",
            Self::Io(_) => "io",
            Self::InCall { cause, .. } | Self::Edited { cause, .. } => cause.kind(),
        }
    }

    /// Adds the tool whose call failed.
    pub fn in_call(self, tool: &ToolId) -> Self {
        match self.tool() {
            Some(_) => self,
            None => Self::InCall { tool: tool.clone(), cause: Box::new(self) },
        }
    }

    pub fn server(&self) -> Option<&str> {
        match self {
            Self::NoServer(name) => Some(name),
            Self::InvalidArguments { tool, .. }
            | Self::Denied { tool, .. }
            | Self::ToolDisabled { tool, .. }
            | Self::Unanswered { tool, .. }
            | Self::Edited { tool, .. }
            | Self::InCall { tool, .. } => Some(tool.server.as_str()),
            Self::NoTool { server, .. }
            | Self::Missing { server, .. }
            | Self::Disabled { server, .. }
            | Self::NeedsTrust(server)
            | Self::NeedsAuth(server)
            | Self::NotRunning(server)
            | Self::Timeout { server, .. }
            | Self::Connection { server, .. }
            | Self::Process { server, .. }
            | Self::Protocol { server, .. } => Some(server.as_str()),
            _ => None,
        }
    }

    pub fn tool(&self) -> Option<&str> {
        match self {
            Self::InvalidArguments { tool, .. }
            | Self::Denied { tool, .. }
            | Self::ToolDisabled { tool, .. }
            | Self::Unanswered { tool, .. }
            | Self::Edited { tool, .. }
            | Self::InCall { tool, .. } => Some(&tool.tool),
            Self::NoTool { tool, .. } => Some(tool),
            _ => None,
        }
    }

    pub fn violations(&self) -> Option<&[Violation]> {
        match self {
            Self::InvalidArguments { violations, .. } => Some(violations),
            Self::Edited { cause, .. } => cause.violations(),
            _ => None,
        }
    }
}

fn in_parentheses(text: Option<&str>) -> String {
    text.map(|text| format!(" ({text})")).unwrap_or_default()
}

fn how_to_enable(in_file: bool) -> &'static str {
    if in_file { "enable it in its config file to use it" } else { "turn it on again to use it" }
}

fn first(violations: &[Violation]) -> String {
    match violations {
        [] => "no reason given".to_owned(),
        [only] => at(only),
        [head, rest @ ..] => format!("{} (and {} more)", at(head), rest.len()),
    }
}

fn at(violation: &Violation) -> String {
    match violation.path.as_str() {
        "" => violation.message.clone(),
        path => format!("{path}: {}", violation.message),
    }
}
