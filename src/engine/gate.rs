//! The gate to every tool. Every call takes the same path, whoever requests it: find → validate the arguments → rule →
//! ask → call → record.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Engine;
use super::approvals::{Answer, Approval, NoAnswer};
use super::asking::Asker;
use super::change::{self, Change};
use super::consent::OnceClaim;
use super::record::Recording;
use super::snapshot::{OfferedTool, ServerView, Snapshot};
use super::turns::Turn;
use crate::model::{
    CallId, CallResult, Decision, Error, Level, PendingReason, Requester, Result, Status, ToolCall, ToolId,
};
use crate::policy::permit::{Consent, OnceUsed, Permitted, Refusal, permit};
use crate::policy::{GrantMatch, Pin, Ruling, View};
use crate::server::connection::{CallOptions, Progress};

/// How often a question is asked again because the tool or its rule changed meanwhile.
const MAX_QUESTIONS: u32 = 5;

/// A request to run a tool.
pub struct CallRequest {
    pub tool: ToolId,
    pub arguments: Map<String, Value>,
    /// The decision of a user who has just seen these arguments.
    pub decision: Option<Decision>,
    pub requester: Requester,
    pub workflow: Option<String>,
    pub timeout: Option<Duration>,
    pub progress: Option<mpsc::Sender<Progress>>,
    /// Held until the call is permitted or denied, or has to wait.
    pub turn: Turn,
}

/// The outcome of a call that was permitted and got a result.
#[derive(Debug, Clone)]
pub struct Outcome {
    pub id: CallId,
    pub tool: ToolId,
    pub result: CallResult,
    /// The level or decision that permitted it.
    pub decision: &'static str,
    pub duration: Duration,
}

impl Engine {
    /// Runs a tool. The call has its own task, which outlives a cancelled caller just long enough to cancel the call at
    /// the server and record it.
    pub async fn call(&self, request: CallRequest) -> Result<Outcome> {
        self.call_for(request, None).await
    }

    /// The same for a caller that can ask the user itself if there is no editor.
    pub async fn call_for(&self, request: CallRequest, asker: Option<Arc<dyn Asker>>) -> Result<Outcome> {
        let gone = CancellationToken::new();
        let task = CallTask {
            engine: self.clone(),
            view: self.view(&request.requester).clone(),
            call: ToolCall {
                id: CallId::random(),
                tool: self.now().resolve_tool(request.tool),
                arguments: Arc::new(request.arguments),
                requester: request.requester,
                workflow: request.workflow,
                timeout: request.timeout,
            },
            decision: request.decision,
            progress: request.progress,
            asker,
            gone: gone.clone(),
        };
        // Dropped with this future, which cancels the call.
        let _caller = gone.drop_guard();
        match tokio::spawn(task.run(request.turn)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Error::Io("the call failed with an internal error; see the log of mcp-sidecar".to_owned())),
        }
    }

    /// The ruling for a call. For `allow-once` this also claims its one call; if that fails, the user is asked.
    fn rule(
        &self,
        view: &ServerView,
        offered: &OfferedTool,
        arguments: &Map<String, Value>,
        narrow: impl FnOnce(Ruling) -> Ruling,
    ) -> (Ruling, Option<OnceClaim>) {
        let snapshot = self.now();
        let ruling =
            narrow(snapshot.rules.rule(&offered.id.server, &offered.tool, Some(arguments), view.trust_state()));
        if ruling.level != Level::AllowOnce {
            return (ruling, None);
        }
        match self.0.once.claim(&offered.id) {
            Some(claim) => (ruling, Some(claim)),
            None => (ruling.in_session(OnceUsed::Yes), None),
        }
    }
}

/// A call on its way through the gate.
struct CallTask {
    engine: Engine,
    /// What the requester can see, and its highest level.
    view: Arc<View>,
    call: ToolCall,
    decision: Option<Decision>,
    progress: Option<mpsc::Sender<Progress>>,
    asker: Option<Arc<dyn Asker>>,
    gone: CancellationToken,
}

