//! Tools behind the one door, as an editor sees them: levels, questions, answers, records.

use std::time::Duration;

use mcp_sidecar::settings::Settings;
use serde_json::{Value, json};

use crate::support::Harness;
use crate::support::harness::{demo, fixture, open_editor};

async fn desk(tools: Value) -> Harness {
    let mut desk = Harness::new(json!({ "servers": { "demo": demo(tools) } }), json!({})).await;
    desk.until("demo", "connected").await;
    desk
}

#[tokio::test]
async fn what_is_allowed_runs_and_what_is_denied_does_not_whatever_the_user_says() {
    let mut desk = desk(json!({ "echo": "allow-always", "add": "deny", "roll_dice": "disable" })).await;
    let result = desk.call("mcp__demo__echo", json!({ "text": "hello" })).await.unwrap();
    assert_eq!(result["content"], json!([{ "type": "text", "text": "hello" }]));
    assert_eq!((&result["isError"], &result["decision"]), (&json!(false), &json!("allow-always")));
    for tool in ["mcp__demo__add", "mcp__demo__roll_dice"] {
        let call = json!({ "tool": tool, "arguments": { "a": 1, "b": 2 }, "decision": "allow-always" });
        assert_eq!(desk.fails("mcp.tool.call", call).await.0, "denied", "{tool}");
    }
    let tools = desk.run("mcp.tools", json!({})).await;
    let names: Vec<&str> = tools["tools"].as_array().unwrap().iter().filter_map(|tool| tool["tool"].as_str()).collect();
    assert!(names.contains(&"add") && !names.contains(&"roll_dice"), "denied is shown, disabled is not: {names:?}");
    assert!(desk.approvals("tool", 0).await.is_empty(), "nobody was asked");
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_told_by_path_before_anything_is_sent() {
    let mut desk = desk(json!({ "*": "allow-always" })).await;
    let error = desk.call("mcp__demo__add", json!({ "a": "one", "b": 2 })).await.unwrap_err();
    assert_eq!((&error["code"], &error["data"]["kind"]), (&json!(-32602), &json!("invalid-arguments")));
    assert_eq!(error["data"]["detail"][0]["path"], "/a");
}

#[tokio::test]
async fn sixty_four_calls_wait_at_once_and_each_answer_reaches_its_own() {
    let mut desk = desk(json!({})).await;
    let calls: Vec<i64> = (0..64).map(|n| desk.begin_call("mcp__demo__add", json!({ "a": n, "b": 1 }))).collect();
    let waiting = desk.approvals("tool", 64).await;
    assert_eq!(desk.status("demo").await["status"], "connected", "everything else goes on meanwhile");
    for approval in &waiting {
        let number = approval["arguments"]["a"].as_i64().unwrap();
        desk.resolve(approval, if number % 2 == 0 { "allow-once" } else { "deny" }).await;
    }
    for (number, call) in calls.into_iter().enumerate() {
        match desk.editor.answer(call).await {
            Ok(result) => assert_eq!(result["content"][0]["text"], json!((number + 1).to_string())),
            Err(error) => assert_eq!((number % 2, &error["data"]["kind"]), (1, &json!("denied"))),
        }
    }
}

#[tokio::test]
async fn a_question_shows_what_will_run_and_is_answered_once() {
    let mut desk = desk(json!({})).await;
    let call = json!({ "tool": "mcp__demo__take_note", "arguments": { "text": "milk" }, "requester": { "kind": "agent", "name": "codex" } });
    let call = desk.editor.begin_command("mcp.tool.call", call);
    let approval = desk.approvals("tool", 1).await.remove(0);
    assert_eq!((&approval["server"], &approval["tool"]), (&json!("demo"), &json!("take_note")));
    assert_eq!(approval["arguments"], json!({ "text": "milk" }));
    assert_eq!(approval["requester"], json!({ "kind": "agent", "name": "codex" }));
    assert_eq!(approval["title"], "The agent `codex` wants to run `take_note` on `demo`");
    let note = json!({ "id": approval["id"], "decision": "deny", "note": "not today" });
    desk.run("mcp.approval.resolve", note.clone()).await;
    let error = desk.editor.answer(call).await.unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("not today"), "{error}");
    assert_eq!(desk.fails("mcp.approval.resolve", note).await.0, "not-found");
    let record = desk.run("mcp.calls", json!({ "failed": true })).await["calls"][0].clone();
    assert_eq!(
        (&record["decision"], &record["decidedBy"], &record["success"]),
        (&json!("deny"), &json!("user"), &json!(false))
    );
}

