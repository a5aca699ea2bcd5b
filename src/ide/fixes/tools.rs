//! Fixes that hide tools of a server from agents, or show them again.

use crate::config::Span;
use crate::config::edit::{self, Edit};
use crate::config::problem::Fix;
use crate::config::tree::{Member, Node};
use crate::ide::config_view::ConfigView;
use crate::ide::entry::ServerEntry;
use crate::model::Level;
use crate::policy::is_glob;
use crate::text::counted;

/// Sets the tools that were never called to the level `disable`.
pub fn hide_unused(config: &ConfigView<'_>, span: &Span) -> Option<Fix> {
    let entry = config.entry_at(span.start)?;
    let names = config.snapshot.usage.unused(entry.view?).names;
    if entry.value("tools").is_some_and(|tools| tools.members().is_none()) {
        return None;
    }
    let disable = |path: &[&str]| Edit::set(path, Level::Disable.as_str().into());
    let title = format!("hide {} from agents", counted(names.len(), "unused tool"));
    changed(config, &entry, names.iter().map(|name| &**name), disable, title)
}

/// Removes the level `disable` from the tools of an entry.
pub fn show_hidden_tools(config: &ConfigView<'_>, entry: &ServerEntry<'_>) -> Option<Fix> {
    let rules = entry.value("tools").and_then(Node::members).unwrap_or_default();
    let is_hidden = |rule: &&Member| rule.value.text() == Some(Level::Disable.as_str()) && !is_glob(&rule.key.text);
    let hidden: Vec<&str> = rules.iter().filter(is_hidden).map(|rule| rule.key.text.as_str()).collect();
    if hidden.is_empty() {
        return None;
    }
    let title = format!("show {} to agents again", counted(hidden.len(), "hidden tool"));
    changed(config, entry, hidden.into_iter(), Edit::remove, title)
}

/// The fix that edits the rules of these tools.
fn changed<'a>(
    config: &ConfigView<'_>,
    entry: &ServerEntry<'_>,
    tools: impl Iterator<Item = &'a str>,
    edit: impl Fn(&[&str]) -> Edit,
    title: String,
) -> Option<Fix> {
    let name = entry.member.key.text.as_str();
    let section = config.tree.section_of(name).filter(|_| config.tree.valid())?;
    let edits: Vec<Edit> = tools.map(|tool| edit(&[section, name, "tools", tool])).collect();
    let new = edit::apply(config.text, &edits).ok()?;
    edit::difference(config.text, &new).map(|edit| Fix { title, edits: vec![edit] })
}
