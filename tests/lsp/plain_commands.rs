//! Commands in an editor without our plugin: every outcome is shown, progress is shown without being asked for, and a
//! result that takes longer than the editor waits is not lost.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use mcp_sidecar::engine::Engine;
use mcp_sidecar::protocol::commands::{NAMES, Servers};
use mcp_sidecar::settings::Settings;
use serde_json::{Value, json};

use crate::support::commands::start;
use crate::support::harness::demo;
use crate::support::{Home, TestEditor, attach_to, uri};

struct Plain {
    editor: TestEditor,
    path: PathBuf,
    text: String,
    /// The files that the editor was asked to show.
    shown: Arc<Mutex<Vec<PathBuf>>>,
}

impl Plain {
    async fn new(home: &Home) -> Self {
        let tools = json!({ "countdown": "allow-always", "echo": "allow-always" });
        let text = serde_json::to_string_pretty(&json!({ "servers": { "demo": demo(tools) } })).unwrap();
        let path = home.paths().user_config();
        std::fs::write(&path, &text).unwrap();
        let engine = Engine::start(home.paths(), Settings::default());
        let (mut editor, _end) = attach_to(&engine);
        editor.ignore("textDocument/publishDiagnostics");
        let shown = Arc::<Mutex<Vec<PathBuf>>>::default();
        let documents = shown.clone();
        editor.handle("window/showDocument", move |params| {
            let url = url::Url::parse(params["uri"].as_str().unwrap()).unwrap();
            documents.lock().unwrap().push(url.to_file_path().unwrap());
            Ok(json!({ "success": true }))
        });
        let capabilities = json!({
            "window": {
                "showDocument": { "support": true },
                "showMessage": { "messageActionItem": { "additionalPropertiesSupport": true } },
                "workDoneProgress": true
            },
            "workspace": { "applyEdit": true }
        });
        editor.initialize(&[&home.project()], json!({ "capabilities": capabilities })).await;
        editor.open(&path, &text);
        editor.call(start("demo")).await.unwrap();
        Self { editor, path, text, shown }
    }

    async fn menu(&mut self, word: &str) -> Vec<Value> {
        let line = self.text.lines().position(|line| line.contains(word)).unwrap();
        let at = json!({ "line": line, "character": 6 });
        let params = json!({ "textDocument": { "uri": uri(&self.path) }, "range": { "start": at, "end": at },
            "context": { "diagnostics": [] } });
        self.editor.request("textDocument/codeAction", params).await.unwrap().as_array().unwrap().clone()
    }

    async fn shown(&mut self, count: usize) -> String {
        while self.shown.lock().unwrap().len() < count {
            self.editor.call(Servers::default()).await.unwrap();
        }
        std::fs::read_to_string(&self.shown.lock().unwrap()[count - 1]).unwrap()
    }
}

fn countdown(from: u32, interval: u32) -> Value {
    let call =
        json!({ "tool": "mcp__demo__countdown", "arguments": { "from": from, "interval": interval }, "show": true });
    json!({ "command": "mcp.tool.call", "arguments": [call] })
}

#[tokio::test]
async fn every_command_that_reads_shows_its_answer() {
    let home = Home::new();
    let mut plain = Plain::new(&home).await;
    let mut documents = 0;
    for (command, params, shown) in [
        ("mcp.tool.call", json!({ "tool": "mcp__demo__echo", "arguments": { "text": "hello there" } }), "hello there"),
        ("mcp.tools", json!({}), "mcp__demo__echo"),
        ("mcp.doctor", json!({}), "npx"),
        ("mcp.templates", json!({}), "filesystem"),
        ("mcp.grants", json!({}), "grants"),
        ("mcp.config", json!({}), "mcp.json"),
        ("mcp.calls", json!({}), "echo"),
        ("mcp.policies", json!({}), "allow-always"),
        ("mcp.resources", json!({}), "resources"),
        ("mcp.prompts", json!({}), "prompts"),
        ("mcp.approvals", json!({}), "approvals"),
        ("mcp.metrics", json!({}), "demo"),
    ] {
        assert!(NAMES.contains(&command));
        let mut params = params;
        params["show"] = json!(true);
        plain.editor.raw_command(command, params).await.unwrap();
        documents += 1;
        let text = plain.shown(documents).await;
        assert!(text.contains(shown), "{command}: {text}");
    }
    plain.editor.quit().await;
}

