//! The questions that the user sees before a tool runs or a definition is trusted.

use serde_json::Value;

use super::approvals::{Approval, Kind};
use super::host::question;
use super::snapshot::{OfferedTool, ServerView};
use crate::config::Definition;
use crate::model::{Decision, Requester, RequesterKind, ToolCall};
use crate::policy::trust::Summary;
use crate::policy::{GrantMatch, Pin, View};
use crate::text::{one_line, visible};

/// How much of a tool's description the prompt shows. It says how much is left out.
const MAX_DESCRIPTION: usize = 2_000;

/// `before` is the tool as an earlier question about the same call has shown it.
pub fn tool(
    call: &ToolCall,
    view: &ServerView,
    offered: &OfferedTool,
    grant_match: &GrantMatch,
    before: Option<&Pin>,
    agent_view: &View,
) -> Approval {
    let tool = &offered.tool;
    let options: Vec<&'static str> =
        Decision::ALL.into_iter().filter(|decision| agent_view.offers(*decision)).map(Decision::as_str).collect();
    let name = one_line(&tool.name, 128);
    let (known, since) = match grant_match {
        GrantMatch::Suspended(grant) => (Some(&grant.pin), "since you allowed it"),
        GrantMatch::Active(_) | GrantMatch::None => (before, "while you were asked"),
    };
    let diff = known.and_then(|pin| pin.changed(tool)).map(|lines| lines.join("\n"));
    let title = match call.requester.kind {
        RequesterKind::User => format!("Run `{name}` on `{}`?", call.tool.server),
        _ => format!("{} wants to run `{name}` on `{}`", describe_requester(&call.requester), call.tool.server),
    };
    let mut detail = visible(&tool.description, MAX_DESCRIPTION);
    if diff.is_some() {
        detail.push_str(&format!("\nThis tool has changed {since}. The difference is shown below."));
    }
    if let Some(file) = &view.definition.file {
        detail.push_str(&format!("\nThe server is defined in {} ({} scope).", file.display(), view.definition.scope));
    }
    Approval {
        tool: Some(tool.name.to_string()),
        arguments: Some(Value::Object((*call.arguments).clone())),
        detail: detail.trim().to_owned(),
        annotations: Some(tool.annotations),
        requester: call.requester.clone(),
        diff,
        ..question(&call.tool.server, Kind::Tool, title, &options)
    }
}

/// A definition before it is trusted: everything that decides what will run, never truncated.
pub fn definition(definition: &Definition, summary: &Summary) -> String {
    let mut lines: Vec<String> = definition.file.iter().map(|file| format!("from      {}", file.display())).collect();
    lines.extend(summary.lines());
    lines.join("\n")
}

fn describe_requester(requester: &Requester) -> String {
    let name = one_line(&requester.name, 80);
    match (requester.kind, name.is_empty()) {
        (RequesterKind::User, _) => "The user".to_owned(),
        (RequesterKind::Plugin, true) => "A plugin".to_owned(),
        (RequesterKind::Agent, true) => "An agent".to_owned(),
        (RequesterKind::Plugin, false) => format!("The plugin `{name}`"),
        (RequesterKind::Agent, false) => format!("The agent `{name}`"),
    }
}
