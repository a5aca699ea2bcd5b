//! A workspace for tests of language features: a project file with `$0` at the cursor, an optional user file, and the
//! states of their servers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use super::config_view::ConfigView;
use crate::config::problem::TextEdit;
use crate::config::{Content, Loaded, Source, load};
use crate::engine::snapshot::{OfferedTool, ServerView, Snapshot, Trust};
use crate::model::{Annotations, PeerInfo, Scope, ServerState, Status, Tool, ToolId};
use crate::policy::{Rules, SessionLevels, TrustState};

pub struct Fixture {
    /// Without the `$0`.
    pub text: String,
    pub offset: usize,
    saved: String,
    user: Option<String>,
    tools: BTreeMap<String, Vec<Tool>>,
    failed: BTreeMap<String, String>,
    loaded: Loaded,
    snapshot: Snapshot,
    variables: BTreeSet<String>,
}

impl Fixture {
    pub fn new(marked: &str) -> Self {
        let offset = marked.find("$0").expect("a `$0` marks the cursor");
        let text = format!("{}{}", &marked[..offset], &marked[offset + 2..]);
        Self {
            offset,
            saved: text.clone(),
            text,
            user: None,
            tools: BTreeMap::new(),
            failed: BTreeMap::new(),
            loaded: Loaded::default(),
            snapshot: Snapshot::default(),
            variables: ["HOME", "API_TOKEN"].map(str::to_owned).into(),
        }
        .built()
    }

    /// The saved text of the project file.
    pub fn saved(mut self, text: &str) -> Self {
        self.saved = text.to_owned();
        self.built()
    }

    pub fn user(mut self, text: &str) -> Self {
        self.user = Some(text.to_owned());
        self.built()
    }

    /// Connects a server with these tools.
    pub fn tools(mut self, server: &str, names: &[&str]) -> Self {
        self.tools.insert(server.to_owned(), names.iter().map(|name| tool(name)).collect());
        self.built()
    }

    pub fn failed(mut self, server: &str, error: &str) -> Self {
        self.failed.insert(server.to_owned(), error.to_owned());
        self.built()
    }

    pub fn config(&self) -> ConfigView<'_> {
        self.config_of("/project/mcp.json")
    }

    pub fn config_of(&self, path: &str) -> ConfigView<'_> {
        let file = self.loaded.file(Path::new(path)).expect("one of the two files");
        ConfigView::of(file, &self.loaded, &self.snapshot, &self.variables)
    }

    fn built(mut self) -> Self {
        self.loaded = self.read(&self.text);
        let saved = self.read(&self.saved);
        let rules = Rules::new(&saved.config, &SessionLevels::default(), &[]);
        let mut servers = BTreeMap::new();
        for (name, definition) in &saved.config.servers {
            let tools = self.tools.get(name.as_str());
            let mut state = ServerState::new(if tools.is_some() { Status::Connected } else { Status::Stopped });
            if tools.is_some() {
                let peer = PeerInfo {
                    name: "test-server".to_owned(),
                    version: "1.2.3".to_owned(),
                    protocol_version: "2025-11-25".to_owned(),
                    ..PeerInfo::default()
                };
                state.peer = Some(Arc::new(peer));
                state.latency = Some(std::time::Duration::from_micros(1_500));
            }
            if let Some(error) = self.failed.get(name.as_str()) {
                state.status = Status::Failed;
                state.error = Some(error.clone().into());
            }
            let offer = |tool: &Tool| {
                let ruling = rules.rule(name, tool, None, TrustState::Trusted);
                let id = ToolId::new(name.clone(), &tool.name);
                (tool.name.clone(), Arc::new(OfferedTool::new(id, Arc::new(tool.clone()), ruling)))
            };
            let view = ServerView {
                definition: definition.clone(),
                state: Arc::new(state),
                trust: Trust::Given,
                trust_checked: true,
                checked: None,
                fingerprint: None,
                forbidden: false,
                switched_on: true,
                tools: Arc::new(tools.into_iter().flatten().map(offer).collect()),
                server: None,
                actions: 0,
                remarks: Vec::new(),
            };
            servers.insert(name.clone(), Arc::new(view));
        }
        self.snapshot = Snapshot { servers, rules: Arc::new(rules), usage: Arc::default() };
        self
    }

    /// Loads all files, with this text as the project file.
    fn read(&self, project: &str) -> Loaded {
        let source = |path: &str, scope, folder: Option<&str>| Source {
            path: Path::new(path).into(),
            scope,
            folder: folder.map(|folder| Path::new(folder).into()),
        };
        let mut contents =
            vec![(source("/project/mcp.json", Scope::Project, Some("/project")), Content::Text(project.into()))];
        if let Some(user) = &self.user {
            contents.push((source("/user/mcp.json", Scope::User, None), Content::Text(user.as_str().into())));
        }
        load(&contents, &BTreeMap::new(), &crate::settings::Settings::default().limits)
    }
}

/// A tool with a required path and an optional limit.
fn tool(name: &str) -> Tool {
    let schema = json!({
        "type": "object",
        "properties": {
            "path": { "type": "string", "description": "where | what" },
            "limit": { "type": "integer", "default": 10 },
        },
        "required": ["path"],
    });
    Tool {
        name: name.into(),
        subject: Default::default(),
        title: None,
        description: format!("Does {name}"),
        input_schema: Arc::new(schema.as_object().cloned().unwrap_or_default()),
        output_schema: None,
        annotations: Annotations { read_only: Some(name.starts_with("read")), ..Annotations::default() },
        raw: Arc::new(Value::Null),
    }
}

/// Applies edits that do not overlap.
pub fn apply(text: &str, edits: &[TextEdit]) -> String {
    let mut edits = edits.to_vec();
    edits.sort_by_key(|edit| edit.span.start);
    edits.iter().rev().fold(text.to_owned(), |text, edit| {
        format!("{}{}{}", &text[..edit.span.start], edit.text, &text[edit.span.end..])
    })
}
