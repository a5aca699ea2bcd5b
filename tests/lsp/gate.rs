//! What a call comes to at the gate, where only one condition decides.

use futures::FutureExt;
use mcp_sidecar::protocol::commands::Approvals;
use mcp_sidecar::protocol::errors::ErrorKind;
use mcp_sidecar::protocol::types::{ApprovalKind, Status};
use mcp_sidecar::settings::Settings;
use serde_json::json;

use crate::support::commands::{restart, text};
use crate::support::harness::{Harness, demo, faulty};

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
