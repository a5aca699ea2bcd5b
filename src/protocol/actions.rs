//! What the user can do next, as data: each front words it in its own language, as a button, a key or a shell command.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::commands::{
    Command, Grants, ServerAuth, ServerEnable, ServerLogs, ServerMove, ServerRefresh, ServerRemove, ServerRestart,
    ServerStart, ServerStop, ServerTest, ServerTimeout, ServerToggle, ServerTrust, Servers, Tools,
};
use super::types::Object;
use crate::engine::server_actions::{self, ServerAction};
use crate::engine::snapshot::ServerView;
use crate::model::{Error, ServerName, ToolId};

/// A command with its params, to be sent when the user chooses it.
#[derive(Debug, Clone, PartialEq)]
pub struct Invocation {
    pub command: &'static str,
    pub arguments: Object,
}

impl<C: Command> From<C> for Invocation {
    fn from(command: C) -> Self {
        // Params are always an object, and an absent field is the same as `null`.
        let arguments = match serde_json::to_value(command) {
            Ok(Value::Object(fields)) => fields.into_iter().filter(|(_, value)| !value.is_null()).collect(),
            _ => Object::new(),
        };
        Self { command: C::NAME, arguments }
    }
}

/// What to do about an error or a state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Remedy {
    pub title: String,
    /// The command to send.
    pub command: String,
    pub arguments: Object,
}

/// Something that can be done with a server now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Action {
    pub kind: ActionKind,
    pub title: String,
    /// The command to send.
    pub command: String,
    pub arguments: Object,
    /// It loses something that no other action restores: ask first.
    pub destructive: bool,
}

/// What an action does, for icons and keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ActionKind {
    Trust,
    SignIn,
    Start,
    Stop,
    Restart,
    Refresh,
    Enable,
    ShowTools,
    Test,
    ShowLog,
    HideTools,
    SignOut,
    RevokeTrust,
    Disable,
    Move,
    Remove,
}

/// The state of a server in a few words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    pub text: String,
    pub tone: Tone,
}

/// How good or bad a state is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Tone {
    /// Everything is fine.
    Good,
    /// It will change by itself.
    Busy,
    /// The user has to do something.
    Attention,
    /// It failed.
    Bad,
    /// Off, as the user wanted.
    Muted,
}

impl From<server_actions::Summary> for Summary {
    fn from(summary: server_actions::Summary) -> Self {
        let tone = match summary.tone {
            server_actions::Tone::Good => Tone::Good,
            server_actions::Tone::Busy => Tone::Busy,
            server_actions::Tone::Attention => Tone::Attention,
            server_actions::Tone::Bad => Tone::Bad,
            server_actions::Tone::Muted => Tone::Muted,
        };
        Self { text: summary.text, tone }
    }
}

impl Action {
    /// Everything that can be done with a server now.
    pub fn all(view: &ServerView) -> Vec<Self> {
        view.actions().into_iter().map(|action| Self::new(action, view)).collect()
    }

    fn new(action: ServerAction, view: &ServerView) -> Self {
        let Invocation { command, arguments } = invocation(action, view);
        Self {
            kind: action.into(),
            title: action.title(),
            command: command.to_owned(),
            arguments,
            destructive: action.is_destructive(),
        }
    }
}

/// The command that performs an action.
pub fn invocation(action: ServerAction, view: &ServerView) -> Invocation {
    let server = view.definition.name.clone();
    let scope = view.definition.scope;
    match action {
        ServerAction::Trust => trust(server),
        ServerAction::RevokeTrust => ServerTrust::distrust(server).into(),
        ServerAction::SignIn => ServerAuth { server, sign_out: false }.into(),
        ServerAction::SignOut => ServerAuth { server, sign_out: true }.into(),
        ServerAction::Start => ServerStart { server: Some(server), all: false }.into(),
        ServerAction::Stop => ServerStop { server: Some(server), all: false }.into(),
        ServerAction::Restart => ServerRestart { server: Some(server), all: false }.into(),
        ServerAction::Refresh => ServerRefresh { server: Some(server), all: false }.into(),
        // Several files may disable it.
        ServerAction::Enable => ServerEnable { server, enabled: true, scope: None }.into(),
        ServerAction::Disable => ServerEnable { server, enabled: false, scope: Some(scope.into()) }.into(),
        ServerAction::ShowTools => ServerToggle { server, enabled: true }.into(),
        ServerAction::HideTools => ServerToggle { server, enabled: false }.into(),
        ServerAction::Test => ServerTest { server: Some(server), config: None }.into(),
        ServerAction::ShowLog => ServerLogs { server, limit: None }.into(),
        ServerAction::Move(to) => ServerMove { server, from: scope.into(), to, file: None }.into(),
        ServerAction::Remove => ServerRemove { server, scope: scope.into() }.into(),
    }
}

