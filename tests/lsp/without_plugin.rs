//! An editor without our plugin, which supports only commands and edits: every fix works, every outcome is shown, and
//! approvals are shown one at a time.

use std::path::Path;
use std::sync::{Arc, Mutex};

use mcp_sidecar::engine::Engine;
use mcp_sidecar::settings::Settings;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::support::harness::demo;
use crate::support::{Home, TestEditor, attach_to, uri};

/// The texts of the edits that the editor was asked to make.
type Applied = Arc<Mutex<Vec<Value>>>;

async fn editor(home: &Home, more: Value, settings: Settings) -> (TestEditor, Applied) {
    let engine = Engine::start(home.paths(), settings);
    let (mut editor, _end) = attach_to(&engine);
    editor.ignore("textDocument/publishDiagnostics");
    editor.handle("window/showMessageRequest", |_| Ok(Value::Null));
    let applied = Applied::default();
    let taken = applied.clone();
    editor.handle("workspace/applyEdit", move |params| {
        taken.lock().unwrap().push(params["edit"]["changes"].clone());
        Ok(json!({ "applied": true }))
    });
    let mut capabilities = json!({ "workspace": { "applyEdit": true } });
    for (key, value) in more.as_object().unwrap() {
        capabilities[key] = value.clone();
    }
    editor.initialize(&[&home.project()], json!({ "capabilities": capabilities })).await;
    (editor, applied)
}

async fn actions(editor: &mut TestEditor, path: &Path, line: u32, character: u32) -> Vec<Value> {
    let at = json!({ "line": line, "character": character });
    let range = json!({ "start": at, "end": at });
    let params = json!({ "textDocument": { "uri": uri(path) }, "range": range, "context": { "diagnostics": [] } });
    editor.request("textDocument/codeAction", params).await.unwrap().as_array().unwrap().clone()
}

/// Clicks a command.
async fn click(editor: &mut TestEditor, commands: &[Value], title: &str) -> Result<Value, Value> {
    let found = commands.iter().find(|command| command["title"] == title);
    let command = found.unwrap_or_else(|| panic!("no {title}: {commands:#?}"));
    assert!(command["command"].is_string() && command["arguments"].is_array(), "a bare command: {command:#}");
    let params = json!({ "command": command["command"], "arguments": command["arguments"] });
    editor.request("workspace/executeCommand", params).await
}

#[tokio::test]
async fn a_quick_fix_is_a_command_that_applies_its_edit() {
    let home = Home::new();
    let text = "{ \"servers\": {\n  \"a\": { \"comand\": \"sh\" } // kept\n} }";
    let path = home.write("mcp.json", text);
    let (mut editor, applied) = editor(&home, json!({}), Settings::default()).await;
    editor.open(&path, text);
    let commands = actions(&mut editor, &path, 1, 10).await;
    click(&mut editor, &commands, "Change to `command`").await.unwrap();
    let changes = applied.lock().unwrap().remove(0);
    let edit = &changes[uri(&path)][0];
    assert_eq!(edit["newText"], "\"command\"");
    assert_eq!(edit["range"]["start"], json!({ "line": 1, "character": 9 }));
    editor.change(&path, 2, "{}");
    let late = click(&mut editor, &commands, "Change to `command`").await.unwrap_err();
    assert_eq!(late["data"]["kind"], "conflict", "an edit for an older text is not made: {late:#}");
    editor.quit().await;
}

#[tokio::test]
async fn a_secret_is_moved_from_the_file_to_the_keyring() {
    let home = Home::new();
    let text =
        "{ \"servers\": { \"a\": { \"command\": \"sh\", \"env\": { \"API_TOKEN\": \"Bearer s3cr3t-value\" } } } }";
    let path = home.write("mcp.json", text);
    let mut settings = Settings::default();
    // Machines that run tests have no keyring.
    settings.secrets.file = true;
    let (mut editor, applied) = editor(&home, json!({}), settings).await;
    editor.ignore("window/showMessage");
    editor.open(&path, text);
    let column = text.find("\"Bearer").unwrap() as u32;
    let commands = actions(&mut editor, &path, 0, column + 2).await;
    click(&mut editor, &commands, "Move to the keyring as `API_TOKEN`").await.unwrap();
    let changes = applied.lock().unwrap().remove(0);
    assert_eq!(changes[uri(&path)][0]["newText"], "\"Bearer ${keyring:API_TOKEN}\"");
    let kept = std::fs::read_dir(home.path("state")).unwrap().map(|entry| entry.unwrap().path());
    let holding = kept.filter(|path| std::fs::read_to_string(path).is_ok_and(|text| text.contains("s3cr3t-value")));
    assert_eq!(holding.count(), 1, "it is kept where the settings say");
    editor.quit().await;
}

