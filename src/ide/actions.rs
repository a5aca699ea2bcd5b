//! Code actions in a config file: quick fixes, and actions for the server or tool at the cursor. Code actions in other
//! files are in `user_actions`.

use std::sync::Arc;

use super::config_view::ConfigView;
use super::entry::ServerEntry;
use super::fixes;
use super::lenses::THIS_FILE;
use crate::config::edit::{self, Edit};
use crate::config::problem::{Code, Fix, TextEdit};
use crate::config::sections::{MCP_SERVERS, SECTIONS, SERVERS};
use crate::config::tree::{Member, Node};
use crate::config::{Problem, Span};
use crate::engine::server_actions::{ServerAction, has_file};
use crate::engine::snapshot::{OfferedTool, ServerView};
use crate::model::{Level, Scope, Status};
use crate::protocol::actions::{Invocation, invocation};
use crate::protocol::commands::{ConfigReload, ServerEnable, TemplateInsert, ToolOpen, ToolPolicy};
use crate::text::one_line;

/// How many tools of a server a menu lists.
const MAX_TOOLS: usize = 30;

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
    Run(Invocation),
    /// Moves the secret in this span to the keyring.
    StoreSecret(Span),
    /// Asks for the level of what is in this span.
    ChooseLevel(Span),
}

/// The code actions for a part of the file. `problems` are the diagnostics of the whole file.
pub fn actions(config: &ConfigView<'_>, part: &Span, problems: &[Problem]) -> Vec<CodeAction> {
    let touches = |span: &Span| span.start <= part.end && part.start <= span.end;
    let here: Vec<&Problem> = problems.iter().filter(|problem| touches(&problem.span)).collect();
    let mut actions: Vec<CodeAction> = here.iter().flat_map(|problem| quick_fixes(config, problem)).collect();
    actions.extend(rename_section(config, part));
    let Some(entry) = config.entry_on_line(part.start) else { return actions };
    if let Some(view) = entry.view {
        actions.extend(here.iter().filter_map(|problem| remedy(view, problem)));
    }
    if let Some(view) = entry.view {
        let definition = entry.definition.or(entry.restricts.map(|(definition, _)| definition));
        let enabled = definition.map_or(view.definition.spec.enabled, |definition| definition.spec.enabled);
        // An action that fixes a problem here is already in the list.
        let titles: Vec<String> = actions.iter().map(|action| action.title.clone()).collect();
        let scope = entry.restricts.map(|(_, restriction)| restriction.scope);
        actions.extend(of_server(view, enabled, scope).into_iter().filter(|action| !titles.contains(&action.title)));
    }
    if ["type", "transport", "transportType"].iter().all(|key| entry.value(key).is_none())
        && let Some(definition) = entry.definition
        && let Some(fix) = fixes::add_type(config, &entry.member.value, definition.spec.launch.transport())
    {
        let (title, effect) = (capitalized(&fix.title), Effect::Edit(fix.edits));
        actions.push(CodeAction { title, kind: Kind::Rewrite, effect, problem: None });
    }
    if let Some(fix) = fixes::show_hidden_tools(config, &entry) {
        let (title, effect) = (capitalized(&fix.title), Effect::Edit(fix.edits));
        actions.push(CodeAction { title, kind: Kind::Rewrite, effect, problem: None });
    }
    if let Some(LevelChoices { what, .. }) = level_choices(config, part) {
        let (title, effect) = (format!("Set the level of {what}…"), Effect::ChooseLevel(part.clone()));
        actions.push(CodeAction { title, kind: Kind::Rewrite, effect, problem: None });
    }
    actions
}

