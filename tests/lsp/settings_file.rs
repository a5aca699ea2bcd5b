//! `config.toml` in an editor: diagnostics, completion and hover, like in any other config file.

use serde_json::{Value, json};

use crate::support::{Home, TestEditor, attach, uri};

async fn editor(home: &Home) -> TestEditor {
    let (mut editor, _end) = attach(home);
    editor.initialize(&[&home.project()], json!({})).await;
    editor
}

async fn at(editor: &mut TestEditor, method: &str, path: &std::path::Path, line: u32, character: u32) -> Value {
    let position = json!({ "line": line, "character": character });
    editor.request(method, json!({ "textDocument": { "uri": uri(path) }, "position": position })).await.unwrap()
}

/// Completes at the end of a text and returns the labels, and the text after the first one is accepted.
async fn complete(editor: &mut TestEditor, home: &Home, version: i32, text: &str) -> (Vec<String>, String) {
    let path = home.paths().settings_file();
    editor.change(&path, version, text);
    let line = text.matches('\n').count() as u32;
    let column = text.rsplit('\n').next().unwrap().len() as u32;
    let answer = at(editor, "textDocument/completion", &path, line, column).await;
    let items = answer["items"].as_array().unwrap();
    let labels = items.iter().map(|item| item["label"].as_str().unwrap().to_owned()).collect();
    let edit = &items.first().map(|item| item["textEdit"].clone()).unwrap_or_default();
    let start = edit["range"]["start"]["character"].as_u64().unwrap_or_default() as usize;
    let kept = text.len() - column as usize + start;
    (labels, format!("{}{}", &text[..kept], edit["newText"].as_str().unwrap_or_default()))
}

#[tokio::test]
async fn a_mistake_is_marked_while_typing_and_shown_as_a_message_when_it_is_saved() {
    let home = Home::new();
    let path = home.paths().settings_file();
    let good = "[limits]\ntools = 7\n";
    std::fs::write(&path, good).unwrap();
    let mut editor = editor(&home).await;
    editor.open(&path, good);
    assert_eq!(editor.diagnostics(&path).await["diagnostics"], json!([]));
    let bad = "[limits]\ntoools = 7\n";
    editor.change(&path, 2, bad);
    let published = editor.diagnostics(&path).await;
    let [problem] = &published["diagnostics"].as_array().unwrap()[..] else { panic!("{published:#}") };
    assert_eq!((&problem["code"], &problem["source"]), (&json!("settings"), &json!("mcp-sidecar")));
    assert_eq!(problem["range"]["start"], json!({ "line": 1, "character": 0 }));
    assert!(problem["message"].as_str().unwrap().contains("unknown setting `limits.toools`"), "{problem:#}");
    std::fs::write(&path, bad).unwrap();
    let message = editor.notification("window/showMessage").await;
    assert!(message["message"].as_str().unwrap().contains("limits.toools"), "{message:#}");
    editor.close(&path);
    // It is not open any more, but the mistake is still in the file.
    let published = editor.diagnostics(&path).await;
    assert_eq!((&published["version"], published["diagnostics"].as_array().unwrap().len()), (&Value::Null, 1));
    std::fs::write(&path, good).unwrap();
    assert_eq!(editor.diagnostics(&path).await["diagnostics"], json!([]));
    editor.quit().await;
}

#[tokio::test]
async fn sections_keys_and_values_are_completed() {
    let home = Home::new();
    let path = home.paths().settings_file();
    let mut editor = editor(&home).await;
    editor.ignore("textDocument/publishDiagnostics");
    editor.open(&path, "");
    let (labels, text) = complete(&mut editor, &home, 2, "aud").await;
    assert!(labels.starts_with(&["audit".to_owned(), "audit-keep-days".to_owned()]), "{labels:?}");
    assert_eq!(text, "audit = \"normal\"");
    let (labels, text) = complete(&mut editor, &home, 3, "audit = ").await;
    assert_eq!((labels, text.as_str()), (vec!["normal".to_owned(), "strict".to_owned()], "audit = \"normal\""));
    let (labels, text) = complete(&mut editor, &home, 4, "audit = \"st").await;
    assert_eq!((labels.len(), text.as_str()), (2, "audit = \"normal\""));
    let (labels, text) = complete(&mut editor, &home, 5, "[").await;
    assert!(labels.contains(&"limits".to_owned()) && labels.contains(&"agents.NAME".to_owned()), "{labels:?}");
    assert_eq!(text, "[files]");
    let (labels, _) = complete(&mut editor, &home, 6, "[log]\nlevel = \"info\"\n").await;
    assert_eq!(labels, ["days"], "what is set is not offered again");
    let (labels, _) = complete(&mut editor, &home, 7, "# aud").await;
    assert_eq!(labels, [] as [&str; 0], "not in a comment");
    editor.quit().await;
}

#[tokio::test]
async fn a_setting_explains_itself() {
    let home = Home::new();
    let path = home.paths().settings_file();
    let text = "[servers]\ntimeout = \"5s\"\n";
    let mut editor = editor(&home).await;
    editor.ignore("textDocument/publishDiagnostics");
    editor.open(&path, text);
    let hover = at(&mut editor, "textDocument/hover", &path, 1, 3).await;
    let shown = hover["contents"]["value"].as_str().unwrap();
    assert!(shown.contains("`servers.timeout`") && shown.contains("How long a call may take"), "{shown}");
    assert!(shown.contains("Default: `\"30s\"`"), "{shown}");
    assert_eq!(hover["range"]["end"], json!({ "line": 1, "character": 7 }));
    assert_eq!(at(&mut editor, "textDocument/hover", &path, 0, 0).await, Value::Null);
    editor.quit().await;
}
