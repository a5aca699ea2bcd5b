//! A workspace without processes for tests: files, and the states of their servers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::config_view::ConfigView;
use crate::config::{Content, Loaded, Problem, Source, load};
use crate::engine::snapshot::{OfferedTool, ServerView, Snapshot, Trust};
use crate::model::{Annotations, Scope, ServerError, ServerName, ServerState, Status, Tool, ToolId};
use crate::policy::{Rules, SessionLevels};
use crate::settings::Settings;
use crate::text::lines::LineIndex;

pub struct Scene {
    pub text: String,
    pub path: PathBuf,
    pub loaded: Loaded,
    pub snapshot: Snapshot,
    user: String,
    variables: BTreeSet<String>,
}

fn read(project: &str, user: &str) -> Loaded {
    let source = |path: &str, scope, folder: Option<&str>| Source {
        path: Path::new(path).into(),
        scope,
        folder: folder.map(|folder| Path::new(folder).into()),
    };
    let contents = [
        (source("/home/you/shop/mcp.json", Scope::Project, Some("/home/you/shop")), Content::Text(project.into())),
        (source("/home/user/mcp.json", Scope::User, None), Content::Text(user.into())),
    ];
    load(&contents, &BTreeMap::new(), &Settings::default().limits)
}

impl Scene {
    /// A saved project file whose servers are stopped and trusted.
    pub fn new(text: &str) -> Self {
        Self::with_user(text, "{}")
    }

    pub fn with_user(text: &str, user: &str) -> Self {
        let loaded = read(text, user);
        let rules = Arc::new(Rules::new(&loaded.config, &SessionLevels::default(), &[]));
        let view = |definition: &Arc<crate::config::Definition>| ServerView {
            definition: definition.clone(),
            state: Arc::new(ServerState::new(if definition.spec.enabled { Status::Stopped } else { Status::Disabled })),
            trust: Trust::Given,
            trust_checked: true,
            checked: None,
            fingerprint: None,
            forbidden: false,
            switched_on: true,
            tools: Arc::default(),
            server: None,
            actions: 0,
            remarks: Vec::new(),
        };
        let servers =
            loaded.config.servers.iter().map(|(name, definition)| (name.clone(), Arc::new(view(definition)))).collect();
        Self {
            variables: BTreeSet::new(),
            snapshot: Snapshot { servers, rules, usage: Arc::default() },
            path: PathBuf::from("/home/you/shop/mcp.json"),
            text: text.to_owned(),
            user: user.to_owned(),
            loaded,
        }
    }

    /// Uses the user file instead of the project file.
    pub fn in_user_file(mut self) -> Self {
        self.path = PathBuf::from("/home/user/mcp.json");
        self.text = self.user.clone();
        self
    }

    /// Changes the text without saving it.
    pub fn typed(mut self, text: &str) -> Self {
        self.loaded = read(text, &self.user);
        self.text = text.to_owned();
        self
    }

    pub fn change(mut self, server: &str, change: impl FnOnce(&mut ServerView)) -> Self {
        let name = ServerName::new(server).unwrap();
        let mut view = ServerView::clone(&self.snapshot.servers[&name]);
        change(&mut view);
        self.snapshot.servers.insert(name, Arc::new(view));
        self
    }

    pub fn status(self, server: &str, status: Status, error: Option<&str>) -> Self {
        self.failed(server, status, error.map(|error| error.to_owned().into()))
    }

    pub fn failed(self, server: &str, status: Status, error: Option<ServerError>) -> Self {
        self.change(server, |view| {
            let mut state = ServerState::new(status);
            state.error = error;
            view.state = Arc::new(state);
        })
    }

    pub fn untrusted(self, server: &str) -> Self {
        let scene = self.status(server, Status::Pending(crate::model::PendingReason::Trust), None);
        scene.change(server, |view| view.trust = Trust::Needed { difference: None, refused: false })
    }

    pub fn connected(self, server: &str, tools: &[&str]) -> Self {
        let rules = self.snapshot.rules.clone();
        self.status(server, Status::Connected, None).change(server, |view| {
            let offered = tools.iter().map(|name| {
                let tool = Arc::new(Tool {
                    name: (*name).into(),
                    subject: Default::default(),
                    title: None,
                    description: String::new(),
                    input_schema: Arc::default(),
                    output_schema: None,
                    annotations: Annotations::default(),
                    raw: Arc::default(),
                });
                let ruling = rules.rule(&view.definition.name, &tool, None, view.trust_state());
                let id = ToolId::new(view.definition.name.clone(), name);
                (tool.name.clone(), Arc::new(OfferedTool::new(id, tool, ruling)))
            });
            view.tools = Arc::new(offered.collect());
        })
    }

    pub fn config(&self) -> ConfigView<'_> {
        ConfigView::of(self.loaded.file(&self.path).unwrap(), &self.loaded, &self.snapshot, &self.variables)
    }
}

/// The lines with problems, each problem marked under its span.
pub fn marked(text: &str, problems: &[Problem]) -> String {
    let lines = LineIndex::new(text);
    let mut shown = Vec::new();
    let numbers: BTreeSet<u32> = problems.iter().map(|problem| lines.line(problem.span.start)).collect();
    for number in numbers {
        shown.push(lines.line_text(number).trim_end().to_owned());
        for problem in problems.iter().filter(|problem| lines.line(problem.span.start) == number) {
            let start = text[..problem.span.start].rfind('\n').map_or(0, |end| end + 1);
            let before = text[start..problem.span.start].chars().count();
            let marks = "^".repeat(problem.span.len());
            let severity = problem.severity.as_str();
            shown.push(format!("{}{marks} {severity} {}: {}", " ".repeat(before), problem.code, problem.message));
            shown.extend(problem.help.iter().map(|help| format!("{}help: {help}", " ".repeat(before))));
        }
    }
    shown.join("\n")
}
