//! Questions to the user, their answers, and how they ended.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use crate::engine::answers::{AnswerChoice, Effect, shared_effect};
use crate::engine::approvals::{self, AnsweredBy, ClosedQuestion, Ending, Group, NoAnswer};
use crate::engine::{Engine, change};
use crate::protocol::actions::Remedy;
use crate::protocol::answers::{ApprovalList, Resolved};
use crate::protocol::form::Form;
use crate::protocol::types::{
    AnswerPlace, AnsweredIn, Approval, ApprovalAnswer, ApprovalGroup, ApprovalKind, ApprovalOutcome, ClosedApproval,
    FileChange, LargeArguments, ResourceQuestion,
};

/// How much room the arguments and changes of all questions in a list have.
const MAX_LIST_BYTES: usize = 512 << 10;

impl ApprovalList {
    /// Questions as the fronts of this engine show them, and the groups that they form.
    pub fn new(engine: &Engine, approvals: &[Arc<approvals::Approval>]) -> Self {
        let approvals = engine.approvals().shown_here(approvals);
        let groups = engine.approval_groups(&approvals);
        let group = |group| ApprovalGroup::new(group, &approvals);
        Self { groups: groups.into_iter().map(group).collect(), approvals: Approval::list(&approvals) }
    }
}

impl ApprovalGroup {
    fn new(group: Group, approvals: &[Arc<approvals::Approval>]) -> Self {
        let Group { id, kind, title, ids, answers } = group;
        let wanted: BTreeSet<&String> = ids.iter().collect();
        let members: Vec<_> =
            approvals.iter().map(|approval| &**approval).filter(|approval| wanted.contains(&approval.id)).collect();
        let answers = answers.into_iter().map(|choice| ApprovalAnswer::new(choice, &members)).collect();
        Self { id, kind: kind.into(), title, ids, answers }
    }
}

impl From<approvals::Kind> for ApprovalKind {
    fn from(kind: approvals::Kind) -> Self {
        match kind {
            approvals::Kind::Tool => Self::Tool,
            approvals::Kind::Trust => Self::Trust,
            approvals::Kind::Elicitation => Self::Elicitation,
            approvals::Kind::Input => Self::Input,
        }
    }
}

impl From<&approvals::Approval> for Approval {
    fn from(approval: &approvals::Approval) -> Self {
        Self {
            id: approval.id.clone(),
            kind: approval.kind.into(),
            folder: approval.origin.elsewhere().map(Path::to_path_buf),
            server: approval.server.clone(),
            tool: approval.tool.clone(),
            resource: match &approval.about {
                Some(approvals::About::Resource { uri, template }) => {
                    Some(ResourceQuestion { uri: uri.clone(), template: template.clone() })
                }
                _ => None,
            },
            prompt: match &approval.about {
                Some(approvals::About::Prompt { name }) => Some(name.clone()),
                _ => None,
            },
            agent_tool: match &approval.about {
                Some(approvals::About::AgentTool { name, .. }) => Some(name.clone()),
                _ => None,
            },
            arguments: approval.arguments.as_ref().map(|shown| Value::Object(shown.fields().clone())),
            large_arguments: None,
            title: approval.title.clone(),
            summary: approval.summary.clone(),
            detail: approval.detail.clone(),
            annotations: approval.annotations.map(Into::into),
            requester: approval.requester.clone(),
            options: approval.options.iter().map(|&option| option.to_owned()).collect(),
            answers: approval.answers().into_iter().map(|choice| ApprovalAnswer::new(choice, &[approval])).collect(),
            diff: approval.diff.clone(),
            change: approval.change.as_deref().map(Into::into),
            form: approval.schema.as_ref().and_then(Value::as_object).map(Form::of_schema),
            schema: approval.schema.clone(),
            url: approval.url.clone(),
            created_at: approval.created_at,
            expires_at: approval.expires_at,
        }
    }
}

impl Approval {
    /// A list of questions. Arguments and changes that would make it too large are left out, and the question says so.
    fn list(approvals: &[Arc<approvals::Approval>]) -> Vec<Self> {
        let mut room = MAX_LIST_BYTES;
        approvals.iter().map(|approval| Self::listed(approval, &mut room)).collect()
    }

    fn listed(approval: &approvals::Approval, room: &mut usize) -> Self {
        let mut take = |bytes: usize| {
            let fits = bytes <= approvals::MAX_LISTED && bytes <= *room;
            *room -= if fits { bytes } else { 0 };
            fits
        };
        let left_out = approval.arguments.clone().filter(|arguments| !take(arguments.bytes()));
        let has_change = approval.change.as_ref().is_some_and(|change| take(change.after.len() + change.diff.len()));
        let mut listed = approval.clone();
        listed.change.take_if(|_| !has_change);
        if let Some(arguments) = &left_out {
            listed.arguments = None;
            listed.detail = format!("{}\n{}", arguments.reference(&approval.id), approval.detail);
        }
        let large = |arguments: &approvals::ShownArguments| LargeArguments {
            bytes: arguments.bytes(),
            digest: arguments.digest().to_owned(),
        };
        Self { large_arguments: left_out.as_ref().map(large), ..Self::from(&listed) }
    }
}

