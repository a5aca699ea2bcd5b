//! The gate for agents' own tools. The agent asks us before it runs one, and runs it itself: find the rule → ask →
//! record → answer. The same rules, grants, questions and records as for the tools of servers.

mod second_question;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::pause::Paused;
use super::question::show_change;
use super::{Times, change};
use crate::engine::Engine;
use crate::engine::agents::hooks::HookOrigin;
use crate::engine::approvals::{Answer, Answered, GroupKey, Question, Saving};
use crate::engine::asking::{AgentConnection, CallOrigin};
use crate::engine::consent::{Denial, OnceClaim};
use crate::engine::prompt;
use crate::engine::record::Recording;
use crate::engine::snapshot::OfferedTool;
use crate::model::{
    CallId, CallKind, Decision, Error, HookAgent, Level, Requester, RequesterKind, Result, ToolCall, ToolId,
};
use crate::policy::permit::{Consent, OnceUsed, Refusal, permit};
use crate::policy::{ActionKind, AgentAccess, AgentAction, GrantMatch, Ruling};

/// What the hook of an agent asks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HookQuestion {
    pub agent: HookAgent,
    pub event: HookEvent,
    /// The agent's name for its tool.
    pub tool: String,
    pub arguments: Map<String, Value>,
    /// Where the agent works.
    pub folder: PathBuf,
    /// The agent's name for its session.
    #[serde(default)]
    pub session: Option<String>,
}

/// When a hook asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HookEvent {
    /// Before every use of a tool. Only a rule can decide.
    BeforeTool,
    /// Where the agent would ask its user.
    PermissionRequest,
}

/// The answer to the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HookAnswer {
    Allow,
    /// With a reason for the model.
    Deny(String),
    /// The agent asks its user itself, because no answer came here.
    Ask(String),
    /// No rule applies: the agent continues as if it had not asked.
    NoRule,
}

/// The decision about a call that the agent asks its user about. It is not a denial.
const ASK: &str = "ask";

/// Why a rule denies a command that was not read whole.
const UNREAD: &str = "a rule denies some commands, and this one is too long or too deeply nested to be checked; split it into \
                      shorter commands, or write long texts with a tool for files";

impl Engine {
    /// Answers the hook of an agent. Dropping the future withdraws the question, and records that.
    /// `process` is the hook's, if it is known.
    pub async fn answer_hook(&self, question: HookQuestion, process: Option<u32>) -> HookAnswer {
        let gone = CancellationToken::new();
        let _caller = gone.clone().drop_guard();
        let engine = self.clone();
        let answer = tokio::spawn(async move {
            match HookTask::new(engine, question, process, gone) {
                Some(task) => task.run().await,
                None => HookAnswer::NoRule,
            }
        });
        answer.await.unwrap_or_else(|_| HookAnswer::Ask("mcp-sidecar failed; see its log".to_owned()))
    }
}

struct HookTask {
    engine: Engine,
    action: AgentAction,
    event: HookEvent,
    call: ToolCall,
    view: Arc<AgentAccess>,
    connection: AgentConnection,
    /// The connections of the agent, if it also uses the tools of servers.
    agents: Vec<u64>,
}

/// Why there is no permission.
enum NoPermission {
    Denied(Error),
    Unanswered(String),
}

impl From<Error> for NoPermission {
    fn from(error: Error) -> Self {
        Self::Unanswered(error.to_string())
    }
}

impl HookTask {
    fn new(engine: Engine, question: HookQuestion, process: Option<u32>, gone: CancellationToken) -> Option<Self> {
        let HookQuestion { agent, event, tool, arguments, folder, session } = question;
        let action = AgentAction::new(agent, &tool, arguments, &folder);
        let requester = Requester { kind: RequesterKind::Agent, name: agent.as_str().to_owned() };
        let agents = engine.agents().of_hook(&HookOrigin { agent, folders: &engine.folders(), process });
        let number = match agents.as_slice() {
            [only] => *only,
            // Not the number of a connection that serves MCP.
            _ => {
                let mut number = DefaultHasher::new();
                (agent, &session).hash(&mut number);
                number.finish() | 1 << 63
            }
        };
        let connection = AgentConnection { number, set: None, gone };
        let call = ToolCall {
            id: CallId::random(),
            kind: CallKind::Hook,
            tool: action.id()?,
            arguments: action.arguments.clone(),
            requester,
            workflow: session,
            timeout: None,
            meta: Default::default(),
            unknown_fields: Default::default(),
        };
        let view = engine.view_of_hook(agent, &call.requester);
        Some(Self { engine, action, event, call, view, connection, agents })
    }

