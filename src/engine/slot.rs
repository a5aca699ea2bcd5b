//! A server in the hub: its definition, its state, and the view that is published.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use tokio::task::JoinHandle;

use super::approvals::Withdrawal;
use super::snapshot::{OfferedTool, ServerView, Trust};
use super::trust::AskAgain;
use crate::config::spec::MissingProgram;
use crate::config::{Definition, Launch};
use crate::model::{PendingReason, ServerName, ServerState, Status, Tool, ToolId};
use crate::policy::trust::{Fingerprint, Question, TrustKey, Trusted};
use crate::policy::{Rules, TrustState, lookalike};
use crate::server::{Action, Server};
use crate::text::{has_invisible, holds_hidden, one_line};

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
    /// Of the definition as it was last checked, trusted or not.
    checked: Option<Arc<Fingerprint>>,
    question: TrustQuestion,
    /// The check that the user requested in order to be asked, even about a definition that they refused. It counts
    /// until they answer.
    ask_again: Option<(u64, AskAgain)>,
    trust: Trust,
    trust_checked: bool,
    /// It cannot run even if the user trusts it.
    forbidden: bool,
    /// Counts trust checks. Only the latest verdict is used.
    round: u64,
    /// The latest check that has a verdict.
    checked_round: u64,
    /// What `tools` was computed from.
    tools_source: Option<ToolsSource>,
    tools: Arc<BTreeMap<Arc<str>, Arc<OfferedTool>>>,
    remarks: Vec<String>,
}

/// Why a definition is checked.
pub enum TrustCheck {
    /// Something has changed, perhaps.
    Again,
    /// The user wants to be asked, even about a definition that they refused.
    Ask(AskAgain),
    /// The user has decided, in answer to the question of check `round`, or with a command.
    Decided { round: Option<u64> },
}

/// The question about trust in a definition.
#[derive(Default)]
enum TrustQuestion {
    #[default]
    None,
    /// To be asked, together with those of the same file.
    Due {
        question: Arc<Question>,
        is_requested: bool,
    },
    Open(OpenTrustQuestion),
    /// Nobody could be asked.
    Unanswered,
}

/// A question about trust that waits. Dropping it withdraws the question, unless it was answered.
pub struct OpenTrustQuestion {
    pub question: Arc<Question>,
    /// The check that led to it.
    pub round: u64,
    pub withdrawal: Withdrawal,
    /// Applies the answer. It is not aborted, because that could lose an answer.
    pub task: JoinHandle<()>,
}

impl Drop for OpenTrustQuestion {
    fn drop(&mut self) {
        self.withdrawal.withdraw();
    }
}

