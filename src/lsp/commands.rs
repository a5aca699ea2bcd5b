//! `workspace/executeCommand`: parses a command, runs it and returns the response.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::editor::Editor;
use super::guard::Reply;
use super::session::EditorSession;
use super::{approval_messages, code_actions, command_feedback, convert, edits, run_action};
use crate::engine::turns::Turn;
use crate::protocol;
use crate::protocol::commands::AnyCommand;
use crate::server::connection::Progress;

/// The maximum number of unsent progress reports per call.
const REPORTS: usize = 64;
/// Creating a progress takes an editor milliseconds.
const CREATE_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs a command when its turn comes. Dropping the future cancels it.
///
/// An editor that sends no token for its progress may support one that we create, `own_token`.
pub async fn run(
    session: Arc<EditorSession>,
    params: Value,
    own_token: String,
    turn: impl Future<Output = Turn>,
) -> Reply {
    session.settled().await;
    let turn = turn.await;
    let name = params.get("command").and_then(Value::as_str).unwrap_or_default();
    let arguments = params.get("arguments").and_then(Value::as_array).cloned().unwrap_or_default();
    let command = AnyCommand::parse(name, arguments).map_err(|error| convert::error(&error))?;
    protocol::run::check(&command, &session.info().identity).map_err(|error| convert::error(&error))?;
    let given = params.get("workDoneToken").filter(|token| !token.is_null());
    let info = session.info();
    let creates = info.supports.work_done_progress && info.abilities.is_none();
    let token = match given {
        Some(token) => Some((token.clone(), Token::Given)),
        None => creates.then(|| (json!(own_token), Token::Created)),
    };
    let reports = token.map(|(token, origin)| {
        let (sender, receiver) = mpsc::channel(REPORTS);
        let title = arguments_title(&params).unwrap_or(name).to_owned();
        let reporting = tokio::spawn(report(session.editor.clone(), token, origin, title, receiver));
        (sender, reporting)
    });
    let (mut progress, reporting) = reports.unzip();
    let answer = match command {
        AnyCommand::Actions(params) => code_actions::list(&session, &params),
        AnyCommand::ActionRun(params) => run_action::run(&session, params, progress.take(), turn).await,
        AnyCommand::ApprovalShow(params) => approval_messages::show(&session, &params.id).await,
        AnyCommand::ToolOpen(params) => run_action::open(&session, &params.tool, progress.take(), turn).await,
        AnyCommand::EditApply(params) => edits::apply(&session, params).await,
        AnyCommand::SecretKeep(params) => edits::keep(&session, params).await,
        AnyCommand::TemplateInsert(params) => edits::insert(&session, params).await,
        AnyCommand::LevelChoose(params) => edits::choose_level(&session, params, turn).await,
        command => {
            let identity = &session.info().identity;
            protocol::run::run(&session.engine, &*session, identity, command, progress.take(), turn).await
        }
    };
    // A command without progress has not taken it.
    drop(progress);
    if let Some(reporting) = reporting {
        // Send the end of the progress before the response.
        reporting.await.ok();
    }
    let answer = answer.map_err(|error| convert::error(&error))?;
    if params.pointer("/arguments/0/show") == Some(&Value::Bool(true)) {
        command_feedback::show(&session, name, &answer).await;
    }
    Ok(answer)
}

fn arguments_title(params: &Value) -> Option<&str> {
    params.pointer("/arguments/0/tool").and_then(Value::as_str)
}

/// Where the token of a progress comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Token {
    Given,
    /// The editor has to agree to it first.
    Created,
}

/// Forwards the progress of a tool to the editor.
async fn report(editor: Editor, token: Value, origin: Token, title: String, mut reports: mpsc::Receiver<Progress>) {
    let send = |value: Value| {
        let params = json!({ "token": token, "value": value });
        let editor = editor.clone();
        async move { editor.send_notification("$/progress", &params).await }
    };
    let mut begun = false;
    while let Some(progress) = reports.recv().await {
        if !begun {
            if origin == Token::Created {
                let params = json!({ "token": token });
                let create = editor.send_request::<_, Value>("window/workDoneProgress/create", &params);
                if !matches!(tokio::time::timeout(CREATE_TIMEOUT, create).await, Ok(Ok(_))) {
                    return;
                }
            }
            send(json!({ "kind": "begin", "title": title, "cancellable": true, "percentage": 0 })).await;
            begun = true;
        }
        let total = progress.total.filter(|_| !progress.is_waiting);
        let percentage = total.filter(|total| *total > 0.0).map(|total| progress.progress / total * 100.0);
        let mut value = Map::from_iter([("kind".to_owned(), json!("report"))]);
        if let Some(percentage) = percentage {
            value.insert("percentage".to_owned(), json!(percentage.clamp(0.0, 100.0) as u32));
        }
        if let Some(message) = &progress.message {
            value.insert("message".to_owned(), json!(crate::text::one_line(message, 500)));
        }
        send(Value::Object(value)).await;
    }
    if begun {
        send(json!({ "kind": "end" })).await;
    }
}
