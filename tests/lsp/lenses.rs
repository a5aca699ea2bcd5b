//! Code lenses, hints, actions and diagnostics that follow the state of the servers, and commands that change files, in an
//! editor without a plugin.

use mcp_sidecar::protocol::commands::Command;
use mcp_sidecar::protocol::types::ServerStatus;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use mcp_sidecar::engine::Engine;
use mcp_sidecar::model::{Level, Scope};
use mcp_sidecar::protocol::commands::{
    ActionRun, Approvals, ConfigReload, ServerAdd, ServerEnable, ServerMove, ServerRemove, ServerUpdate, Servers,
};
use mcp_sidecar::protocol::errors::ErrorKind;
use mcp_sidecar::protocol::types::{ShownScope, Status};
use mcp_sidecar::settings::Settings;
use serde_json::{Value, json};

use crate::support::commands::{add, name, policy, start, tool_call};
use crate::support::harness::{demo, trust_shown};
use crate::support::{Harness, Home, TestEditor, attach_to, uri};

/// What the editor was asked to do.
type Asked = Arc<Mutex<Vec<Value>>>;

/// A project with the demo server, in an editor without a plugin.
struct Workspace {
    home: Home,
    editor: TestEditor,
    path: PathBuf,
    text: String,
    applied: Asked,
    refreshed: Asked,
    shown: Asked,
}

/// The entry of the demo server, with comments.
fn commented(tools: &str) -> String {
    let program = demo(json!({}))["command"].to_string();
    format!(
        "// Above.\n{{\n  \"servers\": {{\n    // The demo.\n    \"demo\": {{\n      \"command\": {program},\n      \"args\": [\"demo-server\"], // its word\n      \"tools\": {{ {tools} }},\n    }},\n  }},\n}}\n"
    )
}

impl Workspace {
    async fn new(text: &str) -> Self {
        let home = Home::new();
        let path = home.write("mcp.json", text);
        let engine = Engine::start(home.paths(), Settings::default());
        let (mut editor, _end) = attach_to(&engine);
        let (applied, refreshed, shown) = (Asked::default(), Asked::default(), Asked::default());
        let keep = |asked: &Asked, answer: Value| {
            let asked = asked.clone();
            move |params: &Value| {
                asked.lock().unwrap().push(params.clone());
                Ok(answer.clone())
            }
        };
        editor.handle("workspace/applyEdit", keep(&applied, json!({ "applied": true })));
        editor.handle("workspace/codeLens/refresh", keep(&refreshed, Value::Null));
        editor.handle("workspace/inlayHint/refresh", |_| Ok(Value::Null));
        editor.handle("window/showDocument", keep(&shown, json!({ "success": true })));
        // What came of a lens is told beside its answer.
        editor.ignore("window/showMessage");
        // Questions stay open until a lens or a command answers them.
        editor.handle("window/showMessageRequest", |_| Ok(Value::Null));
        let capabilities = json!({
            "workspace": {
                "applyEdit": true, "codeLens": { "refreshSupport": true }, "inlayHint": { "refreshSupport": true }
            },
            "textDocument": { "codeAction": { "codeActionLiteralSupport": {} } },
            "window": { "showDocument": { "support": true } }
        });
        editor.initialize(&[&home.project()], json!({ "capabilities": capabilities })).await;
        Self { home, editor, path, text: text.to_owned(), applied, refreshed, shown }
    }

    /// With the file open, and its server trusted and connected.
    async fn connected(text: &str) -> Self {
        let mut workspace = Self::new(text).await;
        workspace.open();
        trust_shown(&mut workspace.editor, "demo").await;
        workspace.run(start("demo")).await;
        assert_eq!(workspace.status().await.status, Status::Connected);
        workspace
    }

    fn open(&mut self) {
        self.editor.open(&self.path, &self.text);
    }

    async fn run<C: Command>(&mut self, command: C) -> C::Answer {
        self.editor.call(command).await.unwrap_or_else(|error| panic!("{}: {error:?}", C::NAME))
    }

    async fn status(&mut self) -> ServerStatus {
        self.run(Servers { server: Some(name("demo")) }).await.servers.remove(0)
    }

    /// The title and command of each code lens.
    async fn lenses(&mut self) -> Vec<Value> {
        let lenses = self.editor.ask_about("textDocument/codeLens", &self.path).await;
        lenses.as_array().unwrap().iter().map(|lens| lens["command"].clone()).collect()
    }

