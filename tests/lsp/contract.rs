//! Edge cases of the wire contract: what an error names, what a record contains, which level is reported.

use mcp_sidecar::engine::Engine;
use mcp_sidecar::model::{Decision, Level};
use mcp_sidecar::protocol::commands::{
    Calls, ConfigReload, GrantRevoke, Grants, Metrics, Policies, ServerTrust, ToolCall, Tools,
};
use mcp_sidecar::protocol::errors::ErrorKind;
use mcp_sidecar::protocol::events::{ApprovalsChanged, ServerChanged};
use mcp_sidecar::protocol::types::{ApprovalKind, Status};
use mcp_sidecar::settings::Settings;
use serde_json::{Value, json};

use crate::support::commands::{distrust, name, restart, stop, tool_call};
use crate::support::harness::{demo, faulty};
use crate::support::{Harness, Home, attach_to};

async fn harness() -> Harness {
    let mut harness = Harness::new(json!({ "servers": { "demo": demo(json!({})) } }), json!({})).await;
    harness.until("demo", Status::Connected).await;
    harness
}

#[tokio::test]
async fn the_users_own_server_never_says_that_it_needs_trust() {
    let mut harness = Harness::new(json!({ "servers": { "demo": demo(json!({})) } }), json!({})).await;
    loop {
        let change = harness.editor.event::<ServerChanged>().await;
        assert!(!change.server.needs_trust, "{change:?}");
        if change.server.status == Status::Connected {
            break;
        }
    }
}

#[tokio::test]
async fn a_call_does_not_start_a_server_that_was_stopped_by_hand() {
    let mut harness = harness().await;
    harness.run(stop("demo")).await;
    let error = harness.call("mcp__demo__echo", json!({ "text": "hello" })).await.unwrap_err();
    assert_eq!(json!(error.data), json!({ "kind": "connection-failed", "server": "demo", "tool": "echo" }), "{error}");
    assert!(error.message.contains("the server is stopped; start it first"), "{error}");
    assert_eq!(harness.status("demo").await.status, Status::Stopped);
}

#[tokio::test]
async fn stopping_a_server_ends_the_calls_that_wait_for_an_answer() {
    let mut harness = harness().await;
    let call = harness.begin_call("mcp__demo__echo", json!({ "text": "hello" }));
    harness.approvals(ApprovalKind::Tool, 1).await;
    harness.run(stop("demo")).await;
    assert_eq!(harness.editor.answer(call).await.unwrap_err().kind(), Some(ErrorKind::ConnectionFailed));
    harness.approvals(ApprovalKind::Tool, 0).await;
    assert_eq!(harness.status("demo").await.status, Status::Stopped);
}

#[tokio::test]
async fn a_record_of_a_call_that_never_ran_holds_all_fields_and_says_what_refused_it() {
    let mut harness = harness().await;
    harness.call("mcp__demo__add", json!({ "a": "one" })).await.unwrap_err();
    harness.call("mcp__demo__nothing", json!({})).await.unwrap_err();
    let call = harness.begin_call("mcp__demo__echo", json!({ "text": "hello" }));
    harness.approvals(ApprovalKind::Tool, 1).await;
    call.cancel();
    harness.editor.answer(call).await.unwrap_err();
    harness.approvals(ApprovalKind::Tool, 0).await;
    let mut calls = harness.run(Calls::default()).await.calls;
    while calls.len() < 3 {
        calls = harness.run(Calls::default()).await.calls;
    }
    let listed: Vec<_> = calls.iter().map(|call| [&*call.tool, &*call.decision, &*call.decided_by]).collect();
    let expected =
        [["echo", "deny", "cancelled"], ["nothing", "deny", "not-found"], ["add", "invalid", "invalid-arguments"]];
    assert_eq!(listed, expected, "{calls:?}");
    assert!(calls.iter().all(|call| call.result == Some(Value::Null)), "{calls:?}");
    let metrics = harness.run(Metrics { server: Some(name("demo")) }).await;
    assert_eq!(metrics.servers[0].tools, [], "what never ran has no duration");
}

