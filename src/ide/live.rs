//! What is wrong with a config file only because of what its servers do: problems that no text can show.

use super::entry::Entry;
use super::page::Page;
use crate::config::problem::{Related, TextEdit};
use crate::config::shape::did_you_mean::closest;
use crate::config::shape::quoted;
use crate::config::tree::Node;
use crate::config::{Definition, Launch, Problem, Span};
use crate::engine::snapshot::{ServerView, Snapshot, Trust};
use crate::model::{PendingReason, Status, ToolId};
use crate::policy::is_glob;
use crate::text::one_line;

/// The problems of a file that depend on what runs.
pub fn live(page: &Page<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    let scope = page.loaded.file(page.path).map(|file| file.source.scope);
    for entry in page.entries() {
        // Within one scope the layers have said so already.
        let winner = entry.winner.filter(|winner| Some(winner.scope) != scope);
        problems.extend(winner.map(|winner| hidden(&entry, winner)));
        if let Some(view) = entry.view
            && entry.runs_as_written()
        {
            problems.extend(state(&entry, view));
            rules(&entry, view, &mut problems);
        }
    }
    lists(page, &mut problems);
    problems
}

/// Whether a server is connected as it is written here.
pub fn runs(entry: &Entry<'_>) -> bool {
    entry.view.is_some_and(|view| view.state.status == Status::Connected) && entry.runs_as_written()
}

/// Whether the user has trusted exactly what is written here, levels included.
pub fn is_trusted(entry: &Entry<'_>) -> bool {
    let same = |view: &ServerView| {
        entry.definition.is_none_or(|definition| definition.spec == view.definition.spec)
            && view.trust_checked
            && view.trust == Trust::Given
    };
    entry.view.is_some_and(same)
}

/// A definition of another scope counts in its place.
fn hidden(entry: &Entry<'_>, winner: &Definition) -> Problem {
    let by = match &winner.file {
        Some(_) => format!("a file of scope `{}` defines it, too, and counts", winner.scope),
        None => "it was set for this session, which counts".to_owned(),
    };
    let message = format!("`{}` has no effect here: {by}", one_line(&entry.member.key.text, 64));
    let mut problem = Problem::information("hidden", entry.member.key.span.clone(), message).unnecessary();
    if let Some(file) = &winner.file {
        let message = "this definition is used".to_owned();
        problem.related.push(Related { file: file.to_path_buf(), span: winner.key_span.clone(), message });
    }
    problem
}

fn state(entry: &Entry<'_>, view: &ServerView) -> Option<Problem> {
    let key = entry.member.key.span.clone();
    let name = &view.definition.name;
    let state = &view.state;
    match (&view.trust, state.status) {
        (Trust::Needed { refused: true, .. }, Status::Pending(_)) => {
            let message = format!("`{name}` is not started: you did not trust this definition");
            Some(Problem::information("not-trusted", key, message))
        }
        (Trust::Needed { difference, .. }, Status::Pending(PendingReason::Trust) | Status::Connected) => {
            let message = match difference {
                Some(_) => format!("`{name}` has changed since you trusted it, and waits for you to trust it again"),
                None => format!("`{name}` waits until you have looked at its definition and trust it"),
            };
            let problem = Problem::information("awaiting-trust", key, message);
            Some(match difference {
                Some(difference) => problem.help(difference.clone()),
                None => problem,
            })
        }
        (_, Status::NeedsAuth) => {
            Some(Problem::warning("needs-sign-in", place(entry), format!("`{name}` wants you to sign in (401)")))
        }
        (_, Status::Pending(PendingReason::Input)) => {
            Some(Problem::information("awaiting-input", key, format!("`{name}` waits for an input that it asks for")))
        }
        (_, Status::Failed | Status::Pending(PendingReason::Retry(_))) => failed(entry, view),
        _ => None,
    }
}

fn failed(entry: &Entry<'_>, view: &ServerView) -> Option<Problem> {
    let error = view.state.error.as_deref()?;
    let (first, rest) = error.split_once('\n').unwrap_or((error, ""));
    let refused = first.contains("refused");
    let code = match &view.definition.spec.launch {
        Launch::Tcp { .. } if refused => "port-closed",
        _ => "connection-failed",
    };
    let message = first.trim_end_matches(':').to_owned();
    let problem = match view.state.status {
        Status::Failed => Problem::error(code, place(entry), message),
        // It is being tried again, so it may still mend itself.
        _ => Problem::warning(code, place(entry), message),
    };
    Some(if rest.is_empty() { problem } else { problem.help(rest) })
}