    /// Clicks a code lens.
    async fn click(&mut self, title: &str) -> Value {
        let lenses = self.lenses().await;
        let lens =
            lenses.iter().find(|lens| lens["title"] == title).unwrap_or_else(|| panic!("no {title}: {lenses:#?}"));
        let params = json!({ "command": lens["command"], "arguments": lens["arguments"] });
        self.editor.request("workspace/executeCommand", params).await.unwrap()
    }

    async fn actions(&mut self, range: Value, diagnostics: Value) -> Vec<Value> {
        let params = json!({ "textDocument": { "uri": uri(&self.path) }, "range": range, "context": { "diagnostics": diagnostics } });
        let actions = self.editor.request("textDocument/codeAction", params).await.unwrap();
        actions.as_array().unwrap().clone()
    }

    /// Waits until the diagnostics of the file have the wanted codes.
    async fn diagnostics(&mut self, wanted: impl Fn(&[&str]) -> bool) -> Value {
        loop {
            let reported = self.editor.diagnostics(&self.path).await["diagnostics"].clone();
            let codes: Vec<&str> = reported.as_array().unwrap().iter().filter_map(|one| one["code"].as_str()).collect();
            if wanted(&codes) {
                return reported;
            }
        }
    }

    fn on_disk(&self) -> String {
        std::fs::read_to_string(&self.path).unwrap()
    }

    async fn quit(mut self) {
        self.editor.ignore("textDocument/publishDiagnostics");
        // A refresh that is on its way is taken back.
        self.editor.ignore("$/cancelRequest");
        self.editor.quit().await;
    }
}

/// The range of a word in an ASCII text.
fn range(text: &str, word: &str) -> Value {
    let start = text.find(word).unwrap_or_else(|| panic!("no {word} in {text}"));
    let position = |offset: usize| {
        let before = &text[..offset];
        let line = before.rfind('\n').map_or(0, |at| at + 1);
        json!({ "line": before.matches('\n').count(), "character": offset - line })
    };
    json!({ "start": position(start), "end": position(start + word.len()) })
}

/// Applies a `WorkspaceEdit` of a single file to its text.
fn edited(text: &str, edit: &Value) -> String {
    let changes = edit["changes"].as_object().unwrap();
    let mut edits: Vec<Value> = changes.values().next().unwrap().as_array().unwrap().clone();
    let offset = |position: &Value| {
        let line = position["line"].as_u64().unwrap() as usize;
        let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
        start + position["character"].as_u64().unwrap() as usize
    };
    edits.sort_by_key(|edit| std::cmp::Reverse(offset(&edit["range"]["start"])));
    edits.iter().fold(text.to_owned(), |mut after, edit| {
        let span = offset(&edit["range"]["start"])..offset(&edit["range"]["end"]);
        after.replace_range(span, edit["newText"].as_str().unwrap());
        after
    })
}

