//! Servers from and for other programs, as an editor asks for them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use mcp_sidecar::config::interop::Dialect;
use mcp_sidecar::model::Scope;
use mcp_sidecar::protocol::commands::{ConfigExport, ConfigImport, Servers};
use mcp_sidecar::protocol::errors::ErrorKind;
use mcp_sidecar::protocol::types::{ShownScope, Status};
use serde_json::json;

use crate::support::Harness;
use crate::support::commands::name;

#[tokio::test]
async fn an_import_is_in_force_when_it_is_answered_and_a_dry_run_changes_nothing() {
    let mut harness = Harness::new(json!({ "servers": {} }), json!({})).await;
    let theirs = harness
        .home
        .write("theirs.json", r#"{ "mcpServers": { "a": { "command": "none-such-mcp", "disabled": true } } }"#);
    let import =
        |path: PathBuf| ConfigImport { from: Dialect::Zed, path: Some(path), scope: Scope::User, dry_run: false };
    let mut request = ConfigImport { from: Dialect::Cline, dry_run: true, ..import(theirs) };
    let result = harness.run(request.clone()).await;
    assert_eq!((result.imported, result.skipped), (vec!["a".to_owned()], BTreeMap::new()));
    assert_eq!(harness.run(Servers::default()).await.servers, []);
    request.dry_run = false;
    assert_eq!(harness.run(request.clone()).await.imported, ["a"]);
    let status = harness.status("a").await;
    assert_eq!((status.status, status.scope), (Status::Disabled, ShownScope::User));
    let again = harness.run(request.clone()).await;
    assert_eq!(again.imported, [] as [String; 0]);
    assert!(again.skipped["a"].contains("already"), "{again:?}");

    request.scope = Scope::Session;
    assert_eq!(harness.fails(request).await.kind(), Some(ErrorKind::InvalidParams));
    let unknown = json!({ "from": "emacs", "scope": "user" });
    let unknown = harness.editor.raw_command("mcp.config.import", unknown).await.unwrap_err();
    assert_eq!(unknown.kind(), Some(ErrorKind::InvalidParams));
    let nowhere = harness.fails(import("/nowhere/settings.json".into())).await;
    assert_eq!(nowhere.kind(), Some(ErrorKind::NotFound));
    for (name, text) in [("broken.json", "{ \"context_servers\": { "), ("list.json", "[]"), ("some.toml", "a = 1")] {
        let path = harness.home.write(name, text);
        let error = harness.fails(import(path)).await;
        assert_eq!(error.kind(), Some(ErrorKind::Io));
        assert!(error.message.contains(name) && error.message.contains("as a config file of Zed: "), "{error}");
    }
    let folder = import(harness.home.path(""));
    assert_eq!(harness.fails(folder).await.kind(), Some(ErrorKind::Io));
}

#[tokio::test]
async fn an_export_returns_the_text_and_writes_it_to_the_given_path() {
    let user = json!({ "servers": { "a": { "command": "a-mcp", "enabled": false, "env": { "KEY": "${env:KEY}" } } } });
    let mut harness = Harness::new(user, json!({})).await;
    let path = harness.home.path("out/config.toml");
    let export = |to: Dialect, servers: Option<&[&str]>| ConfigExport {
        to,
        servers: servers.map(|servers| servers.iter().map(|server| name(server)).collect()),
        path: None,
    };
    let result = harness.run(ConfigExport { path: Some(path.clone()), ..export(Dialect::Codex, Some(&["a"])) }).await;
    assert_eq!(result.text, "[mcp_servers.a]\ncommand = \"a-mcp\"\nenv_vars = [\"KEY\"]\nenabled = false\n");
    assert_eq!(result.path.as_ref(), Some(&path));
    assert_eq!(std::fs::read_to_string(path).unwrap(), result.text);
    let none = harness.run(export(Dialect::McpHub, Some(&[]))).await;
    assert!(!none.text.contains("a-mcp"), "{none:?}");
    let all = harness.run(export(Dialect::McpHub, None)).await;
    assert!(all.text.contains("${env:KEY}") && all.path.is_none(), "{all:?}");
    let missing = harness.fails(export(Dialect::Codex, Some(&["b"]))).await;
    assert_eq!(missing.kind(), Some(ErrorKind::NotFound));
    let own = ConfigExport { path: Some(harness.home.paths().user_config()), ..export(Dialect::Codex, None) };
    assert_eq!(harness.fails(own).await.kind(), Some(ErrorKind::Conflict));
}
