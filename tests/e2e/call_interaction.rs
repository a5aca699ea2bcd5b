//! What happens during a tool call: questions to the user, progress, cancellation, log messages.

use mcp_sidecar::protocol::commands::{ApprovalResolve, Approvals, ServerLogs};
use mcp_sidecar::protocol::errors::ErrorKind;
use mcp_sidecar::protocol::events::{ApprovalsChanged, CallFinished, LogMessage};
use mcp_sidecar::protocol::types::{ApprovalKind, LogSource};
use serde_json::{Value, json};

use crate::support::commands::{name, resolve};
use crate::workspace::{Workspace, demo, text};

#[tokio::test(flavor = "multi_thread")]
async fn a_form_of_a_server_is_answered_through_approvals() {
    let mut workspace = Workspace::open(json!({ "demo": demo() })).await;
    workspace.connected("demo").await;
    let call = workspace.begin_call("mcp__demo__ask_name", json!({}));
    let waiting = |news: &ApprovalsChanged| !news.approvals.is_empty();
    let approval = workspace.editor().event_where(waiting).await.approvals.remove(0);
    assert_eq!(workspace.run(Approvals::default()).await.approvals, std::slice::from_ref(&approval));
    assert_eq!((approval.kind, approval.server.as_str()), (ApprovalKind::Elicitation, "demo"));
    assert_eq!(approval.detail, "What is your name?\nIt asks because you called `ask_name`.");
    assert!(approval.title.contains("demo"), "who asks is named: {approval:?}");
    assert_eq!(approval.options, ["accept", "decline", "cancel"]);
    assert_eq!(approval.schema.as_ref().unwrap()["required"], json!(["name"]));

    for invalid in [json!(null), json!({}), json!({ "name": 5 }), json!({ "name": "x".repeat(500) })] {
        let answer = ApprovalResolve { content: Some(invalid.clone()), ..resolve(&approval, "accept") };
        let refused = workspace.editor().call(answer).await.unwrap_err();
        assert_eq!(refused.kind(), Some(ErrorKind::InvalidParams), "{invalid} is not a valid answer: {refused}");
    }
    let answer = ApprovalResolve { content: Some(json!({ "name": "Ada" })), ..resolve(&approval, "accept") };
    workspace.run(answer.clone()).await;
    assert_eq!(text(&workspace.editor().answer(call).await.unwrap()), "Hello, Ada!");
    let again = workspace.editor().call(answer).await.unwrap_err();
    assert_eq!(again.kind(), Some(ErrorKind::NotFound));

    let call = workspace.begin_call("mcp__demo__ask_name", json!({}));
    let other = |news: &ApprovalsChanged| waiting(news) && news.approvals[0].id != approval.id;
    let news = workspace.editor().event_where(other).await;
    workspace.run(resolve(&news.approvals[0], "decline")).await;
    assert_eq!(text(&workspace.editor().answer(call).await.unwrap()), "Hello, stranger!");
    workspace.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_arrives_in_order_and_before_the_result() {
    let mut workspace = Workspace::open(json!({ "demo": demo() })).await;
    workspace.connected("demo").await;
    let call = workspace.begin_call_with_progress("mcp__demo__countdown", json!({ "from": 4, "interval": 5 }));
    let mut values = Vec::new();
    while values.last().is_none_or(|last: &Value| last["kind"] != "end") {
        let mut progress = workspace.editor().notification("$/progress").await;
        assert_eq!(progress["token"], "progress");
        values.push(progress["value"].take());
    }
    assert_eq!(
        values,
        [
            json!({ "kind": "begin", "title": "mcp__demo__countdown", "cancellable": true, "percentage": 0 }),
            json!({ "kind": "report", "percentage": 25, "message": "3" }),
            json!({ "kind": "report", "percentage": 50, "message": "2" }),
            json!({ "kind": "report", "percentage": 75, "message": "1" }),
            json!({ "kind": "report", "percentage": 100, "message": "lift-off" }),
            json!({ "kind": "end" }),
        ]
    );
    assert_eq!(text(&workspace.editor().answer(call).await.unwrap()), "lift-off");
    workspace.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_call_is_cancelled_at_the_server_and_recorded() {
    let mut workspace = Workspace::open(json!({ "demo": demo() })).await;
    workspace.connected("demo").await;
    let call = workspace.begin_call_with_progress("mcp__demo__countdown", json!({ "from": 100, "interval": 100 }));
    workspace.editor().notification("$/progress").await;
    call.cancel();
    let cancelled = workspace.editor().answer(call).await.unwrap_err();
    assert_eq!((cancelled.code, cancelled.kind()), (-32800, Some(ErrorKind::Cancelled)));
    let stopped = |log: &LogMessage| log.text.contains("countdown stopped at");
    let log = workspace.editor().event_where(stopped).await;
    assert_eq!((log.server.as_str(), log.level.as_str()), ("demo", "info"));
    let CallFinished(record) = workspace.editor().event::<CallFinished>().await;
    assert_eq!((record.success, record.error.as_deref()), (false, Some("cancelled")));
    assert_eq!(workspace.call("mcp__demo__echo", json!({ "text": "next" })).await.unwrap(), "next");
    workspace.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_tool_changes_and_logs_reaches_the_editor() {
    let mut workspace = Workspace::open(json!({ "demo": demo() })).await;
    assert_eq!(workspace.connected("demo").await.resource_count, 1);
    let kept = workspace.call("mcp__demo__take_note", json!({ "text": "milk" })).await.unwrap();
    assert!(kept.starts_with("saved as note 1"), "{kept}");
    workspace.until("demo", |status| status.resource_count == 2).await;
    let log = workspace.editor().event_where(|log: &LogMessage| log.text == "demo: saved note 1").await;
    assert!(log.time.to_string().ends_with('Z'));
    let lines = workspace.run(ServerLogs { server: name("demo"), limit: Some(1) }).await.lines;
    assert_eq!((lines[0].source, lines[0].text.as_str()), (LogSource::Server, "demo: saved note 1"));
    workspace.quit().await;
}
