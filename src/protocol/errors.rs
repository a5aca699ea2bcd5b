//! How an error of the engine looks on the wire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::actions::Remedy;
use crate::model::{self, Error};

/// What kind of failure an error reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorKind {
    /// The params of the command are wrong.
    InvalidParams,
    /// The arguments do not match the schema of the tool; `detail` says where.
    InvalidArguments,
    /// There is no such server, tool, file or question.
    NotFound,
    /// Something else has changed or exists already.
    Conflict,
    /// The server or the tool is disabled.
    Disabled,
    /// A rule or the user refused the call.
    Denied,
    /// The user has to trust the server first.
    NeedsTrust,
    /// The user has to sign in first.
    NeedsAuth,
    /// There was no response in time.
    Timeout,
    /// The request was cancelled.
    Cancelled,
    /// The server cannot be reached.
    ConnectionFailed,
    /// The process of the server did not start, or ended.
    ProcessFailed,
    /// The server sent something that is not valid MCP.
    ProtocolError,
    /// A file could not be read or written.
    Io,
}

/// The `data` of an error response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorData {
    pub kind: ErrorKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// What is wrong with the arguments of a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<Vec<Violation>>,
    /// The call was not allowed: it requires approval, and there was no one to ask.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unasked: bool,
    /// What the user can do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<Remedy>,
}

/// A place in the arguments of a call that does not match the schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Violation {
    /// A JSON pointer.
    pub path: String,
    pub message: String,
}

impl From<&Error> for ErrorKind {
    fn from(error: &Error) -> Self {
        match error {
            Error::InvalidParams(_) => Self::InvalidParams,
            Error::InvalidArguments { .. } => Self::InvalidArguments,
            Error::NoServer(_)
            | Error::NoTool { .. }
            | Error::NoGrant(_)
            | Error::NotFound(_)
            | Error::Missing { .. } => Self::NotFound,
            Error::Conflict(_) => Self::Conflict,
            Error::Disabled { .. } | Error::ToolDisabled { .. } => Self::Disabled,
            Error::Denied { .. } | Error::Unanswered { .. } | Error::StartedByAgent(_) => Self::Denied,
            Error::NeedsTrust(_) => Self::NeedsTrust,
            Error::NeedsAuth(_) => Self::NeedsAuth,
            Error::Timeout { .. } => Self::Timeout,
            Error::Cancelled | Error::CallerGone(_) => Self::Cancelled,
            Error::Connection { .. } | Error::NotRunning(_) => Self::ConnectionFailed,
            Error::Process { .. } => Self::ProcessFailed,
            Error::Protocol { .. } => Self::ProtocolError,
            Error::Io(_) => Self::Io,
            Error::InCall { cause, .. } | Error::Edited { cause, .. } => (&**cause).into(),
        }
    }
}

impl ErrorKind {
    /// The code of the JSON-RPC error.
    pub fn code(self) -> i64 {
        match self {
            Self::InvalidParams | Self::InvalidArguments => -32602,
            // As LSP has it for a request that its sender cancelled.
            Self::Cancelled => -32800,
            _ => -32001,
        }
    }
}

impl From<&model::Violation> for Violation {
    fn from(violation: &model::Violation) -> Self {
        let model::Violation { path, message } = violation.clone();
        Self { path, message }
    }
}

impl From<&Error> for ErrorData {
    fn from(error: &Error) -> Self {
        Self {
            kind: error.into(),
            server: error.server().map(str::to_owned),
            tool: error.tool().map(str::to_owned),
            detail: error.violations().map(|all| all.iter().map(Into::into).collect()),
            unasked: matches!(error, Error::Unanswered { asked: false, .. }),
            remedy: Remedy::of_error(error),
        }
    }
}