    async fn run(self) -> HookAnswer {
        let is_paused = self.engine.agents().is_paused(&self.agents);
        if self.ruling().is_none() && !is_paused {
            return HookAnswer::NoRule;
        }
        let started = Instant::now();
        let registered = self.engine.0.shared.calls.register(&self.call.id, None, None);
        let (tool, requester) = (self.call.tool.clone(), self.call.requester.clone());
        registered.set_origin(CallOrigin { tool, requester, agent: Some(self.connection.number) });
        let waited = registered.waited.clone();
        let mut recording = Recording::new(&self.engine, &self.call);
        let decided = tokio::select! {
            biased;
            () = self.connection.gone.cancelled() => {
                let error = Error::CallerGone(AgentConnection::GONE);
                recording.finish_answer(Err(error), Times::of(started, &waited)).await;
                return HookAnswer::Ask(AgentConnection::GONE.to_owned());
            }
            decided = self.decide_unpaused(&mut recording) => decided,
        };
        let (answer, recorded) = match decided {
            // Nothing was decided, so nothing is recorded.
            Ok(None) => return HookAnswer::NoRule,
            Ok(Some(())) => {
                self.expect_second_question().await;
                (HookAnswer::Allow, Ok(()))
            }
            Err(NoPermission::Denied(error)) => {
                // Agents do not get to know where the rules are.
                let reason = match &error {
                    Error::Denied { reason, rule: None, .. } => reason.clone(),
                    _ if !self.action.is_read_whole() => UNREAD.to_owned(),
                    _ => "a rule denies it".to_owned(),
                };
                (HookAnswer::Deny(reason), Err(error))
            }
            Err(NoPermission::Unanswered(reason)) => {
                recording.refused(ASK, &reason);
                let left = Error::Io(format!("left to the agent, which may ask its user: {reason}"));
                (HookAnswer::Ask(reason), Err(left))
            }
        };
        recording.finish_answer(recorded, Times::of(started, &waited)).await;
        answer
    }

    /// The level of the action now. `None` if no rule is about it and the agent does not ask.
    fn ruling(&self) -> Option<Ruling> {
        let rules = self.engine.now().rules.clone();
        let unruled = self.view.narrow(rules.unruled_action());
        match rules.rule_action(&self.action) {
            Some(ruling) => Some(self.view.narrow(ruling)),
            None if unruled.level < Level::RequireApproval => Some(unruled),
            None => (self.event == HookEvent::PermissionRequest && !self.action.is_dialog()).then_some(unruled),
        }
    }

    /// Decides when the agent is not paused. `None` if no rule is about the action and the agent does not ask.
    async fn decide_unpaused(&self, recording: &mut Recording) -> Result<Option<()>, NoPermission> {
        let waited = self.engine.wait_while_paused(&self.agents, &self.call.id).await;
        // Not silence, even if no rule applies: the agent would continue.
        waited.map_err(|Paused(reason)| NoPermission::Unanswered(reason.to_owned()))?;
        match self.ruling() {
            Some(ruling) => self.decide(ruling, recording).await.map(Some),
            None => Ok(None),
        }
    }

    async fn decide(&self, ruling: Ruling, recording: &mut Recording) -> Result<(), NoPermission> {
        let granted = self.granted(&ruling);
        let (ruling, once) = self.claim_once(ruling);
        let grant = match (&ruling.level, &granted) {
            (Level::RequireApproval, Some(granted)) => self.engine.grant_of(None, granted).await,
            _ => GrantMatch::None,
        };
        let is_second = self.is_second_question().await;
        let consent = match &grant {
            _ if is_second => Consent::Answer(Decision::AllowOnce, "the answer before the agent used the tool".into()),
            GrantMatch::Active(grant) if self.view.accepts(grant.level()) => Consent::Grant(grant),
            _ => Consent::None,
        };
        if self.permit(&ruling, consent, recording).await? {
            once.into_iter().for_each(OnceClaim::used);
            return Ok(());
        }
        let subject = self.subject(&ruling);
        if let Some(denial) = self.engine.0.denials.find(&self.call, &subject) {
            recording.refused("deny", &format!("{}, less than a minute ago", denial.by));
            let reason = format!("{}. That was less than a minute ago, so they were not asked again", denial.reason);
            return Err(NoPermission::Denied(self.denied(reason)));
        }
        let answered = self.ask().await.map_err(NoPermission::Unanswered)?;
        let (decision, by, saving) = self.read_answer(answered, &subject, recording)?;
        // The rules may have changed in between.
        let ruling = self.ruling().unwrap_or_else(|| ruling.clone());
        let (ruling, _once) = self.claim_once(ruling);
        if !self.permit(&ruling, Consent::Answer(decision, by), recording).await? {
            return Err(NoPermission::Unanswered("the rules changed while the user was being asked".to_owned()));
        }
        if let Some(granted) = granted {
            saving.report(self.engine.remember_for(None, &granted, decision).await?);
        }
        Ok(())
    }

