//! Reads the user's answer to a question.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{Answer, Approval, Kind, Question};
use crate::engine::answers::shared_answers;
use crate::engine::arguments;
use crate::model::{Decision, Error, Result};

/// Allows every tool for this session that the server declares as read-only.
pub const ALLOW_READ_ONLY: &str = "allow-read-only";
/// How much of a note is kept.
const MAX_NOTE: usize = 2_000;

/// An answer as an editor sends it.
#[derive(Debug, Clone, Default)]
pub struct Reply<'a> {
    pub decision: &'a str,
    pub note: Option<String>,
    /// The form, filled in.
    pub content: Option<Value>,
    /// The arguments that the tool should be called with instead.
    pub arguments: Option<Map<String, Value>>,
}

impl Reply<'_> {
    /// Whether this is an answer to all of these questions at once.
    pub(super) fn check_shared(&self, questions: &[&Approval]) -> Result<()> {
        if self.content.is_some() || self.arguments.is_some() {
            return Err(Error::InvalidParams("`content` and `arguments` are for one question only".to_owned()));
        }
        let offered = shared_answers(questions);
        if offered.iter().any(|answer| answer.decision == self.decision) || questions.is_empty() {
            return Ok(());
        }
        let offered: Vec<&str> = offered.iter().map(|answer| answer.decision).collect();
        Err(Error::InvalidParams(match offered.is_empty() {
            true => "these questions cannot be answered together".to_owned(),
            false => format!(
                "`{}` is not an answer to all of these questions; expected one of: {}",
                self.decision,
                offered.join(", ")
            ),
        }))
    }

    pub(super) fn parse(self, question: &Question) -> Result<Answer> {
        let approval = &question.approval;
        // Trust has three answers: yes, yes for this session, and no. An editor may send any decision instead.
        let is_known = match approval.kind {
            Kind::Trust => Decision::parse(self.decision).is_some(),
            _ => approval.options.contains(&self.decision),
        };
        let unknown = || {
            let options = approval.options.join(", ");
            Error::InvalidParams(format!("`{}` is not an answer; expected one of: {options}", self.decision))
        };
        match self.decision {
            _ if !is_known => Err(unknown()),
            "accept" => validate_content(approval, self.content.unwrap_or_default()).map(Answer::Accept),
            "decline" => Ok(Answer::Decline),
            "cancel" => Ok(Answer::Cancel),
            other => {
                let read_only_tools = other == ALLOW_READ_ONLY;
                let session = read_only_tools.then_some(Decision::AllowSession);
                let decision = session.or_else(|| Decision::parse(other)).ok_or_else(unknown)?;
                let arguments = self.arguments.map(|new| validate_arguments(question, decision, new)).transpose()?;
                let note = self.note.map(|note| crate::text::visible(&note, MAX_NOTE));
                Ok(Answer::Decision { decision, note, arguments: arguments.flatten(), read_only_tools })
            }
        }
    }
}

/// Changed arguments must match the tool's schema. `None` if they are those that were shown.
fn validate_arguments(
    question: &Question,
    decision: Decision,
    arguments: Map<String, Value>,
) -> Result<Option<Map<String, Value>>> {
    let Some(tool) = question.tool.as_ref().filter(|_| decision.allows()) else {
        return Err(Error::InvalidParams("`arguments` can be changed only when a call is allowed".to_owned()));
    };
    if question.approval.arguments.as_ref().is_some_and(|shown| *shown.fields() == arguments) {
        return Ok(None);
    }
    let arguments = Arc::new(arguments);
    let violations = arguments::check_now(tool, &arguments);
    if violations.is_empty() {
        Ok(Some(Arc::unwrap_or_clone(arguments)))
    } else {
        Err(Error::InvalidArguments { tool: tool.id.clone(), violations })
    }
}

/// The answer to a form must match its schema, because the server may use it without checking it again.
fn validate_content(approval: &Approval, content: Value) -> Result<Value> {
    let Some(schema) =
        approval.schema.as_ref().and_then(Value::as_object).filter(|_| approval.kind == Kind::Elicitation)
    else {
        return Ok(content);
    };
    let fields = content.as_object().cloned().unwrap_or_default();
    let violations = arguments::check_form(schema, &fields, false);
    match violations.first() {
        None => Ok(content),
        Some(first) => {
            let field = first.path.trim_start_matches('/').replace('/', ".");
            let field = if field.is_empty() { "content".to_owned() } else { format!("content.{field}") };
            Err(Error::InvalidParams(format!("`{field}` does not match the form: {}", first.message)))
        }
    }
}