impl ApprovalAnswer {
    /// An answer to all of these questions.
    fn new(choice: AnswerChoice, approvals: &[&approvals::Approval]) -> Self {
        let AnswerChoice { decision, label, selected_label, grants, lasts, effect } = choice;
        let undo = undo(approvals, grants).filter(|_| lasts);
        let selected_label = selected_label.map(str::to_owned);
        let (effect, short_effect) = effect.map(|Effect { text, short }| (text, short)).unzip();
        Self { decision: decision.to_owned(), label, selected_label, grants, lasts, effect, short_effect, undo }
    }
}

/// How to undo a lasting answer. A command is about the workspace of the editor that runs it, so there is none for
/// another workspace.
fn undo(approvals: &[&approvals::Approval], grants: bool) -> Option<Remedy> {
    match approvals {
        [] => None,
        several if several.iter().any(|each| each.origin.elsewhere().is_some()) => None,
        [only] if only.kind == approvals::Kind::Trust => Some(Remedy::undo_trust(&only.server, grants)),
        several if several.iter().all(|each| each.kind == approvals::Kind::Trust) => {
            Some(Remedy::undo_trust_in_several(grants))
        }
        _ => Some(Remedy::undo_grant()),
    }
}

impl Resolved {
    pub fn new(engine: &Engine, resolved: approvals::Resolved, decision: &str, not_saved: Option<&str>) -> Self {
        let approvals::Resolved { resolved, gone, not_saved: _ } = resolved;
        let approvals: Vec<_> = resolved.iter().map(|question| question.approval.clone()).collect();
        let approvals = engine.approvals().shown_here(&approvals);
        let approvals: Vec<_> = approvals.iter().map(|approval| &**approval).collect();
        let effect = shared_effect(decision, &approvals);
        let undo = undo(&approvals, decision.starts_with("allow-")).filter(|_| effect.is_some());
        let (effect, short_effect) = match (effect, not_saved) {
            (Some(effect), Some(why)) => (Some(format!("{} {}", effect.text, lost(why))), None),
            (None, Some(why)) => (Some(lost(why)), None),
            (effect, None) => effect.map(|Effect { text, short }| (text, short)).unzip(),
        };
        Self {
            resolved: approvals.iter().map(|approval| approval.id.clone()).collect(),
            gone,
            effect,
            short_effect,
            undo,
        }
    }
}

/// What to say about a decision that is only in memory.
pub fn lost(why: &str) -> String {
    format!("This could not be saved ({why}) and is lost when mcp-sidecar stops.")
}

impl From<ClosedQuestion> for ClosedApproval {
    fn from(closed: ClosedQuestion) -> Self {
        let ClosedQuestion { id, title, ending } = closed;
        let message = ending.to_string();
        let (outcome, decision, by) = match ending {
            Ending::Answered { decision, by, .. } => {
                (ApprovalOutcome::Answered, Some(decision.to_owned()), Some(by.into()))
            }
            Ending::NoAnswer(no_answer) => (no_answer.into(), None, None),
        };
        Self { id, title, outcome, decision, by, message }
    }
}

impl From<NoAnswer> for ApprovalOutcome {
    fn from(no_answer: NoAnswer) -> Self {
        match no_answer {
            NoAnswer::Expired(_) => Self::Expired,
            NoAnswer::Closed(_) | NoAnswer::Declined(_) => Self::Dismissed,
            NoAnswer::Full(_) | NoAnswer::NobodyToAsk | NoAnswer::AskedElsewhere => Self::Unasked,
            NoAnswer::Decided { .. } => Self::Answered,
            NoAnswer::Withdrawn(_) | NoAnswer::Stopping => Self::Withdrawn,
        }
    }
}

impl From<AnsweredBy> for AnsweredIn {
    fn from(by: AnsweredBy) -> Self {
        let is_shell = by.is_shell();
        match by {
            AnsweredBy::Editor(editor) if is_shell => {
                Self { place: AnswerPlace::Shell, name: None, pid: editor.process }
            }
            AnsweredBy::Editor(editor) => Self { place: AnswerPlace::Editor, name: editor.name, pid: editor.process },
            AnsweredBy::Agent(name) => Self { place: AnswerPlace::Agent, name: Some(name), pid: None },
        }
    }
}

impl From<&change::Change> for FileChange {
    fn from(change: &change::Change) -> Self {
        let change::Change { file, path, is_new, after, diff, unsaved } = change.clone();
        Self { file, path, is_new, after, diff, unsaved }
    }
}
