//! Inlay hints: what the tools of a server cost, the level of a tool if another rule decides it, and the path of a program.

use std::path::PathBuf;

use super::config_view::ConfigView;
use super::entry::ServerEntry;
use crate::config::spec::{Restriction, ToolRule};
use crate::config::tree::{Member, Node};
use crate::config::{Launch, Span};
use crate::engine::snapshot::{OfferedTool, ServerView};
use crate::model::tokens;
use crate::policy::{NameGlob, is_glob};
use crate::text::counted;
use crate::text::one_line;

/// How many tools a tooltip lists by their cost.
const LARGEST: usize = 10;

/// Text to show after an offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hint {
    pub at: usize,
    pub label: String,
    pub tooltip: Option<String>,
}

/// The hints in a part of the file. `find` searches the PATH for a program.
pub fn hints(config: &ConfigView<'_>, part: &Span, find: impl Fn(&str) -> Option<PathBuf>) -> Vec<Hint> {
    let touches = |span: &Span| span.start <= part.end && part.start <= span.end;
    let mut hints = Vec::new();
    for entry in config.entries().iter().filter(|entry| touches(&entry.span())) {
        hints.extend(cost(entry));
        hints.extend(program(entry, &find));
        levels(config, entry, &mut hints);
    }
    hints.retain(|hint| part.start <= hint.at && hint.at <= part.end);
    hints.sort_by_key(|hint| hint.at);
    hints
}

/// How many tools agents get from the server, and what their definitions cost.
fn cost(entry: &ServerEntry<'_>) -> Option<Hint> {
    entry.definition?;
    let view = entry.view?;
    let count = view.shown_tools().count();
    let mut most: Vec<&OfferedTool> = view.shown_tools().map(|offered| &**offered).collect();
    most.sort_by_key(|offered| std::cmp::Reverse(offered.tokens()));
    let line =
        |offered: &&OfferedTool| format!("{}: {}", one_line(&offered.tool.name, 64), tokens::shown(offered.tokens()));
    let largest: Vec<String> = most.iter().take(LARGEST).map(line).collect();
    (count > 0).then(|| Hint {
        at: entry.member.key.span.end,
        label: format!("{}, {}", counted(count, "tool"), tokens::shown(view.tokens())),
        tooltip: Some(format!(
            "The definitions of its tools use this much of a model's context (estimated).\n{}",
            largest.join("\n")
        )),
    })
}

/// The path of a program that is given only by name. Unknown if the server sets its own PATH.
fn program(entry: &ServerEntry<'_>, find: impl Fn(&str) -> Option<PathBuf>) -> Option<Hint> {
    let node = entry.value("command")?;
    let node = node.items().and_then(<[Node]>::first).unwrap_or(node);
    let name = node.text().filter(|name| !name.contains(['/', '\\', '$']) && !name.is_empty())?;
    let own_path = entry.definition.is_some_and(|definition| match &definition.spec.launch {
        Launch::Stdio(stdio) => stdio.env.contains_key("PATH"),
        _ => true,
    });
    let path = if own_path { None } else { find(name) }?;
    let label = one_line(&path.display().to_string(), 120);
    Some(Hint { at: node.span.end, label, tooltip: Some("Found on the PATH".to_owned()) })
}

fn levels(config: &ConfigView<'_>, entry: &ServerEntry<'_>, hints: &mut Vec<Hint>) {
    let Some(view) = entry.view else { return };
    let (now, saved): (&[ToolRule], &[ToolRule]) = match (entry.definition, entry.restricts) {
        (Some(definition), _) => (&definition.spec.tools, &view.definition.spec.tools),
        (None, Some((_, restriction))) => {
            let same = |other: &&Restriction| (other.scope, &other.file) == (restriction.scope, &restriction.file);
            let saved = view.definition.restrictions.iter().find(same);
            (&restriction.tools, saved.map(|saved| &*saved.tools).unwrap_or_default())
        }
        (None, None) => return,
    };
    let rules = entry.value("tools").and_then(Node::members).unwrap_or_default();
    for rule in rules {
        let pattern = rule.key.text.as_str();
        let level =
            |rules: &[ToolRule]| rules.iter().find(|each| each.pattern == pattern).map(|each| each.level.clone());
        // An unsaved rule is not in effect yet.
        if level(now).is_some_and(|now| level(saved) == Some(now)) {
            hints.extend(if is_glob(pattern) { of_glob(view, rule) } else { of_tool(config, view, rule) });
        }
    }
}

/// Whether this rule decides the level of a tool. Its source then ends with the pattern.
fn decides(offered: &OfferedTool, pattern: &str) -> bool {
    offered.ruling.source.ends_with(&format!(" tools.{pattern}"))
}

fn of_tool(config: &ConfigView<'_>, view: &ServerView, rule: &Member) -> Option<Hint> {
    let pattern = rule.key.text.as_str();
    let offered = view.tools.get(pattern).filter(|offered| !decides(offered, pattern))?;
    let explained = config.snapshot.rules.explain(&offered.id.server, &offered.tool, None, view.trust_state());
    let own = explained.hides.iter().find(|hidden| hidden.source.ends_with(&format!(" tools.{pattern}")));
    Some(Hint {
        at: rule.value.span.end,
        label: format!("{} · {}", offered.ruling.level, offered.ruling.source),
        tooltip: own.and_then(|hidden| hidden.reason).map(str::to_owned),
    })
}

fn of_glob(view: &ServerView, rule: &Member) -> Option<Hint> {
    let pattern = rule.key.text.as_str();
    let glob = NameGlob::new(pattern);
    let matched: Vec<_> = view.tools.values().filter(|offered| glob.is_match(&offered.tool.name)).collect();
    let others: Vec<_> = matched.iter().filter(|offered| !decides(offered, pattern)).collect();
    if view.tools.is_empty() {
        return None;
    }
    let count = counted(matched.len(), "tool");
    let line = |offered: &&&std::sync::Arc<OfferedTool>| {
        let name = one_line(&offered.tool.name, 64);
        format!("{name}: {} · {}", offered.ruling.level, offered.ruling.source)
    };
    Some(Hint {
        at: rule.value.span.end,
        label: match others.len() {
            0 => count,
            others => format!("{count}, {others} set by other rules"),
        },
        tooltip: (!others.is_empty()).then(|| others.iter().take(20).map(line).collect::<Vec<_>>().join("\n")),
    })
}

#[cfg(test)]
mod tests;
