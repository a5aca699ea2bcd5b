//! Earlier answers of the user that still count. Which of them are kept, and where, is left to the store.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Pin;
use crate::model::{Decision, Level, ServerName, Timestamp, ToolId};

/// An earlier answer that still counts: it lets a tool run without being asked about, or switches it off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    pub id: String,
    pub server: ServerName,
    pub tool: String,
    pub scope: GrantScope,
    /// The real path of the workspace, for a grant of project scope.
    pub project: Option<PathBuf>,
    /// For a server that a project defines, the fingerprint of the definition that the user trusted: another
    /// definition of the same name never inherits the grant.
    pub fingerprint: Option<String>,
    /// The tool as it was when the user agreed.
    pub pin: Pin,
    pub since: Timestamp,
}

/// How far a grant reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GrantScope {
    Session,
    Project,
    Always,
    /// No grant at all: the user switched the tool off in this project. Kept with the grants, so that it is listed and
    /// taken back like one.
    Disable,
}

impl GrantScope {
    /// The grant that an answer gives; allowing once gives none.
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

/// A call for which a grant is looked for.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    pub tool: &'a ToolId,
    /// The real path of the workspace that the engine serves.
    pub project: &'a Path,
    /// Of the running definition, when a project file defines it.
    pub fingerprint: Option<&'a str>,
    /// Digest of the tool as the server describes it now.
    pub pin: &'a str,
}

/// What the earlier answers say about a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    Nothing,
    Live(Arc<Grant>),
    /// The tool has changed since: the next call asks again and shows the difference.
    Suspended(Arc<Grant>),
}

impl Grant {
    /// A new grant for what was asked, as the user answered it. `None` where the answer was for once only.
    pub fn new(asked: &Asked<'_>, decision: Decision, pin: Pin) -> Option<Self> {
        let scope = GrantScope::of(decision)?;
        let mut id = [0u8; 8];
        getrandom::fill(&mut id).ok()?;
        Some(Self {
            id: super::pin::hex(&id),
            server: asked.tool.server.clone(),
            tool: asked.tool.tool.to_string(),
            scope,
            project: matches!(scope, GrantScope::Project | GrantScope::Disable).then(|| asked.project.to_path_buf()),
            fingerprint: asked.fingerprint.map(str::to_owned),
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

    /// How a record or an explanation names it.
    pub fn source(&self) -> Arc<str> {
        format!("grant {}", self.id).into()
    }

    /// Whether both speak about the same tool in the same reach, so that the newer replaces the older.
    pub fn replaces(&self, older: &Self) -> bool {
        self.server == older.server
            && self.tool == older.tool
            && self.scope == older.scope
            && self.project == older.project
            && self.fingerprint == older.fingerprint
    }

    /// Whether it speaks about this call, leaving aside whether the tool is still the same.
    fn covers(&self, asked: &Asked<'_>) -> bool {
        self.server == asked.tool.server
            && *self.tool == *asked.tool.tool
            && self.fingerprint.as_deref() == asked.fingerprint
            && self.project.as_deref().is_none_or(|project| project == asked.project)
    }
}

/// The widest live grant for a call; else a suspended one, so that the prompt can show what changed.
pub fn find<'a>(grants: impl IntoIterator<Item = &'a Arc<Grant>>, asked: &Asked<'_>) -> Found {
    let (mut live, mut suspended) = (None::<&Arc<Grant>>, None::<&Arc<Grant>>);
    for grant in grants {
        if grant.scope == GrantScope::Disable || !grant.covers(asked) {
            continue;
        }
        let best = if grant.pin.digest == asked.pin { &mut live } else { &mut suspended };
        if best.is_none_or(|best| best.scope < grant.scope) {
            *best = Some(grant);
        }
    }
    match (live, suspended) {
        (Some(grant), _) => Found::Live(grant.clone()),
        (None, Some(grant)) => Found::Suspended(grant.clone()),
        (None, None) => Found::Nothing,
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
            title: None,
            description: description.to_owned(),
            input_schema: Arc::new(json!({ "type": "object" }).as_object().unwrap().clone()),
            output_schema: None,
            annotations: Annotations::default(),
            raw: Arc::new(json!({ "annotations": { "readOnlyHint": true } })),
        }
    }

    fn said(grants: &[Arc<Grant>], asked: &Asked<'_>) -> &'static str {
        match find(grants, asked) {
            Found::Nothing => "asks",
            Found::Live(_) => "passes",
            Found::Suspended(_) => "asks, showing the change",
        }
    }

    #[test]
    fn a_grant_counts_for_its_project_its_definition_and_its_tool_as_it_was() {
        let id = ToolId::new(ServerName::new("fs").unwrap(), "write");
        let pin = Pin::of(&tool("writes a file"));
        let here = Asked { tool: &id, project: Path::new("/one"), fingerprint: Some("f"), pin: &pin.digest };
        let given = |decision| vec![Arc::new(Grant::new(&here, decision, pin.clone()).unwrap())];
        let elsewhere = Asked { project: Path::new("/two"), ..here };
        let redefined = Asked { fingerprint: Some("g"), ..here };
        let users_own = Asked { fingerprint: None, ..here };
        let changed = Asked { pin: "other", ..here };
        let other = ToolId::new(ServerName::new("fs").unwrap(), "write_all");
        let other = Asked { tool: &other, ..here };

        let mut table = String::new();
        for decision in [Decision::AllowSession, Decision::AllowProject, Decision::AllowAlways] {
            let grants = given(decision);
            let all = [here, elsewhere, redefined, users_own, changed, other].map(|asked| said(&grants, &asked));
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
    fn a_changed_description_is_shown_and_shuffled_keys_are_no_change() {
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
    }

    #[test]
    fn annotations_are_part_of_the_pin() {
        let turned = Tool { raw: Arc::new(json!({ "annotations": { "readOnlyHint": false } })), ..tool("x") };
        assert!(Pin::of(&tool("x")).changed(&turned).is_some());
    }
}
