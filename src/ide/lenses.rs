//! Code lenses: what each server is doing, and what can be done with it now.

use std::collections::BTreeSet;

use super::command::Command;
use super::entry::Entry;
use super::page::Page;
use super::save;
use crate::config::Span;
use crate::engine::snapshot::{ServerView, Trust};
use crate::model::{PendingReason, ServerName, Status};
use crate::text::one_line;

/// A line of text over a place, which runs a command when it is clicked.
#[derive(Debug, Clone, PartialEq)]
pub struct Lens {
    pub span: Span,
    pub kind: &'static str,
    pub title: String,
    pub command: Command,
}

/// The lenses of a file. `unsaved` tells, for a text that differs from its file, which servers a save would have to
/// ask trust for. Kinds in `hide` are left out: the editor shows its own.
pub fn lenses(page: &Page<'_>, unsaved: Option<&BTreeSet<ServerName>>, hide: &[String]) -> Vec<Lens> {
    let mut lenses = Vec::new();
    if let Some(root) = &page.tree.root {
        let top = root.span.start..root.span.start + 1;
        let mut add = |kind, title: String, command| lenses.push(Lens { span: top.clone(), kind, title, command });
        if let Some(needing_trust) = unsaved {
            add("save", save::sentence(page, needing_trust), Command::plain("mcp.config"));
        }
        add("reload", "Reload".to_owned(), Command::plain("mcp.config.reload"));
        add("add", "Add server…".to_owned(), Command::in_this_file("mcp.template.insert"));
    }
    for entry in page.entries() {
        of_server(&entry, &mut lenses);
    }
    lenses.retain(|lens| !hide.iter().any(|kind| kind == lens.kind));
    lenses
}

fn of_server(entry: &Entry<'_>, lenses: &mut Vec<Lens>) {
    let span = entry.member.key.span.clone();
    let mut add = |kind, title: &str, command| {
        lenses.push(Lens { span: span.clone(), kind, title: title.to_owned(), command });
    };
    let shown = entry.view.map(|view| &*view.definition).or(entry.winner);
    let command = shown.map_or_else(|| Command::plain("mcp.servers"), |of| Command::on("mcp.servers", &of.name));
    if let Some(state) = state(entry) {
        add("status", &state, command);
    }
    let Some(view) = entry.view else { return };
    for (kind, title, command) in possible(view) {
        add(kind, title, command);
    }
}

/// Kind, title and command of everything that makes sense now.
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
        possible.push(("toggle", "Show its tools", Command::toggle(name, true)));
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

/// Whether starting, stopping and trying it out can lead anywhere: not before it is trusted, nor while its file says no.
pub fn runnable(view: &ServerView) -> bool {
    view.definition.spec.enabled && view.state.status != Status::Pending(PendingReason::Trust)
}

/// What has become of an entry, in a few words.
pub fn state(entry: &Entry<'_>) -> Option<String> {
    match (entry.view, entry.winner) {
        (Some(view), _) => Some(status(view)),
        (None, Some(winner)) => Some(format!("hidden by scope {}", winner.scope)),
        (None, None) => entry.definition.map(|_| "new: takes effect when saved".to_owned()),
    }
}

/// What a server is doing, in a few words.
pub fn status(view: &ServerView) -> String {
    let tools = view.shown_tools().count();
    match view.state.status {
        _ if !view.switched_on => "tools hidden".to_owned(),
        Status::Connected if tools == 1 => "connected · 1 tool".to_owned(),
        Status::Connected => format!("connected · {tools} tools"),
        Status::Pending(PendingReason::Starting) => "starting".to_owned(),
        Status::Pending(PendingReason::Trust) => "awaiting trust".to_owned(),
        Status::Pending(PendingReason::Input) => "awaiting input".to_owned(),
        Status::Pending(PendingReason::Retry(_)) => "failed, trying again".to_owned(),
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
