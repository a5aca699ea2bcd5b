//! The difference between what runs and what is wanted. Pure: the hub carries it out.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::config::{Definition, Loaded, Severity};
use crate::model::ServerName;

type Servers = BTreeMap<ServerName, Arc<Definition>>;

/// What to do with one server so that it becomes what is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Start(ServerName),
    Stop(ServerName),
    Restart(ServerName),
    /// Levels, timeouts or words changed: the process and its calls go on.
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

/// What a save of the config files changed; what `mcp.config.reload` answers.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reload {
    pub added: Vec<ServerName>,
    pub removed: Vec<ServerName>,
    pub changed: Vec<ServerName>,
    pub policy_only: Vec<ServerName>,
    pub unchanged: usize,
    /// File → what is wrong with it.
    pub errors: BTreeMap<String, Vec<String>>,
}

/// The steps from `running` to `wanted`; servers that stay as they are have none.
pub fn plan(running: &Servers, wanted: &Servers) -> Vec<Step> {
    let mut steps: Vec<Step> =
        running.keys().filter(|name| !wanted.contains_key(*name)).map(|name| Step::Stop(name.clone())).collect();
    for (name, definition) in wanted {
        match running.get(name) {
            None => steps.push(Step::Start(name.clone())),
            Some(before) if launches_differently(before, definition) => steps.push(Step::Restart(name.clone())),
            Some(before) if before.spec != definition.spec => steps.push(Step::Update(name.clone())),
            Some(_) => {}
        }
    }
    steps
}

/// Tells the steps in the words of the wire.
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

/// Whether a running process no longer is what the file asks for. Where a definition comes from counts as well: its
/// folder is part of what `${workspaceFolder}` means, its scope of whether it needs trust.
fn launches_differently(before: &Definition, after: &Definition) -> bool {
    let launch = |definition: &Definition| {
        let spec = &definition.spec;
        (
            spec.launch.clone(),
            spec.fallback.clone(),
            spec.enabled,
            spec.auto_start,
            spec.dev.clone(),
            definition.scope,
            definition.folder.clone(),
        )
    };
    launch(before) != launch(after)
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
    use crate::model::Scope;
    use crate::settings::Settings;

    fn servers(text: &str) -> Servers {
        let path = std::path::Path::new("/w/mcp.json");
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
    fn a_changed_argument_restarts_that_server_and_no_other() {
        insta::assert_snapshot!(steps(
            r#"{ "fs": { "command": "fs-mcp" }, "git": { "command": "git-mcp" } }"#,
            r#"{ "fs": { "command": "fs-mcp" }, "git": { "command": "git-mcp", "args": ["-v"] } }"#,
        ), @"restart git");
    }

    #[test]
    fn what_came_is_started_and_what_went_is_stopped() {
        insta::assert_snapshot!(steps(
            r#"{ "a": { "command": "a" }, "b": { "command": "b" } }"#,
            r#"{ "b": { "command": "b" }, "c": { "command": "c" } }"#,
        ), @r"
        stop a
        start c
        ");
    }

    #[test]
    fn levels_timeouts_and_words_leave_the_process_alone() {
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
    fn blanks_comments_and_the_order_of_keys_change_nothing() {
        assert_eq!(
            steps(
                r#"{ "a": { "command": "a", "args": ["x"] }, "b": { "command": "b" } }"#,
                "{ /* why */ \"b\": { \"command\": \"b\" },\n\n \"a\": { \"args\": [\"x\"], \"command\": \"a\" }, }",
            ),
            ""
        );
    }

    #[test]
    fn switching_off_in_the_file_is_a_change_of_launch() {
        insta::assert_snapshot!(steps(
            r#"{ "a": { "command": "a" } }"#,
            r#"{ "a": { "command": "a", "enabled": false } }"#,
        ), @"restart a");
    }
}
