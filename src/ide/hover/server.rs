//! A server: how it is doing, what it offers, where it comes from.

use crate::engine::snapshot::{ServerView, Trust};
use crate::ide::markdown::{block, code, line};
use crate::ide::page::Page;
use crate::model::{Status, millis};
use crate::policy::NameGlob;
use crate::policy::location;

/// How many names of tools are listed.
const MOST: usize = 40;

/// All about one server.
pub fn card(page: &Page<'_>, name: &str) -> String {
    let Some(view) = page.server(name) else {
        return format!("**{}** · not known yet: its entry counts once the file is saved without errors.", code(name));
    };
    let mut parts = vec![heading(view)];
    parts.extend(view.definition.spec.description.as_deref().map(|words| line(words, 300)));
    parts.extend(identity(view));
    parts.push(numbers(view));
    if let Trust::Needed { difference, refused } = &view.trust {
        parts.push(match refused {
            true => "You refused to trust this definition; it is not started.".to_owned(),
            false => "Not started: waits until you trust this definition.".to_owned(),
        });
        parts.extend(difference.as_deref().map(|difference| block(difference, 2_000)));
    }
    parts.extend(view.state.error.as_deref().map(|error| format!("Last error:\n{}", block(error, 2_000))));
    parts.push(origin(page, view));
    let warnings: Vec<String> = view.warnings().iter().map(|warning| format!("- {}", line(warning, 300))).collect();
    if !warnings.is_empty() {
        parts.push(format!("Worth knowing:\n{}", warnings.join("\n")));
    }
    parts.extend(tools(view));
    parts.join("\n\n")
}

/// The servers that a name or glob of a matcher means.
pub fn matched(page: &Page<'_>, pattern: &str) -> String {
    if page.server(pattern).is_some() {
        return card(page, pattern);
    }
    let glob = NameGlob::new(pattern);
    let views: Vec<_> =
        page.snapshot.servers.values().filter(|view| glob.is_match(view.definition.name.as_str())).collect();
    if views.is_empty() {
        return format!("{} matches no server.", code(pattern));
    }
    let lines: Vec<String> = views
        .iter()
        .take(MOST)
        .map(|view| format!("- {} · {}", code(view.definition.name.as_str()), view.state.status.as_str()))
        .collect();
    format!("{} matches {}:\n{}", code(pattern), counted(views.len(), "server"), lines.join("\n"))
}

fn heading(view: &ServerView) -> String {
    let status = view.state.status;
    let mut words = vec![format!("**{}**", code(view.definition.name.as_str())), status.as_str().to_owned()];
    words.extend(status.reason());
    if !view.switched_on {
        words.push("switched off".to_owned());
    }
    words.push(view.definition.spec.launch.transport().to_owned());
    words.join(" · ")
}

/// Who it says it is.
fn identity(view: &ServerView) -> Option<String> {
    let peer = view.state.peer.as_ref()?;
    Some(format!("{} {} · MCP {}", line(&peer.name, 80), line(&peer.version, 40), line(&peer.protocol_version, 20)))
}

fn numbers(view: &ServerView) -> String {
    let state = &view.state;
    let mut words = Vec::new();
    if state.status == Status::Connected {
        words.push(counted(view.shown_tools().count(), "tool"));
        words.push(counted(view.resources().len(), "resource"));
        words.push(counted(view.prompts().len(), "prompt"));
    }
    words.extend(state.latency.map(|latency| format!("latency {:.1} ms", millis(latency))));
    words.extend(state.pid.map(|pid| format!("process {pid}")));
    if state.restarts > 0 {
        words.push(counted(state.restarts as usize, "restart"));
    }
    if words.is_empty() { "Nothing is known of its tools yet.".to_owned() } else { words.join(" · ") }
}

/// Which file decides, and what that file hides.
fn origin(page: &Page<'_>, view: &ServerView) -> String {
    let definition = &view.definition;
    let from = code(&location(definition.scope, definition.file.as_deref(), Some(definition.line)));
    let mut shown = match page.defines(view) {
        true => format!("Scope: {} ({from})", definition.scope),
        false => format!("Not in force here: {from} ({}) comes first.", definition.scope),
    };
    let hidden: Vec<String> = definition
        .hides
        .iter()
        .filter(|hidden| page.defines(view) || hidden.file.as_deref() != Some(page.path))
        .map(|hidden| code(&location(hidden.scope, hidden.file.as_deref(), Some(hidden.line))))
        .collect();
    if !hidden.is_empty() {
        shown.push_str(&format!("\n\nHides: {}", hidden.join(", ")));
    }
    shown
}

fn tools(view: &ServerView) -> Option<String> {
    let names: Vec<String> = view.shown_tools().take(MOST).map(|offered| code(&offered.tool.name)).collect();
    let more = view.shown_tools().count().saturating_sub(names.len());
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!names.is_empty()).then(|| format!("Tools: {}{rest}", names.join(", ")))
}

pub fn counted(count: usize, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{ending}")
}
