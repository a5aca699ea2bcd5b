//! Questions with fields in an editor without our plugin: a choice is a button, a form is a file to fill in, and a secret
//! is entered in a terminal.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use mcp_sidecar::engine::Engine;
use mcp_sidecar::lsp_client::Response;
use mcp_sidecar::protocol::commands::{Approvals, ServerLogs};
use mcp_sidecar::protocol::types::ToolResult;
use mcp_sidecar::settings::Settings;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::support::commands::{name, start, tool_call};
use crate::support::harness::scripted;
use crate::support::{Home, TestEditor, attach_to};

/// A plain editor beside a server that asks this when its tool is called. The receiver gets the messages with buttons;
/// `answer` says which button is pressed.
async fn asking(
    home: &Home,
    schema: Value,
    answer: impl Fn(&Value) -> Option<&'static str> + Send + 'static,
) -> (TestEditor, mpsc::UnboundedReceiver<Value>) {
    let tool = json!({ "name": "go", "inputSchema": { "type": "object" } });
    let elicit = json!({ "message": "Where to?", "requestedSchema": schema });
    let mut server = scripted(&home.project(), "asks", json!({ "tools": [tool], "elicit": elicit }));
    server["tools"] = json!({ "go": "allow-always" });
    std::fs::write(home.paths().user_config(), json!({ "servers": { "asks": server } }).to_string()).unwrap();
    let engine = Engine::start(home.paths(), Settings::default());
    let (mut editor, _end) = attach_to(&engine);
    editor.ignore("textDocument/publishDiagnostics");
    let (shown, messages) = mpsc::unbounded_channel();
    editor.handle("window/showMessageRequest", move |params| {
        shown.send(params.clone()).unwrap();
        Ok(answer(params).map_or(Value::Null, |title| json!({ "title": title })))
    });
    let capabilities = json!({ "window": { "showDocument": { "support": true } } });
    editor.initialize(&[&home.project()], json!({ "capabilities": capabilities })).await;
    editor.call(start("asks")).await.unwrap();
    (editor, messages)
}

/// What the server got as the answer to its question.
async fn answered(editor: &mut TestEditor, call: Response<ToolResult>) -> Value {
    editor.answer(call).await.unwrap();
    let marker = "the user answered ";
    loop {
        let logs = editor.call(ServerLogs { server: name("asks"), limit: None }).await.unwrap();
        let line = logs.lines.iter().find_map(|line| line.text.split_once(marker).map(|(_, answer)| answer.to_owned()));
        if let Some(answer) = line {
            return serde_json::from_str(&answer).unwrap();
        }
    }
}

fn titles(message: &Value) -> Vec<&str> {
    message["actions"].as_array().unwrap().iter().map(|action| action["title"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_choice_is_a_message_with_a_button_for_each() {
    let home = Home::new();
    let schema = json!({ "type": "object", "required": ["city"], "properties": {
        "city": { "type": "string", "enum": ["p", "r"], "enumNames": ["Paris", "Rome"] } } });
    let (mut editor, mut messages) = asking(&home, schema, |_| Some("Rome")).await;
    let call = editor.start(tool_call("mcp__asks__go", json!({})));
    assert_eq!(answered(&mut editor, call).await, json!({ "action": "accept", "content": { "city": "r" } }));
    let message = messages.try_recv().unwrap();
    assert_eq!(titles(&message), ["Not now", "Paris", "Rome", "Decline"]);
    assert!(message["message"].as_str().unwrap().contains("Where to?"), "{message:#}");
    editor.quit().await;
}

#[tokio::test]
async fn a_form_is_a_file_that_answers_when_it_is_saved() {
    let home = Home::new();
    let schema = json!({ "type": "object", "required": ["city", "days"], "properties": {
        "city": { "type": "string" }, "days": { "type": "integer", "minimum": 1 } } });
    let (mut editor, _messages) = asking(&home, schema, |_| Some("Fill in a file…")).await;
    let opened = Arc::new(Mutex::new(None));
    let file = opened.clone();
    editor.handle("window/showDocument", move |params| {
        let path = url::Url::parse(params["uri"].as_str().unwrap()).unwrap().to_file_path().unwrap();
        *file.lock().unwrap() = Some(path);
        Ok(json!({ "success": true }))
    });
    let call = editor.start(tool_call("mcp__asks__go", json!({})));
    let path: PathBuf = loop {
        editor.call(Approvals::default()).await.unwrap();
        if let Some(path) = opened.lock().unwrap().clone() {
            break path;
        }
    };
    let form = std::fs::read_to_string(&path).unwrap();
    assert!(form.contains("# Where to?") && form.contains("city = \"\"\n"), "{form}");
    let filled = form.replace("city = \"\"", "city = \"Oslo\"");
    std::fs::write(&path, filled.replace("days = \"\"", "days = 0")).unwrap();
    let message = editor.notification("window/showMessage").await;
    assert!(message["message"].as_str().unwrap().contains("/days: "), "{message:#}");
    std::fs::write(&path, filled.replace("days = \"\"", "days = 3")).unwrap();
    let answer = answered(&mut editor, call).await;
    assert_eq!(answer, json!({ "action": "accept", "content": { "city": "Oslo", "days": 3 } }));
    assert!(!path.exists(), "the answer is not kept");
    editor.quit().await;
}

#[tokio::test]
async fn a_question_can_be_declined_and_its_file_goes_away() {
    let home = Home::new();
    let schema = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
    let (mut editor, _messages) = asking(&home, schema, |_| Some("Decline")).await;
    let call = editor.start(tool_call("mcp__asks__go", json!({})));
    assert_eq!(answered(&mut editor, call).await, json!({ "action": "decline" }));
    editor.quit().await;
}

#[tokio::test]
async fn a_server_that_waits_for_a_secret_says_where_to_enter_it() {
    let home = Home::new();
    let server = json!({ "command": "sh", "args": ["-c", "exit"], "env": { "T": "${input:api-key}" } });
    let inputs = json!([{ "id": "api-key", "type": "promptString", "description": "Key", "password": true }]);
    let user = json!({ "servers": { "one": server }, "inputs": inputs }).to_string();
    let path = home.paths().user_config();
    std::fs::write(&path, user).unwrap();
    let engine = Engine::start(home.paths(), Settings::default());
    let (mut editor, _end) = attach_to(&engine);
    let capabilities = json!({ "window": { "showDocument": { "support": true } } });
    editor.initialize(&[&home.project()], json!({ "capabilities": capabilities })).await;
    let message = editor.notification("window/showMessage").await;
    let message = message["message"].as_str().unwrap();
    assert!(message.contains("`api-key`") && message.contains("mcp-sidecar input set"), "{message}");
    loop {
        let published = editor.diagnostics(&path).await;
        let found =
            published["diagnostics"].as_array().unwrap().iter().find(|one| one["code"] == "awaiting-input").cloned();
        if let Some(problem) = found {
            let message = problem["message"].as_str().unwrap();
            assert!(message.contains("`mcp-sidecar input set api-key` in a terminal"), "{message}");
            break;
        }
    }
    editor.ignore("textDocument/publishDiagnostics");
    editor.quit().await;
}
