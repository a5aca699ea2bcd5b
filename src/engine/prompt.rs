//! What the user is shown before a tool runs or a definition is trusted.

use serde_json::Value;

use super::approvals::{Approval, Kind};
use super::host::question;
use super::snapshot::{Offered, ServerView};
use crate::config::Definition;
use crate::model::{Decision, Requester, RequesterKind, ToolCall};
use crate::policy::trust::Summary;
use crate::policy::{Found, Pin, View};
use crate::text::{one_line, shell_quote, visible};

/// A prompt shows this much of a server's own words about a tool; the rest is counted.
const WORDS: usize = 2_000;

/// `before` is the tool as an earlier question about this very call has shown it.
pub fn tool(
    call: &ToolCall,
    view: &ServerView,
    offered: &Offered,
    earlier: &Found,
    before: Option<&Pin>,
    sight: &View,
) -> Approval {
    let tool = &offered.tool;
    let options: Vec<&'static str> =
        Decision::ALL.into_iter().filter(|decision| sight.offers(*decision)).map(Decision::as_str).collect();
    let name = one_line(&tool.name, 128);
    let (known, since) = match earlier {
        Found::Suspended(grant) => (Some(&grant.pin), "since you allowed it"),
        Found::Live(_) | Found::Nothing => (before, "while you were asked"),
    };
    let diff = known.and_then(|pin| pin.changed(tool)).map(|lines| lines.join("\n"));
    let title = match call.requester.kind {
        RequesterKind::User => format!("Run {name} of {}?", call.tool.server),
        _ => format!("{} wants to run {name} of {}", who(&call.requester), call.tool.server),
    };
    let mut detail = visible(&tool.description, WORDS);
    if diff.is_some() {
        detail.push_str(&format!("\nThis tool has changed {since}; the difference is below."));
    }
    if let Some(file) = &view.definition.file {
        detail.push_str(&format!("\nThe server comes from {} ({}).", file.display(), view.definition.scope));
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

/// A definition before it is trusted: everything that decides what will run, nothing cut.
pub fn definition(definition: &Definition, summary: &Summary) -> String {
    let mut lines = Vec::new();
    if let Some(file) = &definition.file {
        lines.push(format!("from      {}", file.display()));
    }
    describe(&mut lines, summary);
    if let Some(fallback) = &summary.fallback {
        lines.push("if that fails:".to_owned());
        describe(&mut lines, fallback);
    }
    lines.join("\n")
}

fn describe(lines: &mut Vec<String>, summary: &Summary) {
    let mut say = |what: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            lines.push(format!("{what:<9} {value}"));
        }
    };
    let quoted: Vec<String> = summary.command.iter().map(|word| shell_quote(word)).collect();
    say("runs", Some(quoted.join(" ")));
    say("program", summary.program.clone());
    say("in", summary.cwd.clone());
    say("with", Some(summary.env.join(", ")));
    say("env file", summary.env_file.clone());
    say("connects", summary.url.clone());
    say("sends", Some(summary.headers.join(", ")));
    say("allows", Some(summary.levels.join("; ")));
    for warning in &summary.warnings {
        say("beware", Some(warning.clone()));
    }
}

fn who(requester: &Requester) -> String {
    let name = one_line(&requester.name, 80);
    match (requester.kind, name.is_empty()) {
        (RequesterKind::User, _) => "Somebody".to_owned(),
        (RequesterKind::Plugin, true) => "A plugin".to_owned(),
        (RequesterKind::Agent, true) => "An agent".to_owned(),
        (RequesterKind::Plugin, false) => format!("The plugin {name}"),
        (RequesterKind::Agent, false) => format!("The agent {name}"),
    }
}
