//! A server in the hub: its definition, its state, and the view that is published.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::snapshot::{OfferedTool, ServerView, Trust};
use crate::config::{Definition, Launch};
use crate::model::{PendingReason, ServerName, ServerState, Status, Tool, ToolId};
use crate::policy::trust::{Fingerprint, Question, Trusted};
use crate::policy::{Rules, TrustState, lookalike};
use crate::server::{Action, Context, Server};
use crate::text::{has_invisible, one_line, prose_has_invisible};

pub struct Slot {
    pub definition: Arc<Definition>,
    /// Distinguishes events of this server from those of an earlier one with the same name.
    pub generation: u64,
    pub switched_on: bool,
    pub state: Arc<ServerState>,
    pub server: Option<Server>,
    /// How often the user has started, stopped or restarted it.
    actions: u64,
    /// A server that lost its trust. The hub shuts it down.
    pub leaving: Option<Server>,
    /// Of the trusted definition. Grants are bound to it.
    fingerprint: Option<Arc<Fingerprint>>,
    trust: Trust,
    trust_checked: bool,
    /// Counts trust checks. Only the latest verdict is used.
    round: u64,
    /// What `tools` was computed from.
    tools_source: Option<ToolsSource>,
    tools: Arc<BTreeMap<Arc<str>, Arc<OfferedTool>>>,
    remarks: Vec<String>,
}

/// Everything that the rulings of a server's tools depend on.
struct ToolsSource {
    tools: Arc<Vec<Arc<Tool>>>,
    rules: Arc<Rules>,
    definition: Arc<Definition>,
    trust_state: TrustState,
}

impl Slot {
    pub fn new(definition: Arc<Definition>, generation: u64, switched_on: bool) -> Self {
        let status = match definition.spec.enabled {
            false => Status::Disabled,
            true if definition.scope.needs_trust() => Status::Pending(PendingReason::Trust),
            true => Status::Pending(PendingReason::Starting),
        };
        // The user's own definitions never need trust, even before they are checked.
        let trust = match definition.scope.needs_trust() {
            true => Trust::Needed { difference: None, refused: false },
            false => Trust::Given,
        };
        Self {
            definition,
            generation,
            switched_on,
            state: Arc::new(ServerState::new(status)),
            server: None,
            actions: 0,
            leaving: None,
            fingerprint: None,
            trust,
            trust_checked: false,
            round: 0,
            tools_source: None,
            tools: Arc::default(),
            remarks: Vec::new(),
        }
    }

    /// Sends an action to the server. The future completes when the server has settled. `None` before the definition
    /// may start.
    pub fn begin_action(&mut self, action: Action) -> Option<impl Future<Output = Arc<ServerState>> + Send + use<>> {
        self.actions += 1;
        self.server.as_ref()?.begin_action(action).ok()
    }

    pub fn is_trust_checked(&self) -> bool {
        self.trust_checked
    }

    /// The number of the next trust check.
    pub fn next_round(&mut self) -> u64 {
        self.round += 1;
        self.round
    }

    pub fn awaits(&self, generation: u64, round: u64) -> bool {
        (self.generation, self.round) == (generation, round)
    }

    /// What the definition may do has changed: until it is checked, nothing in its file allows more.
    pub fn recheck_trust(&mut self) {
        self.trust_checked = false;
    }

    fn trust_state(&self) -> TrustState {
        if self.trust_checked { self.trust.trust_state() } else { TrustState::Untrusted }
    }

    pub fn may_start(&mut self, trusted: Trusted, context: Context) {
        self.trust_checked = true;
        self.trust = Trust::Given;
        self.fingerprint = Some(trusted.fingerprint().clone());
        if self.server.is_none() && self.definition.spec.enabled {
            let server = Server::spawn(trusted, self.generation, context);
            self.state = server.state();
            self.server = Some(server);
        }
    }

    /// A running server continues if only its levels need trust, because its launch is trusted. Its new levels do not
    /// apply yet. Any other server stops.
    pub fn must_ask(&mut self, question: &Question) {
        self.trust_checked = true;
        let difference = question.difference.as_ref().map(|lines| lines.join("\n"));
        self.trust = Trust::Needed { difference, refused: false };
        if !question.same_launch {
            self.wait_for_trust(None);
        }
    }

    pub fn refused(&mut self) {
        self.trust_checked = true;
        self.trust = Trust::Needed { difference: None, refused: true };
        self.wait_for_trust(Some("you did not trust this server; trust it to start it".to_owned()));
    }

