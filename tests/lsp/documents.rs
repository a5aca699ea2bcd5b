//! Requests about open buffers.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Home, TestEditor, attach, uri};

async fn editor(home: &Home) -> TestEditor {
    let (mut editor, _) = attach(home);
    editor.ignore("textDocument/publishDiagnostics");
    editor.initialize(&[&home.project()], json!({})).await;
    editor
}

fn names(symbols: &Value) -> Vec<String> {
    let symbols = symbols.as_array().cloned().unwrap_or_default();
    symbols
        .iter()
        .flat_map(|symbol| [symbol["name"].as_str().unwrap().to_owned()].into_iter().chain(names(&symbol["children"])))
        .collect()
}

#[tokio::test]
async fn a_request_sees_every_change_that_was_sent_before_it() {
    let home = Home::new();
    let path = home.project().join("mcp.json");
    let mut editor = editor(&home).await;
    editor.open(&path, "{}");
    for version in 2..300 {
        editor.change(&path, version, &format!(r#"{{ "servers": {{ "s{version}": {{ "command": "x" }} }} }}"#));
        if version % 50 == 0 {
            let symbols = editor.ask_about("textDocument/documentSymbol", &path).await;
            assert_eq!(names(&symbols), ["servers".to_owned(), format!("s{version}")]);
        }
    }
    editor.quit().await;
}

#[tokio::test]
async fn positions_are_lines_and_utf_16_columns() {
    let home = Home::new();
    let path = home.project().join("mcp.json");
    let mut editor = editor(&home).await;
    editor.open(&path, "{ \"servers\": {\r\n  /* 🙂 */ \"fs\": { \"command\": \"npx\" }\r\n} }");
    let symbols = editor.ask_about("textDocument/documentSymbol", &path).await;
    let server = &symbols[0]["children"][0];
    assert_eq!(server["selectionRange"]["start"], json!({ "line": 1, "character": 11 }));
    assert_eq!(server["detail"], "npx");
    editor.quit().await;
}

#[tokio::test]
async fn an_editor_without_nested_symbols_gets_a_flat_outline() {
    let home = Home::new();
    let path = home.project().join("mcp.json");
    let (mut editor, _) = attach(&home);
    let flat = json!({ "capabilities": { "textDocument": { "documentSymbol": null } } });
    editor.initialize(&[&home.project()], flat).await;
    editor.ignore("textDocument/publishDiagnostics");
    editor.open(
        &path,
        "{ \"servers\": {\n \"fs\": { \"command\": \"npx\", \"tools\": { \"rm\": \"deny\" } } },\n \"inputs\": [] }",
    );
    let symbols = editor.ask_about("textDocument/documentSymbol", &path).await;
    let listed: Vec<_> = symbols
        .as_array()
        .unwrap()
        .iter()
        .map(|symbol| (symbol["name"].as_str().unwrap(), symbol["containerName"].as_str().unwrap_or("-")))
        .collect();
    assert_eq!(listed, [("servers", "-"), ("fs", "servers"), ("rm", "fs"), ("inputs", "-")]);
    assert_eq!(symbols[1]["location"]["range"]["start"], json!({ "line": 1, "character": 1 }));
    assert_eq!(symbols[1]["location"]["uri"], json!(uri(&path)));
    editor.quit().await;
}

#[tokio::test]
async fn objects_fold_and_their_last_line_stays_visible() {
    let home = Home::new();
    let path = home.project().join("mcp.json");
    let mut editor = editor(&home).await;
    editor.open(&path, "{\n  \"servers\": {\n    \"a\": { \"command\": \"x\" }\n  }\n}\n");
    let folds = editor.ask_about("textDocument/foldingRange", &path).await;
    let lines: Vec<_> =
        folds.as_array().unwrap().iter().map(|fold| (fold["startLine"].as_u64(), fold["endLine"].as_u64())).collect();
    assert_eq!(lines, [(Some(0), Some(3)), (Some(1), Some(2))]);
    editor.quit().await;
}

#[tokio::test]
async fn an_env_file_that_exists_is_a_link() {
    let home = Home::new();
    let target = home.write(".env", "A=1");
    let path = home.write(".vscode/mcp.json", "{}");
    let mut editor = editor(&home).await;
    let text =
        r#"{ "servers": { "a": { "command": "x", "envFile": ".env" }, "b": { "url": "https://example.test/" } } }"#;
    editor.open(&path, text);
    // The folder that paths begin at is known once the engine has taken the workspace over.
    editor.raw_command("mcp.nonsense", json!({})).await.unwrap_err();
    let links = editor.ask_about("textDocument/documentLink", &path).await;
    let targets: Vec<_> = links.as_array().unwrap().iter().map(|link| link["target"].as_str().unwrap()).collect();
    assert_eq!(targets, [crate::support::uri(&target).as_str(), "https://example.test/"]);
    editor.quit().await;
}

#[tokio::test]
async fn buffers_that_are_not_files_are_ignored() {
    let home = Home::new();
    let mut editor = editor(&home).await;
    for uri in
        ["file://", "untitled:Untitled-1", "mcp-call://fs/write_file", "file:///", "", "mcp://a/%ff", "file://host/x"]
    {
        editor.open_uri(uri, "{");
        let change = json!({ "textDocument": { "uri": uri, "version": 2 }, "contentChanges": [{ "text": "{}" }] });
        editor.notify("textDocument/didChange", change);
        let params = json!({ "textDocument": { "uri": uri } });
        if !uri.is_empty() {
            assert_eq!(editor.request("textDocument/documentSymbol", params.clone()).await, Ok(Value::Null), "{uri}");
        }
        editor.notify("textDocument/didClose", params);
    }
    editor.quit().await;
}

#[tokio::test]
async fn other_files_are_ignored() {
    let home = Home::new();
    let mut editor = editor(&home).await;
    let path: &Path = &home.project().join("main.json");
    editor.open(path, "{ \"servers\": {} }");
    assert_eq!(editor.ask_about("textDocument/documentSymbol", path).await, Value::Null);
    editor.quit().await;
}
