//! Config files outside of the editor's root, and editors without a root.

use mcp_sidecar::protocol::commands::Servers;
use serde_json::{Value, json};

use crate::support::{Home, TestEditor, attach, uri};

const TEXT: &str = r#"{ "servers": { "one": { "command": "sh" } } }"#;

async fn lens_titles(editor: &mut TestEditor, path: &std::path::Path) -> Vec<String> {
    let lenses = editor.ask_about("textDocument/codeLens", path).await;
    let title = |lens: &Value| lens["command"]["title"].as_str().unwrap().to_owned();
    lenses.as_array().unwrap().iter().map(title).collect()
}

#[tokio::test]
async fn without_a_root_the_folder_of_the_first_config_file_is_the_workspace() {
    for file in ["mcp.json", ".vscode/mcp.json", "mcp.local.json"] {
        let home = Home::new();
        let path = home.write(file, TEXT);
        let (mut editor, _end) = attach(&home);
        editor.ignore("textDocument/publishDiagnostics");
        editor.handle("window/showMessageRequest", |_| Ok(Value::Null));
        editor.initialize(&[], json!({})).await;
        editor.open(&home.write("readme.md", ""), "");
        assert_eq!(editor.call(Servers::default()).await.unwrap().servers.len(), 0);
        editor.open(&path, TEXT);
        let servers = editor.call(Servers::default()).await.unwrap().servers;
        let files: Vec<&str> = servers.iter().filter_map(|server| server.file.as_deref()).collect();
        assert_eq!(files, [path.to_str().unwrap()]);
        let titles = lens_titles(&mut editor, &path).await;
        assert!(!titles.iter().any(|title| title.contains("save")), "{titles:?}");
        editor.quit().await;
    }
}

#[tokio::test]
async fn a_file_outside_of_the_root_says_that_it_does_not_count_and_what_to_do() {
    let home = Home::new();
    let other = home.path("other");
    std::fs::create_dir(&other).unwrap();
    let path = other.join("mcp.json");
    std::fs::write(&path, TEXT).unwrap();
    let (mut editor, _end) = attach(&home);
    editor.initialize(&[&home.project()], json!({})).await;
    editor.open(&path, TEXT);
    let message = loop {
        let published = editor.diagnostics(&path).await;
        if let [problem] = &published["diagnostics"].as_array().unwrap()[..] {
            assert_eq!(problem["code"], "outside-workspace");
            break problem["message"].as_str().unwrap().to_owned();
        }
    };
    assert!(message.contains(&format!("open the folder {}", other.display())), "{message}");
    let titles = lens_titles(&mut editor, &path).await;
    assert!(titles.contains(&"Not in effect: this file is outside of the workspace".to_owned()), "{titles:?}");
    assert!(!titles.iter().any(|title| title.contains("save") || title == "Reload"), "{titles:?}");
    // The editor opens that folder as well.
    editor.handle("window/showMessageRequest", |_| Ok(Value::Null));
    let added = json!([{ "uri": uri(&other), "name": "other" }]);
    editor.notify("workspace/didChangeWorkspaceFolders", json!({ "event": { "added": added, "removed": [] } }));
    assert_eq!(editor.call(Servers::default()).await.unwrap().servers.len(), 1);
    loop {
        let codes = editor.diagnostics(&path).await["diagnostics"].to_string();
        if !codes.contains("outside-workspace") {
            break;
        }
    }
    editor.ignore("textDocument/publishDiagnostics");
    editor.quit().await;
}
