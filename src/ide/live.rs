//! Diagnostics that depend on the state of the servers instead of the text.

use super::config_view::ConfigView;
use super::entry::ServerEntry;
use crate::config::expand::{self, Reference};
use crate::config::problem::{Code, Related, Severity, TextEdit};
use crate::config::shape::did_you_mean::closest;
use crate::config::shape::quoted;
use crate::config::tree::Node;
use crate::config::{Definition, Problem, Span};
use crate::engine::snapshot::{ServerView, Snapshot, Trust};
use crate::engine::usage::{ToolUsage, UnusedTools};
use crate::model::{PendingReason, ServerError, Status, Subject, ToolId, tokens};
use crate::policy::is_glob;
use crate::server::process::sandbox::NOT_ENFORCED;
use crate::text::{counted, one_line, shell_quote};

/// How often a server must have been called before its tools can be called unused.
const LEAST_CALLS: u64 = 20;
/// How many tokens there must be to save.
const LEAST_TOKENS: usize = 500;
/// How many unused tools are named.
const MAX_NAMED: usize = 20;

/// The problems with the servers of a file.
pub fn problems(config: &ConfigView<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    let scope = config.file.source.scope;
    for entry in config.entries() {
        // Within one scope, loading reports it already.
        let overridden_by = entry.overridden_by.filter(|other| other.scope != scope);
        problems.extend(overridden_by.map(|other| overridden(&entry, other)));
        if let Some(view) = entry.view
            && entry.runs_as_written()
        {
            // The state of a server that is defined elsewhere is shown there.
            problems.extend(state(&entry, view).filter(|_| entry.restricts.is_none()));
            problems.extend(without_sandbox(&entry, view));
            problems.extend(unused_tools(config, &entry, view));
            rules(&entry, view, &mut problems);
        }
    }
    lists(config, &mut problems);
    problems
}

/// Whether a server is connected and matches the text.
pub fn runs(entry: &ServerEntry<'_>) -> bool {
    entry.view.is_some_and(|view| view.state.status == Status::Connected) && entry.runs_as_written()
}

/// Whether the user trusts exactly this definition, including its levels.
pub fn is_trusted(entry: &ServerEntry<'_>) -> bool {
    let same = |view: &ServerView| {
        entry.definition.is_none_or(|definition| definition.spec == view.definition.spec)
            && view.trust_checked
            && view.trust == Trust::Given
    };
    entry.view.is_some_and(same)
}

/// A definition in another scope overrides this one.
fn overridden(entry: &ServerEntry<'_>, other: &Definition) -> Problem {
    let by = match &other.file {
        Some(_) => format!("the definition in scope `{}` overrides it", other.scope),
        None => "a definition for this session overrides it".to_owned(),
    };
    let message = format!("`{}` has no effect here: {by}", one_line(&entry.member.key.text, 64));
    let mut problem = Problem::new(Code::Hidden, entry.member.key.span.clone(), message).unnecessary();
    if let Some(file) = &other.file {
        let message = "this definition is in effect".to_owned();
        problem.related.push(Related { file: file.to_path_buf(), span: other.key_span.clone(), message });
    }
    problem
}

fn state(entry: &ServerEntry<'_>, view: &ServerView) -> Option<Problem> {
    let key = entry.member.key.span.clone();
    let name = &view.definition.name;
    let state = &view.state;
    match (&view.trust, state.status) {
        (Trust::Needed { refused: true, .. }, Status::Pending(_)) => {
            let message = format!("`{name}` is not started because you did not trust this definition");
            Some(Problem::new(Code::NotTrusted, key, message))
        }
        (Trust::Needed { difference, .. }, Status::Pending(PendingReason::Trust) | Status::Connected) => {
            let message = match difference {
                Some(_) => format!("`{name}` has changed since you trusted it; review the change and trust it again"),
                None => format!("`{name}` is waiting for trust; review its definition and trust it to start it"),
            };
            let problem = Problem::new(Code::AwaitingTrust, key, message);
            Some(match difference {
                Some(difference) => problem.help(difference.clone()),
                None => problem,
            })
        }
        (_, Status::NeedsAuth) => Some(Problem::new(
            Code::NeedsSignIn,
            launch_span(entry),
            format!("`{name}` requires you to sign in (HTTP 401)"),
        )),
        (_, Status::Pending(PendingReason::Input)) => {
            let problem = Problem::new(Code::AwaitingInput, key, format!("`{name}` is waiting for an input value"));
            let ids: Vec<String> = inputs(view).map(|id| format!("`mcp-sidecar input set {id}`")).collect();
            Some(problem.help(format!("answer the question, or run {} in a terminal", ids.join(" or "))))
        }
        (_, Status::Failed | Status::Pending(PendingReason::Retry(_))) => failed(entry, view),
        _ => None,
    }
}

