//! The user's earlier answers that are still valid. The store keeps them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Pin;
use crate::model::{Decision, Level, ServerName, Timestamp, ToolId};

/// An earlier answer that is still valid: it allows a tool without asking, or disables it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    pub id: String,
    pub server: ServerName,
    pub tool: String,
    pub scope: GrantScope,
    /// The canonical path of the workspace, for a grant with project scope.
    pub project: Option<PathBuf>,
    /// For a project server, the fingerprint of the trusted definition: another definition with the same name never
    /// inherits the grant.
    pub fingerprint: Option<String>,
    /// The tool as it was when the user allowed it.
    pub pin: Pin,
    pub since: Timestamp,
}

/// The scope of a grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GrantScope {
    Session,
    Project,
    Always,
    /// Not a grant: the user disabled the tool in this project. Stored with the grants, so that it can be listed and
    /// revoked like one.
    Disable,
}

impl GrantScope {
    /// The scope of the grant for a decision. `None` for `allow-once` and `deny`.
    pub fn of(decision: Decision) -> Option<Self> {
        match decision {
            Decision::AllowSession => Some(Self::Session),
            Decision::AllowProject => Some(Self::Project),
            Decision::AllowAlways => Some(Self::Always),
            Decision::Disable => Some(Self::Disable),
            Decision::AllowOnce | Decision::Deny => None,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Project => "project",
            Self::Always => "always",
            Self::Disable => "disable",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Session, Self::Project, Self::Always, Self::Disable].into_iter().find(|scope| scope.as_str() == text)
    }
}

/// What to look for in the grants.
#[derive(Debug, Clone, Copy)]
pub struct GrantQuery<'a> {
    pub tool: &'a ToolId,
    /// The canonical path of the workspace.
    pub project: &'a Path,
    /// Of the running definition, if it is from a project file.
    pub fingerprint: Option<&'a str>,
    /// Digest of the tool as it is now.
    pub pin: &'a str,
}

/// The grant that matches a call.
#[derive(Debug, Clone, PartialEq)]
pub enum GrantMatch {
    None,
    Active(Arc<Grant>),
    /// The tool has changed since: the next call asks again and shows the difference.
    Suspended(Arc<Grant>),
}

impl Grant {
    /// A new grant from the user's decision. `None` if it was for one call only.
    pub fn new(query: &GrantQuery<'_>, decision: Decision, pin: Pin) -> Option<Self> {
        let scope = GrantScope::of(decision)?;
        let mut id = [0u8; 8];
        getrandom::fill(&mut id).ok()?;
        Some(Self {
            id: super::pin::hex(&id),
            server: query.tool.server.clone(),
            tool: query.tool.tool.to_string(),
            scope,
            project: matches!(scope, GrantScope::Project | GrantScope::Disable).then(|| query.project.to_path_buf()),
            fingerprint: query.fingerprint.map(str::to_owned),
            pin,
            since: Timestamp::now(),
        })
    }

    pub fn level(&self) -> Level {
        match self.scope {
            GrantScope::Session => Level::AllowSession,
            GrantScope::Project => Level::AllowProject,
            GrantScope::Always => Level::AllowAlways,
            GrantScope::Disable => Level::Disable,
        }
    }

    /// How records and explanations refer to it.
    pub fn source(&self) -> Arc<str> {
        format!("grant {}", self.id).into()
    }

    /// Whether it has the same tool and scope, so that it replaces the older grant.
    pub fn replaces(&self, older: &Self) -> bool {
        self.server == older.server
            && self.tool == older.tool
            && self.scope == older.scope
            && self.project == older.project
            && self.fingerprint == older.fingerprint
    }

    /// Whether it is about this call, ignoring changes of the tool.
    fn covers(&self, query: &GrantQuery<'_>) -> bool {
        self.server == query.tool.server
            && *self.tool == *query.tool.tool
            && self.fingerprint.as_deref() == query.fingerprint
            && self.project.as_deref().is_none_or(|project| project == query.project)
    }
}

