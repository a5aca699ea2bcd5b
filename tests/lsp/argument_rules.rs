//! Levels that depend on arguments, through the gate: texts that a server may read as another path are not allowed.

use mcp_sidecar::protocol::errors::ErrorKind;
use mcp_sidecar::protocol::types::Status;
use serde_json::{Value, json};

use crate::support::Harness;
use crate::support::harness::fixture;

async fn harness(rule: Value) -> Harness {
    let mut server = fixture("server.py");
    server["tools"] = json!({ "echo": rule });
    let mut harness = Harness::new(json!({}), json!({ "servers": { "files": server } })).await;
    harness.trust("files").await;
    harness.until("files", Status::Connected).await;
    harness
}

#[tokio::test]
async fn inside_is_not_passed_by_texts_that_mean_another_path() {
    let condition = json!({ "path": { "inside": "${workspaceFolder}" } });
    let mut harness = harness(json!([{ "when": condition, "level": "allow-session" }, "deny"])).await;
    let inside = harness.home.project().join("a.txt");
    harness.call("mcp__files__echo", json!({ "path": inside })).await.unwrap();
    harness.call("mcp__files__echo", json!({ "path": [inside] })).await.unwrap();
    for path in [
        json!("$HOME/.ssh/id_rsa"),
        json!(" /etc/passwd"),
        json!("\"/etc/passwd\""),
        json!("FILE:///etc/passwd"),
        json!("a%2f..%2f..%2fetc"),
        json!("..\\..\\etc\\passwd"),
        json!([inside, "/etc/passwd"]),
        json!({ "path": inside }),
    ] {
        let refused = harness.call("mcp__files__echo", json!({ "path": path })).await.unwrap_err();
        assert_eq!(refused.kind(), Some(ErrorKind::Denied), "{path}: {refused}");
    }
}

#[tokio::test]
async fn a_denial_does_not_fail_open() {
    let condition = json!({ "path": { "inside": "${workspaceFolder}/secret" } });
    let mut harness = harness(json!([{ "when": condition, "level": "deny" }, "allow-session"])).await;
    harness.call("mcp__files__echo", json!({ "path": "public/a" })).await.unwrap();
    for arguments in [
        json!({ "path": "~/project/secret/key" }),
        json!({ "path": ["public/a", "secret/key"] }),
        json!({ "path": { "name": "secret/key" } }),
        json!({ "path": "secret/key\0" }),
        json!({ "path": "secret%2fkey" }),
        json!({}),
    ] {
        let refused = harness.call("mcp__files__echo", arguments.clone()).await.unwrap_err();
        assert_eq!(refused.kind(), Some(ErrorKind::Denied), "{arguments}: {refused}");
    }
}
