//! Notifications to and from the editor, and our own requests.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::answers::Done;
use super::types::{Approval, ApprovalGroup, Call, ClosedApproval, Reload, ServerStatus};
use crate::model::{ServerName, Timestamp};

/// A message that is not answered. Its name on the wire is `METHOD`, its params are the type itself.
pub trait Notification: Serialize + DeserializeOwned + JsonSchema {
    const METHOD: &'static str;
}

/// One of our own requests. Its name on the wire is `METHOD`, its params are the type itself.
pub trait Request: Serialize + DeserializeOwned + JsonSchema {
    const METHOD: &'static str;
    type Answer: Serialize + DeserializeOwned + JsonSchema;
}

/// Sees every notification and request as a type; see [`visit`].
pub trait Visitor {
    fn notification<N: Notification>(&mut self);
    fn request<R: Request>(&mut self);
}

/// Declares messages by their method.
macro_rules! messages {
    ($($name:ident = $method:literal $(-> $answer:ty)?,)*) => {
        $(messages!(@one $name, $method $(, $answer)?);)*

        /// Calls a visitor with every notification and request.
        pub fn visit(visitor: &mut impl Visitor) {
            $(messages!(@visit visitor, $name $(, $answer)?);)*
        }
    };
    (@visit $visitor:ident, $name:ident) => {
        $visitor.notification::<$name>();
    };
    (@visit $visitor:ident, $name:ident, $answer:ty) => {
        $visitor.request::<$name>();
    };
    (@one $name:ident, $method:literal) => {
        impl Notification for $name {
            const METHOD: &'static str = $method;
        }
    };
    (@one $name:ident, $method:literal, $answer:ty) => {
        impl Request for $name {
            const METHOD: &'static str = $method;
            type Answer = $answer;
        }
    };
}

messages! {
    ServerChanged = "mcp/serverChanged",
    ServerRemoved = "mcp/serverRemoved",
    ToolsChanged = "mcp/toolsChanged",
    ApprovalsChanged = "mcp/approvalsChanged",
    ConfigReloaded = "mcp/configReloaded",
    CallFinished = "mcp/callFinished",
    LogMessage = "mcp/log",
    AgentsChanged = "mcp/agentsChanged",
    ResourceUpdated = "mcp/resourceUpdated",
    SignInPage = "mcp/signInPage",
    WorkspaceTrust = "mcp/workspaceTrust",
    SdkMessage = "mcp/sdk/message" -> Done,
    SdkClose = "mcp/sdk/close" -> Done,
    Sample = "mcp/sample" -> Value,
    Buffer = "mcp/buffer" -> BufferText,
}

/// A server has changed, or is new.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ServerChanged {
    pub server: ServerStatus,
}

/// A server is gone.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ServerRemoved {
    pub name: ServerName,
}

/// The tools of a server, or their levels, have changed.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ToolsChanged {
    pub server: ServerName,
    /// How many there are now.
    pub tools: usize,
}

/// All questions that are waiting for the user now, and how others ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalsChanged {
    pub approvals: Vec<Approval>,
    pub groups: Vec<ApprovalGroup>,
    /// The questions that have ended since the last notification.
    pub closed: Vec<ClosedApproval>,
}

/// Config files were read again.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ConfigReloaded(pub Reload);

/// A call has ended. Without `arguments` and `result`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct CallFinished(pub Call);

/// Agents have connected or disconnected, or do something else now. `mcp.agents` lists them.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AgentsChanged {
    /// How many are connected.
    pub agents: usize,
}

/// A line of a server's log.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct LogMessage {
    pub server: ServerName,
    pub level: String,
    pub text: String,
    pub time: Timestamp,
}

/// A resource has changed that the editor reads with `subscribe`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ResourceUpdated {
    pub server: ServerName,
    pub uri: String,
}

/// The next `window/showDocument` with this page is the sign-in to this server.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SignInPage {
    pub server: ServerName,
    pub page: String,
}

/// From the editor: whether it trusts the workspace.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct WorkspaceTrust {
    pub trusted: bool,
}

/// In both directions: a message from or to a server inside the editor.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SdkMessage {
    pub server: String,
    /// A JSON-RPC message of MCP.
    pub message: Value,
}

/// From the editor: a server inside it has ended.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SdkClose {
    pub server: String,
}

/// To the editor: what it has open of a file that a call would change.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Buffer {
    /// The real path, without links.
    pub file: PathBuf,
}

/// An open file.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct BufferText {
    /// Its text, if it has unsaved changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// To the editor: a server wants to use its model. The answer is the `CreateMessageResult` of MCP.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    pub server: ServerName,
    /// The params of MCP's `sampling/createMessage`.
    pub params: Value,
}