/// A server that runs without its sandbox.
fn without_sandbox(entry: &ServerEntry<'_>, view: &ServerView) -> Option<Problem> {
    let warning = view.state.warnings.iter().find(|warning| warning.starts_with(NOT_ENFORCED))?;
    Some(Problem::new(Code::SandboxNotEnforced, entry.value("sandbox")?.span.clone(), warning.clone()))
}

/// Advice about tools that cost tokens and are not used. A server that is hardly used says nothing about its tools.
fn unused_tools(config: &ConfigView<'_>, entry: &ServerEntry<'_>, view: &ServerView) -> Option<Problem> {
    entry.definition?;
    let UnusedTools { names, tokens: unused, calls } = config.snapshot.usage.unused(view);
    if view.state.status != Status::Connected || calls < LEAST_CALLS || unused < LEAST_TOKENS || names.is_empty() {
        return None;
    }
    let (count, days) = (view.shown_tools().count(), config.snapshot.usage.days);
    let message = format!(
        "the tools of `{}` use {} of each agent's context; {} of {} were never called in {}",
        view.definition.name,
        tokens::shown(view.tokens()),
        names.len(),
        counted(count, "tool"),
        counted(days as usize, "day"),
    );
    let shown: Vec<String> = names.iter().take(MAX_NAMED).map(|name| one_line(name, 64)).collect();
    let more = names.len().saturating_sub(shown.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let problem = Problem::new(Code::UnusedTools, entry.member.key.span.clone(), message);
    Some(problem.help(format!("never called: {}{more} ({})", shown.join(", "), tokens::shown(unused))))
}

/// The inputs that the definition refers to.
fn inputs(view: &ServerView) -> impl Iterator<Item = String> {
    let references = expand::references(&view.definition.spec.launch);
    references.into_iter().filter_map(|reference| match reference {
        Reference::Input(id) => Some(shell_quote(&id)),
        _ => None,
    })
}

fn failed(entry: &ServerEntry<'_>, view: &ServerView) -> Option<Problem> {
    let ServerError { message, stderr, port_closed } = view.state.error.clone()?;
    let code = if port_closed { Code::PortClosed } else { Code::ConnectionFailed };
    let (message, rest) = message.split_once('\n').map_or((message.as_str(), ""), |parts| parts);
    let severity = match view.state.status {
        Status::Failed => Severity::Error,
        // It is retried, so the problem may go away.
        _ => Severity::Warning,
    };
    let problem = Problem::new(code, launch_span(entry), message).severity(severity);
    Some(match (stderr.is_empty(), rest) {
        (true, "") => problem,
        (true, rest) => problem.help(rest),
        (false, _) => problem.help(format!("last lines of its stderr:\n  {}", stderr.join("\n  "))),
    })
}

/// The span to mark if a connection fails: the program, the address or the port.
fn launch_span(entry: &ServerEntry<'_>) -> Span {
    let keys = ["port", "url", "serverUrl", "httpUrl", "command"];
    let node = keys.iter().find_map(|key| entry.value(key));
    let node = node.map(|node| node.items().and_then(<[Node]>::first).unwrap_or(node));
    node.map_or_else(|| entry.member.key.span.clone(), |node| node.span.clone())
}

/// Rules for tools that the connected server does not have.
fn rules(entry: &ServerEntry<'_>, view: &ServerView, problems: &mut Vec<Problem>) {
    let Some(tools) = entry.value("tools") else { return };
    for member in tools.members().unwrap_or_default() {
        problems.extend(unknown_tool(view, &member.key.text, &member.key.span, ""));
    }
    for item in tools.items().unwrap_or_default() {
        problems.extend(item.text().and_then(|name| unknown_tool(view, name, &item.span, "")));
    }
}

/// The same in `policy` and `actions`, which name the server as well.
fn lists(config: &ConfigView<'_>, problems: &mut Vec<Problem>) {
    let Some(root) = &config.tree.root else { return };
    let text = |node: &Node, key: &str| node.get(key).and_then(|member| member.value.text()).map(str::to_owned);
    let view = |server: &str| config.server(server).map(|view| &**view);
    let policy = root.get("policy").map(|member| &member.value);
    for list in ["allowlist", "denylist"] {
        let list = policy.and_then(|policy| policy.get(list)).and_then(|list| list.value.items());
        for item in list.unwrap_or_default() {
            let (Some(server), Some(tool)) = (text(item, "server"), item.get("tool")) else { continue };
            if let (Some(view), Some(name)) = (view(&server), tool.value.text()) {
                problems.extend(unknown_tool(view, name, &tool.value.span, ""));
            }
        }
    }
    for action in root.get("actions").and_then(|actions| actions.value.items()).unwrap_or_default() {
        let Some(tool) = action.get("tool") else { continue };
        if let Some(id) = tool.value.text().and_then(ToolId::parse)
            && let Some(view) = view(id.server.as_str())
        {
            problems.extend(unknown_tool(view, &id.tool, &tool.value.span, &format!("mcp__{}__", id.server)));
        }
    }
}

fn unknown_tool(view: &ServerView, name: &str, span: &Span, prefix: &str) -> Option<Problem> {
    let is_tool = ![Subject::RESOURCE, Subject::PROMPT].iter().any(|prefix| name.starts_with(prefix));
    let known = is_tool && view.state.status == Status::Connected && !is_glob(name) && !name.is_empty();
    if !known || view.tools.contains_key(name) {
        return None;
    }
    let message = format!("`{}` has no tool `{}`", view.definition.name, one_line(name, 64));
    let problem = Problem::new(Code::UnknownTool, span.clone(), message);
    let names: Vec<&str> = view.tools.keys().map(|name| &**name).collect();
    Some(match closest(name, &names) {
        Some(similar) => {
            let shown = one_line(similar, 64);
            let edit = TextEdit::replace(span.clone(), quoted(&format!("{prefix}{similar}")));
            problem.help(format!("did you mean `{shown}`?")).fix(format!("change to `{shown}`"), vec![edit])
        }
        None => problem,
    })
}

/// The state of the servers that language features depend on. Equal states give equal results, so calls between two
/// snapshots do not matter.
#[derive(Default)]
pub struct LiveState(Vec<std::sync::Arc<ServerView>>, std::sync::Arc<ToolUsage>);

impl LiveState {
    pub fn of(snapshot: &Snapshot) -> Self {
        Self(snapshot.servers.values().cloned().collect(), snapshot.usage.clone())
    }
}

impl PartialEq for LiveState {
    fn eq(&self, other: &Self) -> bool {
        self.1 == other.1
            && self.0.len() == other.0.len()
            && self.0.iter().zip(&other.0).all(|(one, other)| same(one, other))
    }
}

fn same(one: &ServerView, other: &ServerView) -> bool {
    use std::sync::Arc;
    let status = |view: &ServerView| match view.state.status {
        // No language feature shows the time of the next attempt.
        Status::Pending(PendingReason::Retry(_)) => None,
        status => Some(status),
    };
    Arc::ptr_eq(&one.definition, &other.definition)
        && Arc::ptr_eq(&one.tools, &other.tools)
        && status(one) == status(other)
        && one.state.error == other.state.error
        && one.trust == other.trust
        && one.trust_checked == other.trust_checked
        && one.switched_on == other.switched_on
        && one.server.is_some() == other.server.is_some()
}

#[cfg(test)]
mod tests;
