//! Secret values reach no log, whatever they are called and however they are written.

use std::time::Duration;

use mcp_sidecar::protocol::commands::{ApprovalResolve, ServerLogs};
use mcp_sidecar::protocol::types::{ApprovalKind, Status};
use serde_json::{Value, json};

use crate::support::commands::{name, object};
use crate::support::harness::scripted;
use crate::support::{Harness, Home};

/// The lines that a server wrote to stderr, once there are this many.
async fn log_lines(harness: &mut Harness, count: usize) -> Vec<String> {
    tokio::time::timeout(Duration::from_secs(30), async {
        loop {
            let logs = harness.run(ServerLogs { server: name("leaky"), limit: None }).await;
            let lines: Vec<String> =
                logs.lines.into_iter().map(|line| line.text).filter(|text| text.contains("told")).collect();
            if lines.len() >= count {
                return lines;
            }
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("the server writes to stderr")
}

#[tokio::test]
async fn literals_are_masked_under_any_name_and_in_any_form() {
    let home = Home::new();
    let secrets = json!({ "LC_KEY": "lc-literal-value", "XDG_NOTE": "xdg-literal-value", "TERM": "term-literal-value",
        "PIN": "314159", "CODE": "2718281828", "DSN": "mysql://me:dsn-password@host/db", "LINES": "first-of-two\nsecond-of-two" });
    let names: Vec<&String> = secrets.as_object().unwrap().keys().collect();
    let mut server = scripted(&home.path("state"), "leaky", json!({ "tell": names }));
    server["env"] = secrets.clone();
    let args =
        ["--db=postgres://me:arg-password@host/db", "redis://:redis%2Dpassword@host/0", "--token", "token-argument"];
    server["args"].as_array_mut().unwrap().extend(args.map(|arg| json!(arg)));
    let mut harness = Harness::new(json!({ "servers": { "leaky": server } }), json!({})).await;
    harness.until("leaky", Status::Connected).await;
    let lines = log_lines(&mut harness, 4 * (secrets.as_object().unwrap().len() + args.len())).await.join("\n");
    let hidden = [
        "lc-literal-value",
        "xdg-literal-value",
        "term-literal-value",
        "314159",
        "2718281828",
        "dsn-password",
        "first-of-two",
        "second-of-two",
        "arg-password",
        "redis%2Dpassword",
        "token-argument",
    ];
    for secret in hidden {
        let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
        let escaped: String = secret.bytes().map(|byte| format!("\\x{byte:02x}")).collect();
        for form in [secret.to_owned(), hex.to_uppercase(), hex, escaped] {
            assert!(!lines.contains(&form), "{secret} as {form} in\n{lines}");
        }
    }
}

#[tokio::test]
async fn an_answer_to_a_field_that_looks_like_a_secret_is_masked() {
    let home = Home::new();
    let schema = json!({ "type": "object", "properties": {
        "password": { "type": "string" }, "second": { "type": "string", "title": "API token" }, "color": { "type": "string" } } });
    let script = json!({ "tools": [{ "name": "ask", "inputSchema": { "type": "object" } }],
        "elicit": { "message": "Sign in", "requestedSchema": schema } });
    let mut server = scripted(&home.path("state"), "leaky", script);
    server["tools"] = json!({ "*": "allow-always" });
    let mut harness = Harness::new(json!({ "servers": { "leaky": server } }), json!({})).await;
    harness.until("leaky", Status::Connected).await;
    let call = harness.begin_call("mcp__leaky__ask", json!({}));
    let question = harness.approvals(ApprovalKind::Elicitation, 1).await.remove(0);
    let content = object(json!({ "password": "form-password", "second": "form-token", "color": "ultramarine" }));
    harness
        .run(ApprovalResolve {
            id: Some(question.id),
            decision: "accept".to_owned(),
            content: Some(Value::Object(content)),
            ..Default::default()
        })
        .await;
    harness.editor.answer(call).await.unwrap();
    let logs = harness.run(ServerLogs { server: name("leaky"), limit: None }).await;
    let text: Vec<String> = logs.lines.into_iter().map(|line| line.text).collect();
    let text = text.join("\n");
    assert!(text.contains("ultramarine"), "{text}");
    assert!(!text.contains("form-password") && !text.contains("form-token"), "{text}");
}
