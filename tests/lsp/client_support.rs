//! Nothing is sent to an editor that it did not say it supports, and what an editor sends is taken as it is meant.

use mcp_sidecar::protocol::commands::{EditApply, TemplateInsert};
use mcp_sidecar::protocol::errors::ErrorKind;
use serde_json::{Value, json};

use crate::support::{Home, attach, uri};

const WITH_A_LINK: &str = r#"{ "servers": { "a": { "type": "http", "url": "https://example.test/mcp" } } }"#;

#[tokio::test]
async fn a_link_has_a_tooltip_only_where_it_is_supported() {
    for (supported, tooltip) in
        [(json!({}), Value::Null), (json!({ "tooltipSupport": true }), json!("Open example.test"))]
    {
        let home = Home::new();
        let path = home.write("mcp.json", WITH_A_LINK);
        let (mut editor, _end) = attach(&home);
        editor.ignore("textDocument/publishDiagnostics");
        editor.handle("window/showMessageRequest", |_| Ok(Value::Null));
        let capabilities = json!({ "textDocument": { "documentLink": supported } });
        editor.initialize(&[&home.project()], json!({ "capabilities": capabilities })).await;
        editor.open(&path, WITH_A_LINK);
        let links = editor.ask_about("textDocument/documentLink", &path).await;
        assert_eq!(links[0]["target"], "https://example.test/mcp");
        assert_eq!(links[0]["tooltip"], tooltip);
        editor.quit().await;
    }
}

/// The editor of the tests fails on every request that it did not expect.
#[tokio::test]
async fn an_editor_that_cannot_apply_edits_is_not_asked_to() {
    let home = Home::new();
    let text = r#"{ "servers": { "a": { "command": "sh", "env": { "API_TOKEN": "Bearer s3cr3t-value" } } } }"#;
    let path = home.write("mcp.json", text);
    let (mut editor, _end) = attach(&home);
    editor.ignore("textDocument/publishDiagnostics");
    editor.handle("window/showMessageRequest", |_| Ok(Value::Null));
    editor.initialize(&[&home.project()], json!({})).await;
    editor.open(&path, text);
    let uri = uri(&path);
    let template = Some("filesystem".to_owned());
    let insert = editor.call(TemplateInsert { uri: uri.clone(), template }).await.unwrap_err();
    let apply = EditApply { uri: uri.clone(), version: None, edits: json!([]), label: None };
    let apply = editor.call(apply).await.unwrap_err();
    let column = text.find("\"Bearer").unwrap();
    let end = column + "\"Bearer s3cr3t-value\"".len();
    let range = json!({ "start": { "line": 0, "character": column }, "end": { "line": 0, "character": end } });
    let keep = editor.raw_command("mcp.secret.keep", json!({ "uri": uri, "range": range })).await.unwrap_err();
    for refused in [insert, apply, keep] {
        assert_eq!(refused.kind(), Some(ErrorKind::Conflict), "{refused}");
        assert!(refused.message.contains("cannot apply edits"), "{refused}");
    }
    let holds_secret = |path: std::path::PathBuf| {
        std::fs::read(path).is_ok_and(|bytes| bytes.windows(12).any(|part| part == b"s3cr3t-value"))
    };
    let state = std::fs::read_dir(home.path("state")).unwrap().map(|entry| entry.unwrap().path());
    assert_eq!(state.filter(|path| path.is_file()).filter(|path| holds_secret(path.clone())).count(), 0);
    editor.quit().await;
}

#[tokio::test]
async fn exit_after_a_refused_shutdown_is_a_failure() {
    let (mut editor, end) = attach(&Home::new());
    editor.request("shutdown", Value::Null).await.expect_err("nothing is initialized yet");
    editor.notify("exit", Value::Null);
    assert_eq!(end.await.unwrap().exit_code(), 1);
}

#[tokio::test]
async fn a_change_without_a_version_counts() {
    let home = Home::new();
    let path = home.write("mcp.json", "{}");
    let (mut editor, _end) = attach(&home);
    editor.initialize(&[&home.project()], json!({})).await;
    editor.open(&path, "{}");
    editor.diagnostics(&path).await;
    let document = json!({ "uri": uri(&path), "version": null });
    editor.notify(
        "textDocument/didChange",
        json!({ "textDocument": document, "contentChanges": [{ "text": "{ \"servers\": 5 }" }] }),
    );
    let published = editor.diagnostics(&path).await;
    assert_eq!(published["diagnostics"].as_array().unwrap().len(), 1, "{published:#}");
    assert_eq!(published["version"], Value::Null, "the version is unknown: {published:#}");
    editor.quit().await;
}

#[tokio::test]
async fn nothing_is_renamed_in_a_file_that_does_not_parse() {
    let home = Home::new();
    let text = "{ \"servers\": { \"one\": { \"command\": \"sh\" },, } }";
    let path = home.write("mcp.json", text);
    let (mut editor, _end) = attach(&home);
    editor.ignore("textDocument/publishDiagnostics");
    editor.initialize(&[&home.project()], json!({})).await;
    editor.open(&path, text);
    let position = json!({ "line": 0, "character": text.find("one").unwrap() + 1 });
    let at = json!({ "textDocument": { "uri": uri(&path) }, "position": position });
    assert_eq!(editor.request("textDocument/prepareRename", at.clone()).await.unwrap(), Value::Null);
    let mut rename = at;
    rename["newName"] = json!("two");
    let refused = editor.request("textDocument/rename", rename).await.unwrap_err();
    assert!(refused.message.contains("syntax errors"), "{refused}");
    editor.quit().await;
}
