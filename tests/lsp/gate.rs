//! What a call comes to at the gate, where only one condition decides.

use futures::FutureExt;
use mcp_sidecar::engine::Engine;
use mcp_sidecar::model::{Decision, Level, Scope};
use mcp_sidecar::protocol::commands::{Approvals, Calls, ToolCall};
use mcp_sidecar::protocol::errors::ErrorKind;
use mcp_sidecar::protocol::events::{ApprovalsChanged, ServerChanged};
use mcp_sidecar::protocol::types::{ApprovalKind, Status};
use mcp_sidecar::settings::Settings;
use serde_json::json;

use crate::support::commands::{policy, restart, start, stop, text, tool_call};
use crate::support::harness::{Harness, demo, faulty, open_editor};

/// A server that answers `initialize` when the file `gate` in this folder exists.
fn gated(folder: &std::path::Path) -> serde_json::Value {
    let mut server = faulty("gate");
    server["args"].as_array_mut().unwrap().push(json!(folder.join("gate")));
    server
}

/// A call that reached its server may have been carried out.
#[tokio::test]
async fn an_allowed_call_that_was_sent_is_neither_sent_nor_asked_again() {
    let calls = tempfile::NamedTempFile::new().unwrap();
    let mut server = faulty(&json!({ "tools/call": [{ "exit": 3 }] }).to_string());
    server["env"] = json!({ "CALLS": calls.path() });
    let mut harness = Harness::new(json!({ "servers": { "bad": server } }), json!({})).await;
    harness.until("bad", Status::Connected).await;
    let call = harness.begin_call("mcp__bad__echo", json!({ "text": "once" }));
    let question = harness.approvals(ApprovalKind::Tool, 1).await.remove(0);
    harness.resolve(&question, "allow-once").await;
    let failed = harness.editor.answer(call).await.unwrap_err();
    assert!(failed.message.contains("the server exited with code 3"), "{failed}");
    assert!(harness.run(Approvals::default()).await.approvals.is_empty());
    assert_eq!(std::fs::read_to_string(calls.path()).unwrap(), "once\n");
}

/// While the record of an allowed call is written, its server may become another process: one that the user has not seen.
#[tokio::test]
async fn an_allowed_call_is_not_sent_to_another_process() {
    let mut settings = Settings::default();
    settings.audit.strict = true;
    let config = json!({ "servers": { "demo": demo(json!({})) } });
    let mut harness = Harness::with(config, json!({}), settings).await;
    harness.until("demo", Status::Connected).await;
    let lock = rusqlite::Connection::open(harness.home.path("state/state.db")).unwrap();
    for _ in 0..5 {
        let mut call = harness.begin_call("mcp__demo__add", json!({ "a": 1, "b": 2 }));
        let question = harness.approvals(ApprovalKind::Tool, 1).await.remove(0);
        lock.execute_batch("BEGIN EXCLUSIVE").unwrap();
        harness.resolve(&question, "allow-once").await;
        harness.run(restart("demo")).await;
        lock.execute_batch("ROLLBACK").unwrap();
        loop {
            if let Some(again) = harness.run(Approvals::default()).await.approvals.pop() {
                assert!(again.detail.contains("The server was restarted while you were being asked."), "{again:?}");
                harness.resolve(&again, "allow-once").await;
                assert_eq!(text(&harness.editor.answer(call).await.unwrap()), "3");
                return;
            }
            if let Some(answer) = (&mut call).now_or_never() {
                // On a busy machine, the restart takes longer than a call waits for its record.
                assert_eq!(answer.unwrap_err().kind(), Some(ErrorKind::Io));
                break;
            }
        }
    }
    panic!("the restart always took too long");
}

