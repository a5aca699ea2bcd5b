//! Code actions of a config file: quick fixes for its problems, and what can be done with the server or tool under
//! the cursor. What ordinary files are offered is in `ordinary`.

use super::command::Command;
use super::entry::Entry;
use super::fixes;
use super::lenses::runnable;
use super::page::Page;
use crate::config::edit::{self, Edit};
use crate::config::problem::{Fix, TextEdit};
use crate::config::tree::{Member, Node};
use crate::config::{Problem, Span};
use crate::engine::snapshot::{ServerView, Trust};
use crate::model::{Level, Scope, Status};
use crate::text::one_line;

/// Something that the user may choose.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    pub title: String,
    pub kind: Kind,
    pub deed: Deed,
    /// The problem that it removes.
    pub problem: Option<Problem>,
}

impl Offer {
    /// Whether it is the one to take without a look at the others: the best of those that remove its problem.
    pub fn is_preferred(&self, offers: &[Self]) -> bool {
        let fixes = |offer: &&Self| offer.kind == Kind::QuickFix && offer.problem == self.problem;
        offers.iter().find(fixes).is_some_and(|best| std::ptr::eq(best, self))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    QuickFix,
    /// Changes the file.
    Rewrite,
    /// Does something with a server.
    Run,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Deed {
    Edit(Vec<TextEdit>),
    Run(Command),
    /// Puts the secret that stands here into the keyring.
    Keep(Span),
}

/// What can be done here. `problems` are all of the file, live ones included.
pub fn actions(page: &Page<'_>, part: &Span, problems: &[Problem]) -> Vec<Offer> {
    let touches = |span: &Span| span.start <= part.end && part.start <= span.end;
    let here: Vec<&Problem> = problems.iter().filter(|problem| touches(&problem.span)).collect();
    let mut offers: Vec<Offer> = here.iter().flat_map(|problem| quick_fixes(page, problem)).collect();
    offers.extend(other_section(page, part));
    let Some(entry) = page.entry_at(part.start) else { return offers };
    if let Some(view) = entry.view {
        offers.extend(here.iter().filter_map(|problem| remedy(view, problem)));
    }
    if ["type", "transport", "transportType"].iter().all(|key| entry.value(key).is_none())
        && let Some(definition) = entry.definition
        && let Some(fix) = fixes::add_type(page, &entry.member.value, definition.spec.launch.transport())
    {
        let (title, deed) = (sentence(&fix.title), Deed::Edit(fix.edits));
        offers.push(Offer { title, kind: Kind::Rewrite, deed, problem: None });
    }
    levels(page, &entry, part, &mut offers);
    if let Some(view) = entry.view {
        let enabled = entry.definition.map_or(view.definition.spec.enabled, |definition| definition.spec.enabled);
        // What helps against a problem here is offered for that already.
        let offered: Vec<String> = offers.iter().map(|offer| offer.title.clone()).collect();
        offers.extend(of_server(view, enabled).into_iter().filter(|offer| !offered.contains(&offer.title)));
    }
    offers
}

fn quick_fixes(page: &Page<'_>, problem: &Problem) -> Vec<Offer> {
    let offer = |title: &str, deed| Offer {
        title: sentence(title),
        kind: Kind::QuickFix,
        deed,
        problem: Some(problem.clone()),
    };
    let fixes = fixes::fixes(page, problem).into_iter();
    let mut offers: Vec<Offer> = fixes.map(|Fix { title, edits }| offer(&title, Deed::Edit(edits))).collect();
    if let Some(kept) = fixes::secret(page, problem) {
        let title = format!("move it into the keyring as `{}`", kept.name);
        offers.push(offer(&title, Deed::Keep(problem.span.clone())));
    }
    offers
}

/// The other spelling of `servers`, under the cursor; both at once are one section each.
fn other_section(page: &Page<'_>, part: &Span) -> Option<Offer> {
    let root = page.tree.root.as_ref()?;
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
    Some(Offer { title, kind: Kind::Rewrite, deed: Deed::Edit(vec![edit]), problem: None })
}

/// What helps against a problem that no change of the text can mend.
fn remedy(view: &ServerView, problem: &Problem) -> Option<Offer> {
    let name = &view.definition.name;
    let (title, command) = match problem.code {
        "awaiting-trust" | "not-trusted" => (format!("Trust `{name}`"), Command::trust(name, true)),
        "needs-sign-in" => (format!("Sign in at `{name}`"), Command::on("mcp.server.auth", name)),
        "connection-failed" | "port-closed" => (format!("Restart `{name}`"), Command::on("mcp.server.restart", name)),
        _ => return None,
    };
    Some(Offer { title, kind: Kind::QuickFix, deed: Deed::Run(command), problem: Some(problem.clone()) })
}

/// The level of the rule under the cursor, else of all tools of the server.
fn levels(page: &Page<'_>, entry: &Entry<'_>, part: &Span, offers: &mut Vec<Offer>) {
    let rules = entry.value("tools").and_then(Node::members).unwrap_or_default();
    let under = |rule: &&Member| rule.key.span.start <= part.start && part.start <= rule.value.span.end;
    let rule = rules.iter().find(under);
    let (tool, what) = match rule {
        Some(rule) => (rule.key.text.as_str(), format!("`{}`", one_line(&rule.key.text, 64))),
        None => ("*", format!("all tools of `{}`", one_line(&entry.member.key.text, 64))),
    };
    let now = match rule {
        Some(rule) => rule.value.text(),
        None => rules.iter().find(|rule| rule.key.text == "*").and_then(|rule| rule.value.text()),
    };
    let holds = |section: &&str| {
        let section = page.tree.root.as_ref().and_then(|root| root.get(section));
        section.is_some_and(|section| section.value.get(&entry.member.key.text).is_some())
    };
    let section = ["servers", "mcpServers"].into_iter().find(holds).filter(|_| page.tree.valid());
    for level in Level::ALL.into_iter().filter(|level| now != Some(level.as_str())) {
        let deed = match entry.view {
            Some(view) if editable(view) => {
                Some(Deed::Run(Command::level(&view.definition.name, tool, level, view.definition.scope)))
            }
            // Nothing runs from this text yet, so it is just text.
            _ => section.and_then(|section| {
                let path = [section, entry.member.key.text.as_str(), "tools", tool];
                edit::changes(page.text, page.tree, &Edit::set(&path, level.as_str().into())).ok().map(Deed::Edit)
            }),
        };
        let title = format!("Set {what} to {level}");
        offers.extend(deed.map(|deed| Offer { title, kind: Kind::Rewrite, deed, problem: None }));
    }
}

/// `enabled`: whether the text says so, which may not be saved yet.
fn of_server(view: &ServerView, enabled: bool) -> Vec<Offer> {
    let mut offers = Vec::new();
    let definition = &view.definition;
    let name = &definition.name;
    let mut add = |title: String, kind, command| {
        offers.push(Offer { title, kind, deed: Deed::Run(command), problem: None });
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
        add(format!("Sign in at `{name}`"), Kind::Run, on("mcp.server.auth"));
    }
    if view.trust != Trust::Given {
        add(format!("Trust `{name}`"), Kind::Run, Command::trust(name, true));
    } else if definition.scope.needs_trust() {
        add(format!("Withdraw trust in `{name}`"), Kind::Run, Command::trust(name, false));
    }
    if !editable(view) {
        return offers;
    }
    let scope = definition.scope;
    let word = if enabled { "Disable" } else { "Enable" };
    add(format!("{word} `{name}`"), Kind::Rewrite, Command::enable(name, !enabled, scope));
    for to in [Scope::User, Scope::Project, Scope::Local].into_iter().filter(|to| *to != scope) {
        let place = match to {
            Scope::User => "your user config",
            Scope::Local => "your personal config of this project",
            _ => "the project's config",
        };
        add(format!("Move `{name}` to {place}"), Kind::Rewrite, Command::shift(name, scope, to));
    }
    offers
}

/// Managed files belong to somebody else, and the session has no file.
fn editable(view: &ServerView) -> bool {
    matches!(view.definition.scope, Scope::User | Scope::Project | Scope::Local)
}

/// Titles of menus begin with a capital letter.
fn sentence(title: &str) -> String {
    let mut letters = title.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
