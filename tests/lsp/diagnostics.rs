//! Diagnostics of config files: while typing, and in files that are not open.

use serde_json::{Value, json};

use crate::support::{Home, TestEditor, attach, uri};

const GOOD: &str = r#"{ "servers": {} }"#;
const CUT: &str = r#"{ "servers": { "#;

async fn editor(home: &Home) -> TestEditor {
    let (mut editor, _) = attach(home);
    editor.initialize(&[&home.project()], json!({})).await;
    editor
}

fn messages(published: &Value) -> Vec<&str> {
    published["diagnostics"].as_array().unwrap().iter().map(|one| one["message"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_mistake_is_reported_while_typing_until_it_is_fixed() {
    let home = Home::new();
    let path = home.write("mcp.json", GOOD);
    let mut editor = editor(&home).await;
    editor.open(&path, GOOD);
    assert_eq!(messages(&editor.diagnostics(&path).await), [] as [&str; 0]);
    editor.change(&path, 2, CUT);
    let report = editor.diagnostics(&path).await;
    assert_eq!(report["version"], 2);
    assert!(messages(&report)[0].contains("unexpected end of file"), "{report:#}");
    let first = &report["diagnostics"][0];
    assert_eq!((&first["severity"], &first["source"]), (&json!(1), &json!("mcp-sidecar")));
    assert!(first["code"].is_string());
    editor.change(&path, 3, GOOD);
    let report = editor.diagnostics(&path).await;
    assert_eq!((&report["version"], messages(&report).len()), (&json!(3), 0));
    editor.quit().await;
}

#[tokio::test]
async fn files_that_are_not_open_have_diagnostics() {
    let home = Home::new();
    let path = home.write("mcp.json", CUT);
    let mut editor = editor(&home).await;
    let report = editor.diagnostics(&path).await;
    assert_eq!((&report["version"], messages(&report).len()), (&Value::Null, 1));
    home.write("mcp.json", GOOD);
    assert_eq!(messages(&editor.diagnostics(&path).await).len(), 0);
    editor.quit().await;
}

#[tokio::test]
async fn an_open_buffer_replaces_its_file_until_it_is_closed() {
    let home = Home::new();
    let path = home.write("mcp.json", CUT);
    let mut editor = editor(&home).await;
    assert_eq!(messages(&editor.diagnostics(&path).await).len(), 1);
    editor.open(&path, GOOD);
    assert_eq!(messages(&editor.diagnostics(&path).await).len(), 0);
    editor.close(&path);
    assert_eq!(messages(&editor.diagnostics(&path).await).len(), 1);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(messages(&editor.diagnostics(&path).await).len(), 0);
    editor.quit().await;
}

#[tokio::test]
async fn after_many_changes_only_the_last_text_is_checked() {
    let home = Home::new();
    let path = home.project().join("mcp.json");
    let mut editor = editor(&home).await;
    editor.open(&path, GOOD);
    for version in 2..=5_000 {
        editor.change(&path, version, CUT);
    }
    editor.change(&path, 5_001, GOOD);
    let mut published = 0;
    loop {
        let report = editor.diagnostics(&path).await;
        published += 1;
        if report["version"] == 5_001 {
            assert_eq!(messages(&report).len(), 0);
            break;
        }
    }
    assert!(published < 5_000, "rounds come together: {published}");
    editor.quit().await;
}

#[tokio::test]
async fn a_config_file_outside_of_all_folders_is_checked_alone() {
    let home = Home::new();
    let path = home.path("elsewhere/mcp.json");
    let mut editor = editor(&home).await;
    editor.open(&path, CUT);
    // The mistake is reported at once, and that the file has no effect when the folders are known.
    while messages(&editor.diagnostics(&path).await).len() != 2 {}
    editor.close(&path);
    assert_eq!(messages(&editor.diagnostics(&path).await).len(), 0);
    editor.quit().await;
}

#[tokio::test]
async fn adding_and_removing_a_folder_adds_and_removes_its_diagnostics() {
    let home = Home::new();
    let path = home.write("sub/mcp.json", CUT);
    let (mut editor, _) = attach(&home);
    editor.initialize(&[], json!({})).await;
    let folder = json!({ "uri": crate::support::uri(&home.project().join("sub")), "name": "sub" });
    let change = |added: Value, removed: Value| json!({ "event": { "added": added, "removed": removed } });
    editor.notify("workspace/didChangeWorkspaceFolders", change(json!([folder]), json!([])));
    assert_eq!(messages(&editor.diagnostics(&path).await).len(), 1);
    editor.notify("workspace/didChangeWorkspaceFolders", change(json!([]), json!([folder])));
    assert_eq!(messages(&editor.diagnostics(&path).await).len(), 0);
    editor.quit().await;
}

#[tokio::test]
async fn a_diagnostic_contains_its_fix_and_related_locations() {
    let home = Home::new();
    let strong = home.write("mcp.json", r#"{ "servers": { "a": { "type": "sdk", "name": "x" } } }"#);
    let weak = home.write(".mcp.json", "{ \"servers\": {\r\n  \"a\": { \"type\": \"sdk\", \"name\": \"x\" } } }");
    let (mut editor, _) = attach(&home);
    // Whether to trust the server is asked beside all this, perhaps at once.
    editor.handle("window/showMessageRequest", |_| Ok(Value::Null));
    editor.initialize(&[&home.project()], json!({})).await;
    let report = editor.diagnostics(&weak).await;
    let hidden = report["diagnostics"].as_array().unwrap().iter().find(|one| one["code"] == "hidden").unwrap();
    assert_eq!((&hidden["severity"], &hidden["tags"]), (&json!(3), &json!([1])));
    assert_eq!(hidden["range"]["start"], json!({ "line": 1, "character": 2 }));
    assert_eq!(hidden["relatedInformation"][0]["location"]["uri"], crate::support::uri(&strong));

    editor.open(&strong, "");
    let report = editor.notification_where("textDocument/publishDiagnostics", |params| params["version"] == 1).await;
    let fix = &report["diagnostics"][0]["data"]["fix"];
    assert!(fix["title"].is_string() && fix["edits"][0]["newText"].is_string(), "{report:#}");
    editor.ignore("textDocument/publishDiagnostics");
    editor.quit().await;
}

#[tokio::test]
async fn what_an_entry_without_a_definition_cannot_do_is_reported() {
    let home = Home::new();
    std::fs::create_dir_all(home.paths().config_dir).unwrap();
    let user = r#"{ "servers": { "slack": { "type": "sdk", "enabled": false } } }"#;
    std::fs::write(home.paths().user_config(), user).unwrap();
    let text = r#"{ "servers": { "slack": { "enabled": true, "tools": { "post": "allow-always" } }, "slak": { "enabled": false } } }"#;
    let path = home.write("mcp.json", text);
    let mut editor = editor(&home).await;
    editor.open(&path, text);
    // Until the folder is loaded, the file is alone, and nobody knows what its entries mean.
    let mut report = editor.diagnostics(&path).await;
    while messages(&report).is_empty() {
        report = editor.diagnostics(&path).await;
    }
    let codes: Vec<_> =
        report["diagnostics"].as_array().unwrap().iter().map(|one| one["code"].as_str().unwrap()).collect();
    assert_eq!(codes, ["only-restricts", "only-restricts", "unknown-server"], "{report:#}");
    assert!(messages(&report)[0].contains("stays disabled"), "{report:#}");
    let related = &report["diagnostics"][0]["relatedInformation"][0]["location"]["uri"];
    assert_eq!(related, &json!(uri(&home.paths().user_config())), "{report:#}");
    editor.ignore("textDocument/publishDiagnostics");
    editor.quit().await;
}