/// What the lenses at the top of the file do.
pub fn of_file(config: &ConfigView<'_>) -> Vec<CodeAction> {
    let action = |title: &str, command: Invocation| CodeAction {
        title: title.to_owned(),
        kind: Kind::Run,
        effect: Effect::Run(command),
        problem: None,
    };
    let add = TemplateInsert { uri: THIS_FILE.to_owned(), template: None };
    let reload = (!config.is_outside()).then(|| action("Reload the MCP config", ConfigReload {}.into()));
    let has_root = config.tree.root.is_some();
    reload.into_iter().chain(has_root.then(|| action("Add server…", add.into()))).collect()
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
    let (section, other) = match SECTIONS.map(|key| root.get(key)) {
        [Some(section), None] => (section, MCP_SERVERS),
        [None, Some(section)] => (section, SERVERS),
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
    let about_state = matches!(
        problem.code,
        Code::AwaitingTrust | Code::NotTrusted | Code::NeedsSignIn | Code::ConnectionFailed | Code::PortClosed
    );
    let action = view.remedy().filter(|_| about_state)?;
    Some(CodeAction { kind: Kind::QuickFix, problem: Some(problem.clone()), ..on_server(action, view) })
}

fn on_server(action: ServerAction, view: &ServerView) -> CodeAction {
    let kind = match action {
        ServerAction::Enable | ServerAction::Disable | ServerAction::Move(_) => Kind::Rewrite,
        _ => Kind::Run,
    };
    let effect = Effect::Run(invocation(action, view));
    CodeAction { title: action.title_with(&view.definition.name), kind, effect, problem: None }
}

/// What a level can be set for, and what sets each.
#[derive(Debug, Clone, PartialEq)]
pub struct LevelChoices {
    pub what: String,
    pub levels: Vec<(Level, Effect)>,
}

/// The levels that the rule at the cursor, or all tools of the server, can be set to.
pub fn level_choices(config: &ConfigView<'_>, part: &Span) -> Option<LevelChoices> {
    let entry = &config.entry_at(part.start)?;
    let mut levels = Vec::new();
    let rules = entry.value("tools").and_then(Node::members).unwrap_or_default();
    let rule = rule_at(config, entry, part);
    let (tool, what) = match rule {
        Some(rule) => (rule.key.text.as_str(), format!("`{}`", one_line(&rule.key.text, 64))),
        None => ("*", format!("all tools of `{}`", one_line(&entry.member.key.text, 64))),
    };
    let now = match rule {
        Some(rule) => rule.value.text(),
        None => rules.iter().find(|rule| rule.key.text == "*").and_then(|rule| rule.value.text()),
    };
    let section = config.tree.section_of(&entry.member.key.text).filter(|_| config.tree.valid());
    let restricting = entry.restricts.map(|(_, restriction)| restriction.scope);
    let can_set = |level: &Level| now != Some(level.as_str()) && !(restricting.is_some() && level.widens());
    for level in Level::ALL.into_iter().filter(can_set) {
        let scope = restricting.or(entry.view.map(|view| view.definition.scope)).filter(|scope| has_file(*scope));
        let effect = match (entry.view, scope) {
            (Some(view), Some(scope)) => {
                let server = view.definition.name.clone();
                Some(Effect::Run(
                    ToolPolicy { server, tool: tool.to_owned(), level: Some(level), scope: Some(scope.into()) }.into(),
                ))
            }
            // No server uses this text yet, so it can be edited directly.
            _ => section.and_then(|section| {
                let path = [section, entry.member.key.text.as_str(), "tools", tool];
                edit::changes(config.text, config.tree, &Edit::set(&path, level.as_str().into())).ok().map(Effect::Edit)
            }),
        };
        levels.extend(effect.map(|effect| (level, effect)));
    }
    (!levels.is_empty()).then_some(LevelChoices { what, levels })
}

/// Calls the tool at the cursor; elsewhere in a server's entry, any of its tools.
pub fn tool_calls(config: &ConfigView<'_>, part: &Span) -> Vec<CodeAction> {
    let Some(entry) = config.entry_on_line(part.start) else { return Vec::new() };
    let Some(view) = entry.view.filter(|view| view.state.status == Status::Connected) else { return Vec::new() };
    let rule = rule_at(config, &entry, part);
    let wanted = |offered: &&Arc<OfferedTool>| {
        offered.ruling.level != Level::Deny && rule.is_none_or(|rule| rule.key.text == *offered.tool.name)
    };
    let action = |offered: &Arc<OfferedTool>| CodeAction {
        title: format!("Call `{}` of `{}`…", one_line(&offered.tool.name, 64), offered.id.server),
        kind: Kind::Run,
        effect: Effect::Run(ToolOpen { tool: offered.id.to_string() }.into()),
        problem: None,
    };
    view.shown_tools().filter(wanted).take(MAX_TOOLS).map(action).collect()
}

/// The rule for a tool at the cursor.
fn rule_at<'a>(config: &ConfigView<'_>, entry: &'a ServerEntry<'_>, part: &Span) -> Option<&'a Member> {
    let rules = entry.value("tools").and_then(Node::members).unwrap_or_default();
    let whole = |rule: &Member| rule.key.span.start..rule.value.span.end;
    let contains = |rule: &&Member| whole(rule).start <= part.start && part.start <= whole(rule).end;
    rules.iter().find(contains).or_else(|| rules.iter().find(|rule| config.is_beside(part.start, &whole(rule))))
}

/// `enabled` is the state in the text, which may not be saved yet. A menu cannot ask again, so it has no destructive
/// action. In an entry that restricts the server, `scope` is that of the entry: the menu changes this file.
fn of_server(view: &ServerView, enabled: bool, scope: Option<Scope>) -> Vec<CodeAction> {
    let as_written = |action| match action {
        ServerAction::Enable | ServerAction::Disable if enabled => ServerAction::Disable,
        ServerAction::Enable | ServerAction::Disable => ServerAction::Enable,
        other => other,
    };
    let actions = view.actions().into_iter().filter(|action| !action.is_destructive()).map(as_written);
    let here = |action: ServerAction| match (action, scope) {
        (ServerAction::Move(_), Some(_)) => None,
        (ServerAction::Disable, Some(scope)) => {
            let server = view.definition.name.clone();
            let disable = ServerEnable { server, enabled: false, scope: Some(scope.into()) };
            Some(CodeAction { effect: Effect::Run(disable.into()), ..on_server(action, view) })
        }
        _ => Some(on_server(action, view)),
    };
    actions.filter_map(here).collect()
}

fn capitalized(title: &str) -> String {
    let mut letters = title.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
