//! Tools behind the one door, as an editor sees them: levels, questions, answers, records.

use std::time::Duration;

use mcp_sidecar::model::{CallId, Decision, Level, Requester, RequesterKind, Scope};
use mcp_sidecar::protocol::commands::{
    ApprovalResolve, Approvals, Calls, Config, ConfigReload, GrantRevoke, Grants, Policies, ServerMove, ServerRemove,
    ToolCall, ToolPolicy, Tools,
};
use mcp_sidecar::protocol::errors::ErrorKind;
use mcp_sidecar::protocol::events::{ApprovalsChanged, ServerChanged};
use mcp_sidecar::protocol::types::{ApprovalKind, ShownScope, Status};
use mcp_sidecar::settings::Settings;
use serde_json::{Value, json};

use crate::support::Harness;
use crate::support::commands::{name, object, resolve, text, tool_call};
use crate::support::harness::{demo, faulty, open_editor};

async fn harness(tools: Value) -> Harness {
    let mut harness = Harness::new(json!({ "servers": { "demo": demo(tools) } }), json!({})).await;
    harness.until("demo", Status::Connected).await;
    harness
}

#[tokio::test]
async fn what_is_allowed_runs_and_what_is_denied_does_not_whatever_the_user_says() {
    let mut harness = harness(json!({ "echo": "allow-always", "add": "deny", "roll_dice": "disable" })).await;
    let result = harness.call("mcp__demo__echo", json!({ "text": "hello" })).await.unwrap();
    assert_eq!(result.blocks(), [json!({ "type": "text", "text": "hello" })]);
    assert_eq!((result.is_error, result.decision.as_str()), (false, "allow-always"));
    for (tool, kind) in [("mcp__demo__add", ErrorKind::Denied), ("mcp__demo__roll_dice", ErrorKind::Disabled)] {
        let call = ToolCall { decision: Some(Decision::AllowAlways), ..tool_call(tool, json!({ "a": 1, "b": 2 })) };
        assert_eq!(harness.fails(call).await.kind(), Some(kind), "{tool}");
    }
    let tools = harness.run(Tools::default()).await;
    let names: Vec<&str> = tools.tools.iter().map(|tool| tool.tool.as_str()).collect();
    assert!(names.contains(&"add") && !names.contains(&"roll_dice"), "denied is shown, disabled is not: {names:?}");
    assert!(harness.approvals(ApprovalKind::Tool, 0).await.is_empty(), "nobody was asked");
}

#[tokio::test]
async fn invalid_arguments_are_reported_by_path_before_anything_is_sent() {
    let mut harness = harness(json!({ "*": "allow-always" })).await;
    let error = harness.call("mcp__demo__add", json!({ "a": "one", "b": 2 })).await.unwrap_err();
    assert_eq!((error.code, error.kind()), (-32602, Some(ErrorKind::InvalidArguments)));
    assert_eq!(error.data.unwrap().detail.unwrap()[0].path, "/a");
}

#[tokio::test]
async fn sixty_four_calls_wait_at_once_and_each_answer_reaches_its_own() {
    let mut harness = harness(json!({})).await;
    let calls: Vec<_> = (0..64).map(|n| harness.begin_call("mcp__demo__add", json!({ "a": n, "b": 1 }))).collect();
    let waiting = harness.approvals(ApprovalKind::Tool, 64).await;
    assert_eq!(harness.status("demo").await.status, Status::Connected, "everything else goes on meanwhile");
    for approval in &waiting {
        let number = approval.arguments.as_ref().unwrap()["a"].as_i64().unwrap();
        harness.resolve(approval, if number % 2 == 0 { "allow-once" } else { "deny" }).await;
    }
    for (number, call) in calls.into_iter().enumerate() {
        match harness.editor.answer(call).await {
            Ok(result) => assert_eq!(result.blocks()[0]["text"], (number + 1).to_string()),
            Err(error) => assert_eq!((number % 2, error.kind()), (1, Some(ErrorKind::Denied))),
        }
    }
}