fn titles(commands: &[Value]) -> Vec<&str> {
    commands.iter().map(|each| each["title"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn code_lenses_follow_the_state_of_a_server() {
    let mut workspace = Workspace::new(&commented("")).await;
    workspace.open();
    workspace.diagnostics(|codes| codes.contains(&"awaiting-trust")).await;
    assert_eq!(titles(&workspace.lenses().await), ["Reload", "Add server…", "waiting for trust", "Trust…"]);
    workspace.editor.handle("window/showMessageRequest", |_| Ok(json!({ "title": "Trust" })));
    workspace.click("Trust…").await;
    workspace.diagnostics(|codes| !codes.contains(&"awaiting-trust")).await;
    workspace.run(start("demo")).await;
    let lenses = workspace.lenses().await;
    assert!(titles(&lenses)[2].starts_with("connected · "), "{lenses:#?}");
    assert_eq!(titles(&lenses)[3..], ["Stop", "Restart", "Test", "Show log"]);
    assert!(!workspace.refreshed.lock().unwrap().is_empty(), "lenses were refreshed");
    let report = workspace.click("Test").await;
    assert_eq!(report["success"], true, "{report:#}");
    assert!(workspace.click("Show log").await["lines"].is_array());
    workspace.click("Stop").await;
    assert_eq!(titles(&workspace.lenses().await)[2..4], ["stopped", "Start"]);
    workspace.click("Start").await;
    workspace.click("Reload").await;
    workspace.quit().await;
}

#[tokio::test]
async fn an_unsaved_file_has_a_code_lens_that_shows_what_saving_will_do() {
    let mut workspace = Workspace::connected(&commented("")).await;
    let typed = workspace.text.replace("\"servers\": {", "\"servers\": {\n    \"other\": { \"command\": \"sh\" },");
    workspace.editor.change(&workspace.path, 2, &typed);
    let lenses = workspace.lenses().await;
    assert_eq!(titles(&lenses)[0], "On save: 1 new, 1 unchanged; `other` needs trust", "{lenses:#?}");
    workspace.editor.change(&workspace.path, 3, &workspace.text.clone());
    assert_eq!(titles(&workspace.lenses().await)[0], "Reload");
    workspace.quit().await;
}

#[tokio::test]
async fn hidden_kinds_of_code_lenses_are_left_out() {
    let mut workspace = Workspace::connected(&commented("")).await;
    let settings =
        json!({ "settings": { "mcpSidecar": { "editor": { "hideLenses": ["status", "reload", "add", "logs"] } } } });
    workspace.editor.notify("workspace/didChangeConfiguration", settings);
    assert_eq!(titles(&workspace.lenses().await), ["Stop", "Restart", "Test"]);
    workspace.quit().await;
}

#[tokio::test]
async fn saved_settings_apply_at_once() {
    let mut workspace = Workspace::new("{ \"servers\": {} }").await;
    workspace.open();
    assert_eq!(titles(&workspace.lenses().await), ["Reload", "Add server…"]);
    std::fs::write(workspace.home.path("config/config.toml"), "[editor]\nhide-lenses = [\"reload\"]\n").unwrap();
    while titles(&workspace.lenses().await) != ["Add server…"] {}
    workspace.quit().await;
}

#[tokio::test]
async fn a_hint_shows_the_level_if_another_rule_decides() {
    let mut workspace = Workspace::connected(&commented("\"echo\": \"require-approval\", \"add\": \"deny\"")).await;
    let level = policy("demo", "echo", Some(Level::Deny), Scope::Session);
    let tools = workspace.run(level).await;
    assert_eq!((tools.tools[0].tool.as_str(), tools.tools[0].level), ("echo", Level::Deny));
    let all = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 99, "character": 0 } });
    let params = json!({ "textDocument": { "uri": uri(&workspace.path) }, "range": all });
    let hints = workspace.editor.request("textDocument/inlayHint", params).await.unwrap();
    assert_eq!(hints.as_array().unwrap().len(), 2, "{hints:#}");
    assert!(hints[0]["label"].as_str().unwrap().starts_with("9 tools, ~"), "the first one is their cost: {hints:#}");
    assert_eq!(hints[1]["label"], "deny · session level demo.echo");
    assert_eq!(hints[1]["position"], range(&workspace.text, "\"require-approval\"")["end"]);
    workspace.quit().await;
}

#[tokio::test]
async fn a_rule_for_an_unknown_tool_is_reported_and_has_a_quick_fix() {
    let mut workspace = Workspace::connected(&commented("\"ehco\": \"deny\"")).await;
    let reported = workspace.diagnostics(|codes| codes.contains(&"unknown-tool")).await;
    let reported: Vec<&Value> =
        reported.as_array().unwrap().iter().filter(|one| one["code"] == "unknown-tool").collect();
    let actions = workspace.actions(reported[0]["range"].clone(), json!([reported[0]])).await;
    let fix = actions.iter().find(|action| action["kind"] == "quickfix").unwrap();
    assert_eq!((&fix["title"], &fix["diagnostics"][0]), (&json!("Change to `echo`"), reported[0]));
    let after = edited(&workspace.text, &fix["edit"]);
    assert_eq!(after, workspace.text.replace("ehco", "echo"));
    workspace.editor.change(&workspace.path, 2, &after);
    workspace.diagnostics(|codes| !codes.contains(&"unknown-tool")).await;
    workspace.quit().await;
}