impl CallTask {
    async fn run(self, turn: Turn) -> Result<Outcome> {
        let started = Instant::now();
        let mut recording = Recording::new(&self.engine, &self.call);
        let gone = self.gone.clone();
        let outcome = tokio::select! {
            outcome = self.execute(&mut recording, Some(turn)) => outcome,
            () = gone.cancelled() => Err(Error::Cancelled),
        };
        let outcome = outcome.map(|(result, decision)| Outcome {
            id: self.call.id.clone(),
            tool: self.call.tool.clone(),
            result,
            decision,
            duration: started.elapsed(),
        });
        recording.finish(&outcome, started.elapsed()).await;
        outcome
    }

    async fn execute(&self, recording: &mut Recording, mut turn: Option<Turn>) -> Result<(CallResult, &'static str)> {
        let mut decision = self.decision;
        let mut shown: Option<Arc<OfferedTool>> = None;
        for _ in 0..MAX_QUESTIONS {
            let (view, offered) = self.find(&mut turn).await?;
            self.check(&offered)?;
            let (ruling, once) =
                self.engine.rule(&view, &offered, &self.call.arguments, |ruling| self.view.narrow(ruling));
            let grant_match = match ruling.level {
                Level::RequireApproval => self.engine.grant_for(&view, &offered).await,
                _ => GrantMatch::None,
            };
            let grant_match = match grant_match {
                // A grant never raises an agent above its ceiling.
                GrantMatch::Active(grant) if !self.view.accepts(grant.level()) => GrantMatch::None,
                grant_match => grant_match,
            };
            let consent = match (&decision, &grant_match) {
                (Some(decision), _) => Consent::Answer(*decision),
                (None, GrantMatch::Active(grant)) => Consent::Grant(grant),
                (None, _) => Consent::None,
            };
            match permit(self.call.clone(), &ruling, consent) {
                Ok(permitted) => {
                    if let Some(decision) = decision {
                        self.engine.remember(&view, &offered, decision).await?;
                    }
                    turn.take();
                    recording.permitted(&permitted);
                    return self.send(&view, permitted, once, recording).await;
                }
                Err(Refusal::Denied { decision, decided_by, error, .. }) => {
                    recording.refused(decision, &decided_by);
                    return Err(error);
                }
                Err(Refusal::Ask(_)) => {}
            }
            turn.take();
            let before = shown.as_ref().map(|shown| shown.pin());
            match self.ask(&view, &offered, &grant_match, before).await {
                QuestionOutcome::Answered(Answer::Decision { decision: answer, note }) => {
                    if !answer.allows() {
                        recording.refused(answer.as_str(), "user");
                        self.engine.remember(&view, &offered, answer).await?;
                        return Err(self.denied(
                            note.map_or("the user denied it".to_owned(), |note| format!("the user denied it: {note}")),
                        ));
                    }
                    decision = Some(answer);
                }
                QuestionOutcome::Answered(_) => return Err(self.denied("the answer was not a decision".to_owned())),
                QuestionOutcome::NoAnswer(no_answer) => {
                    recording.refused("deny", &no_answer.to_string());
                    return Err(self.denied(match no_answer {
                        NoAnswer::NobodyToAsk => self.engine.how_to_allow(&view, &offered),
                        no_answer => no_answer.to_string(),
                    }));
                }
                // The tool or its rule is not what the user saw: start over.
                QuestionOutcome::Changed => {
                    decision = None;
                    shown = Some(offered);
                }
            }
        }
        let reason = "the tool or its rules kept changing while the approval was pending".to_owned();
        recording.refused("deny", &reason);
        Err(self.denied(reason))
    }