#[tokio::test]
async fn a_question_shows_what_will_run_and_is_answered_once() {
    let mut harness = harness(json!({})).await;
    let call = ToolCall {
        requester: Some(Requester { kind: RequesterKind::Agent, name: "codex".to_owned() }),
        ..tool_call("mcp__demo__take_note", json!({ "text": "milk" }))
    };
    let call = harness.editor.start(call);
    let approval = harness.approvals(ApprovalKind::Tool, 1).await.remove(0);
    assert_eq!((approval.server.as_str(), approval.tool.as_deref()), ("demo", Some("take_note")));
    assert_eq!(approval.arguments, Some(json!({ "text": "milk" })));
    assert_eq!(json!(approval.requester), json!({ "kind": "agent", "name": "codex" }));
    assert_eq!(approval.title, "The agent `codex` wants to run `take_note` on `demo`");
    let note = ApprovalResolve { note: Some("not today".to_owned()), ..resolve(&approval, "deny") };
    harness.run(note.clone()).await;
    let error = harness.editor.answer(call).await.unwrap_err();
    assert!(error.message.contains("not today"), "{error}");
    assert_eq!(harness.fails(note).await.kind(), Some(ErrorKind::NotFound));
    let record = harness.run(Calls { failed: true, ..Default::default() }).await.calls.remove(0);
    assert_eq!(
        (record.decision.as_str(), record.decided_by.as_str(), record.success),
        ("deny", "user in an editor", false)
    );
}

#[tokio::test]
async fn silence_means_no() {
    let mut settings = Settings::default();
    settings.approvals.timeout = Duration::from_millis(50);
    let user = json!({ "servers": { "demo": demo(json!({})) } });
    let mut harness = Harness::with(user, json!({}), settings).await;
    harness.until("demo", Status::Connected).await;
    let error = harness.call("mcp__demo__add", json!({ "a": 1, "b": 2 })).await.unwrap_err();
    assert_eq!(error.kind(), Some(ErrorKind::Denied));
    assert!(error.message.contains("nobody answered within"), "{error}");
}

#[tokio::test]
async fn a_cancelled_call_takes_its_question_back() {
    let mut harness = harness(json!({})).await;
    let call = harness.begin_call("mcp__demo__add", json!({ "a": 1, "b": 2 }));
    harness.approvals(ApprovalKind::Tool, 1).await;
    call.cancel();
    assert_eq!(harness.editor.answer(call).await.unwrap_err().code, -32800);
    harness.approvals(ApprovalKind::Tool, 0).await;
}

#[tokio::test]
async fn all_editors_see_a_question_and_the_first_answer_counts() {
    let mut harness = harness(json!({})).await;
    let mut other = open_editor(&harness.home, &harness.engine).await;
    let call = harness.begin_call("mcp__demo__add", json!({ "a": 1, "b": 2 }));
    let shown = other
        .event_where::<ApprovalsChanged>(|changed| {
            changed.approvals.first().is_some_and(|first| first.kind == ApprovalKind::Tool)
        })
        .await;
    let id = shown.approvals[0].id.clone();
    other.call(ApprovalResolve::one(&id, "allow-once")).await.unwrap();
    assert_eq!(harness.editor.answer(call).await.unwrap().blocks()[0]["text"], "3");
    harness.approvals(ApprovalKind::Tool, 0).await;
}

#[tokio::test]
async fn a_call_of_an_agent_is_denied_when_the_last_editor_goes() {
    let harness = harness(json!({})).await;
    let engine = harness.engine.clone();
    let wish = mcp_sidecar::engine::gate::CallRequest {
        kind: Default::default(),
        id: CallId::random(),
        tool: mcp_sidecar::model::ToolId::parse("mcp__demo__add").unwrap(),
        arguments: serde_json::from_value(json!({ "a": 1, "b": 2 })).unwrap(),
        decision: None,
        must_ask: None,
        requester: serde_json::from_value(json!({ "kind": "agent", "name": "codex" })).unwrap(),
        connection: None,
        workflow: None,
        timeout: None,
        meta: Default::default(),
        unknown_fields: Default::default(),
        progress: None,
        turn: Default::default(),
    };
    let mut questions = engine.approvals().subscribe();
    let call = tokio::spawn(async move { engine.call(wish).await });
    questions.wait_for(|waiting| !waiting.is_empty()).await.unwrap();
    let Harness { editor, home: _home, .. } = harness;
    drop(editor);
    let error = call.await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.to_string().contains("nobody could be asked")), ("denied", true), "{error}");
}