/// Its tools are known from the last time. That its process becomes ready is no restart.
#[tokio::test]
async fn the_user_is_asked_once_while_a_server_still_starts() {
    let folder = tempfile::tempdir().unwrap();
    let gate = folder.path().join("gate");
    std::fs::write(&gate, "").unwrap();
    let mut server = gated(folder.path());
    server["autoStart"] = json!(false);
    let mut harness = Harness::new(json!({ "servers": { "slow": server } }), json!({})).await;
    harness.run(start("slow")).await;
    harness.until("slow", Status::Connected).await;
    let Harness { home, engine, editor } = harness;
    drop(editor);
    engine.shutdown().await;
    drop(engine);
    std::fs::remove_file(&gate).unwrap();
    let engine = Engine::start(home.paths(), Settings::default());
    let editor = open_editor(&home, &engine).await;
    let mut harness = Harness { home, engine, editor };
    let _starting = harness.editor.start(start("slow"));
    while harness.status("slow").await.pid.is_none() {
        harness.editor.event::<ServerChanged>().await;
    }
    let call = harness.begin_call("mcp__slow__echo", json!({ "text": "x" }));
    let question = harness.approvals(ApprovalKind::Tool, 1).await.remove(0);
    let now = harness.status("slow").await;
    assert_eq!((now.status, now.reason.as_deref(), now.restarts), (Status::Pending, Some("starting"), 0));
    harness.resolve(&question, "allow-once").await;
    std::fs::write(&gate, "").unwrap();
    // The process has connected since, but it is the same one.
    let asked_again = harness
        .editor
        .event_where(|changed: &ApprovalsChanged| changed.approvals.iter().any(|each| each.id != question.id));
    tokio::select! {
        answer = call => assert!(text(&answer.unwrap()).contains("x")),
        again = asked_again => panic!("{again:?}"),
    }
}

/// The user who runs a tool has decided about it, but has not changed what another program asked for.
#[tokio::test]
async fn a_denial_of_a_call_by_the_user_names_only_the_rule() {
    let config = json!({ "servers": { "demo": demo(json!({ "add": "deny" })) } });
    let mut harness = Harness::new(config, json!({})).await;
    harness.until("demo", Status::Connected).await;
    let call =
        ToolCall { decision: Some(Decision::AllowOnce), ..tool_call("mcp__demo__add", json!({ "a": 1, "b": 2 })) };
    assert_eq!(harness.fails(call).await.kind(), Some(ErrorKind::Denied));
    let record = harness.run(Calls::default()).await.calls.remove(0);
    assert_eq!(record.decision, "deny");
    assert!(record.decided_by.ends_with("tools.add"), "{}", record.decided_by);
}

#[tokio::test]
async fn a_call_is_refused_if_its_rules_keep_changing_while_the_user_is_asked() {
    let mut harness = Harness::new(json!({ "servers": { "demo": demo(json!({})) } }), json!({})).await;
    harness.until("demo", Status::Connected).await;
    let call = harness.begin_call("mcp__demo__add", json!({ "a": 1, "b": 2 }));
    let mut ids = Vec::new();
    for level in [Some(Level::RequireApproval), None].into_iter().cycle().take(5) {
        let is_new = |changed: &ApprovalsChanged| changed.approvals.first().is_some_and(|each| !ids.contains(&each.id));
        let question = harness.editor.event_where(is_new).await.approvals.remove(0);
        ids.push(question.id);
        harness.run(policy("demo", "add", level, Scope::Session)).await;
    }
    let refused = harness.editor.answer(call).await.unwrap_err();
    assert_eq!(refused.kind(), Some(ErrorKind::Conflict), "{refused}");
    let record = harness.run(Calls::default()).await.calls.remove(0);
    let reason = "the server, the tool or its rules kept changing while the user was being asked";
    assert_eq!((record.decision.as_str(), record.decided_by.as_str()), ("deny", reason));
}

/// Commands of one editor take effect in their order, but do not wait until the effect has ended.
#[tokio::test]
async fn a_call_that_takes_long_does_not_delay_the_commands_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut waits = faulty(r#"{"tools/call": [{"wait": "$ARGUMENT"}, {"usual": true}]}"#);
    waits["args"].as_array_mut().unwrap().push(json!(folder.path().join("gate")));
    let (mut starts, mut sleeps) = (gated(folder.path()), gated(folder.path()));
    sleeps["autoStart"] = json!(false);
    for server in [&mut waits, &mut starts, &mut sleeps] {
        server["tools"] = json!({ "*": "allow-session" });
    }
    let servers = json!({ "waits": waits, "starts": starts, "sleeps": sleeps });
    let mut harness = Harness::new(json!({ "servers": servers }), json!({})).await;
    harness.until("waits", Status::Connected).await;
    harness.until("starts", Status::Pending).await;
    harness.until("sleeps", Status::Stopped).await;
    let mut calls = Vec::new();
    for server in ["waits", "starts", "sleeps"] {
        let call = harness.begin_call(&format!("mcp__{server}__echo"), json!({ "text": server }));
        // This command is answered while the call runs or waits.
        harness.until("waits", Status::Connected).await;
        calls.push(call);
    }
    std::fs::write(folder.path().join("gate"), "").unwrap();
    for call in calls {
        harness.editor.answer(call).await.unwrap();
    }
}

