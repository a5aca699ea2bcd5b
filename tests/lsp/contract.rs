//! The wire contract at its edges: what an error names, what a record holds, which level is told.

use mcp_sidecar::engine::Engine;
use mcp_sidecar::settings::Settings;
use serde_json::{Value, json};

use crate::support::harness::{demo, fixture};
use crate::support::{Harness, Home, attach_to};

async fn desk() -> Harness {
    let mut desk = Harness::new(json!({ "servers": { "demo": demo(json!({})) } }), json!({})).await;
    desk.until("demo", "connected").await;
    desk
}

#[tokio::test]
async fn the_users_own_server_never_says_that_it_needs_trust() {
    let mut desk = Harness::new(json!({ "servers": { "demo": demo(json!({})) } }), json!({})).await;
    loop {
        let change = desk.editor.notification("mcp/serverChanged").await;
        assert_eq!(change["server"]["needsTrust"], json!(false), "{change}");
        if change["server"]["status"] == "connected" {
            break;
        }
    }
}

#[tokio::test]
async fn a_call_does_not_start_a_server_that_was_stopped_by_hand() {
    let mut desk = desk().await;
    desk.run("mcp.server.stop", json!({ "server": "demo" })).await;
    let error = desk.call("mcp__demo__echo", json!({ "text": "hello" })).await.unwrap_err();
    assert_eq!(error["data"], json!({ "kind": "connection-failed", "server": "demo", "tool": "echo" }), "{error}");
    assert!(error["message"].as_str().unwrap().contains("the server is stopped; start it first"), "{error}");
    assert_eq!(desk.status("demo").await["status"], "stopped");
}

#[tokio::test]
async fn stopping_a_server_ends_the_calls_that_wait_for_an_answer() {
    let mut desk = desk().await;
    let call = desk.begin_call("mcp__demo__echo", json!({ "text": "hello" }));
    desk.approvals("tool", 1).await;
    desk.run("mcp.server.stop", json!({ "server": "demo" })).await;
    assert_eq!(desk.editor.answer(call).await.unwrap_err()["data"]["kind"], "connection-failed");
    desk.approvals("tool", 0).await;
    assert_eq!(desk.status("demo").await["status"], "stopped");
}

#[tokio::test]
async fn a_record_of_a_call_that_never_ran_holds_all_fields_and_says_what_refused_it() {
    let mut desk = desk().await;
    desk.call("mcp__demo__add", json!({ "a": "one" })).await.unwrap_err();
    desk.call("mcp__demo__nothing", json!({})).await.unwrap_err();
    let call = desk.begin_call("mcp__demo__echo", json!({ "text": "hello" }));
    desk.approvals("tool", 1).await;
    desk.editor.cancel(call);
    desk.editor.answer(call).await.unwrap_err();
    desk.approvals("tool", 0).await;
    let mut calls = desk.run("mcp.calls", json!({})).await["calls"].clone();
    while calls.as_array().unwrap().len() < 3 {
        calls = desk.run("mcp.calls", json!({})).await["calls"].clone();
    }
    let told: Vec<Value> = calls
        .as_array()
        .unwrap()
        .iter()
        .map(|call| json!([call["tool"], call["decision"], call["decidedBy"], call.get("result")]))
        .collect();
    let expected = json!([
        ["echo", "deny", "cancelled", null],
        ["nothing", "deny", "not-found", null],
        ["add", "deny", "invalid-arguments", null]
    ]);
    assert_eq!(json!(told), expected, "{calls}");
    assert!(calls.as_array().unwrap().iter().all(|call| call.get("result").is_some()), "{calls}");
    let metrics = desk.run("mcp.metrics", json!({ "server": "demo" })).await;
    assert_eq!(metrics["servers"][0]["tools"], json!([]), "what never ran has no duration");
}

#[tokio::test]
async fn calls_are_found_by_the_short_and_by_the_whole_name_of_a_tool() {
    let mut desk = desk().await;
    let call = json!({ "tool": "mcp__demo__echo", "arguments": { "text": "a" }, "decision": "allow-once" });
    desk.run("mcp.tool.call", call).await;
    for tool in ["echo", "mcp__demo__echo"] {
        let calls = desk.run("mcp.calls", json!({ "tool": tool })).await;
        assert_eq!(calls["calls"].as_array().unwrap().len(), 1, "{tool}");
    }
    let calls = desk.run("mcp.calls", json!({ "tool": "mcp__other__echo" })).await;
    assert_eq!(calls["calls"], json!([]));
}

