//! The one door to every tool. Whoever asks, a call takes the same straight path:
//! find → check the arguments → rule → ask → call → record.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Engine;
use super::approvals::{Answer, Approval, Silence};
use super::asking::Asker;
use super::change::{self, Change};
use super::consent::OnceClaim;
use super::record::Recording;
use super::snapshot::{Offered, ServerView, Snapshot};
use super::turns::Turn;
use crate::model::{
    CallId, CallResult, Decision, Error, Level, PendingReason, Requester, Result, Status, ToolCall, ToolId,
};
use crate::policy::permit::{Consent, OnceUsed, Permitted, Refusal, permit};
use crate::policy::{Found, Pin, Ruling, View};
use crate::server::connection::{CallOptions, Progress};

/// How often a question is put anew because the tool or its rule changed while it waited.
const PATIENCE: u32 = 5;

/// A wish to run a tool, as a front brings it.
pub struct Wish {
    pub tool: ToolId,
    pub arguments: Map<String, Value>,
    /// The answer of a user who has just seen these very arguments.
    pub decision: Option<Decision>,
    pub requester: Requester,
    pub workflow: Option<String>,
    pub timeout: Option<Duration>,
    pub progress: Option<mpsc::Sender<Progress>>,
    /// Held until the call is ruled on, or has to wait for something else.
    pub turn: Turn,
}

/// What came of a call that was let through and answered.
#[derive(Debug, Clone)]
pub struct Outcome {
    pub id: CallId,
    pub tool: ToolId,
    pub result: CallResult,
    /// The level or decision that let it pass.
    pub decision: &'static str,
    pub duration: Duration,
}

impl Engine {
    /// Runs a tool. The call has a task of its own, which outlives a caller that goes away just long enough to cancel
    /// at the server and to write its record.
    pub async fn call(&self, wish: Wish) -> Result<Outcome> {
        self.call_for(wish, None).await
    }

    /// The same for one who can put questions to the user himself, should there be no editor.
    pub async fn call_for(&self, wish: Wish, asker: Option<Arc<dyn Asker>>) -> Result<Outcome> {
        let gone = CancellationToken::new();
        let passage = Passage {
            engine: self.clone(),
            view: self.view(&wish.requester).clone(),
            call: ToolCall {
                id: CallId::random(),
                tool: self.now().meant(wish.tool),
                arguments: Arc::new(wish.arguments),
                requester: wish.requester,
                workflow: wish.workflow,
                timeout: wish.timeout,
            },
            decision: wish.decision,
            progress: wish.progress,
            asker,
            gone: gone.clone(),
        };
        // Dropped with this future: the caller has gone.
        let _caller = gone.drop_guard();
        match tokio::spawn(passage.through(wish.turn)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Error::Io("the call ended by a fault of the sidecar; its log tells more".to_owned())),
        }
    }

    /// What the rules say about a call. For `allow-once` that includes the claim on its one call: without a claim, the
    /// user is asked.
    fn rule(
        &self,
        view: &ServerView,
        offered: &Offered,
        arguments: &Map<String, Value>,
        narrow: impl FnOnce(Ruling) -> Ruling,
    ) -> (Ruling, Option<OnceClaim>) {
        let snapshot = self.now();
        let ruling = narrow(snapshot.rules.rule(&offered.id.server, &offered.tool, Some(arguments), view.standing()));
        if ruling.level != Level::AllowOnce {
            return (ruling, None);
        }
        match self.0.once.claim(&offered.id) {
            Some(claim) => (ruling, Some(claim)),
            None => (ruling.in_session(OnceUsed::Yes), None),
        }
    }
}

/// One call on its way through the door.
struct Passage {
    engine: Engine,
    /// What the one who wishes it may see and do at most.
    view: Arc<View>,
    call: ToolCall,
    decision: Option<Decision>,
    progress: Option<mpsc::Sender<Progress>>,
    asker: Option<Arc<dyn Asker>>,
    gone: CancellationToken,
}

impl Passage {
    async fn through(self, turn: Turn) -> Result<Outcome> {
        let begun = Instant::now();
        let mut recording = Recording::new(&self.engine, &self.call);
        let gone = self.gone.clone();
        let outcome = tokio::select! {
            outcome = self.walk(&mut recording, Some(turn)) => outcome,
            () = gone.cancelled() => Err(Error::Cancelled),
        };
        let outcome = outcome.map(|(result, decision)| Outcome {
            id: self.call.id.clone(),
            tool: self.call.tool.clone(),
            result,
            decision,
            duration: begun.elapsed(),
        });
        recording.finish(&outcome, begun.elapsed()).await;
        outcome
    }

