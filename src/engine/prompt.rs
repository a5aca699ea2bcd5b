//! The questions that the user sees before a tool runs or a definition is trusted.

mod agent_action;

pub use agent_action::agent_action;

use super::approvals::{ALLOW_READ_ONLY, About, Approval, Kind, ShownArguments};
use super::host::question;
use super::snapshot::{OfferedTool, ServerView};
use crate::config::Definition;
use crate::model::{CallKind, Decision, Requester, RequesterKind, Subject, Tool, ToolCall};
use crate::policy::trust::Summary;
use crate::policy::{AgentAccess, GrantMatch, Pin};
use crate::server::transport::ledger::size;
use crate::text::{exact, one_line, quoted, visible};

/// How much of a tool's description the prompt shows. It says how much is left out.
const MAX_DESCRIPTION: usize = 2_000;
/// How much of a name or URI a title shows. A longer URI is complete below it.
const MAX_NAME: usize = 128;
/// How much of the metadata of a call the prompt shows. It says how long it is.
const MAX_META: usize = 1_000;
/// How long the unknown fields of a call may be.
pub const MAX_UNKNOWN: usize = 4_000;
/// How long the one line about a question is.
const MAX_SUMMARY: usize = 200;

/// Begins the line that says where a server is defined.
pub const DEFINED_IN: &str = "The server is defined in";

/// `before` is the tool as an earlier question about the same call has shown it.
pub fn tool(
    call: &ToolCall,
    view: &ServerView,
    offered: &OfferedTool,
    grant_match: &GrantMatch,
    before: Option<&Pin>,
    agent_view: &AgentAccess,
) -> Approval {
    let tool = &offered.tool;
    let mut options: Vec<&'static str> =
        Decision::ALL.into_iter().filter(|decision| agent_view.offers(*decision)).map(Decision::as_str).collect();
    let read_only_tools = view.shown_tools().filter(|other| other.tool.is_read_only()).count();
    let session = options.iter().position(|option| *option == Decision::AllowSession.as_str());
    if let Some(session) = session.filter(|_| tool.is_read_only() && read_only_tools > 1) {
        options.insert(session + 1, ALLOW_READ_ONLY);
    }
    let about = About::of(tool);
    let (known, since) = match grant_match {
        GrantMatch::Suspended(grant) => (Some(&grant.pin), "since you allowed it"),
        GrantMatch::Active(_) | GrantMatch::None => (before, "while you were being asked"),
    };
    let diff = known.and_then(|pin| pin.changed(tool)).map(|lines| lines.join("\n"));
    let action = action(call, tool);
    let title = match call.requester.kind {
        RequesterKind::User => format!("{}?", capitalized(&action)),
        _ => format!("{} wants to {action}", describe_requester(&call.requester)),
    };
    let mut detail = about.as_ref().map(About::explain).unwrap_or_default();
    // Indented, so that no line of it looks like one of ours.
    detail.push_str(&visible(&tool.description, MAX_DESCRIPTION).replace('\n', "\n  "));
    if let Some(meta) = metadata(call) {
        detail.push_str(&format!("\n{meta}"));
    }
    if let Some(unknown) = unknown_fields(call) {
        detail.push_str(&format!("\n{unknown}"));
    }
    if diff.is_some() {
        let noun = about.as_ref().map_or("tool", About::noun);
        detail.push_str(&format!("\nThis {noun} has changed {since}. The difference is shown below."));
    }
    if let Some(file) = &view.definition.file {
        let file = exact(&file.display().to_string());
        detail.push_str(&format!("\n{DEFINED_IN} {file} ({} scope).", view.definition.scope));
    }
    Approval {
        tool: about.is_none().then(|| tool.name.to_string()),
        arguments: (!matches!(about, Some(About::Resource { .. })))
            .then(|| ShownArguments::new(call.arguments.clone())),
        summary: match about {
            Some(_) => one_line(&action, MAX_SUMMARY),
            None => summary_of_call(call, &quoted(&tool.name, MAX_NAME)),
        },
        detail: detail.trim().to_owned(),
        annotations: about.is_none().then_some(tool.annotations),
        about,
        requester: call.requester.clone(),
        diff,
        ..question(&call.tool.server, Kind::Tool, title, &options)
    }
}

/// The metadata that the server gets in addition to the arguments. The user must see it, because no rule is about it.
fn metadata(call: &ToolCall) -> Option<String> {
    // What editors and the shell add is our own.
    let is_given = call.requester.kind == RequesterKind::Agent && !call.meta.is_empty();
    let text = serde_json::to_string(&*call.meta).ok().filter(|_| is_given)?;
    let shown = one_line(&text, MAX_META);
    Some(format!("The agent also sends metadata, which no rule checks ({}): {shown}", size(text.len())))
}

