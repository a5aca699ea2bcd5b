//! How a question ends: with the user's answer, without one, or because its owner no longer asks.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{ALLOW_READ_ONLY, Approval};
use crate::engine::editors::{Identity, SHELL};
use crate::model::{Decision, Result};
use crate::store::Saved;
use crate::text::quoted;

/// The user's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    Decision {
        decision: Decision,
        note: Option<String>,
        /// The arguments that the user wants instead of those that were shown.
        arguments: Option<Map<String, Value>>,
        /// It is also for all other tools of the server that are read-only.
        read_only_tools: bool,
    },
    Accept(Value),
    Decline,
    Cancel,
}

impl Answer {
    /// The decision as the question offered it.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Decision { read_only_tools: true, .. } => ALLOW_READ_ONLY,
            Self::Decision { decision, .. } => decision.as_str(),
            Self::Accept(_) => "accept",
            Self::Decline => "decline",
            Self::Cancel => "cancel",
        }
    }
}

/// An answer, and where it was given.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    pub answer: Answer,
    pub by: AnsweredBy,
    pub saving: Saving,
}

/// Tells the front that sent an answer why it could not be saved. Dropping it means that it was saved, or that there was
/// nothing to save.
#[derive(Debug, Clone, Default)]
pub struct Saving(Option<mpsc::UnboundedSender<String>>);

impl Saving {
    /// With a receiver that ends when all clones are dropped.
    pub(super) fn reported() -> (Self, mpsc::UnboundedReceiver<String>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self(Some(sender)), receiver)
    }

    pub fn report(self, saved: Saved) {
        if let (Some(front), Saved::InMemory(why)) = (self.0, saved) {
            front.send(why).ok();
        }
    }
}

/// It is not part of the answer.
impl PartialEq for Saving {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnsweredBy {
    /// An editor or a shell.
    Editor(Identity),
    /// The dialog of the agent with this name. It counts for this once.
    Agent(String),
}

impl AnsweredBy {
    /// Whether it is an answer of the user. A program that an agent or a server started can deny, but not for the user.
    pub fn is_user(&self) -> bool {
        !matches!(self, Self::Editor(Identity { started_by: Some(_), .. }))
    }

    /// The same as [`Display`](std::fmt::Display), in a sentence.
    fn in_sentence(&self) -> String {
        if self.is_user() { format!("the {self}") } else { self.to_string() }
    }

    pub fn is_shell(&self) -> bool {
        matches!(self, Self::Editor(editor) if editor.name.as_deref() == Some(SHELL))
    }
}

impl std::fmt::Display for AnsweredBy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Editor(editor) => match &editor.started_by {
                None => write!(f, "user in {editor}"),
                Some(by) => write!(f, "{editor} that {by} started"),
            },
            Self::Agent(name) => write!(f, "user in the dialog of the agent {}, this once", quoted(name, 80)),
        }
    }
}

/// Why a question got no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoAnswer {
    /// No answer within this time.
    Expired(Duration),
    /// The user closed the question in this editor, the last one that showed it.
    Closed(Identity),
    /// The agent with this name declined the question. Its user may have done that, or the agent without asking them.
    Declined(String),
    /// This many questions are already pending.
    Full(usize),
    /// There is no editor, and the agent cannot ask either.
    NobodyToAsk,
    /// Another workspace asks the same.
    AskedElsewhere,
    /// The user decided about the same thing with a command.
    Decided { decision: Decision, by: AnsweredBy },
    /// Its owner no longer asks, for this reason.
    Withdrawn(&'static str),
    /// The engine is shutting down.
    Stopping,
}

impl std::fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Expired(limit) => write!(f, "there was no answer within {} s", limit.as_secs_f64()),
            Self::Closed(editor) => write!(f, "the message was closed in {editor}"),
            Self::Declined(agent) => {
                write!(
                    f,
                    "declined in the dialog of the agent {}, by the user or by the agent itself",
                    quoted(agent, 80)
                )
            }
            Self::NobodyToAsk => f.write_str("there was no one to ask"),
            Self::AskedElsewhere => f.write_str("another workspace asks the same question"),
            Self::Decided { by, .. } => write!(f, "decided by {}", by.in_sentence()),
            Self::Withdrawn(reason) => write!(f, "withdrawn: {reason}"),
            Self::Stopping => f.write_str("the engine is shutting down"),
            Self::Full(most) => {
                write!(f, "too many questions are pending: the limit is {most} (`limits.approvals`)")
            }
        }
    }
}

/// How a question ended.
pub type Outcome = Result<Answered, NoAnswer>;

/// A question that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct ClosedQuestion {
    pub id: String,
    pub title: String,
    pub ending: Ending,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    Answered { decision: &'static str, label: String, by: AnsweredBy },
    NoAnswer(NoAnswer),
}

impl ClosedQuestion {
    pub(super) fn new(approval: &Approval, outcome: &Outcome) -> Self {
        let answered = |decision: &'static str, by: &AnsweredBy| Ending::Answered {
            decision,
            label: approval.answer(decision).label,
            by: by.clone(),
        };
        let ending = match outcome {
            Ok(Answered { answer, by, saving: _ }) => answered(answer.as_str(), by),
            Err(NoAnswer::Decided { decision, by }) => answered(decision.as_str(), by),
            Err(no_answer) => Ending::NoAnswer(no_answer.clone()),
        };
        Self { id: approval.id.clone(), title: approval.title.clone(), ending }
    }
}

impl std::fmt::Display for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Answered { label, by, .. } => write!(f, "“{label}”, by {}", by.in_sentence()),
            Self::NoAnswer(no_answer) => no_answer.fmt(f),
        }
    }
}

/// Lets the owner of a question withdraw it, and say why.
#[derive(Debug, Clone, Default)]
pub struct Withdrawal {
    reason: Arc<OnceLock<&'static str>>,
    requested: CancellationToken,
}

impl Withdrawal {
    /// Why the question is withdrawn, whenever that happens. The first reason counts.
    pub fn explain(&self, reason: &'static str) {
        self.reason.set(reason).ok();
    }

    /// Withdraws the question, unless it was answered.
    pub fn withdraw(&self) {
        self.requested.cancel();
    }

    pub async fn requested(&self) {
        self.requested.cancelled().await;
    }

    /// The reason that was given, if any.
    pub(super) fn reason(&self) -> Option<&'static str> {
        self.reason.get().copied()
    }
}