/// Opens the question: an action does not show the definition, so it cannot decide.
fn trust(server: ServerName) -> Invocation {
    ServerTrust::ask(server).into()
}

impl From<ServerAction> for ActionKind {
    fn from(action: ServerAction) -> Self {
        match action {
            ServerAction::Trust => Self::Trust,
            ServerAction::SignIn => Self::SignIn,
            ServerAction::Start => Self::Start,
            ServerAction::Stop => Self::Stop,
            ServerAction::Restart => Self::Restart,
            ServerAction::Refresh => Self::Refresh,
            ServerAction::Enable => Self::Enable,
            ServerAction::ShowTools => Self::ShowTools,
            ServerAction::Test => Self::Test,
            ServerAction::ShowLog => Self::ShowLog,
            ServerAction::HideTools => Self::HideTools,
            ServerAction::SignOut => Self::SignOut,
            ServerAction::RevokeTrust => Self::RevokeTrust,
            ServerAction::Disable => Self::Disable,
            ServerAction::Move(_) => Self::Move,
            ServerAction::Remove => Self::Remove,
        }
    }
}

impl Remedy {
    fn new(title: String, invocation: impl Into<Invocation>) -> Self {
        let Invocation { command, arguments } = invocation.into();
        Self { title, command: command.to_owned(), arguments }
    }

    /// Where grants can be revoked.
    pub fn grants() -> Self {
        Self::new("List the grants".to_owned(), Grants {})
    }

    /// Where a grant that was just given can be revoked.
    pub fn undo_grant() -> Self {
        Self { title: "Revoke the grant…".to_owned(), ..Self::grants() }
    }

    pub fn servers() -> Self {
        Self::new("List the servers".to_owned(), Servers::default())
    }

    /// Where the trust in several servers can be revoked or given.
    pub fn undo_trust_in_several(trusted: bool) -> Self {
        let title = if trusted { "Revoke their trust…" } else { "Trust them…" };
        Self { title: title.to_owned(), ..Self::servers() }
    }

    pub fn undo_trust(server: &ServerName, trusted: bool) -> Self {
        let (action, command) = match trusted {
            true => (ServerAction::RevokeTrust, ServerTrust::distrust(server.clone()).into()),
            false => (ServerAction::Trust, trust(server.clone())),
        };
        Self::new(action.title_with(server), command)
    }

    /// What makes a server usable again.
    pub fn of_server(view: &ServerView) -> Option<Self> {
        let action = view.remedy()?;
        Some(Self::new(action.title_with(&view.definition.name), invocation(action, view)))
    }

    /// What the user can do about an error.
    pub fn of_error(error: &Error) -> Option<Self> {
        Some(match error {
            Error::NoServer(_) => Self::servers(),
            Error::NoTool { server, .. } | Error::ToolDisabled { tool: ToolId { server, .. }, .. } => {
                let tools = Tools { server: Some(server.clone()), all: true };
                Self::new(format!("List the tools of `{server}`"), tools)
            }
            Error::NoGrant(_) => Self::grants(),
            Error::NeedsTrust(server) => Self::new(ServerAction::Trust.title_with(server), trust(server.clone())),
            Error::NeedsAuth(server) => {
                let sign_in = ServerAuth { server: server.clone(), sign_out: false };
                Self::new(ServerAction::SignIn.title_with(server), sign_in)
            }
            Error::Disabled { server, in_file: true } => {
                let enable = ServerEnable { server: server.clone(), enabled: true, scope: None };
                Self::new(ServerAction::Enable.title_with(server), enable)
            }
            Error::Disabled { server, in_file: false } => {
                let show = ServerToggle { server: server.clone(), enabled: true };
                Self::new(ServerAction::ShowTools.title_with(server), show)
            }
            Error::NotRunning(server) => {
                let start = ServerStart { server: Some(server.clone()), all: false };
                Self::new(ServerAction::Start.title_with(server), start)
            }
            Error::Timeout { server, limit, setting: "timeout", .. } => {
                let timeout = limit.saturating_mul(2);
                let title = format!("Raise the timeout of `{server}` to {} s", timeout.as_secs_f64());
                Self::new(title, ServerTimeout { server: server.clone(), timeout: timeout.as_secs_f64() })
            }
            Error::InCall { cause, .. } | Error::Edited { cause, .. } => return Self::of_error(cause),
            _ => return None,
        })
    }
}
