//! Asks the user about a call, and reads the answer.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::shown::Shown;
use super::{CallTask, change};
use crate::engine::Engine;
use crate::engine::approvals::{Answer, Answered, Approval, GroupKey, NoAnswer, Question, Saving};
use crate::engine::consent::Denial;
use crate::engine::prompt;
use crate::engine::record::Recording;
use crate::engine::snapshot::{OfferedTool, ServerView};
use crate::model::{CallKind, Error, RequesterKind, Result, ToolId, UserDecision};
use crate::policy::GrantMatch;
use crate::text::quoted;

pub enum QuestionOutcome {
    Answered(Answered),
    NoAnswer(NoAnswer),
    Changed,
}

impl CallTask {
    /// Asks the user. Withdraws the question if what it shows changes.
    pub(super) async fn ask(
        &self,
        view: &ServerView,
        offered: &Arc<OfferedTool>,
        grant_match: &GrantMatch,
        before: Option<&Shown>,
        shown: &Shown,
    ) -> QuestionOutcome {
        let mut approval = prompt::tool(&self.call, view, offered, grant_match, before.map(Shown::pin), &self.view);
        self.add_change(&mut approval, offered).await;
        if let Some(reason) = &self.must_ask {
            approval.detail = format!("{reason}\n{}", approval.detail);
        }
        if let Some(change) = before.and_then(|before| before.server_change(shown)) {
            approval.detail = format!("{change}\n{}", approval.detail);
        }
        let agent = self.connection.clone();
        approval.group = agent.as_ref().map(|agent| GroupKey::Agent(agent.number));
        let calls = vec![self.call.id.clone()];
        let is_tool = self.call.kind == CallKind::Tool;
        let question = Question { calls, agent, tool: is_tool.then(|| offered.clone()), ..approval.into() };
        let withdrawal = question.withdrawal.clone();
        let mut snapshots = self.engine.snapshot();
        let ToolId { server, tool } = &self.call.tool;
        let changed = async {
            let is_other = snapshots.wait_for(|snapshot| {
                let view = snapshot.servers.get(server);
                let now = view.and_then(|view| Some(Shown::of(view, &snapshot.offered(view, self.call.kind, tool)?)));
                now.is_none_or(|now| !shown.covers(&now))
            });
            if is_other.await.is_err() {
                std::future::pending::<()>().await;
            }
            withdrawal.explain("the server, the tool or its rules have changed");
        };
        tokio::select! {
            outcome = self.engine.0.approvals.ask(question) => match outcome {
                Ok(answered) => QuestionOutcome::Answered(answered),
                Err(no_answer) => QuestionOutcome::NoAnswer(no_answer),
            },
            () = changed => QuestionOutcome::Changed,
        }
    }

    /// The user's decision about this call. A denial is an error.
    pub(super) async fn read_answer(
        &mut self,
        answered: Answered,
        saving: &mut Saving,
        view: &ServerView,
        offered: &OfferedTool,
        recording: &mut Recording,
    ) -> Result<UserDecision> {
        let by = Arc::<str>::from(answered.by.to_string());
        let Answer::Decision { decision, note, arguments, read_only_tools } = answered.answer else {
            recording.refused("deny", &by);
            return Err(self.denied("the answer was not a decision".to_owned()));
        };
        if decision.allows() {
            for other in view.shown_tools().filter(|other| read_only_tools && other.tool.is_read_only()) {
                self.engine.remember(view, other, decision).await?;
            }
            if let Some(new) = arguments {
                let old = std::mem::replace(&mut self.call.arguments, Arc::new(new));
                recording.edited(old.clone(), self.call.arguments.clone());
                self.requested.get_or_insert(old);
            }
            return Ok(UserDecision { decision, by });
        }
        recording.refused(decision.as_str(), &by);
        let saved = self.engine.remember(view, offered, decision).await?;
        std::mem::take(saving).report(saved);
        let is_user = answered.by.is_user();
        let mut reason = format!("{} denied it", if is_user { "the user" } else { &*by });
        if let Some(note) = note {
            reason.push_str(&format!(": {note}"));
        }
        // The user can still be asked about what another program has denied.
        if is_user {
            self.engine.0.denials.add(Denial::new(&self.call, offered, &reason, by));
        }
        Err(self.denied(reason))
    }

    /// Refuses a call that the user has just denied. A user who calls again wants to be asked again.
    pub(super) fn check_recent_denial(&self, offered: &OfferedTool, recording: &mut Recording) -> Result<()> {
        let is_user = self.call.requester.kind == RequesterKind::User;
        match self.engine.0.denials.find(&self.call, offered).filter(|_| !is_user) {
            Some(denial) => {
                recording.refused("deny", &format!("{}, less than a minute ago", denial.by));
                Err(self.denied(format!(
                    "{}. That was less than a minute ago, so they were not asked again",
                    denial.reason
                )))
            }
            None => Ok(()),
        }
    }

    fn denied(&self, reason: String) -> Error {
        Error::Denied { tool: self.call.tool.clone(), reason, rule: None }
    }

    /// Why a call is refused that the user did not answer about.
    pub(super) fn unanswered(&self, no_answer: &NoAnswer, view: &ServerView, offered: &OfferedTool) -> Error {
        let reason = match no_answer {
            NoAnswer::NobodyToAsk => self.engine.nobody_to_ask(&self.call, view, offered),
            NoAnswer::Declined(_) => self.engine.declined(),
            no_answer => no_answer.to_string(),
        };
        Error::Unanswered { tool: self.call.tool.clone(), reason, asked: *no_answer != NoAnswer::NobodyToAsk }
    }

    /// Adds how the call would change a file, and whether that file has unsaved changes.
    async fn add_change(&self, approval: &mut Approval, offered: &OfferedTool) {
        if self.call.kind != CallKind::Tool || offered.tool.is_read_only() {
            return;
        }
        let (arguments, folders) = (self.call.arguments.clone(), self.engine.folders());
        let located = move || change::file_of(&arguments, &folders);
        let located = tokio::task::spawn_blocking(located).await.ok().flatten();
        if let Some(located) = located {
            show_change(&self.engine, approval, self.call.arguments.clone(), located).await;
        }
    }
}

/// Adds how a call with these arguments would change a file, and whether that file has unsaved changes.
pub(super) async fn show_change(
    engine: &Engine,
    approval: &mut Approval,
    arguments: Arc<Map<String, Value>>,
    (file, path): (PathBuf, String),
) {
    let unsaved = engine.editors().unsaved(&file).await;
    if unsaved.is_some() {
        approval.detail.push_str(&format!(
            "\n{} has unsaved changes in your editor. The tool does not see them.",
            quoted(&path, 200)
        ));
    }
    let changed = move || change::of(&arguments, &file, path, unsaved.as_deref());
    approval.change = tokio::task::spawn_blocking(changed).await.ok().flatten().map(Arc::new);
}
