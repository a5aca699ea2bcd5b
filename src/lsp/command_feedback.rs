//! Shows the outcome of a code lens or code action, for editors that ignore the response of a command.

use std::path::PathBuf;

use lsp_types::MessageType;
use serde_json::Value;
use serde_json::value::RawValue;

use super::session::EditorSession;
use super::{run_action, show};
use crate::protocol::actions::Tone;
use crate::protocol::answers::{CheckList, EditedFiles, LogLines, OneServer, ReadResource, ServerList};
use crate::protocol::commands::{
    ActionRun, ApprovalShow, Command, ConfigReload, Doctor, EditApply, LevelChoose, ResourceRead, SecretKeep,
    ServerAdd, ServerAuth, ServerEnable, ServerLogs, ServerMove, ServerRefresh, ServerRemove, ServerRestart,
    ServerStart, ServerStop, ServerTest, ServerTimeout, ServerToggle, ServerTrust, ServerUpdate, Servers,
    TemplateInsert, ToolCall, ToolOpen, ToolPolicy,
};
use crate::protocol::types::{Check, LogLine, Reload, ServerStatus, ToolResult};
use crate::text::{counted, one_line, visible};

/// These show their outcome themselves: a result, a question, or a change in the text.
const SHOWN_ELSEWHERE: [&str; 5] =
    [ActionRun::NAME, ToolOpen::NAME, ApprovalShow::NAME, EditApply::NAME, TemplateInsert::NAME];

/// Shows the outcome of a command: as a message, or as a document if it is long.
pub async fn show(session: &EditorSession, command: &str, answer: &RawValue) {
    if let Some(LogLines { lines }) = of::<ServerLogs>(command, answer) {
        return show::show(session, "logs", &logs(&lines)).await;
    }
    if SHOWN_ELSEWHERE.contains(&command) {
        return;
    }
    let Some((kind, mut text)) = summary(command, answer) else {
        let title = command.strip_prefix("mcp.").unwrap_or(command);
        return show::show(session, title, &document(command, answer)).await;
    };
    let files = serde_json::from_str(answer.get()).map(|EditedFiles { unsaved }| unsaved).unwrap_or_default();
    if !files.is_empty() {
        // The response describes the state before the change is saved.
        text = format!("Save {} to apply the change", paths(&files));
    }
    show::message(session, kind, &text).await;
}

/// The answer of any other command as a text to read.
fn document(command: &str, answer: &RawValue) -> String {
    if command == ToolCall::NAME
        && let Ok(result) = serde_json::from_str::<ToolResult<&RawValue>>(answer.get())
    {
        return run_action::text_of(&result);
    }
    if let Some(CheckList { checks }) = of::<Doctor>(command, answer) {
        let line = |check: &Check| {
            let fix = check.fix.as_deref().map(|fix| format!("\n  → {fix}")).unwrap_or_default();
            format!("{} {}: {}{fix}\n", if check.ok { "ok" } else { "failed" }, check.name, check.message)
        };
        return checks.iter().map(line).collect();
    }
    if let Some(ReadResource { contents, .. }) = of::<ResourceRead>(command, answer) {
        let texts: Vec<String> = contents.into_iter().map(|one| one.text.unwrap_or(one.uri)).collect();
        return visible(&texts.join("\n"), usize::MAX);
    }
    let value: Value = serde_json::from_str(answer.get()).unwrap_or_default();
    match value.as_object().is_some_and(serde_json::Map::is_empty) {
        true => "Done".to_owned(),
        false => visible(&format!("{value:#}"), usize::MAX),
    }
}

/// The answer, if it is one of this command.
fn of<C: Command>(command: &str, answer: &RawValue) -> Option<C::Answer> {
    if command == C::NAME { serde_json::from_str(answer.get()).ok() } else { None }
}

fn summary(command: &str, answer: &RawValue) -> Option<(MessageType, String)> {
    match command {
        Servers::NAME | ServerStart::NAME | ServerStop::NAME | ServerRestart::NAME | ServerRefresh::NAME => {
            let ServerList { servers, problems: _ } = serde_json::from_str(answer.get()).ok()?;
            states(&servers)
        }
        ServerToggle::NAME
        | ServerEnable::NAME
        | ServerTimeout::NAME
        | ServerTrust::NAME
        | ServerAuth::NAME
        | ServerMove::NAME
        | ServerAdd::NAME
        | ServerUpdate::NAME => {
            let OneServer { server } = serde_json::from_str(answer.get()).ok()?;
            states(&[server])
        }
        _ => of::<ServerTest>(command, answer)
            .map(|report| (if report.success { MessageType::INFO } else { MessageType::ERROR }, report.message))
            .or_else(|| Some((MessageType::INFO, changes(command, answer)?))),
    }
}

/// `fs: connected · 3 tools` or `web: failed: connection refused`.
fn states(servers: &[ServerStatus]) -> Option<(MessageType, String)> {
    let bad = servers.iter().any(|server| server.summary.tone == Tone::Bad);
    let lines: Vec<String> = servers.iter().map(|server| format!("{}: {}", server.name, server.summary.text)).collect();
    (!lines.is_empty()).then(|| (if bad { MessageType::WARNING } else { MessageType::INFO }, lines.join("\n")))
}

fn changes(command: &str, answer: &RawValue) -> Option<String> {
    if let Some(changed) = of::<ConfigReload>(command, answer) {
        return Some(reload(&changed));
    }
    if let Some(edited) = of::<ToolPolicy>(command, answer) {
        return Some(format!("Set the level of {}", counted(edited.tools.len(), "tool")));
    }
    if command == LevelChoose::NAME {
        return Some("Set the level".to_owned());
    }
    if command == ServerRemove::NAME {
        return Some("Removed the server".to_owned());
    }
    let kept = of::<SecretKeep>(command, answer)?;
    Some(format!("Stored the secret in the keyring as `{}`", one_line(&kept.name, 80)))
}

fn paths(files: &[PathBuf]) -> String {
    files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ")
}

fn reload(changed: &Reload) -> String {
    let errors = changed.errors.len();
    let parts = [
        (changed.added.len(), "added"),
        (changed.removed.len(), "removed"),
        (changed.changed.len(), "restarted"),
        (changed.policy_only.len(), "with new rules"),
        (errors, if errors == 1 { "file with errors" } else { "files with errors" }),
    ];
    let parts: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    if parts.is_empty() { "Reloaded: nothing changed".to_owned() } else { format!("Reloaded: {}", parts.join(", ")) }
}

fn logs(lines: &[LogLine]) -> String {
    let line = |line: &LogLine| {
        format!("{} {:7} {:7} {}\n", line.time, format!("{:?}", line.source).to_lowercase(), line.level, line.text)
    };
    if lines.is_empty() { "No logs yet".to_owned() } else { lines.iter().map(line).collect() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_outcome_of_a_command_fits_on_one_line() {
        let text = |command: &str, answer: Value| {
            summary(command, &serde_json::value::to_raw_value(&answer).unwrap()).map(|(_, text)| text)
        };
        let changed =
            json!({ "added": ["a"], "removed": [], "changed": [], "policyOnly": [], "unchanged": 3, "errors": {} });
        assert_eq!(text("mcp.config.reload", changed).unwrap(), "Reloaded: 1 added");
        assert_eq!(text("mcp.tools", json!({})), None);
    }
}
