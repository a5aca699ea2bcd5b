//! Servers from and for other programs, as an editor asks for them.

use serde_json::json;

use crate::support::Harness;

#[tokio::test]
async fn an_import_is_in_force_when_it_is_answered_and_a_dry_run_changes_nothing() {
    let mut desk = Harness::new(json!({ "servers": {} }), json!({})).await;
    let theirs = desk
        .home
        .write("theirs.json", r#"{ "mcpServers": { "a": { "command": "none-such-mcp", "disabled": true } } }"#);
    let mut wish = json!({ "from": "cline", "path": theirs, "scope": "user", "dryRun": true });
    let told = desk.run("mcp.config.import", wish.clone()).await;
    assert_eq!((&told["imported"], &told["skipped"]), (&json!(["a"]), &json!({})));
    assert_eq!(desk.run("mcp.servers", json!({})).await["servers"], json!([]));
    wish["dryRun"] = json!(null);
    assert_eq!(desk.run("mcp.config.import", wish.clone()).await["imported"], json!(["a"]));
    let status = desk.status("a").await;
    assert_eq!((&status["status"], &status["scope"]), (&json!("disabled"), &json!("user")));
    let again = desk.run("mcp.config.import", wish.clone()).await;
    assert_eq!(again["imported"], json!([]));
    assert!(again["skipped"]["a"].as_str().unwrap().contains("already"), "{again}");

    wish["scope"] = json!("session");
    assert_eq!(desk.fails("mcp.config.import", wish.clone()).await.0, "invalid-params");
    wish["from"] = json!("emacs");
    assert_eq!(desk.fails("mcp.config.import", wish).await.0, "invalid-params");
    let nowhere = json!({ "from": "zed", "path": "/nowhere/settings.json", "scope": "user" });
    assert_eq!(desk.fails("mcp.config.import", nowhere).await.0, "not-found");
    for (name, text) in [("broken.json", "{ \"context_servers\": { "), ("list.json", "[]"), ("some.toml", "a = 1")] {
        let path = desk.home.write(name, text);
        let (kind, message) =
            desk.fails("mcp.config.import", json!({ "from": "zed", "path": path, "scope": "user" })).await;
        assert_eq!(kind, "io");
        assert!(message.contains(name) && message.contains("as a config file of Zed: "), "{message}");
    }
    let folder = json!({ "from": "zed", "path": desk.home.path(""), "scope": "user" });
    assert_eq!(desk.fails("mcp.config.import", folder).await.0, "io");
}

#[tokio::test]
async fn an_export_gives_the_text_and_writes_it_where_it_is_told_to() {
    let user = json!({ "servers": { "a": { "command": "a-mcp", "enabled": false, "env": { "KEY": "${env:KEY}" } } } });
    let mut desk = Harness::new(user, json!({})).await;
    let path = desk.home.path("out/config.toml");
    let told = desk.run("mcp.config.export", json!({ "to": "codex", "servers": ["a"], "path": path })).await;
    assert_eq!(told["text"], "[mcp_servers.a]\ncommand = \"a-mcp\"\nenv_vars = [\"KEY\"]\nenabled = false\n");
    assert_eq!(told["path"], json!(path));
    assert_eq!(std::fs::read_to_string(path).unwrap(), told["text"].as_str().unwrap());
    let none = desk.run("mcp.config.export", json!({ "to": "mcphub", "servers": [] })).await;
    assert!(!none["text"].as_str().unwrap().contains("a-mcp"), "{none}");
    let all = desk.run("mcp.config.export", json!({ "to": "mcphub" })).await;
    assert!(all["text"].as_str().unwrap().contains("${env:KEY}") && all.get("path").is_none(), "{all}");
    assert_eq!(desk.fails("mcp.config.export", json!({ "to": "codex", "servers": ["b"] })).await.0, "not-found");
    let own = desk.home.paths().user_config();
    assert_eq!(desk.fails("mcp.config.export", json!({ "to": "codex", "path": own })).await.0, "conflict");
}