#[tokio::test]
async fn a_project_grant_lets_later_calls_pass_and_can_be_taken_back() {
    let mut harness = harness(json!({})).await;
    let add = json!({ "a": 1, "b": 2 });
    let call = harness.begin_call("mcp__demo__add", add.clone());
    let approval = harness.approvals(ApprovalKind::Tool, 1).await.remove(0);
    harness.resolve(&approval, "allow-project").await;
    harness.editor.answer(call).await.unwrap();
    assert_eq!(harness.call("mcp__demo__add", add.clone()).await.unwrap().decision, "allow-project");
    let grants = harness.run(Grants {}).await;
    assert_eq!((grants.grants[0].tool.as_str(), grants.grants[0].scope.as_str()), ("add", "project"));
    assert_eq!(
        harness.run(GrantRevoke { id: Some(grants.grants[0].id.clone()), ..Default::default() }).await.revoked,
        1
    );
    let _call = harness.begin_call("mcp__demo__add", add);
    harness.approvals(ApprovalKind::Tool, 1).await;
}

#[tokio::test]
async fn a_tool_that_changes_loses_what_it_was_allowed_and_the_difference_is_shown() {
    let user = json!({ "servers": { "turncoat": faulty("turncoat") } });
    let mut harness = Harness::new(user, json!({})).await;
    harness.until("turncoat", Status::Connected).await;
    let call = harness.begin_call("mcp__turncoat__greet", json!({}));
    let approval = harness.approvals(ApprovalKind::Tool, 1).await.remove(0);
    harness.resolve(&approval, "allow-always").await;
    harness.editor.answer(call).await.unwrap();
    loop {
        let tools = harness.run(Tools::default()).await;
        if tools.tools[0].changed {
            break;
        }
        harness.editor.event::<ServerChanged>().await;
    }
    let _call = harness.begin_call("mcp__turncoat__greet", json!({}));
    let approval = harness.approvals(ApprovalKind::Tool, 1).await.remove(0);
    assert!(approval.diff.as_deref().unwrap().contains("sends your files away"), "{approval:?}");
}

#[tokio::test]
async fn a_level_may_depend_on_the_arguments_and_says_where_it_comes_from() {
    let rule = json!([{ "when": { "text": "open *" }, "level": "allow-session" }, "deny"]);
    let mut harness = harness(json!({ "echo": rule })).await;
    harness.call("mcp__demo__echo", json!({ "text": "open sesame" })).await.unwrap();
    assert_eq!(
        harness.call("mcp__demo__echo", json!({ "text": "shut" })).await.unwrap_err().kind(),
        Some(ErrorKind::Denied)
    );
    let ask = Policies {
        server: Some(name("demo")),
        tool: Some("echo".to_owned()),
        arguments: Some(object(json!({ "text": "open sesame" }))),
    };
    let policy = harness.run(ask).await.policies.remove(0);
    assert_eq!((policy.tool.as_str(), policy.level), ("mcp__demo__echo", Level::AllowSession));
    assert!(policy.source.contains("tools.echo"), "{policy:?}");
}

#[tokio::test]
async fn an_editor_without_its_own_prompt_is_asked_by_a_message_with_buttons() {
    let harness = harness(json!({})).await;
    let Harness { home, engine, editor } = harness;
    let (mut plain, _end) = crate::support::attach_to(&engine);
    plain.ignore("textDocument/publishDiagnostics");
    plain.handle("window/showMessageRequest", |params| {
        assert!(params["message"].as_str().unwrap().contains("\"a\": 20"), "the arguments are shown: {params}");
        Ok(params["actions"].as_array().unwrap().iter().find(|action| action["title"] == "Allow once").unwrap().clone())
    });
    plain.initialize(&[&home.project()], json!({})).await;
    drop(editor);
    let call = tool_call("mcp__demo__add", json!({ "a": 20, "b": 22 }));
    assert_eq!(plain.call(call).await.unwrap().blocks()[0]["text"], "42");
}

#[tokio::test]
async fn a_tool_switched_off_by_an_answer_stays_off_until_that_is_taken_back() {
    let mut harness = harness(json!({})).await;
    let _call = harness.begin_call("mcp__demo__add", json!({ "a": 1, "b": 2 }));
    let approval = harness.approvals(ApprovalKind::Tool, 1).await.remove(0);
    harness.resolve(&approval, "disable").await;
    harness.approvals(ApprovalKind::Tool, 0).await;
    let grants = loop {
        let grants = harness.run(Grants {}).await;
        if grants.grants.first().is_some_and(|grant| grant.level == Level::Disable) {
            break grants;
        }
        harness.editor.event::<ServerChanged>().await;
    };
    assert_eq!(
        harness.call("mcp__demo__add", json!({ "a": 1, "b": 2 })).await.unwrap_err().kind(),
        Some(ErrorKind::Disabled)
    );
    harness.run(GrantRevoke { id: Some(grants.grants[0].id.clone()), ..Default::default() }).await;
    let _call = harness.begin_call("mcp__demo__add", json!({ "a": 1, "b": 2 }));
    harness.approvals(ApprovalKind::Tool, 1).await;
}

