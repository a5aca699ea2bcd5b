//! Code actions in a config file: quick fixes, and actions for the server or tool at the cursor. Code actions in other
//! files are in `user_actions`.

use super::command::Command;
use super::config_view::ConfigView;
use super::entry::ServerEntry;
use super::fixes;
use super::lenses::runnable;
use crate::config::edit::{self, Edit};
use crate::config::problem::{Fix, TextEdit};
use crate::config::tree::{Member, Node};
use crate::config::{Problem, Span};
use crate::engine::snapshot::{ServerView, Trust};
use crate::model::{Level, Scope, Status};
use crate::text::one_line;

#[derive(Debug, Clone, PartialEq)]
pub struct CodeAction {
    pub title: String,
    pub kind: Kind,
    pub effect: Effect,
    /// The problem that it fixes.
    pub problem: Option<Problem>,
}

impl CodeAction {
    /// Whether it is the best fix for its problem.
    pub fn is_preferred(&self, actions: &[Self]) -> bool {
        let fixes = |action: &&Self| action.kind == Kind::QuickFix && action.problem == self.problem;
        actions.iter().find(fixes).is_some_and(|best| std::ptr::eq(best, self))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    QuickFix,
    /// Edits the file.
    Rewrite,
    /// Runs a command for a server.
    Run,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    Edit(Vec<TextEdit>),
    Run(Command),
    /// Moves the secret in this span to the keyring.
    StoreSecret(Span),
}

/// The code actions for a part of the file. `problems` are the diagnostics of the whole file.
pub fn actions(config: &ConfigView<'_>, part: &Span, problems: &[Problem]) -> Vec<CodeAction> {
    let touches = |span: &Span| span.start <= part.end && part.start <= span.end;
    let here: Vec<&Problem> = problems.iter().filter(|problem| touches(&problem.span)).collect();
    let mut actions: Vec<CodeAction> = here.iter().flat_map(|problem| quick_fixes(config, problem)).collect();
    actions.extend(rename_section(config, part));
    let Some(entry) = config.entry_at(part.start) else { return actions };
    if let Some(view) = entry.view {
        actions.extend(here.iter().filter_map(|problem| remedy(view, problem)));
    }
    if ["type", "transport", "transportType"].iter().all(|key| entry.value(key).is_none())
        && let Some(definition) = entry.definition
        && let Some(fix) = fixes::add_type(config, &entry.member.value, definition.spec.launch.transport())
    {
        let (title, effect) = (capitalized(&fix.title), Effect::Edit(fix.edits));
        actions.push(CodeAction { title, kind: Kind::Rewrite, effect, problem: None });
    }
    levels(config, &entry, part, &mut actions);
    if let Some(view) = entry.view {
        let enabled = entry.definition.map_or(view.definition.spec.enabled, |definition| definition.spec.enabled);
        // An action that fixes a problem here is already in the list.
        let titles: Vec<String> = actions.iter().map(|action| action.title.clone()).collect();
        actions.extend(of_server(view, enabled).into_iter().filter(|action| !titles.contains(&action.title)));
    }
    actions
}

fn quick_fixes(config: &ConfigView<'_>, problem: &Problem) -> Vec<CodeAction> {
    let action = |title: &str, effect| CodeAction {
        title: capitalized(title),
        kind: Kind::QuickFix,
        effect,
        problem: Some(problem.clone()),
    };
    let fixes = fixes::fixes(config, problem).into_iter();
    let mut actions: Vec<CodeAction> = fixes.map(|Fix { title, edits }| action(&title, Effect::Edit(edits))).collect();
    if let Some(secret) = fixes::move_secret(config, problem) {
        let title = format!("move to the keyring as `{}`", secret.name);
        actions.push(action(&title, Effect::StoreSecret(problem.span.clone())));
    }
    actions
}

/// Switches between `servers` and `mcpServers`, if the file has only one of them.
fn rename_section(config: &ConfigView<'_>, part: &Span) -> Option<CodeAction> {
    let root = config.tree.root.as_ref()?;
    let (ours, theirs) = (root.get("servers"), root.get("mcpServers"));
    let (section, other) = match (ours, theirs) {
        (Some(section), None) => (section, "mcpServers"),
        (None, Some(section)) => (section, "servers"),
        _ => return None,
    };
    let span = &section.key.span;
    if part.end < span.start || span.end < part.start {
        return None;
    }
    let edit = TextEdit::replace(span.clone(), format!("\"{other}\""));
    let title = format!("Change `{}` to `{other}`", section.key.text);
    Some(CodeAction { title, kind: Kind::Rewrite, effect: Effect::Edit(vec![edit]), problem: None })
}

/// The command that fixes a problem which no edit can fix.
fn remedy(view: &ServerView, problem: &Problem) -> Option<CodeAction> {
    let name = &view.definition.name;
    let (title, command) = match problem.code {
        "awaiting-trust" | "not-trusted" => (format!("Trust `{name}`"), Command::trust(name, true)),
        "needs-sign-in" => (format!("Sign in to `{name}`"), Command::on("mcp.server.auth", name)),
        "connection-failed" | "port-closed" => (format!("Restart `{name}`"), Command::on("mcp.server.restart", name)),
        _ => return None,
    };
    Some(CodeAction { title, kind: Kind::QuickFix, effect: Effect::Run(command), problem: Some(problem.clone()) })
}

/// Sets the level of the rule at the cursor, or of all tools of the server.
fn levels(config: &ConfigView<'_>, entry: &ServerEntry<'_>, part: &Span, actions: &mut Vec<CodeAction>) {
    let rules = entry.value("tools").and_then(Node::members).unwrap_or_default();
    let at_cursor = |rule: &&Member| rule.key.span.start <= part.start && part.start <= rule.value.span.end;
    let rule = rules.iter().find(at_cursor);
    let (tool, what) = match rule {
        Some(rule) => (rule.key.text.as_str(), format!("`{}`", one_line(&rule.key.text, 64))),
        None => ("*", format!("all tools of `{}`", one_line(&entry.member.key.text, 64))),
    };
    let now = match rule {
        Some(rule) => rule.value.text(),
        None => rules.iter().find(|rule| rule.key.text == "*").and_then(|rule| rule.value.text()),
    };
    let contains = |section: &&str| {
        let section = config.tree.root.as_ref().and_then(|root| root.get(section));
        section.is_some_and(|section| section.value.get(&entry.member.key.text).is_some())
    };
    let section = ["servers", "mcpServers"].into_iter().find(contains).filter(|_| config.tree.valid());
    for level in Level::ALL.into_iter().filter(|level| now != Some(level.as_str())) {
        let effect = match entry.view {
            Some(view) if editable(view) => {
                Some(Effect::Run(Command::set_level(&view.definition.name, tool, level, view.definition.scope)))
            }
            // No server uses this text yet, so it can be edited directly.
            _ => section.and_then(|section| {
                let path = [section, entry.member.key.text.as_str(), "tools", tool];
                edit::changes(config.text, config.tree, &Edit::set(&path, level.as_str().into())).ok().map(Effect::Edit)
            }),
        };
        let title = format!("Set {what} to {level}");
        actions.extend(effect.map(|effect| CodeAction { title, kind: Kind::Rewrite, effect, problem: None }));
    }
}

/// `enabled` is the state in the text, which may not be saved yet.
fn of_server(view: &ServerView, enabled: bool) -> Vec<CodeAction> {
    let mut actions = Vec::new();
    let definition = &view.definition;
    let name = &definition.name;
    let mut add = |title: String, kind, command| {
        actions.push(CodeAction { title, kind, effect: Effect::Run(command), problem: None });
    };
    let on = |command| Command::on(command, name);
    if runnable(view) {
        match view.state.status {
            Status::Stopped | Status::Failed => add(format!("Start `{name}`"), Kind::Run, on("mcp.server.start")),
            _ => {
                add(format!("Restart `{name}`"), Kind::Run, on("mcp.server.restart"));
                add(format!("Stop `{name}`"), Kind::Run, on("mcp.server.stop"));
            }
        }
        add(format!("Test `{name}`"), Kind::Run, on("mcp.server.test"));
    }
    if view.state.status == Status::NeedsAuth {
        add(format!("Sign in to `{name}`"), Kind::Run, on("mcp.server.auth"));
    }
    if view.trust != Trust::Given {
        add(format!("Trust `{name}`"), Kind::Run, Command::trust(name, true));
    } else if definition.scope.needs_trust() {
        add(format!("Revoke trust in `{name}`"), Kind::Run, Command::trust(name, false));
    }
    if !editable(view) {
        return actions;
    }
    let scope = definition.scope;
    let verb = if enabled { "Disable" } else { "Enable" };
    add(format!("{verb} `{name}`"), Kind::Rewrite, Command::enable(name, !enabled, scope));
    for to in [Scope::User, Scope::Project, Scope::Local].into_iter().filter(|to| *to != scope) {
        let file = match to {
            Scope::User => "your user config",
            Scope::Local => "your personal config for this project",
            _ => "the project config",
        };
        add(format!("Move `{name}` to {file}"), Kind::Rewrite, Command::move_server(name, scope, to));
    }
    actions
}

/// The user cannot edit managed files, and the session has no file.
fn editable(view: &ServerView) -> bool {
    matches!(view.definition.scope, Scope::User | Scope::Project | Scope::Local)
}

fn capitalized(title: &str) -> String {
    let mut letters = title.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