/// What a failed connection is about: the program, the address or the port.
fn place(entry: &Entry<'_>) -> Span {
    let keys = ["port", "url", "serverUrl", "httpUrl", "command"];
    let node = keys.iter().find_map(|key| entry.value(key));
    let node = node.map(|node| node.items().and_then(<[Node]>::first).unwrap_or(node));
    node.map_or_else(|| entry.member.key.span.clone(), |node| node.span.clone())
}

/// Rules about tools that the connected server does not have.
fn rules(entry: &Entry<'_>, view: &ServerView, problems: &mut Vec<Problem>) {
    let Some(tools) = entry.value("tools") else { return };
    for member in tools.members().unwrap_or_default() {
        problems.extend(unknown(view, &member.key.text, &member.key.span, ""));
    }
    for item in tools.items().unwrap_or_default() {
        problems.extend(item.text().and_then(|name| unknown(view, name, &item.span, "")));
    }
}

/// The same in `policy` and `actions`, where the server is named, too.
fn lists(page: &Page<'_>, problems: &mut Vec<Problem>) {
    let Some(root) = &page.tree.root else { return };
    let text = |node: &Node, key: &str| node.get(key).and_then(|member| member.value.text()).map(str::to_owned);
    let view = |server: &str| page.server(server).map(|view| &**view);
    let policy = root.get("policy").map(|member| &member.value);
    for list in ["allowlist", "denylist"] {
        let list = policy.and_then(|policy| policy.get(list)).and_then(|list| list.value.items());
        for item in list.unwrap_or_default() {
            let (Some(server), Some(tool)) = (text(item, "server"), item.get("tool")) else { continue };
            if let (Some(view), Some(name)) = (view(&server), tool.value.text()) {
                problems.extend(unknown(view, name, &tool.value.span, ""));
            }
        }
    }
    for action in root.get("actions").and_then(|actions| actions.value.items()).unwrap_or_default() {
        let Some(tool) = action.get("tool") else { continue };
        if let Some(id) = tool.value.text().and_then(ToolId::parse)
            && let Some(view) = view(id.server.as_str())
        {
            problems.extend(unknown(view, &id.tool, &tool.value.span, &format!("mcp__{}__", id.server)));
        }
    }
}

fn unknown(view: &ServerView, name: &str, place: &Span, before: &str) -> Option<Problem> {
    let known = view.state.status == Status::Connected && !is_glob(name) && !name.is_empty();
    if !known || view.tools.contains_key(name) {
        return None;
    }
    let message = format!("`{}` has no tool `{}`", view.definition.name, one_line(name, 64));
    let problem = Problem::warning("unknown-tool", place.clone(), message);
    let names: Vec<&str> = view.tools.keys().map(|name| &**name).collect();
    Some(match closest(name, &names) {
        Some(meant) => {
            let shown = one_line(meant, 64);
            let edit = TextEdit::replace(place.clone(), quoted(&format!("{before}{meant}")));
            problem.help(format!("did you mean `{shown}`?")).fix(format!("change to `{shown}`"), vec![edit])
        }
        None => problem,
    })
}

/// What the live features of a file depend on. Two pictures with equal facts give the same answers, however many calls
/// ran between them.
#[derive(Default)]
pub struct Facts(Vec<std::sync::Arc<ServerView>>);

impl Facts {
    pub fn of(snapshot: &Snapshot) -> Self {
        Self(snapshot.servers.values().cloned().collect())
    }
}

impl PartialEq for Facts {
    fn eq(&self, other: &Self) -> bool {
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(|(one, other)| same(one, other))
    }
}

fn same(one: &ServerView, other: &ServerView) -> bool {
    use std::sync::Arc;
    let status = |view: &ServerView| match view.state.status {
        // When the next try comes is told by nothing that is shown here.
        Status::Pending(PendingReason::Retry(_)) => None,
        status => Some(status),
    };
    Arc::ptr_eq(&one.definition, &other.definition)
        && Arc::ptr_eq(&one.tools, &other.tools)
        && status(one) == status(other)
        && one.state.error == other.state.error
        && one.trust == other.trust
        && one.switched_on == other.switched_on
        && one.server.is_some() == other.server.is_some()
}

#[cfg(test)]
mod tests;