#[tokio::test]
async fn a_level_in_a_closed_file_is_written_and_applied_without_asking() {
    let mut workspace = Workspace::connected(&commented("")).await;
    let pid = workspace.status().await.pid;
    workspace.editor.close(&workspace.path);
    let level = policy("demo", "echo", Some(Level::AllowSession), Scope::Project);
    let tools = workspace.run(level).await;
    assert_eq!((tools.tools[0].level, tools.unsaved.is_empty()), (Level::AllowSession, true), "{tools:?}");
    let written = workspace.on_disk();
    assert!(written.contains("\"echo\": \"allow-session\""), "{written}");
    for comment in ["// Above.", "// The demo.", "// its word"] {
        assert!(written.contains(comment), "{comment} is lost:\n{written}");
    }
    let result = workspace.run(tool_call("mcp__demo__echo", json!({ "text": "x" }))).await;
    assert_eq!(result.decision, "allow-session");
    let status = workspace.status().await;
    assert_eq!((status.pid, status.needs_trust), (pid, false));
    assert_eq!(workspace.run(Approvals::default()).await.approvals, []);
    let before = workspace.on_disk();
    let bad = policy("demo", "[", Some(Level::Deny), Scope::Project);
    let refused = workspace.editor.call(bad).await.expect_err("no glob");
    assert_eq!((refused.code, refused.kind()), (-32602, Some(ErrorKind::InvalidParams)));
    assert!(refused.message.starts_with("`tool`: `[` is not a valid glob: "), "{refused}");
    assert_eq!(workspace.on_disk(), before);
    let whole = policy("demo", "mcp__demo__echo", Some(Level::Deny), Scope::Project);
    let tools = workspace.run(whole).await;
    assert_eq!((tools.tools[0].tool.as_str(), tools.tools[0].level), ("echo", Level::Deny));
    assert_eq!(workspace.on_disk(), before.replace("\"echo\": \"allow-session\"", "\"echo\": \"deny\""));
    let gone = policy("demo", "echo", None, Scope::Project);
    workspace.run(gone).await;
    assert!(!workspace.on_disk().contains("echo"));
    workspace.quit().await;
}

#[tokio::test]
async fn a_level_in_an_open_file_is_an_edit_and_saving_it_does_not_ask() {
    let mut workspace = Workspace::connected(&commented("\"echo\": \"deny\"")).await;
    let actions = workspace.actions(range(&workspace.text, "\"echo\""), json!([])).await;
    let action = actions.iter().find(|action| action["title"] == "Set the level of `echo`…").unwrap();
    workspace.editor.handle("window/showMessageRequest", |_| Ok(json!({ "title": "allow-session" })));
    let command = &action["command"];
    let params = json!({ "command": command["command"], "arguments": command["arguments"] });
    let answer = workspace.editor.request("workspace/executeCommand", params).await.unwrap();
    assert_eq!(answer["unsaved"], json!([workspace.path]));
    assert_eq!(workspace.on_disk(), workspace.text, "the file itself is the editor's to save");
    let edit = workspace.applied.lock().unwrap().remove(0)["edit"].clone();
    let after = edited(&workspace.text, &edit);
    assert_eq!(after, workspace.text.replace("\"deny\"", "\"allow-session\""));
    workspace.editor.change(&workspace.path, 2, &after);
    workspace.home.write("mcp.json", &after);
    workspace.run(ConfigReload {}).await;
    let result = workspace.run(tool_call("mcp__demo__echo", json!({ "text": "x" }))).await;
    assert_eq!(result.decision, "allow-session");
    assert_eq!(workspace.run(Approvals::default()).await.approvals, []);
    workspace.quit().await;
}