#[tokio::test]
async fn an_answer_that_counts_for_longer_shows_in_the_level_and_its_explanation() {
    let mut desk = desk().await;
    let call = json!({ "tool": "mcp__demo__echo", "arguments": { "text": "a" }, "decision": "allow-session" });
    desk.run("mcp.tool.call", call).await;
    let grant = desk.run("mcp.grants", json!({})).await["grants"][0]["id"].as_str().unwrap().to_owned();
    let policy = desk.run("mcp.policies", json!({ "tool": "mcp__demo__echo" })).await["policies"][0].clone();
    assert_eq!(
        (&policy["level"], &policy["source"]),
        (&json!("allow-session"), &json!(format!("grant {grant}"))),
        "{policy}"
    );
    assert_eq!(policy["hides"][0]["level"], "require-approval", "{policy}");
    let level = async |desk: &mut Harness| {
        let tools = desk.run("mcp.tools", json!({})).await;
        let tool = tools["tools"].as_array().unwrap().iter().find(|tool| tool["tool"] == "echo").unwrap();
        tool["level"].clone()
    };
    assert_eq!(level(&mut desk).await, "allow-session");
    desk.run("mcp.grant.revoke", json!({ "id": grant })).await;
    assert_eq!(level(&mut desk).await, "require-approval");
}

#[tokio::test]
async fn a_resource_a_prompt_and_an_entry_that_are_not_there_are_not_found() {
    let mut desk = desk().await;
    for (name, params) in [
        ("mcp.resource.read", json!({ "server": "demo", "uri": "demo://nothing" })),
        ("mcp.prompt.get", json!({ "server": "demo", "name": "nothing" })),
        ("mcp.tool.policy", json!({ "server": "demo", "tool": "echo", "level": "deny", "scope": "project" })),
    ] {
        let error = desk.editor.command(name, params).await.unwrap_err();
        assert_eq!(error["data"], json!({ "kind": "not-found", "server": "demo" }), "{name}: {error}");
    }
}

#[tokio::test]
async fn a_tool_that_changes_while_its_question_waits_is_asked_about_anew_with_the_difference() {
    let mut desk = Harness::new(json!({ "servers": { "turncoat": fixture("turncoat.py") } }), json!({})).await;
    desk.until("turncoat", "connected").await;
    let waiting = desk.begin_call("mcp__turncoat__greet", json!({}));
    let first = desk.approvals("tool", 1).await.remove(0);
    assert_eq!(first.get("diff"), None);
    let call = json!({ "tool": "mcp__turncoat__greet", "decision": "allow-once" });
    desk.run("mcp.tool.call", call).await;
    let second = loop {
        let now = desk.approvals("tool", 1).await.remove(0);
        if now["id"] != first["id"] {
            break now;
        }
        desk.editor.notification("mcp/approvalsChanged").await;
    };
    assert!(second["diff"].as_str().unwrap().contains("sends your files away"), "{second}");
    assert!(second["detail"].as_str().unwrap().contains("while you were asked"), "{second}");
    desk.resolve(&second, "deny").await;
    assert_eq!(desk.editor.answer(waiting).await.unwrap_err()["data"]["kind"], "denied");
}

#[tokio::test]
async fn an_address_that_anybody_can_listen_to_is_warned_about_before_the_server_connects() {
    let user = json!({ "servers": { "far": { "url": "http://mcp.example.test/mcp", "enabled": false } } });
    let mut desk = Harness::new(user, json!({})).await;
    let warnings = desk.status("far").await["warnings"].clone();
    assert_eq!(
        warnings,
        json!(["unencrypted http to mcp.example.test:80: others on the network can read and change the traffic"])
    );
}

#[tokio::test]
async fn what_a_server_says_about_itself_is_told_without_what_cannot_be_seen() {
    let mut server = fixture("faulty.py");
    server["args"].as_array_mut().unwrap().push(json!("sly"));
    let mut desk = Harness::new(json!({ "servers": { "sly": server } }), json!({})).await;
    let status = desk.until("sly", "connected").await;
    let tools = desk.run("mcp.tools", json!({})).await;
    let told: Vec<&str> =
        tools["tools"].as_array().unwrap().iter().map(|tool| tool["description"].as_str().unwrap()).collect();
    assert_eq!(told, ["plain ⟨U+202E⟩words red"]);
    assert_eq!(status["tools"][0]["description"], "plain ⟨U+202E⟩words red");
    let warnings = status["warnings"].to_string();
    assert!(warnings.contains("ignored tool `ec⟨U+200B⟩ho`: its name contains invisible characters"), "{warnings}");
}