    async fn walk(&self, recording: &mut Recording, mut turn: Option<Turn>) -> Result<(CallResult, &'static str)> {
        let mut decision = self.decision;
        let mut shown: Option<Arc<Offered>> = None;
        for _ in 0..PATIENCE {
            let (view, offered) = self.find(&mut turn).await?;
            self.check(&offered)?;
            let (ruling, once) =
                self.engine.rule(&view, &offered, &self.call.arguments, |ruling| self.view.narrow(ruling));
            let earlier = match ruling.level {
                Level::RequireApproval => self.engine.grant_for(&view, &offered).await,
                _ => Found::Nothing,
            };
            let earlier = match earlier {
                // What the user allowed does not lift this agent over its ceiling.
                Found::Live(grant) if !self.view.takes(grant.level()) => Found::Nothing,
                earlier => earlier,
            };
            let consent = match (&decision, &earlier) {
                (Some(decision), _) => Consent::Answer(*decision),
                (None, Found::Live(grant)) => Consent::Grant(grant),
                (None, _) => Consent::None,
            };
            match permit(self.call.clone(), &ruling, consent) {
                Ok(permitted) => {
                    if let Some(decision) = decision {
                        self.engine.remember(&view, &offered, decision).await?;
                    }
                    turn.take();
                    recording.let_pass(&permitted);
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
            match self.ask(&view, &offered, &earlier, before).await {
                Asked::Answered(Answer::Decision { decision: answer, note }) => {
                    if !answer.allows() {
                        recording.refused(answer.as_str(), "user");
                        self.engine.remember(&view, &offered, answer).await?;
                        return Err(self.denied(
                            note.map_or("the user said no".to_owned(), |note| format!("the user said no: {note}")),
                        ));
                    }
                    decision = Some(answer);
                }
                Asked::Answered(_) => return Err(self.denied("the answer was no decision".to_owned())),
                Asked::Silent(silence) => {
                    recording.refused("deny", &silence.to_string());
                    return Err(self.denied(match silence {
                        Silence::Nobody => self.engine.how_to_allow(&view, &offered),
                        silence => silence.to_string(),
                    }));
                }
                // What was shown is no longer what would run: look again, and ask again where that is needed.
                Asked::Changed => {
                    decision = None;
                    shown = Some(offered);
                }
            }
        }
        let reason = "the tool or its rules kept changing while the question waited".to_owned();
        recording.refused("deny", &reason);
        Err(self.denied(reason))
    }

    /// The server and the tool. A server that is just starting gets its time, a lazy one is started.
    async fn find(&self, turn: &mut Option<Turn>) -> Result<(Arc<ServerView>, Arc<Offered>)> {
        let ToolId { server, tool } = &self.call.tool;
        if !self.view.shows(&self.call.tool) {
            return Err(Error::NoTool { server: server.clone(), tool: tool.to_string() });
        }
        let mut pictures = self.engine.snapshot();
        let mut woken = false;
        loop {
            let snapshot = pictures.borrow_and_update().clone();
            let view = snapshot.server(server)?.clone();
            let status = view.state.status;
            let handle = view.usable();
            if let Some(offered) = view.tools.get(tool).filter(|_| handle.is_ok()) {
                if view.judged {
                    return Ok((view.clone(), offered.clone()));
                }
                // What its file allows has just changed; the verdict is a matter of milliseconds, and always comes.
                pictures.changed().await.map_err(|_| Error::Cancelled)?;
                continue;
            }
            match status {
                Status::Pending(PendingReason::Starting) => {
                    turn.take();
                    // Bounded by the start's own limit: it ends in another status.
                    pictures.changed().await.map_err(|_| Error::Cancelled)?;
                }
                // One that somebody has stopped stays so: only who may start servers may start it again.
                Status::Stopped if !woken && handle.as_ref().is_ok_and(|server| server.is_asleep()) => {
                    turn.take();
                    handle?.start().await?;
                    self.engine.refresh().await?;
                    woken = true;
                }
                Status::Connected => {
                    handle?;
                    return Err(Error::NoTool { server: server.clone(), tool: tool.to_string() });
                }
                _ => {
                    // Its own words and its own kind: a process that died is no connection that failed.
                    if let Some(error) = handle?.trouble() {
                        return Err(error);
                    }
                    let why = view.state.error.clone().unwrap_or_else(|| format!("it is {}", status.as_str()));
                    return Err(Error::Connection { server: server.clone(), message: why });
                }
            }
        }
    }

    fn check(&self, offered: &Offered) -> Result<()> {
        let violations = offered.checker().check(&self.call.arguments);
        if violations.is_empty() {
            return Ok(());
        }
        Err(Error::InvalidArguments { tool: self.call.tool.clone(), violations })
    }

    /// Puts the question to the user, and takes it back when what was shown changes.
    async fn ask(&self, view: &ServerView, offered: &Arc<Offered>, earlier: &Found, before: Option<&Pin>) -> Asked {
        let approval = super::prompt::tool(&self.call, view, offered, earlier, before, &self.view);
        let approval = Approval { change: self.change(offered).await, ..approval };
        let mut pictures = self.engine.snapshot();
        let server = &self.call.tool.server;
        let changed = async {
            let other = |snapshot: &Arc<Snapshot>| {
                let now = snapshot.servers.get(server).and_then(|view| view.tools.get(&offered.tool.name));
                now.is_none_or(|now| now.tool.raw != offered.tool.raw || now.ruling != offered.ruling)
            };
            if pictures.wait_for(other).await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            answer = self.engine.put(approval, self.asker.as_ref()) => match answer {
                Ok(answer) => Asked::Answered(answer),
                Err(silence) => Asked::Silent(silence),
            },
            () = changed => Asked::Changed,
        }
    }

    /// What the call would make of a file, for the user to look at.
    async fn change(&self, offered: &Offered) -> Option<Change> {
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
        let _attending = self.asker.as_ref().map(|asker| self.engine.0.askers.attend(&self.call.id, asker));
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

enum Asked {
    Answered(Answer),
    Silent(Silence),
    Changed,
}