#[tokio::test]
async fn calls_are_found_by_the_short_and_by_the_whole_name_of_a_tool() {
    let mut harness = harness().await;
    let call = ToolCall { decision: Some(Decision::AllowOnce), ..tool_call("mcp__demo__echo", json!({ "text": "a" })) };
    harness.run(call).await;
    for tool in ["echo", "mcp__demo__echo"] {
        let calls = harness.run(Calls { tool: Some(tool.to_owned()), ..Default::default() }).await;
        assert_eq!(calls.calls.len(), 1, "{tool}");
    }
    let calls = harness.run(Calls { tool: Some("mcp__other__echo".to_owned()), ..Default::default() }).await;
    assert_eq!(calls.calls, []);
}

#[tokio::test]
async fn an_answer_that_counts_for_longer_shows_in_the_level_and_its_explanation() {
    let mut harness = harness().await;
    let call =
        ToolCall { decision: Some(Decision::AllowSession), ..tool_call("mcp__demo__echo", json!({ "text": "a" })) };
    harness.run(call).await;
    let grant = harness.run(Grants {}).await.grants.remove(0).id;
    let policy = harness
        .run(Policies { tool: Some("mcp__demo__echo".to_owned()), ..Default::default() })
        .await
        .policies
        .remove(0);
    assert_eq!((policy.level, policy.source.as_str()), (Level::AllowSession, &*format!("grant {grant}")), "{policy:?}");
    assert_eq!(policy.hides[0].level, Level::RequireApproval, "{policy:?}");
    let level = async |harness: &mut Harness| {
        let tools = harness.run(Tools::default()).await;
        let tool = tools.tools.iter().find(|tool| tool.tool == "echo").unwrap();
        tool.level
    };
    assert_eq!(level(&mut harness).await, Level::AllowSession);
    harness.run(GrantRevoke { id: Some(grant.to_owned()), ..Default::default() }).await;
    assert_eq!(level(&mut harness).await, Level::RequireApproval);
}

#[tokio::test]
async fn a_resource_a_prompt_and_an_entry_that_are_not_there_are_not_found() {
    let mut harness = harness().await;
    for (name, params) in [
        ("mcp.resource.read", json!({ "server": "demo", "uri": "demo://nothing" })),
        ("mcp.prompt.get", json!({ "server": "demo", "name": "nothing" })),
        ("mcp.tool.policy", json!({ "server": "demo", "tool": "echo", "scope": "project" })),
    ] {
        let error = harness.editor.raw_command(name, params).await.unwrap_err();
        assert_eq!(json!(error.data), json!({ "kind": "not-found", "server": "demo" }), "{name}: {error}");
    }
}

#[tokio::test]
async fn a_tool_that_changes_while_its_question_waits_is_asked_about_again_with_a_diff() {
    let mut harness = Harness::new(json!({ "servers": { "turncoat": faulty("turncoat") } }), json!({})).await;
    harness.until("turncoat", Status::Connected).await;
    let waiting = harness.begin_call("mcp__turncoat__greet", json!({}));
    let first = harness.approvals(ApprovalKind::Tool, 1).await.remove(0);
    assert_eq!(first.diff, None);
    let call = ToolCall { decision: Some(Decision::AllowOnce), ..tool_call("mcp__turncoat__greet", json!({})) };
    harness.run(call).await;
    let second = loop {
        let now = harness.approvals(ApprovalKind::Tool, 1).await.remove(0);
        if now.id != first.id {
            break now;
        }
        harness.editor.event::<ApprovalsChanged>().await;
    };
    assert!(second.diff.as_deref().unwrap().contains("sends your files away"), "{second:?}");
    assert!(second.detail.contains("while you were being asked"), "{second:?}");
    harness.resolve(&second, "deny").await;
    assert_eq!(harness.editor.answer(waiting).await.unwrap_err().kind(), Some(ErrorKind::Denied));
}

#[tokio::test]
async fn an_address_that_anybody_can_listen_to_is_warned_about_before_the_server_connects() {
    let user = json!({ "servers": { "far": { "url": "http://mcp.example.test/mcp", "enabled": false } } });
    let mut harness = Harness::new(user, json!({})).await;
    let warnings = harness.status("far").await.warnings;
    assert_eq!(
        warnings,
        ["unencrypted http to mcp.example.test:80: others on the network can read and change the traffic"]
    );
}

