//! Completion, hover, definition, references and rename with a running server.

use std::path::{Path, PathBuf};

use mcp_sidecar::protocol::commands::{ConfigReload, Templates, Tools};
use mcp_sidecar::protocol::types::Status;
use serde_json::{Value, json};

use crate::support::commands::{name, start};
use crate::support::harness::trust_shown;
use crate::support::{Home, TestEditor, attach, uri};

const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-sidecar");

/// An editor in a project with the demo server, which is trusted and connected.
async fn with_demo(home: &Home, capabilities: Value) -> (TestEditor, PathBuf) {
    let path = home.write("mcp.json", &file(r#""tools": { "echo": "allow-session" }"#));
    let (mut editor, _) = attach(home);
    editor.ignore("textDocument/publishDiagnostics");
    editor.handle("window/showMessageRequest", |_| Ok(Value::Null));
    editor.initialize(&[&home.project()], json!({ "capabilities": capabilities })).await;
    trust_shown(&mut editor, "demo").await;
    let started = editor.call(start("demo")).await.unwrap();
    assert_eq!(started.servers[0].status, Status::Connected, "{started:?}");
    (editor, path)
}

fn file(more: &str) -> String {
    format!(r#"{{ "servers": {{ "demo": {{ "command": {}, "args": ["demo-server"], {more} }} }} }}"#, json!(PROGRAM))
}

/// Opens a text and returns the position of its `$0`.
fn show(editor: &mut TestEditor, path: &Path, marked: &str) -> Value {
    let (before, after) = marked.split_once("$0").unwrap();
    editor.open(path, &format!("{before}{after}"));
    let line = before.matches('\n').count();
    let column = before.rsplit('\n').next().unwrap().encode_utf16().count();
    json!({ "textDocument": { "uri": uri(path) }, "position": { "line": line, "character": column } })
}

async fn ask(editor: &mut TestEditor, method: &str, params: Value) -> Value {
    editor.request(&format!("textDocument/{method}"), params).await.unwrap()
}

fn labels(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|item| item["label"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn tools_are_completed_in_an_incomplete_file() {
    let home = Home::new();
    let (mut editor, path) = with_demo(&home, json!({})).await;
    let params = show(&mut editor, &path, "{ \"servers\": { \"demo\": { \"tools\": {\n  \"ec$0\n");
    let list = ask(&mut editor, "completion", params).await;
    assert!(labels(&list).contains(&"roll_dice"), "{list:#}");
    let echo = list["items"].as_array().unwrap().iter().find(|item| item["label"] == "echo").unwrap();
    let range = json!({ "start": { "line": 1, "character": 2 }, "end": { "line": 1, "character": 5 } });
    assert_eq!(echo["textEdit"], json!({ "range": range, "newText": "\"echo\": \"require-approval\"" }));
    assert_eq!((&echo["filterText"], &echo["insertTextFormat"]), (&json!("\"echo\""), &json!(1)));
    assert!(echo["documentation"]["value"].as_str().unwrap().contains("Returns the given text"));
    editor.quit().await;
}

#[tokio::test]
async fn an_editor_without_markdown_gets_plain_text() {
    let home = Home::new();
    let plain = json!(["plaintext"]);
    let capabilities = json!({ "textDocument": {
        "hover": { "contentFormat": plain }, "completion": { "completionItem": { "documentationFormat": plain } }
    } });
    let (mut editor, path) = with_demo(&home, capabilities).await;
    let params = show(&mut editor, &path, &file(r#""tools": { "ec$0ho": "allow-session" }"#));
    let hover = ask(&mut editor, "hover", params).await;
    assert_eq!(hover["contents"]["kind"], "plaintext");
    let text = hover["contents"]["value"].as_str().unwrap();
    assert!(text.starts_with("mcp__demo__echo") && text.contains("Returns the given text"), "{text}");
    assert!(text.contains("text  string  required") && !text.contains(['`', '|', '*']), "{text}");
    let params = show(&mut editor, &path, r#"{ "servers": { "demo": { "type": "$0" } } }"#);
    let list = ask(&mut editor, "completion", params).await;
    let documented: Vec<&Value> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| &item["documentation"])
        .filter(|docs| !docs.is_null())
        .collect();
    assert!(!documented.is_empty());
    assert!(
        documented.iter().all(|docs| docs["kind"] == "plaintext" && !docs["value"].as_str().unwrap().contains('`'))
    );
    editor.quit().await;
}

#[tokio::test]
async fn an_editor_with_snippet_support_gets_snippets() {
    let home = Home::new();
    let completion = json!({ "textDocument": { "completion": { "completionItem": { "snippetSupport": true } } } });
    let (mut editor, path) = with_demo(&home, completion).await;
    let params = show(&mut editor, &path, r#"{ "servers": { "demo": { $0 } } }"#);
    let list = ask(&mut editor, "completion", params).await;
    let args = list["items"].as_array().unwrap().iter().find(|item| item["label"] == "args").unwrap();
    assert_eq!((&args["textEdit"]["newText"], &args["insertTextFormat"]), (&json!("\"args\": [\"$1\"]"), &json!(2)));
    editor.quit().await;
}

#[tokio::test]
async fn hover_shows_the_state_of_a_server_and_its_tools() {
    let home = Home::new();
    let (mut editor, path) = with_demo(&home, json!({})).await;
    let text = file(r#""tools": { "echo": "allow-session" }"#);
    let params = show(&mut editor, &path, &text.replace("\"demo\"", "\"de$0mo\""));
    let server = ask(&mut editor, "hover", params).await;
    let shown = server["contents"]["value"].as_str().unwrap();
    assert!(shown.starts_with("**`demo`** · connected · stdio"), "{shown}");
    assert!(shown.contains("9 tools") && shown.contains("`roll_dice`"), "{shown}");
    let params = show(&mut editor, &path, &text.replace("\"echo\"", "\"ec$0ho\""));
    let tool = ask(&mut editor, "hover", params).await;
    let shown = tool["contents"]["value"].as_str().unwrap();
    assert!(shown.contains("| `text` | string | required · Text to return |"), "{shown}");
    assert!(shown.contains("Level: **allow-session**, set by `mcp.json:1 tools.echo`"), "{shown}");
    editor.quit().await;
}

#[tokio::test]
async fn definition_leads_to_the_overridden_file() {
    let home = Home::new();
    let user = home.path("config/mcp.json");
    std::fs::write(&user, "{\n  \"servers\": { \"demo\": { \"type\": \"sdk\" } }\n}").unwrap();
    let (mut editor, path) = with_demo(&home, json!({})).await;
    let params = show(&mut editor, &path, r#"{ "servers": { "de$0mo": {} } }"#);
    let found = ask(&mut editor, "definition", params).await;
    let range = json!({ "start": { "line": 1, "character": 16 }, "end": { "line": 1, "character": 20 } });
    assert_eq!(found, json!([{ "uri": uri(&user), "range": range }]));
    let text = r#"{ "actions": [{ "title": "e", "tool": "mcp__demo__ec$0ho" }], "servers": { "demo": {} } }"#;
    let params = show(&mut editor, &path, text);
    let found = ask(&mut editor, "definition", params).await;
    assert_eq!((&found[0]["uri"], found.as_array().unwrap().len()), (&json!(uri(&path)), 1), "{found:#}");
    editor.quit().await;
}

#[tokio::test]
async fn references_to_a_server_are_found_and_renamed() {
    let home = Home::new();
    let (mut editor, path) = with_demo(&home, json!({})).await;
    let text = "{ \"servers\": { \"de$0mo\": {}, \"other\": {} },\n  \"policy\": { \"denylist\": [{ \"server\": \"demo\", \"tool\": \"*\" }] },\n  \"actions\": [{ \"title\": \"é\", \"tool\": \"mcp__demo__echo\" }] }";
    let mut params = show(&mut editor, &path, text);
    let highlights = ask(&mut editor, "documentHighlight", params.clone()).await;
    assert_eq!(highlights.as_array().unwrap().len(), 3);
    let ready = ask(&mut editor, "prepareRename", params.clone()).await;
    assert_eq!(ready["placeholder"], "demo");
    params["context"] = json!({ "includeDeclaration": false });
    let references = ask(&mut editor, "references", params.clone()).await;
    let lines: Vec<_> = references.as_array().unwrap().iter().map(|one| &one["range"]["start"]["line"]).collect();
    assert_eq!(lines, [&json!(1), &json!(2)]);
    params["newName"] = json!("show");
    let edit = ask(&mut editor, "rename", params.clone()).await;
    let edits = edit["changes"][uri(&path)].as_array().unwrap();
    assert!(edits.len() == 3 && edits.iter().all(|edit| edit["newText"] == "show"), "{edit:#}");
    params["newName"] = json!("other");
    let error = editor.request("textDocument/rename", params).await.unwrap_err();
    assert_eq!(error.message.as_str(), "`other` already exists in this file; choose another name");
    editor.quit().await;
}

#[tokio::test]
async fn rename_updates_references_in_other_files() {
    let home = Home::new();
    let user = home.paths().user_config();
    std::fs::write(&user, "{ \"policy\": { \"allowlist\": [\n  { \"server\": \"demo\", \"tool\": \"echo\" }] } }")
        .unwrap();
    let (mut editor, path) = with_demo(&home, json!({})).await;
    let mut params = show(&mut editor, &path, "{ \"servers\": { \"de$0mo\": { \"command\": \"x\" } } }");
    params["newName"] = json!("show");
    let edit = ask(&mut editor, "rename", params).await;
    assert_eq!(edit["changes"][uri(&path)].as_array().unwrap().len(), 1, "{edit:#}");
    let range = json!({ "start": { "line": 1, "character": 15 }, "end": { "line": 1, "character": 19 } });
    assert_eq!(edit["changes"][uri(&user)], json!([{ "range": range, "newText": "show" }]));
    editor.quit().await;
}

#[tokio::test]
async fn the_outline_shows_the_state_and_a_level_its_source() {
    let home = Home::new();
    let (mut editor, path) = with_demo(&home, json!({})).await;
    let text = file("\n\"tools\": {\n \"echo\": \"allow-session\" }");
    std::fs::write(&path, &text).unwrap();
    editor.open(&path, &text);
    editor.call(ConfigReload {}).await.unwrap();
    let symbols = editor.ask_about("textDocument/documentSymbol", &path).await;
    let detail = symbols[0]["children"][0]["detail"].as_str().unwrap();
    assert!(detail.contains(" · connected · "), "{detail}");
    let tools = editor.call(Tools { server: Some(name("demo")), ..Default::default() }).await.unwrap();
    let echo = tools.tools.iter().find(|tool| tool.tool == "echo").unwrap();
    assert_eq!(echo.source, "mcp.json:3 tools.echo", "the line of the rule, not that of its server");
    editor.quit().await;
}

#[tokio::test]
async fn the_selection_expands_from_a_word_to_the_whole_file() {
    let home = Home::new();
    let (mut editor, path) = with_demo(&home, json!({})).await;
    let mut params = show(&mut editor, &path, r#"{ "servers": { "de$0mo": {} } }"#);
    params["positions"] = json!([params["position"]]);
    let ranges = ask(&mut editor, "selectionRange", params).await;
    let mut range = &ranges[0];
    assert_eq!(range["range"]["start"]["character"], 16);
    while range["parent"].is_object() {
        range = &range["parent"];
    }
    assert_eq!(range["range"]["start"]["character"], 0);
    editor.quit().await;
}

#[tokio::test]
async fn templates_are_listed() {
    let home = Home::new();
    let (mut editor, _) = with_demo(&home, json!({})).await;
    let listed = editor.call(Templates {}).await.unwrap();
    let templates = listed.templates;
    assert!(templates.len() > 15);
    for template in templates {
        let texts = [&template.id, &template.title, &template.description];
        assert!(texts.iter().all(|text| !text.is_empty()) && template.config.is_object(), "{template:?}");
    }
    editor.quit().await;
}
