//! What happens during a tool call: questions to the user, progress, cancellation, log messages.

use serde_json::{Value, json};

use crate::workspace::{Workspace, demo, text};

#[tokio::test(flavor = "multi_thread")]
async fn a_form_of_a_server_is_answered_through_approvals() {
    let mut workspace = Workspace::open(json!({ "demo": demo() })).await;
    workspace.connected("demo").await;
    let call = workspace.begin_call("mcp__demo__ask_name", json!({}));
    let waiting = |news: &Value| news["approvals"].as_array().is_some_and(|approvals| !approvals.is_empty());
    let news = workspace.editor().notification_where("mcp/approvalsChanged", waiting).await;
    let approval = news["approvals"][0].clone();
    assert_eq!(workspace.command("mcp.approvals", json!({})).await["approvals"], json!([approval]));
    assert_eq!((&approval["kind"], &approval["server"]), (&json!("elicitation"), &json!("demo")));
    assert_eq!(approval["detail"], "What is your name?");
    assert!(approval["title"].as_str().unwrap().contains("demo"), "who asks is named: {approval:#}");
    assert_eq!(approval["options"], json!(["accept", "decline", "cancel"]));
    assert_eq!(approval["schema"]["required"], json!(["name"]));

    let id = &approval["id"];
    for invalid in [json!(null), json!({}), json!({ "name": 5 }), json!({ "name": "x".repeat(500) })] {
        let answer = json!({ "id": id, "decision": "accept", "content": invalid });
        let refused = workspace.editor().command("mcp.approval.resolve", answer).await.unwrap_err();
        assert_eq!(refused["data"]["kind"], "invalid-params", "{invalid} is not a valid answer: {refused}");
    }
    let answer = json!({ "id": id, "decision": "accept", "content": { "name": "Ada" } });
    assert_eq!(workspace.command("mcp.approval.resolve", answer.clone()).await, json!({}));
    assert_eq!(text(&workspace.editor().answer(call).await.unwrap()), "Hello, Ada!");
    let again = workspace.editor().command("mcp.approval.resolve", answer).await.unwrap_err();
    assert_eq!(again["data"]["kind"], "not-found");

    let call = workspace.begin_call("mcp__demo__ask_name", json!({}));
    let other = |news: &Value| waiting(news) && news["approvals"][0]["id"] != *id;
    let news = workspace.editor().notification_where("mcp/approvalsChanged", other).await;
    let answer = json!({ "id": news["approvals"][0]["id"], "decision": "decline" });
    workspace.command("mcp.approval.resolve", answer).await;
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
    workspace.editor().cancel(call);
    let cancelled = workspace.editor().answer(call).await.unwrap_err();
    assert_eq!((&cancelled["code"], &cancelled["data"]["kind"]), (&json!(-32800), &json!("cancelled")));
    let stopped = |log: &Value| log["text"].as_str().is_some_and(|text| text.contains("countdown stopped at"));
    let log = workspace.editor().notification_where("mcp/log", stopped).await;
    assert_eq!((&log["server"], &log["level"]), (&json!("demo"), &json!("info")));
    let record = workspace.editor().notification("mcp/callFinished").await;
    assert_eq!((&record["success"], &record["error"]), (&json!(false), &json!("cancelled")));
    assert_eq!(workspace.call("mcp__demo__echo", json!({ "text": "next" })).await.unwrap(), "next");
    workspace.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_tool_changes_and_logs_reaches_the_editor() {
    let mut workspace = Workspace::open(json!({ "demo": demo() })).await;
    assert_eq!(workspace.connected("demo").await["resourceCount"], 1);
    let kept = workspace.call("mcp__demo__take_note", json!({ "text": "milk" })).await.unwrap();
    assert!(kept.starts_with("saved as note 1"), "{kept}");
    workspace.until("demo", |status| status["resourceCount"] == 2).await;
    let log = workspace.editor().notification_where("mcp/log", |log| log["text"] == "demo: saved note 1").await;
    assert!(log["time"].as_str().unwrap().ends_with('Z'));
    let lines = workspace.command("mcp.server.logs", json!({ "server": "demo", "limit": 1 })).await["lines"].clone();
    assert_eq!((&lines[0]["source"], &lines[0]["text"]), (&json!("server"), &json!("demo: saved note 1")));
    workspace.quit().await;
}
