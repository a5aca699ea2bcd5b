//! The basic types of the program as plain data: names, levels, status, calls, errors. No I/O.

mod call;
mod error;
mod hook_agent;
pub mod json_memory;
mod level;
mod name;
mod raw_json;
mod scan;
mod scope;
mod status;
mod time;
pub mod tokens;
mod tool;

pub use call::{
    CallId, CallKind, CallRecord, CallResult, Requester, RequesterKind, ResultSize, ToolCall, UserDecision,
};
pub use error::{Error, Result, Violation};
pub use hook_agent::HookAgent;
pub use level::{Decision, Level};
pub use name::{NameError, ServerName, ToolId};
pub use raw_json::{RawJson, ResultParts};
pub use scan::{Json, Scanner};
pub use scope::Scope;
pub use status::{LogLine, LogSource, PeerInfo, PendingReason, ServerError, ServerState, Status, UnknownNotification};
pub use time::{Timestamp, millis};
pub use tool::{Annotations, Prompt, Resource, ResourceTemplate, Subject, Tool};
