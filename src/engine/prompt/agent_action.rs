//! The question about an agent's own tool.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{MAX_NAME, MAX_SUMMARY};
use crate::engine::approvals::{About, Approval, Kind, ShownArguments};
use crate::engine::host::question;
use crate::model::{Decision, ToolCall};
use crate::policy::{ActionKind, AgentAccess, AgentAction};
use crate::text::{exact, one_line, quoted, visible};

pub fn agent_action(call: &ToolCall, action: &AgentAction, folders: &[Arc<Path>], view: &AgentAccess) -> Approval {
    let agent = action.agent.title();
    let target = action.target();
    // A lasting answer needs something that is the same the next time. To turn a tool off, users write a rule.
    let is_offered = |decision: &Decision| match decision {
        Decision::AllowOnce | Decision::Deny => true,
        Decision::AllowSession | Decision::AllowProject | Decision::AllowAlways => target.is_some(),
        Decision::Disable => false,
    };
    let options: Vec<&'static str> = Decision::ALL
        .into_iter()
        .filter(|decision| is_offered(decision) && view.offers(*decision))
        .map(Decision::as_str)
        .collect();
    let name = quoted(&action.name, MAX_NAME);
    let (title, what) = match &action.kind {
        ActionKind::Shell { text, .. } => (format!("{agent} wants to run a command"), text.clone()),
        ActionKind::Edit { file } => {
            // The full path is below.
            let own = |file: &PathBuf| file.strip_prefix(&action.folder).unwrap_or(file).display().to_string();
            (format!("{agent} wants to change a file"), file.as_ref().map(own).unwrap_or_else(|| action.name.clone()))
        }
        ActionKind::Fetch { url } => (format!("{agent} wants to read a page"), url.clone()),
        ActionKind::Other => (format!("{agent} wants to use its tool {name}"), action.name.clone()),
    };
    let mut lines = vec![risk(action, folders)];
    if let Some(target) = target.as_ref().filter(|_| options.contains(&Decision::AllowSession.as_str())) {
        let what = match action.kind {
            ActionKind::Edit { .. } => "every change to exactly this file",
            _ => "exactly this",
        };
        lines.push(format!("A lasting answer applies to {what}: {}", exact(target)));
    }
    lines.push(format!("The agent works in {} and uses its tool {name}.", exact(&action.folder.display().to_string())));
    Approval {
        about: Some(About::AgentTool { name: exact(&action.name), target }),
        arguments: Some(ShownArguments::new(call.arguments.clone())),
        summary: one_line(&format!("{agent}: {what}"), MAX_SUMMARY),
        detail: lines.join("\n"),
        requester: call.requester.clone(),
        ..question(&call.tool.server, Kind::Tool, title, &options)
    }
}

/// What can happen, as text.
fn risk(action: &AgentAction, folders: &[Arc<Path>]) -> String {
    match &action.kind {
        ActionKind::Shell { read, text, .. } => {
            let mut risk = match read.not_plain.iter().copied().collect::<Vec<_>>().as_slice() {
                [] => "It runs one program with these arguments. The program can do everything that you can do."
                    .to_owned(),
                reasons => format!(
                    "It contains {}. Read it as a whole: it can do everything that you can do.",
                    reasons.join(", ")
                ),
            };
            if !action.unknown_arguments().is_empty() {
                let names = one_line(&action.unknown_arguments().join(", "), 200);
                risk.push_str(&format!(" It also sets {names}, which may change how the command runs."));
            }
            format!("{risk}\n  {}", visible(text, usize::MAX).replace('\n', "\n  "))
        }
        ActionKind::Edit { file: Some(file) } => {
            let shown = exact(&file.display().to_string());
            match crate::engine::change::locate(&file.to_string_lossy(), folders) {
                Some(_) => format!("It changes a file of the workspace: {shown}"),
                None => format!("It changes a file outside of the workspace: {shown}"),
            }
        }
        ActionKind::Edit { file: None } => "It changes files. The arguments say which.".to_owned(),
        ActionKind::Fetch { url } => {
            format!("It sends a request to another machine, and the model reads the answer: {}", exact(url))
        }
        ActionKind::Other => "Only the agent knows what the tool does.".to_owned(),
    }
}