impl OpenTrustQuestion {
    fn asks_the_same(&self, other: &Question) -> bool {
        let Question { key, fingerprint, difference, .. } = &*self.question;
        let is_same = *key == other.key && *fingerprint == other.fingerprint && *difference == other.difference;
        is_same && !self.task.is_finished()
    }
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
            checked: None,
            question: TrustQuestion::None,
            ask_again: None,
            trust,
            trust_checked: false,
            forbidden: false,
            round: 0,
            checked_round: 0,
            tools_source: None,
            tools: Arc::default(),
            remarks: Vec::new(),
        }
    }

    /// Sends an action to the server. The future completes when the server has settled. `None` before the definition
    /// may start.
    pub fn begin_action(&mut self, action: Action) -> Option<impl Future<Output = Arc<ServerState>> + Send + use<>> {
        if action != Action::Refresh {
            self.actions += 1;
        }
        self.server.as_ref()?.begin_action(action).ok()
    }

    pub fn is_trust_checked(&self) -> bool {
        self.trust_checked
    }

    /// Begins a trust check. Returns its number, and whether the user is asked about a definition that they refused.
    pub fn begin_check(&mut self, check: TrustCheck) -> (u64, Option<AskAgain>) {
        self.round += 1;
        match check {
            TrustCheck::Again => {}
            TrustCheck::Ask(ask) => self.ask_again = Some((self.round, ask)),
            // An answer to an earlier question does not answer the one that the user requested after it.
            TrustCheck::Decided { round } => {
                self.ask_again.take_if(|(asked, _)| round.is_none_or(|round| *asked <= round));
                if matches!(&self.question, TrustQuestion::Open(open) if Some(open.round) == round) {
                    self.question = TrustQuestion::None;
                }
            }
        }
        (self.round, self.ask_again.as_ref().map(|(_, ask)| ask.clone()))
    }

    pub fn end_check(&mut self) {
        self.checked_round = self.round;
    }

    pub fn is_being_checked(&self) -> bool {
        self.checked_round != self.round
    }

    /// Whether it does not run because of an earlier verdict.
    pub fn waits_for_trust(&self) -> bool {
        self.trust != Trust::Given && self.server.is_none() && self.checked_round > 0
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

    fn set_trust(&mut self, trust: Trust) {
        self.trust_checked = true;
        self.forbidden = false;
        self.trust = trust;
    }

    pub fn may_start(&mut self, trusted: Trusted, spawn: impl FnOnce(Trusted, u64) -> Server) {
        self.set_trust(Trust::Given);
        self.withdraw_question("the server is trusted");
        self.ask_again = None;
        self.fingerprint = Some(trusted.fingerprint().clone());
        self.checked = self.fingerprint.clone();
        if self.server.is_none() && self.definition.spec.enabled {
            let server = spawn(trusted, self.generation);
            self.state = server.state();
            self.server = Some(server);
        }
    }

    /// A running server continues if only its levels need trust, because its launch is trusted. Its new levels do not
    /// apply yet. Any other server stops.
    pub fn must_ask(&mut self, question: Box<Question>) {
        self.checked = Some(question.fingerprint.clone());
        let difference = question.difference.as_ref().map(|lines| lines.join("\n"));
        self.set_trust(Trust::Needed { difference, refused: false });
        if !question.same_launch {
            self.wait_for_trust(None);
        }
        let is_requested = self.ask_again.as_ref().is_some_and(|(round, _)| *round == self.round);
        match &self.question {
            // A disabled server does not start, so there is no question until it is enabled.
            _ if !self.definition.spec.enabled => self.withdraw_question("the server is disabled"),
            TrustQuestion::Open(open) if open.asks_the_same(&question) && !is_requested => {}
            TrustQuestion::Open(open) => {
                if is_requested {
                    open.withdrawal.explain("the question is asked again");
                }
                self.question = TrustQuestion::Due { question: question.into(), is_requested };
            }
            _ => self.question = TrustQuestion::Due { question: question.into(), is_requested },
        }
    }

    pub fn refused(&mut self, fingerprint: Arc<Fingerprint>) {
        let reason = match fingerprint.is_of_own_launch() {
            true => "you did not make this change in your own config; undo it, or trust the server to start it",
            false => "you did not trust this server; trust it to start it",
        };
        self.checked = Some(fingerprint);
        self.set_trust(Trust::Needed { difference: None, refused: true });
        self.withdraw_question("the server is not trusted");
        self.wait_for_trust(Some(reason.to_owned()));
    }

    pub fn restricted(&mut self, fingerprint: Option<Arc<Fingerprint>>) {
        self.checked = fingerprint;
        self.set_trust(Trust::Needed { difference: None, refused: false });
        self.withdraw_question("the editor does not trust the workspace");
        self.wait_for_trust(Some("the editor does not trust this workspace; trust the workspace first".to_owned()));
    }

    /// It cannot run even if the user trusts it. Its trust stays as it is.
    pub fn forbidden(&mut self, reason: String) {
        self.trust_checked = true;
        self.forbidden = true;
        self.withdraw_question("the server is forbidden");
        self.leaving = self.server.take();
        let (status, error) = match self.definition.spec.enabled {
            true => (Status::Failed, Some(reason)),
            false => (Status::Disabled, None),
        };
        self.set_state_without_server(status, error);
    }

    fn wait_for_trust(&mut self, error: Option<String>) {
        self.leaving = self.server.take();
        let status =
            if self.definition.spec.enabled { Status::Pending(PendingReason::Trust) } else { Status::Disabled };
        self.set_state_without_server(status, error);
    }

    fn set_state_without_server(&mut self, status: Status, error: Option<String>) {
        let mut state = ServerState::new(status);
        state.error = error.map(Into::into);
        self.state = Arc::new(state);
    }

    fn withdraw_question(&mut self, reason: &'static str) {
        if let TrustQuestion::Open(open) = std::mem::take(&mut self.question) {
            open.withdrawal.explain(reason);
        }
    }

    /// Whether a question is to be asked, other than one about a folder that the user is asked about already.
    pub fn has_due_question(&self, folders: &BTreeSet<TrustKey>) -> bool {
        matches!(&self.question, TrustQuestion::Due { question, .. } if !folders.contains(&question.key))
    }

    /// The folder that the user is asked about for this server.
    pub fn open_folder_question(&self) -> Option<TrustKey> {
        match &self.question {
            TrustQuestion::Open(open) if open.question.is_about_folder() && !open.task.is_finished() => {
                Some(open.question.key.clone())
            }
            _ => None,
        }
    }

    /// The question that is to be asked, unless others of its file are still `unchecked`. A question that the user
    /// requested does not wait for others.
    pub fn due_question(&self, unchecked: &BTreeSet<Arc<Path>>) -> Option<(u64, Arc<Definition>, Arc<Question>)> {
        let waits = self.definition.file.as_ref().is_some_and(|file| unchecked.contains(file));
        match &self.question {
            TrustQuestion::Due { question, is_requested } if *is_requested || !waits => {
                Some((self.round, self.definition.clone(), question.clone()))
            }
            _ => None,
        }
    }

    /// The question was asked. `None` if there was no one to ask.
    pub fn asked(&mut self, question: Option<OpenTrustQuestion>) {
        self.question = question.map_or(TrustQuestion::Unanswered, TrustQuestion::Open);
    }

    /// Whether the user was asked about trust and did not answer, for example because the last editor was closed.
    pub fn has_unanswered_question(&self) -> bool {
        let unanswered = match &self.question {
            TrustQuestion::Unanswered => true,
            TrustQuestion::Open(open) => open.task.is_finished(),
            TrustQuestion::None | TrustQuestion::Due { .. } => false,
        };
        self.trust != Trust::Given && unanswered
    }

    /// Reads the server's current state, including events that are still queued.
    pub fn refresh(&mut self) {
        if let Some(server) = &self.server {
            self.state = server.state();
        }
    }

    /// Whether it has failed and its program is one of these.
    pub fn has_failed_with(&self, program: impl Fn(&MissingProgram) -> bool) -> bool {
        let failed = matches!(self.state.status, Status::Failed | Status::Pending(PendingReason::Retry(_)));
        let Launch::Stdio(stdio) = &self.definition.spec.launch else { return false };
        failed && program(&(stdio.command.clone(), self.definition.folder.clone()))
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
            checked: self.checked.clone().filter(|_| self.definition.scope.needs_trust() || self.trust != Trust::Given),
            forbidden: self.forbidden,
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
        } else if holds_hidden(&tool.definition()) {
            let shown = one_line(&tool.name, 80);
            remarks.push(format!("the title or schema of the tool `{shown}` contains invisible characters"));
        }
    }
    remarks
}
