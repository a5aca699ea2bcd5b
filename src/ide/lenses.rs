//! Code lenses: the state of each server, and the actions that are possible now.

use std::collections::BTreeSet;

use super::command::Command;
use super::config_view::ConfigView;
use super::entry::ServerEntry;
use super::{counted, save_preview};
use crate::config::Span;
use crate::engine::snapshot::{ServerView, Trust};
use crate::model::{PendingReason, ServerName, Status};
use crate::text::one_line;

/// A text above a span that runs a command when clicked.
#[derive(Debug, Clone, PartialEq)]
pub struct Lens {
    pub span: Span,
    pub kind: &'static str,
    pub title: String,
    pub command: Command,
}

/// The code lenses of a file. `needs_trust` lists the servers that would need trust if the file were saved; `None` if there
/// is nothing to save. Kinds in `hide` are left out.
pub fn lenses(config: &ConfigView<'_>, needs_trust: Option<&BTreeSet<ServerName>>, hide: &[String]) -> Vec<Lens> {
    let mut lenses = Vec::new();
    if let Some(root) = &config.tree.root {
        let top = root.span.start..root.span.start + 1;
        let mut add = |kind, title: String, command| lenses.push(Lens { span: top.clone(), kind, title, command });
        if let Some(needs_trust) = needs_trust {
            add("save", save_preview::summary(config, needs_trust), Command::without_params("mcp.config"));
        }
        add("reload", "Reload".to_owned(), Command::without_params("mcp.config.reload"));
        add("add", "Add server…".to_owned(), Command::in_this_file("mcp.template.insert"));
    }
    for entry in config.entries() {
        of_server(&entry, &mut lenses);
    }
    lenses.retain(|lens| !hide.iter().any(|kind| kind == lens.kind));
    lenses
}

fn of_server(entry: &ServerEntry<'_>, lenses: &mut Vec<Lens>) {
    let span = entry.member.key.span.clone();
    let mut add = |kind, title: &str, command| {
        lenses.push(Lens { span: span.clone(), kind, title: title.to_owned(), command });
    };
    let definition = entry.view.map(|view| &*view.definition).or(entry.overridden_by);
    let command = match definition {
        Some(definition) => Command::on("mcp.servers", &definition.name),
        None => Command::without_params("mcp.servers"),
    };
    if let Some(state) = state(entry) {
        add("status", &state, command);
    }
    let Some(view) = entry.view else { return };
    for (kind, title, command) in possible(view) {
        add(kind, title, command);
    }
}

/// The kind, title and command of each action that is possible now.
fn possible(view: &ServerView) -> Vec<(&'static str, &'static str, Command)> {
    let definition = &view.definition;
    let name = &definition.name;
    let on = |command| Command::on(command, name);
    let mut possible = Vec::new();
    if !definition.spec.enabled {
        possible.push(("enable", "Enable", Command::enable(name, true, definition.scope)));
        return possible;
    }
    if view.trust != Trust::Given {
        possible.push(("trust", "Trust…", Command::trust(name, true)));
    }
    if view.state.status == Status::NeedsAuth {
        possible.push(("auth", "Sign in…", on("mcp.server.auth")));
    }
    if !view.switched_on {
        possible.push(("toggle", "Show tools", Command::toggle(name, true)));
    }
    if runnable(view) {
        match view.state.status {
            Status::Stopped | Status::Failed => possible.push(("start", "Start", on("mcp.server.start"))),
            Status::Disabled => {}
            _ => {
                possible.push(("stop", "Stop", on("mcp.server.stop")));
                possible.push(("restart", "Restart", on("mcp.server.restart")));
            }
        }
        possible.push(("test", "Test", on("mcp.server.test")));
        possible.push(("logs", "Logs", on("mcp.server.logs")));
    }
    possible
}

/// Whether the server can be started: it is trusted and enabled.
pub fn runnable(view: &ServerView) -> bool {
    view.definition.spec.enabled && view.state.status != Status::Pending(PendingReason::Trust)
}

/// The state of an entry in a few words.
pub fn state(entry: &ServerEntry<'_>) -> Option<String> {
    match (entry.view, entry.overridden_by) {
        (Some(view), _) => Some(status(view)),
        (None, Some(other)) => Some(format!("overridden by scope {}", other.scope)),
        (None, None) => entry.definition.map(|_| "new: save to start it".to_owned()),
    }
}

/// The state of a server in a few words.
pub fn status(view: &ServerView) -> String {
    let tools = view.shown_tools().count();
    match view.state.status {
        _ if !view.switched_on => "tools hidden".to_owned(),
        Status::Connected => format!("connected · {}", counted(tools, "tool")),
        Status::Pending(PendingReason::Starting) => "starting".to_owned(),
        Status::Pending(PendingReason::Trust) => "waiting for trust".to_owned(),
        Status::Pending(PendingReason::Input) => "waiting for input".to_owned(),
        Status::Pending(PendingReason::Retry(_)) => "failed, retrying".to_owned(),
        Status::Failed => match view.state.error.as_deref().and_then(|error| error.lines().next()) {
            Some(error) => format!("failed: {}", one_line(error.trim_end_matches(':'), 80)),
            None => "failed".to_owned(),
        },
        Status::NeedsAuth => "needs sign-in".to_owned(),
        Status::Disabled => "disabled".to_owned(),
        Status::Stopped => "stopped".to_owned(),
    }
}

#[cfg(test)]
mod tests;
