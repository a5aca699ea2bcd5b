//! Entries of a project that define no server: they disable a server of the user, or restrict its tools.

use mcp_sidecar::engine::Engine;
use mcp_sidecar::model::{Level, Scope};
use mcp_sidecar::protocol::commands::{Approvals, ConfigReload, ServerEnable, ServerTimeout};
use mcp_sidecar::protocol::errors::ErrorKind;
use mcp_sidecar::protocol::events::ServerChanged;
use mcp_sidecar::protocol::types::{ApprovalKind, ServerStatus, ShownScope, Status};
use mcp_sidecar::settings::Settings;
use serde_json::{Value, json};

use crate::support::commands::{name, policy, start, text};
use crate::support::harness::{demo, open_editor};
use crate::support::{Harness, Home, uri};

fn user() -> Value {
    json!({ "servers": { "slack": demo(json!({ "*": "allow-always", "roll_dice": "deny" })) } })
}

async fn with_project(entry: Value) -> Harness {
    Harness::new(user(), json!({ "servers": { "slack": entry } })).await
}

fn enable(enabled: bool, scope: Option<Scope>) -> ServerEnable {
    ServerEnable { server: name("slack"), enabled, scope: scope.map(Into::into) }
}

fn project(harness: &Harness) -> String {
    std::fs::read_to_string(harness.home.project().join("mcp.json")).unwrap()
}

async fn until(harness: &mut Harness, wanted: impl Fn(&ServerStatus) -> bool) -> ServerStatus {
    loop {
        let now = harness.status("slack").await;
        if wanted(&now) {
            return now;
        }
        harness.editor.event::<ServerChanged>().await;
    }
}

#[tokio::test]
async fn a_project_disables_a_server_of_the_user_without_a_question() {
    let mut harness = with_project(json!({ "enabled": false })).await;
    let status = harness.status("slack").await;
    assert_eq!((status.status, status.enabled, status.scope), (Status::Disabled, false, ShownScope::User));
    assert_eq!(status.file, Some(harness.home.paths().user_config().display().to_string()));
    assert_eq!(status.summary.text, "disabled by mcp.json:1");
    let by = &status.restrictions[0];
    assert_eq!((by.scope, by.disables, by.effect.as_str()), (ShownScope::Project, true, "disables it"));
    assert_eq!(by.file, Some(harness.home.project().join("mcp.json").display().to_string()));
    assert_eq!(harness.run(Approvals::default()).await.approvals, []);
    let refused = harness.fails(start("slack")).await;
    assert_eq!(refused.kind(), Some(ErrorKind::Disabled));

    // The remedy changes the file that disables it, and leaves nothing behind.
    let remedy = refused.data.unwrap().remedy.unwrap();
    assert_eq!(remedy.command, "mcp.server.enable");
    harness.editor.raw_command(&remedy.command, Value::Object(remedy.arguments)).await.unwrap();
    harness.until("slack", Status::Connected).await;
    assert!(!project(&harness).contains("slack"), "{}", project(&harness));
}

#[tokio::test]
async fn a_project_restricts_tools_and_allows_nothing() {
    let entry = json!({ "tools": { "add": "deny", "take_*": "require-approval", "roll_dice": "allow-always", "weather": "disable" } });
    let mut harness = with_project(entry).await;
    let status = harness.until("slack", Status::Connected).await;
    assert!(!status.needs_trust && status.restrictions[0].effect == "restricts its tools (4 rules)", "{status:?}");
    assert_eq!(text(&harness.call("mcp__slack__echo", json!({ "text": "hi" })).await.unwrap()), "hi");
    for (tool, arguments) in [("add", json!({ "a": 1, "b": 2 })), ("roll_dice", json!({}))] {
        let refused = harness.call(&format!("mcp__slack__{tool}"), arguments).await.unwrap_err();
        assert_eq!(refused.kind(), Some(ErrorKind::Denied), "{tool}: {refused}");
    }
    let pending = harness.begin_call("mcp__slack__take_note", json!({ "text": "milk" }));
    let question = harness.approvals(mcp_sidecar::protocol::types::ApprovalKind::Tool, 1).await.remove(0);
    harness.resolve(&question, "deny").await;
    assert_eq!(harness.editor.answer(pending).await.unwrap_err().kind(), Some(ErrorKind::Denied));
}

