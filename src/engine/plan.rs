//! The difference between the running servers and the config. Pure: the hub applies it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::config::spec::ToolRule;
use crate::config::{Definition, Loaded, ServerSpec, Severity};
use crate::model::{Scope, ServerName};

type Servers = BTreeMap<ServerName, Arc<Definition>>;

/// A step that brings one server in line with the config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Start(ServerName),
    Stop(ServerName),
    Restart(ServerName),
    /// Levels, timeouts or descriptions changed: the process and its calls continue.
    Update(ServerName),
}

impl Step {
    pub fn server(&self) -> &ServerName {
        match self {
            Self::Start(name) | Self::Stop(name) | Self::Restart(name) | Self::Update(name) => name,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start(name) => write!(f, "start {name}"),
            Self::Stop(name) => write!(f, "stop {name}"),
            Self::Restart(name) => write!(f, "restart {name}"),
            Self::Update(name) => write!(f, "update {name}"),
        }
    }
}

/// What a new config changed. The answer of `mcp.config.reload`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reload {
    pub added: Vec<ServerName>,
    pub removed: Vec<ServerName>,
    pub changed: Vec<ServerName>,
    pub policy_only: Vec<ServerName>,
    pub unchanged: usize,
    /// File → its errors.
    pub errors: BTreeMap<String, Vec<String>>,
}

/// The steps from `running` to `wanted`. Unchanged servers have none.
pub fn plan(running: &Servers, wanted: &Servers) -> Vec<Step> {
    let mut steps: Vec<Step> =
        running.keys().filter(|name| !wanted.contains_key(*name)).map(|name| Step::Stop(name.clone())).collect();
    for (name, definition) in wanted {
        match running.get(name) {
            None => steps.push(Step::Start(name.clone())),
            Some(before) if !launches_alike(before, definition) => steps.push(Step::Restart(name.clone())),
            Some(before)
                if before.spec != definition.spec || restricted_tools(before) != restricted_tools(definition) =>
            {
                steps.push(Step::Update(name.clone()));
            }
            Some(_) => {}
        }
    }
    steps
}

/// Converts the steps to the wire format.
pub fn reload(steps: &[Step], loaded: &Loaded) -> Reload {
    let mut reload = Reload { errors: errors(loaded), ..Reload::default() };
    for step in steps {
        match step {
            Step::Start(name) => reload.added.push(name.clone()),
            Step::Stop(name) => reload.removed.push(name.clone()),
            Step::Restart(name) => reload.changed.push(name.clone()),
            Step::Update(name) => reload.policy_only.push(name.clone()),
        }
    }
    let touched = reload.added.len() + reload.changed.len() + reload.policy_only.len();
    reload.unchanged = loaded.config.servers.len().saturating_sub(touched);
    reload
}

/// Whether both definitions can have the same process. Their origin matters, too: the folder defines `${workspaceFolder}`,
/// the scope whether they need trust, and the file whether the editor starts them itself.
pub fn launches_alike(before: &Definition, after: &Definition) -> bool {
    launch_parts(before) == launch_parts(after)
}

/// The levels that entries of other files set.
fn restricted_tools(definition: &Definition) -> Vec<(Scope, &[ToolRule])> {
    definition.restrictions.iter().map(|restriction| (restriction.scope, &*restriction.tools)).collect()
}

/// The parts of a definition that need a new process. Everything else is ignored by name, so that a new field has to be
/// classified here.
fn launch_parts(definition: &Definition) -> impl PartialEq {
    #[rustfmt::skip]
    let Definition {
        spec, scope, folder, file,
        name: _, key: _, key_span: _, line: _, rule_lines: _, written: _, hides: _, restrictions: _,
    } = definition;
    #[rustfmt::skip]
    let ServerSpec {
        launch, fallback, enabled, auto_start, idle_timeout, dev,
        description: _, startup_timeout: _, timeout: _, tools: _,
    } = spec;
    (launch, fallback, enabled, auto_start, idle_timeout, dev, scope, folder, file)
}

fn errors(loaded: &Loaded) -> BTreeMap<String, Vec<String>> {
    loaded
        .files
        .iter()
        .map(|file| {
            let messages = file.problems.iter().filter(|problem| problem.severity == Severity::Error);
            (file.source.path.display().to_string(), messages.map(|problem| problem.message.clone()).collect())
        })
        .filter(|(_, messages): &(String, Vec<String>)| !messages.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Content, Source, load};
    use crate::settings::Settings;

    fn servers(text: &str) -> Servers {
        let path = std::path::Path::new("/home/you/shop/mcp.json");
        let source = Source { path: path.into(), scope: Scope::Project, folder: path.parent().map(Into::into) };
        let text = format!(r#"{{ "servers": {text} }}"#);
        let contents = [(source, Content::Text(text.into()))];
        load(&contents, &BTreeMap::new(), &Settings::default().limits).config.servers
    }

    fn steps(running: &str, wanted: &str) -> String {
        let steps = plan(&servers(running), &servers(wanted));
        steps.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_changed_argument_restarts_only_that_server() {
        insta::assert_snapshot!(steps(
            r#"{ "fs": { "command": "fs-mcp" }, "git": { "command": "git-mcp" } }"#,
            r#"{ "fs": { "command": "fs-mcp" }, "git": { "command": "git-mcp", "args": ["-v"] } }"#,
        ), @"restart git");
    }

    #[test]
    fn new_servers_are_started_and_removed_ones_stopped() {
        insta::assert_snapshot!(steps(
            r#"{ "a": { "command": "a" }, "b": { "command": "b" } }"#,
            r#"{ "b": { "command": "b" }, "c": { "command": "c" } }"#,
        ), @r"
        stop a
        start c
        ");
    }

    #[test]
    fn levels_timeouts_and_descriptions_do_not_restart() {
        insta::assert_snapshot!(steps(
            r#"{ "a": { "command": "a" }, "b": { "command": "b" }, "c": { "command": "c" } }"#,
            r#"{ "a": { "command": "a", "tools": { "x": "deny" } }, "b": { "command": "b", "timeout": 5 },
                 "c": { "command": "c", "description": "words" } }"#,
        ), @r"
        update a
        update b
        update c
        ");
    }

    #[test]
    fn whitespace_comments_and_key_order_change_nothing() {
        assert_eq!(
            steps(
                r#"{ "a": { "command": "a", "args": ["x"] }, "b": { "command": "b" } }"#,
                "{ /* why */ \"b\": { \"command\": \"b\" },\n\n \"a\": { \"args\": [\"x\"], \"command\": \"a\" }, }",
            ),
            ""
        );
    }

    #[test]
    fn disabling_in_the_file_restarts() {
        insta::assert_snapshot!(steps(
            r#"{ "a": { "command": "a" } }"#,
            r#"{ "a": { "command": "a", "enabled": false } }"#,
        ), @"restart a");
    }
}
