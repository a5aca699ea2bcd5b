//! Inspecting servers: test runs, policies, calls and metrics.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use super::Engine;
use super::consent::GrantLookup;
use super::doctor::several;
use super::snapshot::{OfferedTool, ServerView};
use super::trust::Verdict;
use crate::config::{Definition, EntrySpec, Launch, layers};
use crate::model::{CallRecord, Error, Level, Result, ServerName, ServerState, Status, Timestamp, millis};
use crate::policy::trust::Trusted;
use crate::policy::{HiddenRule, Ruling};
use crate::server::Server;
use crate::store::{CallQuery, ChainReport, ToolMetrics};
use crate::text::mask_value;

/// The result of a test run of a definition. The server does not stay running.
#[derive(Debug, Clone)]
pub struct TestReport {
    pub success: bool,
    pub message: String,
    pub server_info: Option<(String, String)>,
    pub protocol_version: Option<String>,
    /// As the server sent them.
    pub tools: Vec<Map<String, Value>>,
    pub resources: Vec<Map<String, Value>>,
    pub prompts: Vec<Map<String, Value>>,
    pub latency_ms: f64,
}

/// The level of one tool and the reason for it, for `mcp.policies`.
#[derive(Debug, Clone)]
pub struct Explanation {
    pub tool: String,
    pub level: Level,
    pub source: Arc<str>,
    pub hides: Vec<HiddenRule>,
    /// Agents for which the level is different.
    pub agents: Vec<ForAgent>,
}

/// The level of a tool for the agents of one name.
#[derive(Debug, Clone)]
pub struct ForAgent {
    pub agent: String,
    pub level: Level,
    pub source: Arc<str>,
}

/// The metrics of a server, for `mcp.metrics`.
#[derive(Debug, Clone)]
pub struct ServerMetrics {
    pub server: ServerName,
    pub start_ms: Option<f64>,
    pub discover_ms: Option<f64>,
    pub restarts: u32,
    pub uptime_ms: Option<f64>,
    /// The estimated tokens of the definitions of its tools.
    pub tokens: usize,
    pub tools: Vec<MeasuredTool>,
}

/// The calls of a tool, and the estimated tokens of its definition if the server offers it now.
#[derive(Debug, Clone)]
pub struct MeasuredTool {
    pub calls: ToolMetrics,
    pub tokens: Option<usize>,
}

impl ServerMetrics {
    /// Takes the server's rows out of `rows`.
    fn new(view: &ServerView, rows: &mut Vec<ToolMetrics>) -> Self {
        let server = view.definition.name.clone();
        let since = view.state.started_at.filter(|_| view.state.status == Status::Connected);
        Self {
            start_ms: view.state.start_time.map(millis),
            discover_ms: view.state.discover_time.map(millis),
            restarts: view.state.restarts,
            uptime_ms: since.map(|since| (Timestamp::now().unix_millis() - since.unix_millis()).max(0) as f64),
            tokens: view.tokens(),
            tools: rows
                .extract_if(.., |row| row.server == server)
                .map(|calls| {
                    let tokens = view.tools.get(calls.tool.as_str()).map(|offered| offered.tokens());
                    MeasuredTool { calls, tokens }
                })
                .collect(),
            server,
        }
    }
}

impl TestReport {
    /// `took` counts if the server did not get as far as to measure its start.
    fn new(state: &ServerState, took: Duration) -> Self {
        let latency_ms = millis(state.start_time.map_or(took, |start| start + state.discover_time.unwrap_or_default()));
        let success = state.status == Status::Connected;
        // The names of properties may contain secrets, too. Agents need them as they are.
        let fields = |value: &Value| mask_value(value).as_object().cloned();
        Self {
            success,
            message: match &state.error {
                Some(error) if !success => error.to_string(),
                _ if success => format!(
                    "connected: {}, {}, {}",
                    several(state.tools.len(), "tool"),
                    several(state.resources.len(), "resource"),
                    several(state.prompts.len(), "prompt")
                ),
                _ => state.status.reason().unwrap_or_else(|| state.status.as_str().to_owned()),
            },
            server_info: state.peer.as_ref().map(|peer| (peer.name.clone(), peer.version.clone())),
            protocol_version: state.peer.as_ref().map(|peer| peer.protocol_version.clone()),
            tools: state.tools.iter().filter_map(|tool| fields(&tool.definition())).collect(),
            resources: state.resources.iter().filter_map(|resource| fields(&resource.raw)).collect(),
            prompts: state.prompts.iter().filter_map(|prompt| fields(&prompt.raw)).collect(),
            latency_ms,
        }
    }
}

impl Engine {
    /// The timeout for this server: from the caller, or its definition, or the settings.
    pub(super) fn time_limit(&self, view: &ServerView, wanted: Option<Duration>) -> Duration {
        let settings = self.0.shared.settings.borrow();
        wanted.or(view.definition.spec.timeout).unwrap_or(settings.servers.timeout).min(settings.servers.max_timeout)
    }

    /// Starts a second instance of a configured server, lists what it has, and stops it.
    pub async fn test_server(&self, server: ServerName) -> Result<TestReport> {
        let snapshot = self.now();
        let view = snapshot.server(&server)?;
        // There is only one connection to a server inside an editor.
        if matches!(view.definition.spec.launch, Launch::Sdk { .. }) && view.state.status == Status::Connected {
            return Ok(TestReport::new(&view.state, Duration::ZERO));
        }
        self.test_definition(view.definition.clone()).await
    }