#[tokio::test]
async fn silence_means_no() {
    let mut settings = Settings::default();
    settings.approvals.timeout = Duration::from_millis(50);
    let user = json!({ "servers": { "demo": demo(json!({})) } });
    let mut desk = Harness::with(user, json!({}), settings).await;
    desk.until("demo", "connected").await;
    let error = desk.call("mcp__demo__add", json!({ "a": 1, "b": 2 })).await.unwrap_err();
    assert_eq!(error["data"]["kind"], "denied");
    assert!(error["message"].as_str().unwrap().contains("the approval timed out"), "{error}");
}

#[tokio::test]
async fn a_cancelled_call_takes_its_question_back() {
    let mut desk = desk(json!({})).await;
    let call = desk.begin_call("mcp__demo__add", json!({ "a": 1, "b": 2 }));
    desk.approvals("tool", 1).await;
    desk.editor.cancel(call);
    assert_eq!(desk.editor.answer(call).await.unwrap_err()["code"], -32800);
    desk.approvals("tool", 0).await;
}

#[tokio::test]
async fn all_editors_see_a_question_and_the_first_answer_counts() {
    let mut desk = desk(json!({})).await;
    let mut other = open_editor(&desk.home, &desk.engine).await;
    let call = desk.begin_call("mcp__demo__add", json!({ "a": 1, "b": 2 }));
    let shown =
        other.notification_where("mcp/approvalsChanged", |params| params["approvals"][0]["kind"] == "tool").await;
    let id = shown["approvals"][0]["id"].clone();
    other.command("mcp.approval.resolve", json!({ "id": id, "decision": "allow-once" })).await.unwrap();
    assert_eq!(desk.editor.answer(call).await.unwrap()["content"][0]["text"], "3");
    desk.approvals("tool", 0).await;
}

#[tokio::test]
async fn a_call_of_an_agent_is_denied_when_the_last_editor_goes() {
    let desk = desk(json!({})).await;
    let engine = desk.engine.clone();
    let wish = mcp_sidecar::engine::gate::CallRequest {
        tool: mcp_sidecar::model::ToolId::parse("mcp__demo__add").unwrap(),
        arguments: serde_json::from_value(json!({ "a": 1, "b": 2 })).unwrap(),
        decision: None,
        requester: serde_json::from_value(json!({ "kind": "agent", "name": "codex" })).unwrap(),
        workflow: None,
        timeout: None,
        progress: None,
        turn: Default::default(),
    };
    let mut questions = engine.approvals().subscribe();
    let call = tokio::spawn(async move { engine.call(wish).await });
    questions.wait_for(|waiting| !waiting.is_empty()).await.unwrap();
    let Harness { editor, home: _home, .. } = desk;
    drop(editor);
    let error = call.await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.to_string().contains("the editor was closed")), ("denied", true), "{error}");
}

#[tokio::test]
async fn a_project_grant_lets_later_calls_pass_and_can_be_taken_back() {
    let mut desk = desk(json!({})).await;
    let add = json!({ "a": 1, "b": 2 });
    let call = desk.begin_call("mcp__demo__add", add.clone());
    let approval = desk.approvals("tool", 1).await.remove(0);
    desk.resolve(&approval, "allow-project").await;
    desk.editor.answer(call).await.unwrap();
    assert_eq!(desk.call("mcp__demo__add", add.clone()).await.unwrap()["decision"], "allow-project");
    let grants = desk.run("mcp.grants", json!({})).await;
    assert_eq!((&grants["grants"][0]["tool"], &grants["grants"][0]["scope"]), (&json!("add"), &json!("project")));
    assert_eq!(desk.run("mcp.grant.revoke", json!({ "id": grants["grants"][0]["id"] })).await, json!({ "revoked": 1 }));
    desk.begin_call("mcp__demo__add", add);
    desk.approvals("tool", 1).await;
}