#[tokio::test]
async fn a_level_without_a_scope_goes_to_the_file_that_defines_the_server() {
    let mut harness = Harness::new(
        json!({ "servers": { "mine": demo(json!({})) } }),
        json!({ "servers": { "ours": demo(json!({})) } }),
    )
    .await;
    for (server, scope) in [("mine", ShownScope::User), ("ours", ShownScope::Project)] {
        let offered = harness.status(server).await.level_scopes;
        assert_eq!(offered.iter().map(|place| place.scope).collect::<Vec<_>>(), [scope, ShownScope::Session]);
        for place in offered.iter().map(|place| Some(place.scope)).chain([None]) {
            let (tool, level) = ("echo".to_owned(), Some(Level::Deny));
            let edited = harness.run(ToolPolicy { server: name(server), tool, level, scope: place }).await;
            assert_eq!(edited.scope, place.unwrap_or(scope));
        }
    }
    let project = std::fs::read_to_string(harness.home.project().join("mcp.json")).unwrap();
    assert!(project.contains("deny"), "{project}");
}

#[tokio::test]
async fn the_errors_of_a_config_file_are_listed_with_their_lines() {
    let mut harness = Harness::new(json!({}), json!({})).await;
    std::fs::write(harness.home.project().join("mcp.json"), "{\n  \"servers\": {\n    \"a\": 5,\n  }\n").unwrap();
    harness.run(ConfigReload {}).await;
    let files = harness.run(Config {}).await.files;
    let project = files.iter().find(|file| file.path.ends_with("/mcp.json") && !file.errors.is_empty()).unwrap();
    assert!(!project.valid);
    assert!(project.errors.iter().all(|error| error.line <= 4 && !error.message.is_empty()), "{:?}", project.errors);
}

#[tokio::test]
async fn commands_accept_the_scope_that_a_status_shows() {
    let drive = json!({ "type": "claudeai-proxy", "url": "http://127.0.0.1:1/{id}", "id": "x", "enabled": false });
    let mut harness = Harness::new(json!({ "servers": { "drive": drive } }), json!({})).await;
    let scope = harness.status("drive").await.scope;
    assert_eq!(scope, ShownScope::ClaudeAi);
    let (server, tool, level) = (name("drive"), "*".to_owned(), Some(Level::Deny));
    harness.run(ToolPolicy { server: server.clone(), tool, level, scope: Some(scope) }).await;
    harness.run(ServerMove { server: server.clone(), from: scope, to: Scope::Project, file: None }).await;
    let project = std::fs::read_to_string(harness.home.project().join("mcp.json")).unwrap();
    assert!(project.contains("claudeai-proxy") && project.contains("deny"), "{project}");
    harness.run(ServerRemove { server, scope }).await;
    let project = std::fs::read_to_string(harness.home.project().join("mcp.json")).unwrap();
    assert!(!project.contains("drive"), "{project}");
}

#[tokio::test]
async fn large_arguments_are_listed_by_size_and_digest_and_sent_on_demand() {
    let mut harness = harness(json!({})).await;
    let arguments = json!({ "text": "x".repeat(100_000) });
    let call = harness.begin_call("mcp__demo__echo", arguments.clone());
    let listed = harness.approvals(ApprovalKind::Tool, 1).await.remove(0);
    assert_eq!(listed.arguments, None);
    let large = listed.large_arguments.as_ref().unwrap();
    assert_eq!((large.bytes, large.digest.len()), (arguments.to_string().len(), 64));
    let words = format!("SHA-256 {}). To read them, run `mcp-sidecar approvals {}`", large.digest, listed.id);
    assert!(listed.detail.contains(&words), "{}", listed.detail);
    let all = harness.run(Approvals { id: Some(listed.id.clone()) }).await.approvals;
    assert_eq!((all.len(), &all[0].arguments, &all[0].large_arguments), (1, &Some(arguments), &None));
    harness.resolve(&listed, "allow-once").await;
    assert_eq!(text(&harness.editor.answer(call).await.unwrap()).len(), 100_000);
    let unknown = harness.fails(Approvals { id: Some(listed.id) }).await;
    assert_eq!(unknown.kind(), Some(ErrorKind::NotFound));
}