#[tokio::test]
async fn hidden_characters_in_the_texts_of_a_server_are_made_visible() {
    let mut harness = Harness::new(json!({ "servers": { "sly": faulty("sly") } }), json!({})).await;
    let status = harness.until("sly", Status::Connected).await;
    let tools = harness.run(Tools::default()).await;
    let listed: Vec<&str> = tools.tools.iter().map(|tool| tool.description.as_str()).collect();
    assert_eq!(listed, ["plain ⟨U+202E⟩words ⟨U+001B⟩[31mred⟨U+001B⟩[0m"]);
    assert_eq!(status.tools[0].description.as_str(), "plain ⟨U+202E⟩words ⟨U+001B⟩[31mred⟨U+001B⟩[0m");
    let warnings = status.warnings.join("\n");
    assert!(warnings.contains("ignored tool `ec⟨U+200B⟩ho`: its name contains invisible characters"), "{warnings}");
}

#[tokio::test]
async fn an_answer_with_nothing_in_it_ends_the_call_at_once() {
    let mut harness = Harness::new(json!({ "servers": { "hollow": faulty("hollow") } }), json!({})).await;
    harness.until("hollow", Status::Connected).await;
    let call = ToolCall { decision: Some(Decision::AllowOnce), ..tool_call("mcp__hollow__echo", json!({})) };
    let error = harness.fails(call).await;
    assert_eq!(error.kind(), Some(ErrorKind::ProtocolError));
    assert!(error.message.contains("neither a result nor an error"), "{error}");
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
    let call = tool_call("mcp__demo__echo", json!({ "text": "hello" }));
    let error = plain.call(call).await.unwrap_err();
    assert_eq!(error.kind(), Some(ErrorKind::Denied), "{error}");
    assert!(error.message.contains("the message was closed"), "{error}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_program_of_the_project_that_was_replaced_waits_for_trust_when_it_is_started_again() {
    use std::os::unix::fs::PermissionsExt;

    let mut harness = Harness::new(json!({}), json!({ "servers": { "own": { "command": "./server" } } })).await;
    let program = harness.home.project().join("server");
    let write = |remark: &str| {
        let new = program.with_extension("new");
        let text = format!("#!/bin/sh\n# {remark}\nexec '{}' demo-server\n", env!("CARGO_BIN_EXE_mcp-sidecar"));
        std::fs::write(&new, text).unwrap();
        std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::rename(&new, &program).unwrap();
    };
    write("as trusted");
    // The question is opened again, because it showed a program that did not exist.
    harness.run(ServerTrust::ask(name("own"))).await;
    harness.trust("own").await;
    harness.until("own", Status::Connected).await;
    write("another one");
    let status = harness.run(restart("own")).await.servers.remove(0);
    assert_eq!((status.status, status.reason.as_deref()), (Status::Pending, Some("awaiting-trust")), "{status:?}");
    assert!(status.trust_diff.as_deref().unwrap().contains("content server"), "{status:?}");
    harness.approvals(ApprovalKind::Trust, 1).await;
    let status = harness.trust("own").await;
    assert!(!status.needs_trust, "{status:?}");
    harness.until("own", Status::Connected).await;
    let status = harness.run(distrust("own")).await.server.clone();
    assert_eq!(status.reason.as_deref(), Some("awaiting-trust"), "{status:?}");
    assert_eq!(status.pid, None, "{status:?}");
    harness.run(ConfigReload {}).await;
    assert_eq!(harness.status("own").await.reason.as_deref(), Some("awaiting-trust"));
}

#[tokio::test]
async fn ignored_settings_are_reported_to_the_editor() {
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
async fn a_state_database_that_was_moved_aside_is_reported_to_the_editor() {
    let home = Home::new();
    std::fs::create_dir_all(&home.paths().state_dir).unwrap();
    std::fs::write(home.paths().database(), "no database at all, and long enough to look into".repeat(100)).unwrap();
    let engine = Engine::start(home.paths(), Settings::default());
    let (mut editor, _end) = attach_to(&engine);
    editor.initialize(&[&home.project()], json!({})).await;
    let message = editor.notification("window/showMessage").await;
    assert!(message["message"].as_str().unwrap().contains("it was moved to"), "{message}");
}
