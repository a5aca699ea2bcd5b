//! The basic types of the program as plain data: names, levels, status, calls, errors. No I/O.

mod call;
mod error;
mod level;
mod name;
mod scope;
mod status;
mod time;
mod tool;

pub use call::{CallId, CallRecord, CallResult, Requester, RequesterKind, ToolCall};
pub use error::{Error, Result, Violation};
pub use level::{Decision, Level};
pub use name::{NameError, ServerName, ToolId};
pub use scope::Scope;
pub use status::{LogLine, LogSource, PeerInfo, PendingReason, ServerState, Status};
pub use time::{Timestamp, millis};
pub use tool::{Annotations, Prompt, Resource, ResourceTemplate, Tool};
