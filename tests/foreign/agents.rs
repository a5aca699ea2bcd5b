//! MCP clients that others wrote, driving `mcp-sidecar connect` next to an editor: each lists, calls, is asked, is
//! denied, is cancelled. And if only the agent can ask, the question goes to the agent.

mod agent;
mod inspector;
mod library;
mod nonconforming_lists;

use mcp_sidecar::protocol::commands::ApprovalResolve;
use mcp_sidecar::protocol::events::{ApprovalsChanged, LogMessage};
use mcp_sidecar::protocol::types::Approval;
use serde_json::{Value, json};

use crate::support::commands;
use crate::support::{Home, StdioEditor, TestEditor};
use agent::Agent;

const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-sidecar");

/// A user with the built-in server, which needs his word for notes and nothing else that is used here.
fn home() -> Home {
    let home = Home::new();
    let tools = json!({ "echo": "allow-session", "countdown": "allow-session", "take_note": "require-approval" });
    let demo = json!({ "command": PROGRAM, "args": ["demo-server"], "tools": tools });
    std::fs::write(home.path("config/mcp.json"), json!({ "servers": { "demo": demo } }).to_string()).unwrap();
    home
}

/// A window of the project whose user answers questions.
async fn window(home: &Home) -> StdioEditor {
    let mut window = StdioEditor::start(home, &[]);
    for noise in ["mcp/serverChanged", "mcp/toolsChanged", "mcp/configReloaded", "mcp/callFinished"] {
        window.editor.ignore(noise);
    }
    let ours = json!({ "version": "1", "approvals": true, "elicitation": true });
    let more = json!({ "capabilities": { "experimental": { "mcpSidecar": ours } } });
    window.editor.initialize(&[&home.project()], more).await;
    window
}

/// The question that comes next.
async fn asked(editor: &mut TestEditor) -> Approval {
    editor.event_where(|changed: &ApprovalsChanged| !changed.approvals.is_empty()).await.approvals.remove(0)
}

async fn no_more_questions(editor: &mut TestEditor) {
    editor.event_where(|changed: &ApprovalsChanged| changed.approvals.is_empty()).await;
}

async fn resolve(editor: &mut TestEditor, approval: &Approval, decision: &str, note: Option<&str>) {
    let note = note.map(str::to_owned);
    editor.call(ApprovalResolve { note, ..commands::resolve(approval, decision) }).await.unwrap();
    no_more_questions(editor).await;
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {result:#}"))
}

/// The whole play, beside an editor. `name` is what the agent calls itself.
async fn plays(home: Home, mut agent: Agent, name: &str) {
    let mut window = window(&home).await;
    let editor = &mut window.editor;

    let tools = agent.list().await;
    for tool in ["demo__echo", "demo__take_note"] {
        assert!(tools.iter().any(|name| name == tool), "{tools:?}");
    }

    agent.begin("demo__echo", json!({ "text": "hello" }));
    assert_eq!(text(&agent.result().await), "hello");

    agent.begin("demo__take_note", json!({ "text": "milk" }));
    let approval = asked(editor).await;
    assert_eq!(json!(approval.requester), json!({ "kind": "agent", "name": name }));
    assert_eq!((approval.tool.as_deref(), &approval.arguments), (Some("take_note"), &Some(json!({ "text": "milk" }))));
    resolve(editor, &approval, "allow-once", None).await;
    let result = agent.result().await;
    assert!(text(&result).starts_with("saved as note 1"), "{result:#}");

    agent.begin("demo__take_note", json!({ "text": "eggs" }));
    let approval = asked(editor).await;
    resolve(editor, &approval, "deny", Some("we have eggs")).await;
    let result = agent.result().await;
    assert_eq!(result["isError"], true, "{result:#}");
    assert!(text(&result).contains("we have eggs"), "{result:#}");

    // While the question waits.
    agent.begin("demo__take_note", json!({ "text": "flour" }));
    asked(editor).await;
    agent.cancel();
    agent.refusal().await;
    no_more_questions(editor).await;

    // While the tool runs, as far as the agent tells when it does: the server hears it.
    if agent.tells_progress {
        agent.begin("demo__countdown", json!({ "from": 100, "interval": 300 }));
        agent.counted().await;
        agent.cancel();
        agent.refusal().await;
        editor.event_where(|log: &LogMessage| log.text.contains("countdown stopped")).await;
    }
    editor.ignore("mcp/log");

    agent.leave().await;
    assert!(window.quit().await.success());
}

/// Without an editor, the user is asked by way of the agent.
async fn is_asked_itself(mut agent: Agent) {
    agent.begin("demo__take_note", json!({ "text": "milk" }));
    let question = agent.question().await;
    assert!(question.contains("take_note") && question.contains("milk"), "{question}");
    let result = agent.result().await;
    assert!(text(&result).starts_with("saved as note 1"), "{result:#}");
    agent.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_typescript_sdk_works_in_both_its_versions() {
    for version in ["v1", "v2"] {
        let home = home();
        let Some(agent) = Agent::typescript(&home, version) else { return };
        plays(home, agent, &format!("typescript-{version}")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_typescript_sdk_is_asked_where_there_is_no_editor() {
    for version in ["v1", "v2"] {
        let home = home();
        let Some(agent) = Agent::typescript(&home, version) else { return };
        is_asked_itself(agent).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_sdk_works_in_both_its_versions() {
    for version in ["v1", "v2"] {
        let home = home();
        let Some(agent) = Agent::python(&home, version) else { return };
        plays(home, agent, &format!("python-{version}")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_sdk_is_asked_where_there_is_no_editor() {
    for version in ["v1", "v2"] {
        let home = home();
        let Some(agent) = Agent::python(&home, version) else { return };
        is_asked_itself(agent).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_inspectors_command_line_works() {
    let home = home();
    let Some(agent) = inspector::agent(&home) else { return };
    plays(home, agent, "inspector-cli").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rust_sdk_works() {
    let home = home();
    let agent = library::agent(&home).await;
    plays(home, agent, "rmcp").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rust_sdk_is_asked_where_there_is_no_editor() {
    let home = home();
    let agent = library::agent(&home).await;
    is_asked_itself(agent).await;
}
