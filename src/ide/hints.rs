//! Inlay hints: the level that holds for a tool where another rule decides, and the program that a command leads to.

use std::path::PathBuf;

use super::entry::Entry;
use super::page::Page;
use crate::config::tree::{Member, Node};
use crate::config::{Launch, Span};
use crate::engine::snapshot::{OfferedTool, ServerView};
use crate::policy::{NameGlob, is_glob};
use crate::text::one_line;

/// Text that is shown behind an offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hint {
    pub at: usize,
    pub label: String,
    pub tooltip: Option<String>,
}

/// The hints in a part of the file. `find` looks a program up on the PATH.
pub fn hints(page: &Page<'_>, part: &Span, find: impl Fn(&str) -> Option<PathBuf>) -> Vec<Hint> {
    let touches = |span: &Span| span.start <= part.end && part.start <= span.end;
    let mut hints = Vec::new();
    for entry in page.entries().iter().filter(|entry| touches(&entry.span())) {
        hints.extend(program(entry, &find));
        levels(page, entry, &mut hints);
    }
    hints.retain(|hint| part.start <= hint.at && hint.at <= part.end);
    hints.sort_by_key(|hint| hint.at);
    hints
}

/// A bare name says nothing about which program it is. With a PATH of its own, only the start can tell.
fn program(entry: &Entry<'_>, find: impl Fn(&str) -> Option<PathBuf>) -> Option<Hint> {
    let node = entry.value("command")?;
    let node = node.items().and_then(<[Node]>::first).unwrap_or(node);
    let name = node.text().filter(|name| !name.contains(['/', '\\', '$']) && !name.is_empty())?;
    let own_path = entry.definition.is_some_and(|definition| match &definition.spec.launch {
        Launch::Stdio(stdio) => stdio.env.contains_key("PATH"),
        _ => true,
    });
    let path = if own_path { None } else { find(name) }?;
    let label = one_line(&path.display().to_string(), 120);
    Some(Hint { at: node.span.end, label, tooltip: Some("the program on the PATH".to_owned()) })
}

fn levels(page: &Page<'_>, entry: &Entry<'_>, hints: &mut Vec<Hint>) {
    let (Some(view), Some(definition)) = (entry.view, entry.definition) else { return };
    let rules = entry.value("tools").and_then(Node::members).unwrap_or_default();
    for rule in rules {
        let pattern = rule.key.text.as_str();
        let said = |rules: &[crate::config::spec::ToolRule]| {
            rules.iter().find(|each| each.pattern == pattern).map(|each| each.level.clone())
        };
        // What has not been saved has not been ruled on.
        if said(&definition.spec.tools).is_some_and(|now| said(&view.definition.spec.tools) == Some(now)) {
            hints.extend(if is_glob(pattern) { of_glob(view, rule) } else { of_tool(page, view, rule) });
        }
    }
}

/// The words of a ruling end like this where this very rule decided.
fn decides(offered: &OfferedTool, pattern: &str) -> bool {
    offered.ruling.source.ends_with(&format!(" tools.{pattern}"))
}

fn of_tool(page: &Page<'_>, view: &ServerView, rule: &Member) -> Option<Hint> {
    let pattern = rule.key.text.as_str();
    let offered = view.tools.get(pattern).filter(|offered| !decides(offered, pattern))?;
    let explained = page.snapshot.rules.explain(&offered.id.server, &offered.tool, None, view.trust_state());
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
    let elsewhere: Vec<_> = matched.iter().filter(|offered| !decides(offered, pattern)).collect();
    if view.tools.is_empty() {
        return None;
    }
    let count = if matched.len() == 1 { "1 tool".to_owned() } else { format!("{} tools", matched.len()) };
    let line = |offered: &&&std::sync::Arc<OfferedTool>| {
        let name = one_line(&offered.tool.name, 64);
        format!("{name}: {} · {}", offered.ruling.level, offered.ruling.source)
    };
    Some(Hint {
        at: rule.value.span.end,
        label: match elsewhere.len() {
            0 => count,
            others => format!("{count}, {others} by other rules"),
        },
        tooltip: (!elsewhere.is_empty()).then(|| elsewhere.iter().take(20).map(line).collect::<Vec<_>>().join("\n")),
    })
}

#[cfg(test)]
mod tests;
