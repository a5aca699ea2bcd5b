//! Describes a server: its state, what it offers, and where it is defined.

use crate::engine::snapshot::{ServerView, Trust};
use crate::ide::config_view::ConfigView;
use crate::ide::markdown::{block, code, line};
use crate::model::{Status, millis, tokens};
use crate::policy::NameGlob;
use crate::policy::location;
use crate::text::counted;

/// The maximum number of tools to list.
const MAX_TOOLS: usize = 40;

pub fn describe(config: &ConfigView<'_>, name: &str) -> String {
    let Some(view) = config.server(name) else {
        return format!("**{}** · not loaded yet: save the file without errors to load this server.", code(name));
    };
    let mut parts = vec![heading(view)];
    parts.extend(view.definition.spec.description.as_deref().map(|description| line(description, 300)));
    parts.extend(identity(view));
    parts.push(numbers(view));
    if let Trust::Needed { difference, refused } = &view.trust {
        parts.push(match refused {
            true => "Not started because you did not trust this definition.".to_owned(),
            false => "Not started until you trust this definition.".to_owned(),
        });
        parts.extend(difference.as_deref().map(|difference| block(difference, 2_000)));
    }
    parts.extend(view.state.error.as_ref().map(|error| format!("Last error:\n{}", block(&error.to_string(), 2_000))));
    parts.push(origin(config, view));
    let warnings: Vec<String> = view.warnings().iter().map(|warning| format!("- {}", line(warning, 300))).collect();
    if !warnings.is_empty() {
        parts.push(format!("Warnings:\n{}", warnings.join("\n")));
    }
    parts.extend(tools(view));
    parts.join("\n\n")
}

/// Describes the servers that match a name or glob.
pub fn describe_matches(config: &ConfigView<'_>, pattern: &str) -> String {
    if config.server(pattern).is_some() {
        return describe(config, pattern);
    }
    let glob = NameGlob::new(pattern);
    let views: Vec<_> =
        config.snapshot.servers.values().filter(|view| glob.is_match(view.definition.name.as_str())).collect();
    if views.is_empty() {
        return format!("{} does not match any server.", code(pattern));
    }
    let lines: Vec<String> = views
        .iter()
        .take(MAX_TOOLS)
        .map(|view| format!("- {} · {}", code(view.definition.name.as_str()), view.state.status.as_str()))
        .collect();
    format!("{} matches {}:\n{}", code(pattern), counted(views.len(), "server"), lines.join("\n"))
}

fn heading(view: &ServerView) -> String {
    let status = view.state.status;
    let mut parts = vec![format!("**{}**", code(view.definition.name.as_str())), status.as_str().to_owned()];
    parts.extend(status.reason());
    if !view.switched_on {
        parts.push("tools hidden".to_owned());
    }
    parts.push(view.definition.spec.launch.transport().to_owned());
    parts.join(" · ")
}

/// What the server reports about itself.
fn identity(view: &ServerView) -> Option<String> {
    let peer = view.state.peer.as_ref()?;
    Some(format!("{} {} · MCP {}", line(&peer.name, 80), line(&peer.version, 40), line(&peer.protocol_version, 20)))
}

fn numbers(view: &ServerView) -> String {
    let state = &view.state;
    let mut parts = Vec::new();
    if state.status == Status::Connected {
        let tools = counted(view.shown_tools().count(), "tool");
        parts.push(match view.tokens() {
            0 => tools,
            tokens => format!("{tools} ({})", tokens::shown(tokens)),
        });
        parts.push(counted(view.resources().len(), "resource"));
        parts.push(counted(view.prompts().len(), "prompt"));
    }
    parts.extend(state.latency.map(|latency| format!("latency {:.1} ms", millis(latency))));
    parts.extend(state.pid.map(|pid| format!("process {pid}")));
    if state.restarts > 0 {
        parts.push(counted(state.restarts as usize, "restart"));
    }
    if parts.is_empty() { "Its tools are not known yet.".to_owned() } else { parts.join(" · ") }
}

/// The definition in effect, and the definitions that it overrides.
fn origin(config: &ConfigView<'_>, view: &ServerView) -> String {
    let definition = &view.definition;
    let from = code(&location(definition.scope, definition.file.as_deref(), Some(definition.line)));
    let is_here = |file: &Option<std::sync::Arc<std::path::Path>>| file.as_deref() == Some(config.path);
    let mut shown = match definition.hides.iter().any(|hidden| is_here(&hidden.file)) && !config.defines(view) {
        false => format!("Scope: {} ({from})", definition.scope),
        true => format!("Overridden by {from} (scope {}).", definition.scope),
    };
    let overridden: Vec<String> = definition
        .hides
        .iter()
        .filter(|hidden| config.defines(view) || hidden.file.as_deref() != Some(config.path))
        .map(|hidden| code(&location(hidden.scope, hidden.file.as_deref(), Some(hidden.line))))
        .collect();
    if !overridden.is_empty() {
        shown.push_str(&format!("\n\nOverrides: {}", overridden.join(", ")));
    }
    for restriction in &definition.restrictions {
        let from = code(&location(restriction.scope, restriction.file.as_deref(), Some(restriction.line)));
        shown.push_str(&format!("\n\n{from} {}", restriction.effect()));
    }
    shown
}

fn tools(view: &ServerView) -> Option<String> {
    let names: Vec<String> = view.shown_tools().take(MAX_TOOLS).map(|offered| code(&offered.tool.name)).collect();
    let more = view.shown_tools().count().saturating_sub(names.len());
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!names.is_empty()).then(|| format!("Tools: {}{rest}", names.join(", ")))
}
