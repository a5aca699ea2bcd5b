//! Questions as the text and the buttons of a message.

use std::sync::Arc;

use crate::engine::approvals::{Approval, Group, Kind};
use crate::engine::change::Change;
use crate::model::Annotations;
use crate::text::quoted;

/// The last button of a group.
const ONE_BY_ONE: &str = "One by one";
/// How long the text about a group may be.
const MAX_GROUP_TEXT: usize = 8_000;
/// How long the difference of a file may be. The arguments contain what is written.
const MAX_DIFF: usize = 8_000;

#[derive(Debug, Clone, Copy)]
pub enum Button {
    Decide(&'static str),
    OneByOne,
}

/// The text and the buttons for one question.
pub fn one(approvals: &[Arc<Approval>]) -> (String, Vec<(String, Button)>) {
    let answers = approvals.iter().flat_map(|approval| approval.answers());
    let buttons = answers.map(|answer| (answer.label, Button::Decide(answer.decision))).collect();
    (approvals.iter().map(|approval| text(approval)).collect(), buttons)
}

/// The text and the buttons for a group. What cannot be shown in full cannot be granted together.
pub fn several(group: &Group, approvals: &[Arc<Approval>]) -> (String, Vec<(String, Button)>) {
    let mut text = group.title.clone();
    for approval in approvals {
        text.push_str(&format!("\n\n{}", in_group(approval)));
    }
    let mut buttons = Vec::new();
    if text.len() <= MAX_GROUP_TEXT {
        let all = group.answers.iter().find(|answer| answer.grants);
        buttons.extend(all.map(|answer| (answer.label.clone(), Button::Decide(answer.decision))));
    } else {
        text = format!("{}\n", group.title);
        for approval in approvals {
            text.push_str(&format!("\n{}", approval.summary));
        }
        text.push_str("\n\nThis list is shortened. Review them one by one.");
    }
    buttons.push((ONE_BY_ONE.to_owned(), Button::OneByOne));
    (text, buttons)
}

/// Everything that decides what would happen. The title of the group says the file or the agent.
fn in_group(approval: &Approval) -> String {
    let name = match &approval.tool {
        Some(tool) => format!("`{}` on `{}`", crate::text::one_line(tool, 128), approval.server),
        None => format!("`{}`", approval.server),
    };
    let detail = match approval.kind {
        Kind::Trust => approval.detail.lines().filter(|line| !line.starts_with("from ")).collect::<Vec<_>>().join("\n"),
        _ => approval.detail.clone(),
    };
    text(&Approval { title: name, detail, ..approval.clone() })
}

/// Everything that an editor with our plugin shows.
pub fn text(approval: &Approval) -> String {
    let claims = approval.annotations.map(Annotations::describe);
    let change = approval.change.as_deref().map(describe_change);
    let arguments = approval.arguments.as_ref().map(|arguments| arguments.text(&approval.id));
    let parts = [
        claims.as_ref(),
        Some(&approval.detail),
        approval.diff.as_ref(),
        approval.url.as_ref(),
        arguments.as_ref(),
        change.as_ref(),
    ];
    let mut text = approval.title.clone();
    for part in parts.into_iter().flatten().filter(|part| !part.is_empty()) {
        text.push('\n');
        text.push_str(part);
    }
    text
}

/// How to undo a lasting answer.
pub fn undo(approvals: &[Arc<Approval>], decision: &str) -> String {
    let revoke = if decision.starts_with("allow-") { " --revoke" } else { "" };
    let command = match approvals {
        [only] if only.kind == Kind::Trust => format!("trust {}{revoke}", only.server),
        several if several.iter().all(|each| each.kind == Kind::Trust) => format!("trust SERVER{revoke}"),
        _ => "grants".to_owned(),
    };
    format!("To undo this, run `mcp-sidecar {command}` in a terminal.")
}

fn describe_change(change: &Change) -> String {
    let path = quoted(&change.path, 200);
    match change.diff.len() <= MAX_DIFF {
        true => format!("The change to {path}:\n{}", change.diff),
        false => format!("The change to {path} is not shown here because of its size."),
    }
}