/// The widest active grant for a call, or a suspended one, so that the prompt can show what changed.
pub fn find<'a>(grants: impl IntoIterator<Item = &'a Arc<Grant>>, query: &GrantQuery<'_>) -> GrantMatch {
    let (mut active, mut suspended) = (None::<&Arc<Grant>>, None::<&Arc<Grant>>);
    for grant in grants {
        if grant.scope == GrantScope::Disable || !grant.covers(query) {
            continue;
        }
        let best = if grant.pin.digest == query.pin { &mut active } else { &mut suspended };
        if best.is_none_or(|best| best.scope < grant.scope) {
            *best = Some(grant);
        }
    }
    match (active, suspended) {
        (Some(grant), _) => GrantMatch::Active(grant.clone()),
        (None, Some(grant)) => GrantMatch::Suspended(grant.clone()),
        (None, None) => GrantMatch::None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::{Annotations, Tool};

    fn tool(description: &str) -> Tool {
        Tool {
            name: "write".into(),
            subject: Default::default(),
            title: None,
            description: description.to_owned(),
            input_schema: Arc::new(json!({ "type": "object" }).as_object().unwrap().clone()),
            output_schema: None,
            annotations: Annotations::default(),
            raw: Arc::new(json!({ "annotations": { "readOnlyHint": true } })),
        }
    }

    fn outcome(grants: &[Arc<Grant>], query: &GrantQuery<'_>) -> &'static str {
        match find(grants, query) {
            GrantMatch::None => "asks",
            GrantMatch::Active(_) => "passes",
            GrantMatch::Suspended(_) => "asks, showing the change",
        }
    }

    #[test]
    fn a_grant_is_bound_to_its_project_definition_and_tool() {
        let id = ToolId::new(ServerName::new("fs").unwrap(), "write");
        let pin = Pin::of(&tool("writes a file"));
        let here = GrantQuery { tool: &id, project: Path::new("/one"), fingerprint: Some("f"), pin: &pin.digest };
        let given = |decision| vec![Arc::new(Grant::new(&here, decision, pin.clone()).unwrap())];
        let elsewhere = GrantQuery { project: Path::new("/two"), ..here };
        let redefined = GrantQuery { fingerprint: Some("g"), ..here };
        let users_own = GrantQuery { fingerprint: None, ..here };
        let changed = GrantQuery { pin: "other", ..here };
        let other = ToolId::new(ServerName::new("fs").unwrap(), "write_all");
        let other = GrantQuery { tool: &other, ..here };

        let mut table = String::new();
        for decision in [Decision::AllowSession, Decision::AllowProject, Decision::AllowAlways] {
            let grants = given(decision);
            let all = [here, elsewhere, redefined, users_own, changed, other].map(|query| outcome(&grants, &query));
            table.push_str(&format!("{:13} {}\n", decision.as_str(), all.join(" · ")));
        }
        insta::assert_snapshot!(table, @"
        allow-session passes · passes · asks · asks · asks, showing the change · asks
        allow-project passes · asks · asks · asks · asks, showing the change · asks
        allow-always  passes · passes · asks · asks · asks, showing the change · asks
        ");
        assert!(Grant::new(&here, Decision::AllowOnce, pin.clone()).is_none());
    }

    #[test]
    fn a_changed_description_is_shown_and_key_order_is_ignored() {
        let pin = Pin::of(&tool("writes a file"));
        assert_eq!(pin.changed(&tool("writes a file")), None);
        insta::assert_snapshot!(pin.changed(&tool("writes a file\nand mails it\u{202e}")).unwrap().join("\n"), @r#"
        -   "description": "writes a file",
        +   "description": "writes a file
        +     and mails it⟨U+202E⟩",
        "#);
        let shuffled = |text: &str| Tool {
            input_schema: Arc::new(
                serde_json::from_str::<serde_json::Value>(text).unwrap().as_object().unwrap().clone(),
            ),
            ..tool("x")
        };
        let (one, two) = (r#"{"type":"object","properties":{}}"#, r#"{"properties":{},"type":"object"}"#);
        assert_eq!(Pin::of(&shuffled(one)).changed(&shuffled(two)), None);
        let (one, two) = (r#"{"anyOf":[{"type":"a","title":"b"}]}"#, r#"{"anyOf":[{"title":"b","type":"a"}]}"#);
        assert_eq!(Pin::of(&shuffled(one)).changed(&shuffled(two)), None, "also inside of a list");
    }

    #[test]
    fn a_change_beyond_the_stored_part_is_reported_without_lines() {
        let long = |end: &str| tool(&format!("{}{end}", "x".repeat(200_000)));
        let changed = Pin::of(&long("a")).changed(&long("b")).unwrap();
        assert_eq!(changed, ["  the difference is beyond the part that is stored for comparison"]);
    }

    #[test]
    fn annotations_are_part_of_the_pin() {
        let turned = Tool { raw: Arc::new(json!({ "annotations": { "readOnlyHint": false } })), ..tool("x") };
        assert!(Pin::of(&tool("x")).changed(&turned).is_some());
    }
}