#[tokio::test]
async fn servers_are_added_changed_moved_disabled_and_removed() {
    let mut harness = Harness::new(json!({}), json!({})).await;
    let path = harness.home.write("mcp.json", "{\n  // Kept.\n  \"servers\": {}\n}\n");
    harness.run(ConfigReload {}).await;
    let text = || std::fs::read_to_string(&path).unwrap();
    let mut config = demo(json!({}));
    config["env"] = json!({ "MODE": "a-plain-value" });
    let added = harness.run(add("demo", config.clone(), Scope::Project)).await;
    assert_eq!(
        (added.server.reason.as_deref(), added.server.scope, &added.server.config["env"]["MODE"]),
        (Some("awaiting-trust"), ShownScope::Project, &json!("•••"))
    );
    assert!(text().contains("// Kept.") && text().contains("demo-server"), "{}", text());
    let again = add("demo", config.clone(), Scope::Project);
    assert_eq!(harness.fails(again).await.kind(), Some(ErrorKind::Conflict));
    let bad = add("bad", json!({ "comand": "x" }), Scope::Project);
    assert_eq!(harness.fails(bad).await.kind(), Some(ErrorKind::InvalidParams));

    let mut shown = added.server.config.clone();
    shown["description"] = json!("words");
    let updated =
        harness.run(ServerUpdate { server: name("demo"), config: shown.clone(), scope: Scope::Project.into() }).await;
    assert_eq!(updated.server.config["description"], "words");
    assert!(text().contains("a-plain-value"), "what was shown masked is not lost: {}", text());

    let moved = harness
        .run(ServerMove { server: name("demo"), from: Scope::Project.into(), to: Scope::User, file: None })
        .await;
    assert_eq!((moved.server.scope, moved.server.needs_trust), (ShownScope::User, false));
    assert!(!text().contains("demo-server"));
    harness.until("demo", Status::Connected).await;
    let off = harness.run(ServerEnable { server: name("demo"), enabled: false, scope: None }).await;
    assert_eq!((off.server.status, off.server.enabled), (Status::Disabled, false));
    let on = harness.run(ServerEnable { server: name("demo"), enabled: true, scope: Some(Scope::User.into()) }).await;
    assert!(on.server.enabled);
    assert_eq!(
        harness.fails(ServerRemove { server: name("demo"), scope: Scope::Project.into() }).await.kind(),
        Some(ErrorKind::NotFound)
    );
    assert_eq!(
        harness.run(ServerRemove { server: name("demo"), scope: Scope::User.into() }).await.unsaved,
        [] as [PathBuf; 0]
    );
    assert_eq!(harness.run(Servers::default()).await.servers, []);
}

#[tokio::test]
async fn inputs_of_a_new_server_are_added_once() {
    let mut harness = Harness::new(json!({}), json!({})).await;
    let path = harness.home.write("mcp.json", "{\n  \"servers\": {}\n}\n");
    harness.run(ConfigReload {}).await;
    let config = json!({ "command": "files-mcp", "env": { "KEY": "${input:key}" } });
    let inputs = Some(vec![json!({ "id": "key", "type": "promptString", "description": "Key", "password": true })]);
    for server in ["one", "other"] {
        let (config, inputs) = (config.clone(), inputs.clone());
        harness.run(ServerAdd { inputs, ..add(server, config, Scope::Project) }).await;
    }
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!((text.matches("promptString").count(), text.matches("${input:key}").count()), (1, 2), "{text}");
}

#[tokio::test]
async fn session_servers_are_not_written_to_a_file() {
    let mut harness = Harness::new(json!({}), json!({})).await;
    let config = demo(json!({}));
    let added = harness.run(add("demo", config.clone(), Scope::Session)).await;
    assert_eq!((added.server.scope, added.server.file.as_deref()), (ShownScope::Session, None));
    harness.until("demo", Status::Connected).await;
    let off = harness.run(ServerEnable { server: name("demo"), enabled: false, scope: None }).await;
    assert_eq!(off.server.status, Status::Disabled);
    let moved = harness
        .run(ServerMove { server: name("demo"), from: Scope::Session.into(), to: Scope::Local, file: None })
        .await;
    assert_eq!(moved.server.scope, ShownScope::Local);
    let local = std::fs::read_to_string(harness.home.project().join("mcp.local.json")).unwrap();
    assert!(local.contains("\"enabled\": false"), "{local}");
}

#[tokio::test]
async fn an_action_uses_the_selection_and_inserts_its_result() {
    let actions = r#""actions": [
    { "title": "Again", "tool": "mcp__demo__echo", "arguments": { "text": "<${selection}> ${word} ${relativeFile}" }, "result": "replace", "filetypes": ["json"] },
    { "title": "Look", "tool": "mcp__demo__echo", "arguments": { "text": "${line}" } },
    { "title": "Rust only", "tool": "mcp__demo__echo", "filetypes": ["rust"] }
  ], "servers": {"#;
    let text = commented("\"echo\": \"allow-session\"").replacen("\"servers\": {", actions, 1);
    let mut workspace = Workspace::connected(&text).await;
    let (file, words) = (workspace.home.project().join("notes.txt"), "one two\nthree\n");
    workspace.editor.open(&file, words);
    let config = std::mem::replace(&mut workspace.path, file.clone());
    let offered = workspace.actions(range(words, "two"), json!([])).await;
    assert_eq!(titles(&offered), ["Again (from mcp.json)", "Look (from mcp.json)", "Call MCP tool…"]);
    let run = |action: &Value| json!({ "command": action["command"]["command"], "arguments": action["command"]["arguments"] });
    let result = workspace.editor.request("workspace/executeCommand", run(&offered[0])).await.unwrap();
    assert_eq!(result["content"][0]["text"], "<two> two notes.txt");
    let edit = workspace.applied.lock().unwrap().remove(0)["edit"].clone();
    assert_eq!(edited(words, &edit), "one <two> two notes.txt\nthree\n");

    workspace.editor.request("workspace/executeCommand", run(&offered[1])).await.unwrap();
    let shown = workspace.shown.lock().unwrap().remove(0)["uri"].as_str().unwrap().to_owned();
    let shown = url::Url::parse(&shown).unwrap().to_file_path().unwrap();
    assert_eq!(std::fs::read_to_string(shown).unwrap(), "one two");

    workspace.editor.handle("window/showMessageRequest", |params| {
        let actions = params["actions"].as_array().unwrap();
        Ok(actions.iter().find(|action| action["title"] == "demo/echo").unwrap().clone())
    });
    let result = workspace.editor.request("workspace/executeCommand", run(&offered[2])).await.unwrap();
    assert_eq!(result["content"][0]["text"], "two");
    workspace.path = config;
    workspace.quit().await;
}