    /// Whether the action is permitted; `false` if the user has to be asked.
    async fn permit(
        &self,
        ruling: &Ruling,
        consent: Consent<'_>,
        recording: &mut Recording,
    ) -> Result<bool, NoPermission> {
        match permit(self.call.clone(), ruling, consent) {
            Ok(permitted) => {
                recording.permitted(&permitted);
                recording.before_sending().await?;
                Ok(true)
            }
            Err(Refusal::Denied { decision, decided_by, error, .. }) => {
                recording.refused(decision, &decided_by);
                Err(NoPermission::Denied(error))
            }
            Err(Refusal::Ask(_)) => Ok(false),
        }
    }

    /// For `allow-once`, claims its one use; if that fails, the user is asked.
    fn claim_once(&self, ruling: Ruling) -> (Ruling, Option<OnceClaim>) {
        match ruling.level {
            Level::AllowOnce => match self.engine.0.once.claim(&self.call.tool) {
                Some(claim) => (ruling, Some(claim)),
                None => (ruling.in_session(OnceUsed::Yes), None),
            },
            _ => (ruling, None),
        }
    }

    /// The subject of a lasting answer.
    fn granted(&self, ruling: &Ruling) -> Option<OfferedTool> {
        let tool = self.action.granted()?;
        let id = ToolId::new(self.call.tool.server.clone(), &tool.name);
        Some(OfferedTool::new(id, Arc::new(tool), ruling.clone()))
    }

    /// What a denial is about. Together with the arguments, the tool as a whole is enough.
    fn subject(&self, ruling: &Ruling) -> OfferedTool {
        OfferedTool::new(self.call.tool.clone(), Arc::new(self.action.tool()), ruling.clone())
    }

    async fn ask(&self) -> Result<Answered, String> {
        let folders = self.engine.folders();
        let mut approval = prompt::agent_action(&self.call, &self.action, &folders, &self.view);
        if let ActionKind::Edit { file: Some(file) } = &self.action.kind {
            let file = file.to_string_lossy().into_owned();
            let located = tokio::task::spawn_blocking(move || change::locate(&file, &folders)).await.ok().flatten();
            if let Some(located) = located {
                show_change(&self.engine, &mut approval, self.call.arguments.clone(), located).await;
            }
        }
        approval.group = Some(GroupKey::Agent(self.connection.number));
        let (calls, agent) = (vec![self.call.id.clone()], Some(self.connection.clone()));
        let question = Question { calls, agent, ..approval.into() };
        self.engine.0.approvals.ask(question).await.map_err(|no_answer| no_answer.to_string())
    }

    /// The decision of the user who allowed it. A denial is an error.
    fn read_answer(
        &self,
        answered: Answered,
        subject: &OfferedTool,
        recording: &mut Recording,
    ) -> Result<(Decision, Arc<str>, Saving), NoPermission> {
        let by = Arc::<str>::from(answered.by.to_string());
        let Answer::Decision { decision, note, .. } = answered.answer else {
            return Err(NoPermission::Unanswered("the answer was not a decision".to_owned()));
        };
        if decision.allows() {
            return Ok((decision, by, answered.saving));
        }
        recording.refused(decision.as_str(), &by);
        let is_user = answered.by.is_user();
        let note = note.map(|note| format!(": {note}")).unwrap_or_default();
        let reason = format!("{} denied it{note}", if is_user { "the user" } else { &*by });
        if is_user {
            self.engine.0.denials.add(Denial::new(&self.call, subject, &reason, by));
        }
        Err(NoPermission::Denied(self.denied(reason)))
    }

    fn denied(&self, reason: String) -> Error {
        Error::Denied { tool: self.call.tool.clone(), reason, rule: None }
    }
}

impl Engine {
    /// The limits of an agent that asks about its own tools: as it is named here, or as it reports itself as an MCP client.
    fn view_of_hook(&self, agent: HookAgent, requester: &Requester) -> Arc<AgentAccess> {
        let view = self.view(requester);
        let reported = Requester { name: agent.reported_name().to_owned(), ..requester.clone() };
        match view.agent.as_str() {
            "" | "*" => self.view(&reported),
            _ => view,
        }
    }
}