    /// The servers that run in another folder since this version. Returns them once, so that the user is notified once.
    pub async fn moved_to_private_folders(&self) -> Vec<ServerName> {
        let moved = |definition: &&Arc<Definition>| {
            let launches = [Some(&definition.spec.launch), definition.spec.fallback.as_ref()];
            let moved = |launch: &Launch| matches!(launch, Launch::Stdio(stdio) if stdio.cwd.is_none());
            definition.folder.is_none() && launches.into_iter().flatten().any(moved)
        };
        let loaded = self.loaded().borrow().clone();
        let servers: Vec<_> = loaded.config.servers.values().filter(moved).map(|server| server.name.clone()).collect();
        let notified = !servers.is_empty() && !self.0.store.take_private_folders_notice().await;
        if notified { Vec::new() } else { servers }
    }

    /// The same for a definition that is not in a config file. Its sender has just seen it.
    pub async fn test_config(&self, config: Value) -> Result<TestReport> {
        let (name, entry) = layers::session_entry("test", &config).map_err(|problems| {
            let messages: Vec<String> = problems.into_iter().map(|problem| problem.message).collect();
            Error::InvalidParams(messages.join("; "))
        })?;
        let EntrySpec::Server(spec) = entry else {
            return Err(Error::InvalidParams("`config` has no `command`, `url` or `port`".to_owned()));
        };
        let definition = Definition::of_session(name, *spec, config);
        self.test_definition(Arc::new(definition)).await
    }

    async fn test_definition(&self, definition: Arc<Definition>) -> Result<TestReport> {
        let server = definition.name.clone();
        match self.0.trust_checker.check(definition, None).await {
            Verdict::Trusted(trusted) => Ok(self.trial(trusted).await),
            Verdict::Forbidden { reason } => Err(Error::Process { server, message: reason }),
            Verdict::Ask(_) | Verdict::Refused(_) | Verdict::Restricted(_) => Err(Error::NeedsTrust(server)),
        }
    }

    async fn trial(&self, trusted: Trusted) -> TestReport {
        let started = Instant::now();
        let state = Server::trial(trusted, self.0.context.clone()).await;
        TestReport::new(&state, started.elapsed())
    }

    /// Explains the level of each tool. No tool is called.
    pub async fn policies(
        &self,
        server: Option<&ServerName>,
        tool: Option<&str>,
        arguments: Option<&Map<String, Value>>,
    ) -> Result<Vec<Explanation>> {
        let granted = self.granted().await;
        let snapshot = self.now();
        let mut explained = Vec::new();
        for view in snapshot.select(server)? {
            let chosen = view.tools.values().filter(|offered| tool.is_none_or(|tool| &*offered.tool.name == tool));
            explained.extend(chosen.map(|offered| self.explain(view, offered, arguments, &granted)));
            let subject = tool.filter(|_| server.is_some()).and_then(|name| snapshot.offered_subject(view, name));
            explained.extend(subject.map(|subject| self.explain(view, &subject, arguments, &granted)));
        }
        match (explained.is_empty(), server, tool) {
            (true, Some(server), Some(tool)) => Err(Error::NoTool { server: server.clone(), tool: tool.to_owned() }),
            _ => Ok(explained),
        }
    }

    fn explain(
        &self,
        view: &ServerView,
        offered: &OfferedTool,
        arguments: Option<&Map<String, Value>>,
        granted: &GrantLookup,
    ) -> Explanation {
        let explained = self.now().rules.explain(&offered.id.server, &offered.tool, arguments, view.trust_state());
        let rule = explained.ruling.in_session(self.0.once.used(&offered.id));
        let ruling = rule.clone().raised_by(&granted.find(view, offered));
        let agents = self.for_agents(offered, &rule);
        let mut hides = explained.hides;
        if ruling != rule {
            hides.insert(0, HiddenRule { level: rule.level, source: rule.source, reason: None });
        }
        Explanation { tool: offered.id.to_string(), level: ruling.level, source: ruling.source, hides, agents }
    }

    fn for_agents(&self, offered: &OfferedTool, ruling: &Ruling) -> Vec<ForAgent> {
        let views = self.0.shared.views.borrow();
        let other = views.named().filter_map(|view| {
            let held = view.hidden(&offered.id, &offered.tool).unwrap_or_else(|| view.narrow(ruling.clone()));
            (held != *ruling).then(|| ForAgent { agent: view.agent.clone(), level: held.level, source: held.source })
        });
        other.collect()
    }

    /// The call log of this workspace, newest first.
    pub async fn calls(&self, query: CallQuery) -> Result<Vec<CallRecord>> {
        self.0.store.calls(query).await
    }

    /// Whether the call log of this workspace is as it was written.
    pub async fn verify_calls(&self) -> Result<ChainReport> {
        self.0.store.verify_calls().await
    }

    /// Start times of servers, durations of calls, and error counts.
    pub async fn metrics(&self, server: Option<&ServerName>) -> Result<Vec<ServerMetrics>> {
        let snapshot = self.now();
        let views = snapshot.select(server)?;
        let mut rows = self.0.store.metrics(server.map(ToString::to_string)).await?;
        Ok(views.into_iter().map(|view| ServerMetrics::new(view, &mut rows)).collect())
    }
}
