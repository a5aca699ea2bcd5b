//! The start and end of a session, and errors in between.

use mcp_sidecar::lsp::Reason;
use mcp_sidecar::protocol::commands::Servers;
use mcp_sidecar::protocol::errors::ErrorKind;
use serde_json::{Value, json};

use crate::support::{Home, attach};

#[tokio::test]
async fn initialize_returns_the_capabilities() {
    let home = Home::new();
    let (mut editor, _) = attach(&home);
    let mut answer = editor.initialize(&[&home.project()], json!({})).await.clone();
    let commands = std::mem::take(&mut answer["capabilities"]["executeCommandProvider"]["commands"]);
    let listed = std::mem::take(&mut answer["capabilities"]["experimental"]["mcpSidecar"]["commands"]);
    assert_eq!(commands, listed);
    assert_eq!(answer["serverInfo"], json!({ "name": "mcp-sidecar", "version": env!("CARGO_PKG_VERSION") }));
    let capabilities = &answer["capabilities"];
    assert_eq!(capabilities["positionEncoding"], "utf-16");
    assert_eq!(capabilities["textDocumentSync"]["change"], 1);
    assert_eq!(capabilities["textDocumentSync"]["openClose"], true);
    assert_eq!(capabilities["documentSymbolProvider"], true);
    assert_eq!(capabilities["foldingRangeProvider"], true);
    assert!(capabilities["documentLinkProvider"].is_object());
    assert_eq!(capabilities["experimental"]["mcpSidecar"]["protocol"], 1);
    assert_eq!(capabilities["experimental"]["mcpSidecar"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(capabilities["workspace"]["workspaceFolders"]["changeNotifications"], true);
    editor.quit().await;
}

#[tokio::test]
async fn columns_are_bytes_if_the_editor_supports_it() {
    let home = Home::new();
    let (mut editor, _) = attach(&home);
    let offer = json!({ "capabilities": { "general": { "positionEncodings": ["utf-16", "utf-8"] } } });
    let answer = editor.initialize(&[], offer).await;
    assert_eq!(answer["capabilities"]["positionEncoding"], "utf-8");
    editor.quit().await;
}

#[tokio::test]
async fn odd_parameters_of_initialize_are_accepted() {
    for odd in [
        json!({ "rootUri": "", "rootPath": 7, "workspaceFolders": [{ "uri": "" }, null, { "uri": "untitled:x" }] }),
        json!({ "capabilities": { "workspace": { "workspaceEdit": { "resourceOperations": ["fly"] } } }, "trace": "loud" }),
        json!({ "capabilities": { "experimental": { "mcpSidecar": [] } }, "initializationOptions": [] }),
        json!({ "workspaceFolders": null, "rootUri": "file://" }),
    ] {
        let home = Home::new();
        let (mut editor, _) = attach(&home);
        editor.ignore("window/showMessage");
        assert!(editor.initialize(&[], odd).await["capabilities"].is_object());
        editor.quit().await;
    }
}

#[tokio::test]
async fn requests_before_initialize_and_after_shutdown_are_refused() {
    let home = Home::new();
    let (mut editor, session) = attach(&home);
    let early = editor.call(Servers::default()).await.unwrap_err();
    assert_eq!(early.code, -32002);
    editor.initialize(&[&home.project()], json!({})).await;
    let again = editor.request("initialize", json!({ "capabilities": {} })).await.unwrap_err();
    assert_eq!(again.code, -32600);
    editor.request("shutdown", Value::Null).await.unwrap();
    let late = editor.call(Servers::default()).await.unwrap_err();
    assert_eq!(late.code, -32600);
    editor.request("shutdown", Value::Null).await.unwrap();
    editor.notify("exit", Value::Null);
    let end = session.await.unwrap();
    assert_eq!((end.reason, end.exit_code()), (Reason::Exit, 0));
}

#[tokio::test]
async fn the_session_ends_when_the_editor_disconnects() {
    let home = Home::new();
    let (mut editor, session) = attach(&home);
    editor.initialize(&[&home.project()], json!({})).await;
    drop(editor);
    assert_eq!(session.await.unwrap().exit_code(), 1);
}

#[tokio::test]
async fn exit_without_shutdown_is_a_failure() {
    let home = Home::new();
    let (mut editor, session) = attach(&home);
    editor.initialize(&[&home.project()], json!({})).await;
    editor.notify("exit", Value::Null);
    editor.hung_up().await;
    let end = session.await.unwrap();
    assert_eq!((end.reason, end.exit_code()), (Reason::Exit, 1));
}

#[tokio::test]
async fn unknown_methods_and_notifications_are_harmless() {
    let home = Home::new();
    let (mut editor, _) = attach(&home);
    editor.initialize(&[&home.project()], json!({})).await;
    assert_eq!(editor.request("no/such/method", json!({})).await.unwrap_err().code, -32601);
    assert_eq!(editor.request("$/no/such/method", json!({})).await.unwrap_err().code, -32601);
    editor.notify("no/such/notification", json!([1, 2]));
    editor.notify("$/setTrace", json!({ "value": "verbose" }));
    editor.notify("textDocument/didOpen", json!({ "textDocument": 5 }));
    editor.notify("workspace/didChangeConfiguration", json!(null));
    editor.notify("$/cancelRequest", json!({ "id": 12_345 }));
    let answer =
        editor.request("textDocument/documentSymbol", json!({ "textDocument": { "uri": "untitled:x" } })).await;
    assert_eq!(answer, Ok(Value::Null));
    editor.quit().await;
}

#[tokio::test]
async fn parameters_of_the_wrong_type_are_invalid() {
    let home = Home::new();
    let (mut editor, _) = attach(&home);
    editor.initialize(&[&home.project()], json!({})).await;
    assert_eq!(editor.request("textDocument/documentSymbol", json!({ "x": 1 })).await.unwrap_err().code, -32602);
    editor.quit().await;
}

#[tokio::test]
async fn an_unknown_command_is_not_found() {
    let home = Home::new();
    let (mut editor, _) = attach(&home);
    editor.initialize(&[&home.project()], json!({})).await;
    let error = editor.raw_command("mcp.nonsense", json!({})).await.unwrap_err();
    assert_eq!((error.code, error.kind()), (-32001, Some(ErrorKind::NotFound)));
    editor.quit().await;
}
