//! `workspace/executeCommand`: parses a command, runs it and returns the response.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::editor::Editor;
use super::guard::Reply;
use super::session::EditorSession;
use super::{command_feedback, convert, edits, run_action};
use crate::engine::turns::Turn;
use crate::protocol;
use crate::protocol::commands::AnyCommand;
use crate::server::connection::Progress;

/// The maximum number of unsent progress reports per call.
const REPORTS: usize = 64;

/// Runs a command when its turn comes. Dropping the future cancels it.
pub async fn run(seat: Arc<EditorSession>, params: Value, turn: impl Future<Output = Turn>) -> Reply {
    seat.settled().await;
    let turn = turn.await;
    let name = params.get("command").and_then(Value::as_str).unwrap_or_default();
    let arguments = params.get("arguments").and_then(Value::as_array).cloned().unwrap_or_default();
    let command = AnyCommand::parse(name, arguments).map_err(|error| convert::error(&error))?;
    let reports = params.get("workDoneToken").filter(|token| !token.is_null()).map(|token| {
        let (sender, receiver) = mpsc::channel(REPORTS);
        let title = arguments_title(&params).unwrap_or(name).to_owned();
        let reporting = tokio::spawn(report(seat.editor.clone(), token.clone(), title, receiver));
        (sender, reporting)
    });
    let (progress, reporting) = reports.unzip();
    let answer = match command {
        AnyCommand::ActionRun(params) => run_action::run(&seat, params, progress, turn).await,
        AnyCommand::EditApply(params) => edits::apply(&seat, params).await,
        AnyCommand::SecretKeep(params) => edits::keep(&seat, params).await,
        AnyCommand::TemplateInsert(params) => edits::insert(&seat, params).await,
        command => protocol::run::run(&seat.engine, &*seat, command, progress, turn).await,
    };
    if let Some(reporting) = reporting {
        // Send the end of the progress before the response.
        reporting.await.ok();
    }
    let answer = answer.map_err(|error| convert::error(&error))?;
    if params.pointer("/arguments/0/show") == Some(&Value::Bool(true))
        && let Ok(answer) = serde_json::from_str(answer.get())
    {
        command_feedback::show(&seat, name, &answer).await;
    }
    Ok(answer)
}

fn arguments_title(params: &Value) -> Option<&str> {
    params.pointer("/arguments/0/tool").and_then(Value::as_str)
}

/// Forwards the progress of a tool to the editor.
async fn report(editor: Editor, token: Value, title: String, mut reports: mpsc::Receiver<Progress>) {
    let tell = |value: Value| {
        let params = json!({ "token": token, "value": value });
        let editor = editor.clone();
        async move { editor.tell("$/progress", &params).await }
    };
    let mut begun = false;
    while let Some(progress) = reports.recv().await {
        if !begun {
            tell(json!({ "kind": "begin", "title": title, "cancellable": true, "percentage": 0 })).await;
            begun = true;
        }
        let percentage = progress.total.filter(|total| *total > 0.0).map(|total| progress.progress / total * 100.0);
        let mut value = Map::from_iter([("kind".to_owned(), json!("report"))]);
        if let Some(percentage) = percentage {
            value.insert("percentage".to_owned(), json!(percentage.clamp(0.0, 100.0) as u32));
        }
        if let Some(message) = &progress.message {
            value.insert("message".to_owned(), json!(crate::text::one_line(message, 500)));
        }
        tell(Value::Object(value)).await;
    }
    if begun {
        tell(json!({ "kind": "end" })).await;
    }
}