    pub fn restricted(&mut self) {
        self.trust_checked = true;
        self.trust = Trust::Needed { difference: None, refused: false };
        self.wait_for_trust(Some("the editor does not trust this workspace; trust the workspace first".to_owned()));
    }

    /// It cannot run even if the user trusts it. Its trust stays as it is.
    pub fn forbidden(&mut self, reason: String) {
        self.trust_checked = true;
        self.leaving = self.server.take();
        self.set_state_without_server(Status::Failed, Some(reason));
    }

    fn wait_for_trust(&mut self, error: Option<String>) {
        self.leaving = self.server.take();
        let status =
            if self.definition.spec.enabled { Status::Pending(PendingReason::Trust) } else { Status::Disabled };
        self.set_state_without_server(status, error);
    }

    fn set_state_without_server(&mut self, status: Status, error: Option<String>) {
        let mut state = ServerState::new(status);
        state.error = error;
        self.state = Arc::new(state);
    }

    /// Reads the server's current state, including events that are still queued.
    pub fn refresh(&mut self) {
        if let Some(server) = &self.server {
            self.state = server.state();
        }
    }

    /// Whether it has failed and its program is one of these.
    pub fn has_failed_with(&self, program: impl Fn(&String) -> bool) -> bool {
        let failed = matches!(self.state.status, Status::Failed | Status::Pending(PendingReason::Retry(_)));
        failed && matches!(&self.definition.spec.launch, Launch::Stdio(stdio) if program(&stdio.command))
    }

    pub fn waits_for_editor(&self) -> bool {
        matches!(self.definition.spec.launch, Launch::Sdk { .. }) && self.state.status != Status::Connected
    }

    /// The view to publish. `problem` blocks the tools of all servers.
    pub fn view(&mut self, rules: &Arc<Rules>, servers: &[ServerName], problem: Option<&String>) -> Arc<ServerView> {
        self.update_tools(rules, servers);
        Arc::new(ServerView {
            definition: self.definition.clone(),
            state: self.state.clone(),
            trust: self.trust.clone(),
            trust_checked: self.trust_checked,
            fingerprint: self.fingerprint.clone(),
            switched_on: self.switched_on,
            tools: self.tools.clone(),
            server: self.server.clone(),
            actions: self.actions,
            remarks: problem.into_iter().chain(&self.remarks).cloned().collect(),
        })
    }

    /// Rules on every tool again, but only if something that a ruling depends on has changed: a server can have
    /// thousands of tools, and snapshots are published often.
    fn update_tools(&mut self, rules: &Arc<Rules>, servers: &[ServerName]) {
        let same = self.tools_source.as_ref().is_some_and(|tools_source| {
            Arc::ptr_eq(&tools_source.tools, &self.state.tools)
                && Arc::ptr_eq(&tools_source.rules, rules)
                && Arc::ptr_eq(&tools_source.definition, &self.definition)
                && tools_source.trust_state == self.trust_state()
        });
        if same {
            return;
        }
        let trust_state = self.trust_state();
        let offered = self.state.tools.iter().map(|tool| {
            let id = ToolId::new(self.definition.name.clone(), &tool.name);
            let ruling = rules.rule(&self.definition.name, tool, None, trust_state);
            (tool.name.clone(), Arc::new(OfferedTool::new(id, tool.clone(), ruling)))
        });
        self.tools = Arc::new(offered.collect());
        self.remarks = remarks(&self.definition.name, &self.state.tools, servers);
        self.tools_source = Some(ToolsSource {
            tools: self.state.tools.clone(),
            rules: rules.clone(),
            definition: self.definition.clone(),
            trust_state,
        });
    }
}

/// Warnings about tools: names that imitate another server's, and text with invisible characters.
fn remarks(name: &ServerName, tools: &[Arc<Tool>], servers: &[ServerName]) -> Vec<String> {
    let mut remarks = Vec::new();
    for tool in tools {
        if let Some(other) = lookalike::lookalike(name, &tool.name, servers) {
            remarks.push(lookalike::warning(&tool.name, other));
        }
        if has_invisible(&tool.description) || has_invisible(&tool.name) {
            let shown = one_line(&tool.name, 80);
            remarks.push(format!("the description of the tool `{shown}` contains invisible characters"));
        } else if prose_has_invisible(&tool.raw) {
            let shown = one_line(&tool.name, 80);
            remarks.push(format!("the title or schema of the tool `{shown}` contains invisible characters"));
        }
    }
    remarks
}