#[tokio::test]
async fn disabling_in_another_scope_writes_an_entry_without_a_definition() {
    let mut harness = Harness::new(user(), json!({ "servers": {} })).await;
    harness.until("slack", Status::Connected).await;
    let answer = harness.run(enable(false, Some(Scope::Project))).await;
    assert_eq!(answer.server.restrictions[0].scope, ShownScope::Project);
    until(&mut harness, |status| status.status == Status::Disabled).await;
    let written: Value = serde_json::from_str(&project(&harness)).unwrap();
    assert_eq!(written, json!({ "servers": { "slack": { "enabled": false } } }));
    harness.run(enable(true, Some(Scope::Project))).await;
    harness.until("slack", Status::Connected).await;
    assert_eq!(serde_json::from_str::<Value>(&project(&harness)).unwrap(), json!({ "servers": {} }));

    // For this session only, there is no file.
    harness.run(enable(false, Some(Scope::Session))).await;
    until(&mut harness, |status| status.summary.text == "disabled by session").await;
    harness.run(enable(true, None)).await;
    harness.until("slack", Status::Connected).await;

    // A scope without such an entry cannot enable it.
    harness.run(enable(false, None)).await;
    until(&mut harness, |status| status.summary.text == "disabled in its config file").await;
    assert_eq!(harness.fails(enable(true, Some(Scope::Project))).await.kind(), Some(ErrorKind::NotFound));
    assert_eq!(harness.status("slack").await.status, Status::Disabled);
}

#[tokio::test]
async fn a_level_in_another_scope_can_only_restrict() {
    let mut harness = Harness::new(user(), json!({ "servers": {} })).await;
    harness.until("slack", Status::Connected).await;
    harness.run(policy("slack", "echo", Some(Level::Deny), Scope::Project)).await;
    let refused = harness.call("mcp__slack__echo", json!({ "text": "hi" })).await.unwrap_err();
    assert_eq!(refused.kind(), Some(ErrorKind::Denied));
    let wider = harness.fails(policy("slack", "echo", Some(Level::AllowAlways), Scope::Project)).await;
    assert_eq!(wider.kind(), Some(ErrorKind::InvalidParams));
    assert!(wider.to_string().contains("can only restrict its tools"), "{wider}");
    harness.run(policy("slack", "echo", None, Scope::Project)).await;
    assert_eq!(text(&harness.call("mcp__slack__echo", json!({ "text": "hi" })).await.unwrap()), "hi");
    assert!(!project(&harness).contains("slack"), "{}", project(&harness));
}

#[tokio::test]
async fn language_features_show_the_server_of_the_user() {
    let mut harness = with_project(json!({ "tools": { "add": "deny" } })).await;
    harness.until("slack", Status::Connected).await;
    let path = harness.home.project().join("mcp.json");
    let written = project(&harness);
    harness.editor.open(&path, &written);
    let lenses = harness.editor.ask_about("textDocument/codeLens", &path).await;
    let titles: Vec<_> =
        lenses.as_array().unwrap().iter().map(|lens| lens["command"]["title"].as_str().unwrap()).collect();
    assert!(titles.iter().any(|title| title.starts_with("connected · ")) && titles.contains(&"Restart"), "{titles:?}");
    let at = |word: &str| json!({ "line": 0, "character": written.find(word).unwrap() + 2 });
    let document = json!({ "uri": uri(&path) });
    let params = json!({ "textDocument": document, "position": at("\"slack\"") });
    let hover = harness.editor.request("textDocument/hover", params).await.unwrap();
    let shown = hover["contents"]["value"].as_str().unwrap();
    assert!(shown.contains("**`slack`** · connected") && shown.contains("`mcp.json:1` restricts its tools"), "{shown}");
    assert!(!shown.contains("Overridden"), "{shown}");

    let (before, after) = written.split_at(written.find("\"add\"").unwrap());
    let typed = format!("{before}\"\",{after}");
    harness.editor.change(&path, 2, &typed);
    let position = json!({ "line": 0, "character": before.len() + 1 });
    let params = json!({ "textDocument": document, "position": position });
    let offered = harness.editor.request("textDocument/completion", params).await.unwrap();
    let items = offered["items"].as_array().unwrap();
    assert!(items.iter().any(|item| item["label"] == "take_note"), "{offered:#}");
}

