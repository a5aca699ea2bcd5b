//! The `actions` of a project: they cannot use the user's rights, and cannot pretend to be the user's own.

use mcp_sidecar::protocol::commands::ConfigReload;
use mcp_sidecar::protocol::types::{ApprovalKind, Status};
use serde_json::{Value, json};

use crate::support::harness::demo;
use crate::support::{Harness, uri};

const TEXT: &str = "fn main() {}\n";

async fn menu(harness: &mut Harness) -> Vec<Value> {
    let path = harness.home.project().join("main.rs");
    let range = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 0, "character": 2 } });
    let params = json!({ "textDocument": { "uri": uri(&path) }, "range": range, "context": { "diagnostics": [] } });
    let menu = harness.editor.request("textDocument/codeAction", params).await.unwrap();
    menu.as_array().unwrap().clone()
}

/// The parameters of the entry with this title.
fn entry(menu: &[Value], title: &str) -> Value {
    let titles: Vec<&Value> = menu.iter().map(|action| &action["title"]).collect();
    let found = menu.iter().find(|action| action["title"] == title);
    let found = found.unwrap_or_else(|| panic!("no {title} in {titles:?}"));
    let command = if found["command"].is_object() { &found["command"] } else { found };
    assert_eq!(command["command"], "mcp.action.run");
    command["arguments"][0].clone()
}

fn user(actions: Value) -> Value {
    json!({ "servers": { "mine": demo(json!({ "*": "allow-always" })) }, "actions": actions })
}

async fn open(user: Value, project: Value) -> Harness {
    let mut harness = Harness::new(user, project).await;
    for noise in ["window/showMessage", "window/logMessage"] {
        harness.editor.ignore(noise);
    }
    harness.until("mine", Status::Connected).await;
    let path = harness.home.write("main.rs", TEXT);
    harness.editor.open(&path, TEXT);
    harness
}

fn echo(title: &str, server: &str, text: &str) -> Value {
    json!({ "title": title, "tool": format!("mcp__{server}__echo"), "arguments": { "text": text } })
}

#[tokio::test]
async fn an_action_of_a_project_asks_before_it_uses_a_server_of_the_user() {
    let project = json!({ "actions": [echo("Explain", "mine", "words of the project")] });
    let mut harness = open(user(json!([echo("Explain", "mine", "my own words")])), project).await;
    let menu = menu(&mut harness).await;
    let own = entry(&menu, "Explain");
    let foreign = entry(&menu, "Explain (from mcp.json)");
    assert_ne!(own["action"], foreign["action"], "a title does not identify an action");

    let result = harness.editor.raw_command("mcp.action.run", own).await.unwrap();
    assert!(result.to_string().contains("my own words"), "{result:#}");

    let running = harness.editor.client.send_request::<Value>(
        "workspace/executeCommand",
        &json!({ "command": "mcp.action.run", "arguments": [foreign] }),
    );
    let question = harness.approvals(ApprovalKind::Tool, 1).await.remove(0);
    assert_eq!(question.arguments.as_ref().unwrap()["text"], "words of the project");
    assert!(question.detail.contains("mcp.json"), "it says where the action comes from: {}", question.detail);
    let lasting: Vec<&String> = question.options.iter().filter(|option| option.starts_with("allow-")).collect();
    assert_eq!(lasting, ["allow-once"], "no answer gives the project more");
    harness.resolve(&question, "deny").await;
    assert!(harness.editor.answer(running).await.is_err());
}

#[tokio::test]
async fn a_title_alone_runs_only_an_action_of_the_user() {
    let project = json!({ "actions": [echo("Explain", "mine", "words of the project")] });
    let mut harness = open(user(json!([])), project).await;
    let range = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 0, "character": 0 } });
    let path = harness.home.project().join("main.rs");
    let params = json!({ "action": "Explain", "uri": uri(&path), "range": range });
    let refused = harness.editor.raw_command("mcp.action.run", params).await.unwrap_err();
    assert!(refused.to_string().contains("no action"), "{refused}");
}

#[tokio::test]
async fn an_action_for_a_server_of_its_own_file_is_part_of_what_is_trusted() {
    let servers = json!({ "theirs": demo(json!({ "echo": "allow-always" })) });
    let project = json!({ "servers": servers, "actions": [echo("Greet", "theirs", "hello")] });
    let mut harness = open(user(json!([])), project).await;
    let question = harness.approvals(ApprovalKind::Trust, 1).await.remove(0);
    assert!(question.detail.contains("`Greet` runs `echo` with {\"text\":\"hello\"}"), "{}", question.detail);
    harness.resolve(&question, "allow-project").await;
    harness.until("theirs", Status::Connected).await;
    let greet = entry(&menu(&mut harness).await, "Greet (from mcp.json)");
    let result = harness.editor.raw_command("mcp.action.run", greet).await.unwrap();
    assert!(result.to_string().contains("hello"), "{result:#}");

    let changed = json!({ "servers": servers, "actions": [echo("Greet", "theirs", "rm -rf")] });
    harness.home.write("mcp.json", &changed.to_string());
    harness.run(ConfigReload {}).await;
    let question = harness.approvals(ApprovalKind::Trust, 1).await.remove(0);
    assert!(question.diff.unwrap().contains("rm -rf"));
}

#[tokio::test]
async fn an_action_that_changed_since_the_menu_was_shown_does_not_run() {
    let project = json!({ "actions": [echo("Explain", "mine", "one")] });
    let mut harness = open(user(json!([])), project).await;
    let shown = entry(&menu(&mut harness).await, "Explain (from mcp.json)");
    let changed = json!({ "actions": [echo("Explain", "mine", "two")] });
    harness.home.write("mcp.json", &changed.to_string());
    harness.run(ConfigReload {}).await;
    let refused = harness.editor.raw_command("mcp.action.run", shown).await.unwrap_err();
    assert!(refused.to_string().contains("no action"), "{refused}");
}