/// The unknown fields that the server gets in addition to the arguments.
fn unknown_fields(call: &ToolCall) -> Option<String> {
    let fields = &call.unknown_fields;
    let text = (!fields.is_empty()).then(|| serde_json::to_string(&**fields).ok())??;
    // In full: `MAX_UNKNOWN` limits it, and an escape takes at most ten characters.
    let shown = one_line(&text, 10 * MAX_UNKNOWN);
    Some(format!("The agent also sends fields that MCP does not define, which no rule checks: {shown}"))
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// What the requester wants to do.
fn action(call: &ToolCall, tool: &Tool) -> String {
    let (name, server) = (quoted(tool.own_name(), MAX_NAME), &call.tool.server);
    match call.kind {
        CallKind::Tool => format!("run {name} on `{server}`"),
        CallKind::Resource => format!("read {name} from `{server}`"),
        CallKind::Subscription => format!("watch {name} of `{server}` for changes"),
        CallKind::Prompt => format!("use the prompt {name} of `{server}`"),
        CallKind::Completion => format!("complete {name} of `{server}`"),
        CallKind::Hook => format!("use its tool {name}"),
    }
}

impl About {
    /// `None` for a tool.
    fn of(tool: &Tool) -> Option<Self> {
        let name = exact(tool.own_name());
        match &tool.subject {
            Subject::Tool => None,
            Subject::Resource { template, .. } => {
                Some(Self::Resource { uri: name, template: template.as_deref().map(exact) })
            }
            Subject::Prompt { .. } => Some(Self::Prompt { name }),
            Subject::Agent => Some(Self::AgentTool { name, target: None }),
        }
    }

    pub fn noun(&self) -> &'static str {
        match self {
            Self::Resource { .. } => "resource",
            Self::Prompt { .. } => "prompt",
            Self::AgentTool { .. } => "tool",
        }
    }

    /// What the server gets, and where it comes from.
    fn explain(&self) -> String {
        match self {
            Self::Resource { uri, template: Some(template) } => {
                format!("The server gets this URI: {uri}\nIt matches the template {}.\n", quoted(template, usize::MAX))
            }
            Self::Resource { uri, template: None } => {
                format!("The server gets this URI: {uri}\nIt does not match any template of the server.\n")
            }
            Self::Prompt { .. } | Self::AgentTool { .. } => String::new(),
        }
    }
}

/// The tool and its arguments.
fn summary_of_call(call: &ToolCall, name: &str) -> String {
    let arguments = serde_json::to_string(&*call.arguments).unwrap_or_default();
    one_line(&format!("{name} on `{}` {arguments}", call.tool.server), MAX_SUMMARY)
}

/// The server, and its command or URL.
pub fn summary_of_definition(definition: &Definition, summary: &Summary) -> String {
    let lines = summary.lines(None);
    let launch = lines.iter().find_map(|line| line.strip_prefix("runs").or_else(|| line.strip_prefix("connects")));
    one_line(&format!("`{}` {}", definition.name, launch.unwrap_or_default().trim()), MAX_SUMMARY)
}

/// A definition before it is trusted: everything that decides what will run, never truncated.
pub fn definition(definition: &Definition, summary: &Summary) -> String {
    let mut lines = Vec::new();
    if definition.replaces_own() {
        lines.push(format!("warning   replaces your own `{}`, which does not run in this workspace", definition.name));
    }
    lines.extend(summary.lines(definition.file.as_deref()));
    lines.join("\n")
}

/// A server of the user before the first one runs in a folder.
pub fn folder(definition: &Definition, summary: &Summary) -> String {
    let why = "It would run in this folder, so it can run code from the repository. You are asked once per folder.";
    format!("{why}\n{}", self::definition(definition, summary))
}

/// A server of the user whose launch was changed by another program than an attached editor.
pub fn own_launch(definition: &Definition, summary: &Summary) -> String {
    let why = "This change was not made in an editor with mcp-sidecar or with an mcp-sidecar command. If you did not \
               make it, another program did: do not trust it.";
    format!("{why}\n{}", self::definition(definition, summary))
}

pub fn describe_requester(requester: &Requester) -> String {
    let name = quoted(&requester.name, 80);
    match (requester.kind, requester.name.trim().is_empty()) {
        (RequesterKind::User, _) => "The user".to_owned(),
        (RequesterKind::Plugin, true) => "A plugin".to_owned(),
        (RequesterKind::Agent, true) => "An agent".to_owned(),
        (RequesterKind::Plugin, false) => format!("The plugin {name}"),
        (RequesterKind::Agent, false) => format!("The agent {name}"),
    }
}