#[tokio::test]
async fn a_call_that_took_too_long_offers_to_raise_the_timeout() {
    let mut harness = Harness::with(
        json!({ "servers": { "slow": demo(json!({ "*": "allow-always" })) } }),
        json!({ "servers": {} }),
        Settings::from_toml("[servers]\ntimeout = '200ms'\n").0,
    )
    .await;
    harness.until("slow", Status::Connected).await;
    let much_later = json!({ "from": 3, "interval": 5000 });
    let late = harness.call("mcp__slow__countdown", much_later.clone()).await.unwrap_err();
    assert_eq!(late.kind(), Some(ErrorKind::Timeout), "{late}");
    let remedy = late.data.unwrap().remedy.expect("what to do");
    assert_eq!(
        (remedy.title.as_str(), remedy.command.as_str()),
        ("Raise the timeout of `slow` to 0.4 s", "mcp.server.timeout")
    );
    assert_eq!(json!(remedy.arguments), json!({ "server": "slow", "timeout": 0.4 }));
    harness.editor.raw_command(&remedy.command, Value::Object(remedy.arguments)).await.unwrap();
    let file = std::fs::read_to_string(harness.home.paths().user_config()).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&file).unwrap()["servers"]["slow"]["timeout"], 0.4);
    let late = harness.call("mcp__slow__countdown", much_later).await.unwrap_err();
    assert!(late.message.contains("within 0.4 s"), "{late}");
    for wrong in [0.0, -1.0, f64::from(1 << 30)] {
        let refused = harness.fails(ServerTimeout { server: name("slow"), timeout: wrong }).await;
        assert_eq!(refused.kind(), Some(ErrorKind::InvalidParams), "{wrong}");
    }
}

#[tokio::test]
async fn nothing_runs_unasked_while_the_rules_of_a_broken_file_are_not_known() {
    for (broken, other) in [("managed.json", "config/mcp.json"), ("config/mcp.json", "managed.json")] {
        let home = Home::new();
        let write = |name: &str, text: &str| {
            std::fs::create_dir_all(home.path("config")).unwrap();
            std::fs::write(home.path(name), text).unwrap();
        };
        let servers = json!({ "servers": { "mine": demo(json!({ "*": "allow-always" })) } });
        let works = json!({ "policy": { "denylist": [{ "server": "*", "tool": "echo" }] } }).to_string();
        write(other, &servers.to_string());
        write(broken, &works[..20]);
        let engine = Engine::start(home.paths(), Settings::default());
        let editor = open_editor(&home, &engine).await;
        let mut harness = Harness { home, engine, editor };
        let message = harness.editor.notification("window/showMessage").await["message"].to_string();
        assert!(message.contains(broken) && message.contains("cannot be read"), "{message}");
        if broken == "managed.json" {
            let failed = harness.until("mine", Status::Failed).await;
            let reason = failed.error.unwrap_or_default();
            assert!(reason.contains("denies everything until the file is fixed"), "{reason}");
        } else {
            harness.until("mine", Status::Connected).await;
            let call = harness.begin_call("mcp__mine__echo", json!({ "text": "x" }));
            let question = harness.approvals(ApprovalKind::Tool, 1).await.remove(0);
            harness.resolve(&question, "deny").await;
            assert_eq!(harness.editor.answer(call).await.unwrap_err().kind(), Some(ErrorKind::Denied));
        }
        std::fs::write(harness.home.path(broken), works).unwrap();
        harness.until("mine", Status::Connected).await;
        harness.run(ConfigReload {}).await;
        let called = harness.call("mcp__mine__echo", json!({ "text": "x" })).await;
        // A level of the administrator comes before a denylist of the user.
        assert_eq!(
            called.err().map(|error| error.message.contains("denylist")),
            (broken == "managed.json").then_some(true)
        );
    }
}
