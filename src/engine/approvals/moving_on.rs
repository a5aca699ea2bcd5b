//! Where a question is asked: in the editors, and when the last one has closed, in the dialog of the agent.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use super::{Answer, Answered, AnsweredBy, Approvals, Kind, NoAnswer, Outcome, Question, Saving};
use crate::engine::asking::{self, AgentAnswer, Asker};
use crate::settings::AskAgent;

/// How long a question waits for an editor to come back: a window that reloads disconnects and connects again.
pub(super) const RETURN_TIME: Duration = Duration::from_secs(5);
/// How often a waiting call reports where to answer. Agents give up on a call that is silent for a minute.
const REPORT_INTERVAL: Duration = Duration::from_secs(3);

impl Approvals {
    /// Ends when no editor can answer the question any more: with the answer of the agent, or without an answer.
    pub(super) async fn move_on(&self, key: u64, question: &Question) -> Outcome {
        let when = self.settings.borrow().approvals.ask_agent();
        if when != AskAgent::Always {
            self.editors_gone(key, question).await;
        }
        let answer = match self.agent_for(question) {
            Some(agent) => agent.elicit(asking::elicitation_of(question)).await,
            None => None,
        };
        let agent = question.approval.requester.name.clone();
        let outcome = match answer.map(|answer| asking::parse_answer(question, &answer)) {
            Some(AgentAnswer::Answer(answer)) => {
                Ok(Answered { answer, by: AnsweredBy::Agent(agent), saving: Saving::default() })
            }
            Some(AgentAnswer::Declined) => Err(NoAnswer::Declined(agent)),
            Some(AgentAnswer::Cancelled) | None => Err(NoAnswer::NobodyToAsk),
        };
        // A program may decline or cancel by itself, so that counts only if no editor shows the question.
        if !matches!(&outcome, Ok(Answered { answer: Answer::Accept(_) | Answer::Decision { .. }, .. })) {
            self.editors_gone(key, question).await;
        }
        outcome
    }

    /// The agent that may ask its user.
    pub(super) fn agent_for(&self, question: &Question) -> Option<Arc<dyn Asker>> {
        match self.settings.borrow().approvals.ask_agent() {
            AskAgent::Never => None,
            AskAgent::Always | AskAgent::WithoutEditor => self.calls.asker_of(&question.calls),
        }
    }

    /// Ends when no editor can show the question, and none has come back for a while.
    async fn editors_gone(&self, key: u64, question: &Question) {
        let mut editors = self.editors.subscribe();
        let can_answer = || !self.askable(question, &self.closed_in(key)).is_empty();
        let mut was_shown = false;
        loop {
            // Marks the current editors as seen, so that no change after this check is missed.
            editors.borrow_and_update();
            let wait = match can_answer() {
                true => Duration::MAX,
                false if was_shown => RETURN_TIME,
                false => return,
            };
            let returned = tokio::time::timeout(wait, async {
                loop {
                    if editors.changed().await.is_err() {
                        std::future::pending::<()>().await;
                    }
                    if wait == Duration::MAX || can_answer() {
                        return;
                    }
                }
            });
            if returned.await.is_err() {
                return;
            }
            was_shown = true;
        }
    }

    /// Tells the callers every few seconds where their user can answer.
    pub(super) async fn report_waiting(&self, key: u64, question: &Question) -> Infallible {
        let mut interval = tokio::time::interval(REPORT_INTERVAL);
        loop {
            interval.tick().await;
            self.calls.report(&question.calls, || self.describe_wait(key, question));
        }
    }

    fn describe_wait(&self, key: u64, question: &Question) -> String {
        let what = if question.approval.kind == Kind::Tool { "approval" } else { "answer" };
        let mut names: Vec<String> = Vec::new();
        for editor in self.askable(question, &self.closed_in(key)) {
            let name = editor.name.unwrap_or_else(|| "your editor".to_owned());
            if !names.contains(&name) {
                names.push(name);
            }
        }
        match names.is_empty() {
            true => format!("waiting for your {what}"),
            false => format!("waiting for your {what} in {}", names.join(" or ")),
        }
    }
}
