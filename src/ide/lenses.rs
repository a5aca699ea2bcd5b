//! Code lenses: the state of each server, and the actions that are possible now.

use std::collections::BTreeSet;

use super::config_view::ConfigView;
use super::entry::ServerEntry;
use super::save_preview;
use crate::config::Span;
use crate::engine::server_actions::ServerAction;
use crate::model::ServerName;
use crate::protocol::actions::{Invocation, invocation};
use crate::protocol::commands::{self, TemplateInsert};

/// The URI in a command for the current file, until the front inserts the real one.
pub const THIS_FILE: &str = "";

/// The file of a project that only mcp-sidecar reads.
const OWN_FILE: &str = "mcp.json";

/// A text above a span that runs a command when clicked.
#[derive(Debug, Clone, PartialEq)]
pub struct Lens {
    pub span: Span,
    pub kind: &'static str,
    pub title: String,
    pub command: Invocation,
}

/// What else decides about the lenses of a file.
#[derive(Debug, Default)]
pub struct LensOptions {
    /// The servers that would need trust if the file were saved; `None` if there is nothing to save.
    pub needs_trust: Option<BTreeSet<ServerName>>,
    /// Kinds of lenses to leave out.
    pub hide: Vec<String>,
    /// The name of the editor, if it starts the servers of this file itself.
    pub owner: Option<String>,
}

/// The code lenses of a file.
pub fn lenses(config: &ConfigView<'_>, options: &LensOptions) -> Vec<Lens> {
    let mut lenses = Vec::new();
    let root = config.tree.root.as_ref();
    let start = root.map_or(0, |root| root.span.start);
    let top = start..(start + 1).min(config.text.len());
    let mut add =
        |kind, title: String, command: Invocation| lenses.push(Lens { span: top.clone(), kind, title, command });
    if let Some(needs_trust) = &options.needs_trust {
        add("save", save_preview::summary(config, needs_trust), commands::Config {}.into());
    } else if !config.file.valid {
        let title = match config.snapshot.servers.values().any(|view| config.defines(view)) {
            true => "This file has syntax errors: its last valid version stays in effect",
            false => "This file has syntax errors: nothing in it is in effect",
        };
        add("save", title.to_owned(), commands::ConfigReload {}.into());
    }
    if config.is_outside() {
        let title = "Not in effect: this file is outside of the workspace";
        add("status", title.to_owned(), commands::Config {}.into());
    } else if root.is_some() {
        add("reload", "Reload".to_owned(), commands::ConfigReload {}.into());
    }
    if root.is_some() {
        add("add", "Add server…".to_owned(), TemplateInsert { uri: THIS_FILE.to_owned(), template: None }.into());
    }
    let entries = if config.is_outside() { Vec::new() } else { config.entries() };
    for entry in entries {
        of_server(&entry, options.owner.as_deref(), &mut lenses);
    }
    lenses.retain(|lens| !options.hide.iter().any(|kind| kind == lens.kind));
    lenses
}

fn of_server(entry: &ServerEntry<'_>, owner: Option<&str>, lenses: &mut Vec<Lens>) {
    let span = entry.member.key.span.clone();
    let mut add = |kind, title: &str, command: Invocation| {
        lenses.push(Lens { span: span.clone(), kind, title: title.to_owned(), command });
    };
    let definition = entry.view.map(|view| &*view.definition).or(entry.overridden_by);
    if let Some(state) = state(entry) {
        let server = definition.map(|definition| definition.name.clone());
        add("status", &state, commands::Servers { server }.into());
    }
    let Some(view) = entry.view else { return };
    if let Some(owner) = owner {
        let owner = if owner.is_empty() { "The editor" } else { owner };
        let title = format!("{owner} starts it itself, without your rules · let MCP Sidecar run it");
        let (server, scope) = (view.definition.name.clone(), view.definition.scope);
        let file = Some(OWN_FILE.to_owned());
        add("owner", &title, commands::ServerMove { server, from: scope.into(), to: scope, file }.into());
    }
    for action in view.actions() {
        if let Some(kind) = kind(action) {
            add(kind, &action.title(), invocation(action, view));
        }
    }
}

/// The kind of lens for an action, which the user can hide. `None` for actions that would only make the line longer.
fn kind(action: ServerAction) -> Option<&'static str> {
    Some(match action {
        ServerAction::Trust => "trust",
        ServerAction::SignIn => "auth",
        ServerAction::ShowTools => "toggle",
        ServerAction::Start => "start",
        ServerAction::Stop => "stop",
        ServerAction::Restart => "restart",
        ServerAction::Enable => "enable",
        ServerAction::Test => "test",
        ServerAction::ShowLog => "logs",
        ServerAction::Refresh
        | ServerAction::HideTools
        | ServerAction::SignOut
        | ServerAction::RevokeTrust
        | ServerAction::Disable
        | ServerAction::Move(_)
        | ServerAction::Remove => return None,
    })
}

/// The state of an entry in a few words.
pub fn state(entry: &ServerEntry<'_>) -> Option<String> {
    match (entry.view, entry.overridden_by) {
        (Some(view), _) => Some(view.summary().text),
        (None, Some(other)) => Some(format!("overridden by scope {}", other.scope)),
        (None, None) if entry.restricts.is_some() => None,
        (None, None) => entry.definition.map(|_| "new: save to start it".to_owned()),
    }
}

#[cfg(test)]
mod tests;
