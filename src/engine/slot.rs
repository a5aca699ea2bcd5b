//! One server's place in the hub: what was asked for, what became of it, and the picture made from both.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::snapshot::{Offered, ServerView, Trust};
use crate::config::{Definition, Launch};
use crate::model::{PendingReason, ServerName, ServerState, Status, Tool, ToolId};
use crate::policy::trust::{Fingerprint, Question, Trusted};
use crate::policy::{Rules, Standing, lookalike};
use crate::server::{Action, Context, Server};
use crate::text::{has_invisible, one_line, prose_has_invisible};

pub struct Slot {
    pub definition: Arc<Definition>,
    /// Tells events of this life from those of an earlier one under the same name.
    pub generation: u64,
    pub switched_on: bool,
    pub state: Arc<ServerState>,
    pub server: Option<Server>,
    /// How many actions of the user it has seen.
    actions: u64,
    /// A server that has lost its trust, to be ended by the hub.
    pub leaving: Option<Server>,
    /// Of the definition that was trusted; grants are bound to it.
    fingerprint: Option<Arc<Fingerprint>>,
    trust: Trust,
    judged: bool,
    /// How often it has been sent to be judged; only the last verdict counts.
    round: u64,
    /// What the tools below were made from.
    made_from: Option<Source>,
    tools: Arc<BTreeMap<Arc<str>, Arc<Offered>>>,
    remarks: Vec<String>,
}

/// Everything that the rulings of a server's tools depend on.
struct Source {
    tools: Arc<Vec<Arc<Tool>>>,
    rules: Arc<Rules>,
    definition: Arc<Definition>,
    standing: Standing,
}