    /// Finds the server and the tool. Waits for a server that is starting, and starts one that starts on demand.
    async fn find(&self, turn: &mut Option<Turn>) -> Result<(Arc<ServerView>, Arc<OfferedTool>)> {
        let ToolId { server, tool } = &self.call.tool;
        if !self.view.shows(&self.call.tool) {
            return Err(Error::NoTool { server: server.clone(), tool: tool.to_string() });
        }
        let mut snapshots = self.engine.snapshot();
        let mut started_server = false;
        loop {
            let snapshot = snapshots.borrow_and_update().clone();
            let view = snapshot.server(server)?.clone();
            let status = view.state.status;
            let handle = view.usable();
            if let Some(offered) = view.tools.get(tool).filter(|_| handle.is_ok()) {
                if view.trust_checked {
                    return Ok((view.clone(), offered.clone()));
                }
                // The definition has just changed. Its trust check takes milliseconds and always completes.
                snapshots.changed().await.map_err(|_| Error::Cancelled)?;
                continue;
            }
            match status {
                Status::Pending(PendingReason::Starting) => {
                    turn.take();
                    // The start has its own timeout, which ends in another status.
                    snapshots.changed().await.map_err(|_| Error::Cancelled)?;
                }
                // A server that the user stopped stays stopped: only they can start it again.
                Status::Stopped if !started_server && handle.as_ref().is_ok_and(|server| server.is_asleep()) => {
                    turn.take();
                    handle?.start().await?;
                    self.engine.refresh().await?;
                    started_server = true;
                }
                Status::Connected => {
                    handle?;
                    return Err(Error::NoTool { server: server.clone(), tool: tool.to_string() });
                }
                _ => {
                    // The server's own error, so that its kind is kept: a dead process is not a failed connection.
                    if let Some(error) = handle?.unavailable() {
                        return Err(error);
                    }
                    let why = view.state.error.clone().unwrap_or_else(|| format!("it is {}", status.as_str()));
                    return Err(Error::Connection { server: server.clone(), message: why });
                }
            }
        }
    }

    fn check(&self, offered: &OfferedTool) -> Result<()> {
        let violations = offered.checker().check(&self.call.arguments);
        if violations.is_empty() {
            return Ok(());
        }
        Err(Error::InvalidArguments { tool: self.call.tool.clone(), violations })
    }

    /// Asks the user. Withdraws the question if the tool or its rule changes.
    async fn ask(
        &self,
        view: &ServerView,
        offered: &Arc<OfferedTool>,
        grant_match: &GrantMatch,
        before: Option<&Pin>,
    ) -> QuestionOutcome {
        let approval = super::prompt::tool(&self.call, view, offered, grant_match, before, &self.view);
        let approval = Approval { change: self.change(offered).await, ..approval };
        let mut snapshots = self.engine.snapshot();
        let server = &self.call.tool.server;
        let changed = async {
            let other = |snapshot: &Arc<Snapshot>| {
                let now = snapshot.servers.get(server).and_then(|view| view.tools.get(&offered.tool.name));
                now.is_none_or(|now| now.tool.raw != offered.tool.raw || now.ruling != offered.ruling)
            };
            if snapshots.wait_for(other).await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            answer = self.engine.ask_user(approval, self.asker.as_ref()) => match answer {
                Ok(answer) => QuestionOutcome::Answered(answer),
                Err(no_answer) => QuestionOutcome::NoAnswer(no_answer),
            },
            () = changed => QuestionOutcome::Changed,
        }
    }

    /// How the call would change a file, for the prompt.
    async fn change(&self, offered: &OfferedTool) -> Option<Change> {
        if offered.tool.annotations.read_only == Some(true) {
            return None;
        }
        let (arguments, folders) = (self.call.arguments.clone(), self.engine.folders());
        tokio::task::spawn_blocking(move || change::of(&arguments, &folders)).await.ok().flatten()
    }

    async fn send(
        &self,
        view: &ServerView,
        permitted: Permitted,
        once: Option<OnceClaim>,
        recording: &mut Recording,
    ) -> Result<(CallResult, &'static str)> {
        recording.before_sending().await?;
        let decision = permitted.decision();
        let _asker_guard = self.asker.as_ref().map(|asker| self.engine.0.askers.register(&self.call.id, asker));
        let options = CallOptions {
            timeout: self.engine.time_limit(view, self.call.timeout),
            max_timeout: self.engine.0.settings.borrow().servers.max_timeout,
            progress: self.progress.clone(),
            sent: once.as_ref().map(|claim| claim.sent.clone()).unwrap_or_default(),
        };
        let result = view.usable()?.call(permitted, options).await?;
        Ok((result, decision))
    }

    fn denied(&self, reason: String) -> Error {
        Error::Denied { tool: self.call.tool.clone(), reason }
    }
}

enum QuestionOutcome {
    Answered(Answer),
    NoAnswer(NoAnswer),
    Changed,
}