#[tokio::test]
async fn progress_is_shown_to_an_editor_that_sent_no_token() {
    let home = Home::new();
    let mut plain = Plain::new(&home).await;
    let created = Arc::<Mutex<Vec<Value>>>::default();
    let tokens = created.clone();
    plain.editor.handle("window/workDoneProgress/create", move |params| {
        tokens.lock().unwrap().push(params["token"].clone());
        Ok(Value::Null)
    });
    plain.editor.request("workspace/executeCommand", countdown(3, 1)).await.unwrap();
    let token = created.lock().unwrap().clone();
    assert_eq!(token.len(), 1);
    let mut kinds = Vec::new();
    while kinds.last() != Some(&json!("end")) {
        let progress = plain.editor.notification("$/progress").await;
        assert_eq!(progress["token"], token[0]);
        kinds.push(progress["value"]["kind"].clone());
    }
    assert_eq!(kinds[0], "begin");
    assert!(kinds.contains(&json!("report")));
    plain.shown(1).await;
    plain.editor.quit().await;
}

#[tokio::test]
async fn a_result_is_shown_even_if_the_editor_has_stopped_waiting_for_it() {
    let home = Home::new();
    let mut plain = Plain::new(&home).await;
    plain.editor.handle("window/workDoneProgress/create", |_| Ok(Value::Null));
    let response = plain.editor.client.send_request::<Value>("workspace/executeCommand", &countdown(3, 300));
    // It has started when it reports progress.
    plain.editor.notification("$/progress").await;
    response.cancel();
    let cancelled = plain.editor.answer(response).await.unwrap_err();
    assert_eq!(cancelled.code, -32800);
    plain.editor.ignore("$/progress");
    assert_eq!(plain.shown(1).await, "lift-off");
    plain.editor.quit().await;
}

#[tokio::test]
async fn the_user_can_cancel_by_the_progress() {
    let home = Home::new();
    let mut plain = Plain::new(&home).await;
    plain.editor.handle("window/workDoneProgress/create", |_| Ok(Value::Null));
    let response = plain.editor.client.send_request::<Value>("workspace/executeCommand", &countdown(100, 5000));
    let progress = plain.editor.notification("$/progress").await;
    plain.editor.notify("window/workDoneProgress/cancel", json!({ "token": progress["token"] }));
    assert_eq!(plain.editor.answer(response).await.unwrap_err().code, -32800);
    plain.editor.ignore("$/progress");
    plain.editor.quit().await;
}

#[tokio::test]
async fn the_menu_has_what_the_lenses_have_and_one_entry_for_levels() {
    let home = Home::new();
    let mut plain = Plain::new(&home).await;
    let menu = plain.menu("\"demo\"").await;
    let titles: Vec<&str> = menu.iter().map(|action| action["title"].as_str().unwrap()).collect();
    let place =
        |title: &str| titles.iter().position(|one| *one == title).unwrap_or_else(|| panic!("{title}: {titles:#?}"));
    let level = place("Set the level of all tools of `demo`…");
    for before in ["Stop `demo`", "Restart `demo`", "Test `demo`", "Show the log of `demo`"] {
        assert!(place(before) < level, "{titles:#?}");
    }
    place("Reload the MCP config");
    place("Add server…");
    assert_eq!(titles.iter().filter(|title| title.starts_with("Set ")).count(), 1, "{titles:#?}");
    // A user chooses a level, which is written to the file through the buffer.
    plain.editor.handle("window/showMessageRequest", |params| {
        let titles: Vec<&Value> = params["actions"].as_array().unwrap().iter().map(|one| &one["title"]).collect();
        assert!(titles.contains(&&json!("deny")) && titles.contains(&&json!("require-approval")), "{params:#}");
        let described = params["actions"].as_array().unwrap().iter().find(|one| one["title"] == "deny").unwrap();
        assert_eq!(described["description"], "Shows the tool but rejects every call.");
        Ok(json!({ "title": "deny" }))
    });
    let edits = Arc::<Mutex<Vec<String>>>::default();
    let made = edits.clone();
    plain.editor.handle("workspace/applyEdit", move |params| {
        made.lock().unwrap().push(params.to_string());
        Ok(json!({ "applied": true }))
    });
    let command = menu[level].clone();
    let params = json!({ "command": command["command"], "arguments": command["arguments"] });
    plain.editor.request("workspace/executeCommand", params).await.unwrap();
    let message = plain.editor.notification("window/showMessage").await;
    assert_eq!(message["message"], format!("Save {} to apply the change", plain.path.display()));
    assert!(edits.lock().unwrap()[0].contains("deny"));
    plain.editor.quit().await;
}