#[tokio::test]
async fn an_answer_with_nothing_in_it_ends_the_call_at_once() {
    let mut server = fixture("faulty.py");
    server["args"].as_array_mut().unwrap().push(json!("hollow"));
    let mut desk = Harness::new(json!({ "servers": { "hollow": server } }), json!({})).await;
    desk.until("hollow", "connected").await;
    let call = json!({ "tool": "mcp__hollow__echo", "decision": "allow-once" });
    let (kind, message) = desk.fails("mcp.tool.call", call).await;
    assert_eq!(kind, "protocol-error");
    assert!(message.contains("neither a result nor an error"), "{message}");
}

#[tokio::test]
async fn closing_the_message_of_a_call_denies_it_if_no_editor_has_a_prompt() {
    let home = Home::new();
    std::fs::create_dir_all(home.paths().config_dir).unwrap();
    let config = json!({ "servers": { "demo": demo(json!({})) } });
    std::fs::write(home.paths().user_config(), config.to_string()).unwrap();
    let engine = Engine::start(home.paths(), Settings::default());
    let (mut plain, _end) = attach_to(&engine);
    plain.ignore("textDocument/publishDiagnostics");
    plain.handle("window/showMessageRequest", |_| Ok(Value::Null));
    plain.initialize(&[&home.project()], json!({})).await;
    let call = json!({ "tool": "mcp__demo__echo", "arguments": { "text": "hello" } });
    let error = plain.command("mcp.tool.call", call).await.unwrap_err();
    assert_eq!(error["data"]["kind"], "denied", "{error}");
    assert!(error["message"].as_str().unwrap().contains("the message was closed"), "{error}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_program_of_the_project_that_was_replaced_waits_for_trust_when_it_is_started_again() {
    use std::os::unix::fs::PermissionsExt;

    let mut desk = Harness::new(json!({}), json!({ "servers": { "own": { "command": "./server" } } })).await;
    let program = desk.home.project().join("server");
    let write = |remark: &str| {
        let new = program.with_extension("new");
        let text = format!("#!/bin/sh\n# {remark}\nexec '{}' demo-server\n", env!("CARGO_BIN_EXE_mcp-sidecar"));
        std::fs::write(&new, text).unwrap();
        std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::rename(&new, &program).unwrap();
    };
    write("as trusted");
    desk.run("mcp.server.trust", json!({ "server": "own", "trusted": true })).await;
    desk.until("own", "connected").await;
    write("another one");
    let status = desk.run("mcp.server.restart", json!({ "server": "own" })).await["servers"][0].clone();
    assert_eq!((&status["status"], &status["reason"]), (&json!("pending"), &json!("awaiting-trust")), "{status}");
    assert!(status["trustDiff"].as_str().unwrap().contains("content server"), "{status}");
    desk.approvals("trust", 1).await;
    let status = desk.run("mcp.server.trust", json!({ "server": "own", "trusted": true })).await;
    assert_eq!(status["server"]["needsTrust"], json!(false), "{status}");
    desk.until("own", "connected").await;
    let status = desk.run("mcp.server.trust", json!({ "server": "own", "trusted": false })).await["server"].clone();
    assert_eq!(status["reason"], "awaiting-trust", "{status}");
    assert_eq!(status.get("pid"), None, "{status}");
    desk.run("mcp.config.reload", json!({})).await;
    assert_eq!(desk.status("own").await["reason"], "awaiting-trust");
}

#[tokio::test]
async fn settings_that_do_not_count_are_told_to_the_editor() {
    let home = Home::new();
    std::fs::create_dir_all(home.paths().config_dir).unwrap();
    std::fs::write(home.paths().settings_file(), "nonsense = 1\n").unwrap();
    let engine = Engine::start(home.paths(), Settings::default());
    let (mut editor, _end) = attach_to(&engine);
    editor.initialize(&[&home.project()], json!({})).await;
    let message = editor.notification("window/showMessage").await;
    assert!(message["message"].as_str().unwrap().ends_with("config.toml: unknown setting `nonsense`"), "{message}");
}

#[tokio::test]
async fn a_state_database_that_was_set_aside_is_told_to_the_editor() {
    let home = Home::new();
    std::fs::create_dir_all(&home.paths().state_dir).unwrap();
    std::fs::write(home.paths().database(), "no database at all, and long enough to look into".repeat(100)).unwrap();
    let engine = Engine::start(home.paths(), Settings::default());
    let (mut editor, _end) = attach_to(&engine);
    editor.initialize(&[&home.project()], json!({})).await;
    let message = editor.notification("window/showMessage").await;
    assert!(message["message"].as_str().unwrap().contains("it was moved to"), "{message}");
}