#[tokio::test]
async fn a_result_is_not_inserted_if_the_text_has_changed() {
    let actions = r#""actions": [{ "title": "Again", "tool": "mcp__demo__echo", "arguments": { "text": "[${selection}]" }, "result": "replace" }], "servers": {"#;
    let text = commented("\"echo\": \"require-approval\"").replacen("\"servers\": {", actions, 1);
    let mut workspace = Workspace::connected(&text).await;
    let (file, words) = (workspace.home.project().join("notes.txt"), "one two three\n");
    workspace.editor.open(&file, words);
    // The user types while the message is shown, and then allows the call.
    let (voice, typed) = (workspace.editor.client.clone(), uri(&file));
    workspace.editor.handle("window/showMessageRequest", move |params| {
        let changes = json!([{ "text": "now one two three\n" }]);
        let change = json!({ "textDocument": { "uri": typed, "version": 2 }, "contentChanges": changes });
        voice.send_notification("textDocument/didChange", &change);
        Ok(params["actions"][1].clone())
    });
    let config = std::mem::replace(&mut workspace.path, file.clone());
    let offered = workspace.actions(range(words, "two"), json!([])).await;
    workspace.path = config;
    let action = offered[0]["command"]["arguments"][0]["action"].as_str().unwrap().to_owned();
    let params = ActionRun { action: Some(action), uri: uri(&file), range: json!(range(words, "two")), document: None };
    let refused = workspace.editor.call(params).await.unwrap_err();
    assert_eq!(refused.kind(), Some(ErrorKind::Conflict), "{refused:#}");
    assert!(workspace.applied.lock().unwrap().is_empty(), "nothing was inserted");
    let shown = workspace.shown.lock().unwrap().remove(0)["uri"].as_str().unwrap().to_owned();
    let shown = url::Url::parse(&shown).unwrap().to_file_path().unwrap();
    assert_eq!(std::fs::read_to_string(shown).unwrap(), "[two]");
    workspace.quit().await;
}

#[tokio::test]
async fn an_unsaved_server_is_changed_in_the_buffer() {
    let mut workspace = Workspace::connected(&commented("")).await;
    let config = json!({ "command": "sh" });
    let added = workspace.run(add("new", config.clone(), Scope::Project)).await;
    assert!(!added.unsaved.is_empty(), "{added:?}");
    let mut text = commented("");
    let mut version = 1;
    let mut follow = |workspace: &mut Workspace| {
        let edit = workspace.applied.lock().unwrap().remove(0)["edit"].clone();
        text = edited(&text, &edit);
        version += 1;
        workspace.editor.change(&workspace.path.clone(), version, &text);
        text.clone()
    };
    assert!(follow(&mut workspace).contains("\"new\""));
    let level = policy("new", "*", Some(Level::Deny), Scope::Project);
    workspace.run(level).await;
    assert!(follow(&mut workspace).contains("\"deny\""));
    workspace.run(ServerEnable { server: name("new"), enabled: false, scope: None }).await;
    assert!(follow(&mut workspace).contains("\"enabled\": false"));
    workspace.run(ServerRemove { server: name("new"), scope: Scope::Project.into() }).await;
    assert!(!follow(&mut workspace).contains("\"new\""));
    workspace.quit().await;
}