#[tokio::test]
async fn a_call_of_a_server_that_waits_for_an_input_says_so() {
    let server = json!({ "command": "true", "args": ["${input:name}"] });
    let config = json!({ "servers": { "late": server }, "inputs": [{ "id": "name" }] });
    let mut harness = Harness::new(config, json!({})).await;
    harness.approvals(ApprovalKind::Input, 1).await;
    let refused = harness.call("mcp__late__echo", json!({})).await.unwrap_err();
    assert!(refused.message.ends_with("it is waiting for the user's answer"), "{refused}");
}

#[tokio::test]
async fn a_question_about_a_tool_that_only_reads_shows_no_change_of_a_file() {
    let mut harness = Harness::new(json!({ "servers": { "demo": demo(json!({})) } }), json!({})).await;
    harness.until("demo", Status::Connected).await;
    harness.editor.handle("mcp/buffer", |_| Ok(json!({})));
    let file = json!({ "text": "x", "path": "notes.md", "content": "x" });
    for (tool, reads) in [("echo", true), ("take_note", false)] {
        let _call = harness.begin_call(&format!("mcp__demo__{tool}"), file.clone());
        let question = harness.approvals(ApprovalKind::Tool, 1).await.remove(0);
        assert_eq!(question.change.is_none(), reads, "{tool}");
        harness.resolve(&question, "deny").await;
    }
}

/// A server that we only connect to: nothing says whether it is the same process as before.
#[tokio::test]
async fn an_answer_counts_when_a_server_without_a_process_has_reconnected() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut server = tokio::process::Command::new(env!("CARGO_BIN_EXE_mcp-sidecar"))
                .arg("demo-server")
                .stdin(std::process::Stdio::piped())
                .stdout(std::process::Stdio::piped())
                .kill_on_drop(true)
                .spawn()
                .unwrap();
            let mut pipes = tokio::io::join(server.stdout.take().unwrap(), server.stdin.take().unwrap());
            tokio::spawn(async move {
                let _server = server;
                tokio::io::copy_bidirectional(&mut stream, &mut pipes).await.ok();
            });
        }
    });
    let mut harness = Harness::new(json!({ "servers": { "remote": { "port": port } } }), json!({})).await;
    harness.until("remote", Status::Connected).await;
    let call = harness.begin_call("mcp__remote__add", json!({ "a": 1, "b": 2 }));
    let question = harness.approvals(ApprovalKind::Tool, 1).await.remove(0);
    harness.run(restart("remote")).await;
    harness.resolve(&question, "allow-once").await;
    assert_eq!(text(&harness.editor.answer(call).await.unwrap()), "3");
}

/// Other servers that do not run start when they are used.
#[tokio::test]
async fn a_call_does_not_start_a_server_that_the_user_stopped() {
    let config = json!({ "servers": { "demo": demo(json!({ "*": "allow-session" })) } });
    let mut harness = Harness::new(config, json!({})).await;
    harness.until("demo", Status::Connected).await;
    harness.run(stop("demo")).await;
    let refused = harness.call("mcp__demo__echo", json!({ "text": "x" })).await.unwrap_err();
    assert_eq!(refused.kind(), Some(ErrorKind::ConnectionFailed), "{refused}");
    assert_eq!(harness.status("demo").await.status, Status::Stopped);
}

#[tokio::test]
async fn an_unknown_tool_of_a_running_server_is_not_found() {
    let mut harness = Harness::new(json!({ "servers": { "demo": demo(json!({})) } }), json!({})).await;
    harness.until("demo", Status::Connected).await;
    let refused = harness.call("mcp__demo__nothing", json!({})).await.unwrap_err();
    assert_eq!(refused.kind(), Some(ErrorKind::NotFound), "{refused}");
}