#[tokio::test]
async fn the_outcome_of_a_code_lens_is_shown() {
    let home = Home::new();
    let text = json!({ "servers": { "demo": demo(json!({})) } }).to_string();
    let path = home.paths().user_config();
    std::fs::write(&path, &text).unwrap();
    let window = json!({ "window": { "showDocument": { "support": true } } });
    let (mut editor, applied) = editor(&home, window, Settings::default()).await;
    let documents = Applied::default();
    let taken = documents.clone();
    editor.handle("window/showDocument", move |params| {
        taken.lock().unwrap().push(params["uri"].clone());
        Ok(json!({ "success": true }))
    });
    editor.open(&path, &text);
    editor.command("mcp.server.start", json!({ "server": "demo" })).await.unwrap();
    let lenses = editor.ask_about("textDocument/codeLens", &path).await;
    let lenses: Vec<Value> = lenses.as_array().unwrap().iter().map(|lens| lens["command"].clone()).collect();
    for (title, shown) in [("Test", "connected"), ("Restart", "demo: connected"), ("Reload", "nothing changed")] {
        click(&mut editor, &lenses, title).await.unwrap();
        let message = editor.notification("window/showMessage").await;
        assert!(message["message"].as_str().unwrap().contains(shown), "{title}: {message:#}");
    }
    click(&mut editor, &lenses, "Logs").await.unwrap();
    let shown = url::Url::parse(documents.lock().unwrap()[0].as_str().unwrap()).unwrap().to_file_path().unwrap();
    assert!(std::fs::read_to_string(shown).unwrap().contains("sidecar"), "the log is a text to read");
    editor.handle("window/showMessageRequest", |params| Ok(params["actions"][0].clone()));
    let added = click(&mut editor, &lenses, "Add server…").await.unwrap();
    let changes = applied.lock().unwrap().remove(0);
    let new = changes[uri(&path)][0]["newText"].as_str().unwrap();
    assert!(new.contains(added["server"].as_str().unwrap()), "{new}");
    editor.quit().await;
}

#[tokio::test]
async fn settings_are_requested_again_when_they_change() {
    let home = Home::new();
    let text = "{ \"servers\": {} }";
    let path = home.write("mcp.json", text);
    let workspace = json!({ "workspace": { "applyEdit": true, "configuration": true } });
    let engine = Engine::start(home.paths(), Settings::default());
    let (mut editor, _end) = attach_to(&engine);
    editor.ignore("textDocument/publishDiagnostics");
    let (asked, mut asks) = mpsc::unbounded_channel();
    let mut answers = vec![json!([null]), json!([{ "editor": { "hideLenses": ["reload"] } }])];
    editor.handle("workspace/configuration", move |params| {
        asked.send(params["items"][0]["section"].clone()).unwrap();
        Ok(answers.pop().unwrap())
    });
    editor.initialize(&[&home.project()], json!({ "capabilities": workspace })).await;
    editor.open(&path, text);
    let titles = |lenses: &Value| -> Vec<String> {
        lenses.as_array().unwrap().iter().map(|lens| lens["command"]["title"].as_str().unwrap().to_owned()).collect()
    };
    // The editor answers that request before this one, so the settings are applied.
    while asks.try_recv().is_err() {
        editor.ask_about("textDocument/codeLens", &path).await;
    }
    assert_eq!(titles(&editor.ask_about("textDocument/codeLens", &path).await), ["Add server…"]);
    editor.notify("workspace/didChangeConfiguration", json!({ "settings": null }));
    while asks.try_recv().is_err() {
        editor.ask_about("textDocument/codeLens", &path).await;
    }
    editor.quit().await;
}

#[tokio::test]
async fn messages_about_trust_are_shown_one_at_a_time_and_do_not_delay_a_call() {
    let home = Home::new();
    let user = json!({ "servers": { "mine": demo(json!({})) } }).to_string();
    std::fs::write(home.paths().user_config(), user).unwrap();
    let servers =
        json!({ "servers": { "a": { "command": "sh" }, "b": { "command": "sh" }, "c": { "command": "sh" } } });
    home.write("mcp.json", &servers.to_string());
    let engine = Engine::start(home.paths(), Settings::default());
    let (mut editor, _end) = attach_to(&engine);
    editor.ignore("textDocument/publishDiagnostics");
    let asked = Applied::default();
    let taken = asked.clone();
    editor.handle("window/showMessageRequest", move |params| {
        taken.lock().unwrap().push(params["message"].clone());
        let message = params["message"].as_str().unwrap();
        // The user allows the call and closes the other messages.
        let allow = message.contains("echo").then(|| json!({ "title": "Allow once" }));
        Ok(allow.unwrap_or_default())
    });
    editor.initialize(&[&home.project()], json!({})).await;
    editor.command("mcp.server.start", json!({ "server": "mine" })).await.unwrap();
    let call = json!({ "tool": "mcp__mine__echo", "arguments": { "text": "x" } });
    let answer = editor.command("mcp.tool.call", call).await.unwrap();
    assert_eq!(answer["decision"], "allow-once");
    while asked.lock().unwrap().len() < 4 {
        editor.command("mcp.approvals", json!({})).await.unwrap();
    }
    let messages: Vec<String> = asked
        .lock()
        .unwrap()
        .iter()
        .map(|message| message.as_str().unwrap().lines().next().unwrap().to_owned())
        .collect();
    for name in ["a", "b", "c"] {
        assert_eq!(
            messages.iter().filter(|message| message.contains(&format!("Trust the server `{name}`?"))).count(),
            1,
            "{messages:?}"
        );
    }
    editor.quit().await;
}