#[tokio::test]
async fn a_tool_that_changes_loses_what_it_was_allowed_and_the_difference_is_shown() {
    let user = json!({ "servers": { "turncoat": fixture("turncoat.py") } });
    let mut desk = Harness::new(user, json!({})).await;
    desk.until("turncoat", "connected").await;
    let call = desk.begin_call("mcp__turncoat__greet", json!({}));
    let approval = desk.approvals("tool", 1).await.remove(0);
    desk.resolve(&approval, "allow-always").await;
    desk.editor.answer(call).await.unwrap();
    loop {
        let tools = desk.run("mcp.tools", json!({})).await;
        if tools["tools"][0]["changed"] == json!(true) {
            break;
        }
        desk.editor.notification("mcp/serverChanged").await;
    }
    desk.begin_call("mcp__turncoat__greet", json!({}));
    let approval = desk.approvals("tool", 1).await.remove(0);
    assert!(approval["diff"].as_str().unwrap().contains("sends your files away"), "{approval}");
}

#[tokio::test]
async fn a_level_may_depend_on_the_arguments_and_says_where_it_comes_from() {
    let rule = json!([{ "when": { "text": "open *" }, "level": "allow-session" }, "deny"]);
    let mut desk = desk(json!({ "echo": rule })).await;
    desk.call("mcp__demo__echo", json!({ "text": "open sesame" })).await.unwrap();
    assert_eq!(desk.call("mcp__demo__echo", json!({ "text": "shut" })).await.unwrap_err()["data"]["kind"], "denied");
    let ask = json!({ "server": "demo", "tool": "echo", "arguments": { "text": "open sesame" } });
    let policy = desk.run("mcp.policies", ask).await["policies"][0].clone();
    assert_eq!((&policy["tool"], &policy["level"]), (&json!("mcp__demo__echo"), &json!("allow-session")));
    assert!(policy["source"].as_str().unwrap().contains("tools.echo"), "{policy}");
}

#[tokio::test]
async fn an_editor_without_a_prompt_of_its_own_is_asked_by_a_message_with_buttons() {
    let desk = desk(json!({})).await;
    let Harness { home, engine, editor } = desk;
    let (mut plain, _end) = crate::support::attach_to(&engine);
    plain.ignore("textDocument/publishDiagnostics");
    plain.handle("window/showMessageRequest", |params| {
        assert!(params["message"].as_str().unwrap().contains("\"a\": 20"), "the arguments are shown: {params}");
        Ok(params["actions"].as_array().unwrap().iter().find(|action| action["title"] == "Allow once").unwrap().clone())
    });
    plain.initialize(&[&home.project()], json!({})).await;
    drop(editor);
    let call = json!({ "tool": "mcp__demo__add", "arguments": { "a": 20, "b": 22 } });
    assert_eq!(plain.command("mcp.tool.call", call).await.unwrap()["content"][0]["text"], "42");
}

#[tokio::test]
async fn a_tool_switched_off_by_an_answer_stays_off_until_that_is_taken_back() {
    let mut desk = desk(json!({})).await;
    desk.begin_call("mcp__demo__add", json!({ "a": 1, "b": 2 }));
    let approval = desk.approvals("tool", 1).await.remove(0);
    desk.resolve(&approval, "disable").await;
    desk.approvals("tool", 0).await;
    let grants = loop {
        let grants = desk.run("mcp.grants", json!({})).await;
        if grants["grants"][0]["level"] == "disable" {
            break grants;
        }
        desk.editor.notification("mcp/serverChanged").await;
    };
    assert_eq!(desk.call("mcp__demo__add", json!({ "a": 1, "b": 2 })).await.unwrap_err()["data"]["kind"], "denied");
    desk.run("mcp.grant.revoke", json!({ "id": grants["grants"][0]["id"] })).await;
    desk.begin_call("mcp__demo__add", json!({ "a": 1, "b": 2 }));
    desk.approvals("tool", 1).await;
}