impl Slot {
    pub fn new(definition: Arc<Definition>, generation: u64, switched_on: bool) -> Self {
        let status = match definition.spec.enabled {
            false => Status::Disabled,
            true if definition.scope.needs_trust() => Status::Pending(PendingReason::Trust),
            true => Status::Pending(PendingReason::Starting),
        };
        // The user's own definitions never need trust, also not in the moment before they are judged.
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
            judged: false,
            round: 0,
            made_from: None,
            tools: Arc::default(),
            remarks: Vec::new(),
        }
    }

    /// Passes on what the user wants of the server; the future ends when the server has settled. Before the definition
    /// may start there is nothing to act on.
    pub fn begin_action(&mut self, action: Action) -> Option<impl Future<Output = Arc<ServerState>> + Send + use<>> {
        self.actions += 1;
        self.server.as_ref()?.begin_action(action).ok()
    }

    pub fn is_judged(&self) -> bool {
        self.judged
    }

    /// The number of the verdict that is awaited now.
    pub fn next_round(&mut self) -> u64 {
        self.round += 1;
        self.round
    }

    pub fn awaits(&self, generation: u64, round: u64) -> bool {
        (self.generation, self.round) == (generation, round)
    }

    /// What it may do has changed: until that has been judged, nothing in its file widens.
    pub fn reconsider(&mut self) {
        self.judged = false;
    }

    fn standing(&self) -> Standing {
        if self.judged { self.trust.standing() } else { Standing::Untrusted }
    }

    pub fn may_start(&mut self, trusted: Trusted, context: Context) {
        self.judged = true;
        self.trust = Trust::Given;
        self.fingerprint = Some(trusted.fingerprint().clone());
        if self.server.is_none() && self.definition.spec.enabled {
            let server = Server::spawn(trusted, self.generation, context);
            self.state = server.state();
            self.server = Some(server);
        }
    }

    /// A running server goes on when only its levels await trust, as its launch was trusted before; what its file
    /// wants to widen does not count meanwhile. Anything else that runs has to leave.
    pub fn must_ask(&mut self, question: &Question) {
        self.judged = true;
        let difference = question.difference.as_ref().map(|lines| lines.join("\n"));
        self.trust = Trust::Needed { difference, refused: false };
        if !question.same_launch {
            self.wait_for_trust(None);
        }
    }

    pub fn refused(&mut self) {
        self.judged = true;
        self.trust = Trust::Needed { difference: None, refused: true };
        self.wait_for_trust(Some("you did not trust this definition; `mcp.server.trust` changes that".to_owned()));
    }

    pub fn restricted(&mut self) {
        self.judged = true;
        self.trust = Trust::Needed { difference: None, refused: false };
        self.wait_for_trust(Some("your editor does not trust this workspace; trust it there first".to_owned()));
    }

    /// Whatever the user trusts, it does not run; that nobody has trusted it yet stays true.
    pub fn forbidden(&mut self, reason: String) {
        self.judged = true;
        self.leaving = self.server.take();
        self.become_without_server(Status::Failed, Some(reason));
    }

    fn wait_for_trust(&mut self, error: Option<String>) {
        self.leaving = self.server.take();
        let status =
            if self.definition.spec.enabled { Status::Pending(PendingReason::Trust) } else { Status::Disabled };
        self.become_without_server(status, error);
    }

    fn become_without_server(&mut self, status: Status, error: Option<String>) {
        let mut state = ServerState::new(status);
        state.error = error;
        self.state = Arc::new(state);
    }

    /// What the server says now, events that are still on their way included.
    pub fn refresh(&mut self) {
        if let Some(server) = &self.server {
            self.state = server.state();
        }
    }

    /// Whether it does not run, and is started with one of these programs.
    pub fn has_failed_with(&self, program: impl Fn(&String) -> bool) -> bool {
        let failed = matches!(self.state.status, Status::Failed | Status::Pending(PendingReason::Retry(_)));
        failed && matches!(&self.definition.spec.launch, Launch::Stdio(stdio) if program(&stdio.command))
    }

    pub fn waits_for_editor(&self) -> bool {
        matches!(self.definition.spec.launch, Launch::Sdk { .. }) && self.state.status != Status::Connected
    }

    /// The picture of it now. `trouble` is what keeps every server's tools from being called.
    pub fn view(&mut self, rules: &Arc<Rules>, servers: &[ServerName], trouble: Option<&String>) -> Arc<ServerView> {
        self.remake_tools(rules, servers);
        Arc::new(ServerView {
            definition: self.definition.clone(),
            state: self.state.clone(),
            trust: self.trust.clone(),
            judged: self.judged,
            fingerprint: self.fingerprint.clone(),
            switched_on: self.switched_on,
            tools: self.tools.clone(),
            server: self.server.clone(),
            actions: self.actions,
            remarks: trouble.into_iter().chain(&self.remarks).cloned().collect(),
        })
    }

    /// Rules every tool anew, but only when something that a ruling depends on has changed: a server may have
    /// thousands, and pictures are published often.
    fn remake_tools(&mut self, rules: &Arc<Rules>, servers: &[ServerName]) {
        let same = self.made_from.as_ref().is_some_and(|source| {
            Arc::ptr_eq(&source.tools, &self.state.tools)
                && Arc::ptr_eq(&source.rules, rules)
                && Arc::ptr_eq(&source.definition, &self.definition)
                && source.standing == self.standing()
        });
        if same {
            return;
        }
        let standing = self.standing();
        let offered = self.state.tools.iter().map(|tool| {
            let id = ToolId::new(self.definition.name.clone(), &tool.name);
            let ruling = rules.rule(&self.definition.name, tool, None, standing);
            (tool.name.clone(), Arc::new(Offered::new(id, tool.clone(), ruling)))
        });
        self.tools = Arc::new(offered.collect());
        self.remarks = remarks(&self.definition.name, &self.state.tools, servers);
        self.made_from = Some(Source {
            tools: self.state.tools.clone(),
            rules: rules.clone(),
            definition: self.definition.clone(),
            standing,
        });
    }
}

/// What a reader of the tool list should know: names that pretend to be another server's, text that hides something.
fn remarks(name: &ServerName, tools: &[Arc<Tool>], servers: &[ServerName]) -> Vec<String> {
    let mut remarks = Vec::new();
    for tool in tools {
        if let Some(other) = lookalike::lookalike(name, &tool.name, servers) {
            remarks.push(lookalike::warning(&tool.name, other));
        }
        if has_invisible(&tool.description) || has_invisible(&tool.name) {
            let shown = one_line(&tool.name, 80);
            remarks.push(format!("the description of tool {shown} holds characters that cannot be seen"));
        } else if prose_has_invisible(&tool.raw) {
            let shown = one_line(&tool.name, 80);
            remarks.push(format!("the title or the schema of tool {shown} holds characters that cannot be seen"));
        }
    }
    remarks
}
