use super::*;
use crate::ide::tests::Scene;
use crate::model::Status;

const TWO: &str = r#"{ "servers": { "a": { "command": "a" }, "b": { "command": "b" } } }"#;

fn shown(scene: &Scene, hide: &[&str]) -> String {
    let hide: Vec<String> = hide.iter().map(|kind| (*kind).to_owned()).collect();
    let lenses = lenses(&scene.config(), &LensOptions { hide, ..LensOptions::default() });
    let line = |lens: &Lens| {
        let params = serde_json::Value::Object(lens.command.arguments.clone());
        format!("{} | {} → {} {}", &scene.text[lens.span.clone()], lens.title, lens.command.command, params)
    };
    lenses.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_running_server_shows_its_tools_and_possible_actions() {
    let scene = Scene::new(TWO).connected("a", &["x", "y"]).untrusted("b");
    insta::assert_snapshot!(shown(&scene, &[]), @r#"
    { | Reload → mcp.config.reload {}
    { | Add server… → mcp.template.insert {"uri":""}
    "a" | connected · 2 tools → mcp.servers {"server":"a"}
    "a" | Stop → mcp.server.stop {"server":"a"}
    "a" | Restart → mcp.server.restart {"server":"a"}
    "a" | Test → mcp.server.test {"server":"a"}
    "a" | Show log → mcp.server.logs {"server":"a"}
    "b" | waiting for trust → mcp.servers {"server":"b"}
    "b" | Trust… → mcp.server.trust {"server":"b","ask":true}
    "#);
}

#[test]
fn hidden_kinds_are_left_out() {
    let scene = Scene::new(TWO).connected("a", &["x"]).status("b", Status::NeedsAuth, None);
    insta::assert_snapshot!(shown(&scene, &["reload", "add", "test", "logs", "stop", "restart"]), @r#"
    "a" | connected · 1 tool → mcp.servers {"server":"a"}
    "b" | needs sign-in → mcp.servers {"server":"b"}
    "b" | Sign in… → mcp.server.auth {"server":"b"}
    "#);
}

#[test]
fn a_disabled_server_can_be_enabled_and_a_failed_one_started() {
    let scene = Scene::new(r#"{ "servers": { "a": { "command": "a", "enabled": false }, "b": { "command": "b" } } }"#);
    let scene = scene.status("b", Status::Failed, Some("exited with code 1"));
    insta::assert_snapshot!(shown(&scene, &["reload", "add", "test", "logs"]), @r#"
    "a" | disabled in its config file → mcp.servers {"server":"a"}
    "a" | Enable → mcp.server.enable {"server":"a","enabled":true}
    "b" | failed: exited with code 1 → mcp.servers {"server":"b"}
    "b" | Start → mcp.server.start {"server":"b"}
    "#);
}

#[test]
fn an_unsaved_file_shows_what_saving_will_do() {
    let saved = r#"{ "servers": { "a": { "command": "a" }, "b": { "command": "b" }, "c": { "command": "c" } } }"#;
    let typed = r#"{ "servers": { "a": { "command": "a2" }, "b": { "command": "b" }, "d": { "command": "d" } } }"#;
    let scene = Scene::new(saved).typed(typed);
    let asked = ["a", "d"].map(|name| ServerName::new(name).unwrap()).into();
    let title = |scene: &Scene, asked: &BTreeSet<ServerName>| {
        let options = LensOptions { needs_trust: Some(asked.clone()), ..LensOptions::default() };
        lenses(&scene.config(), &options).remove(0).title
    };
    assert_eq!(title(&scene, &asked), "On save: 1 new, 1 restarts, 1 stops, 1 unchanged; `a`, `d` need trust");
    assert_eq!(
        title(&Scene::new(saved).typed("{ \"servers\": { "), &asked),
        "On save: no change until the syntax errors are fixed"
    );
    assert_eq!(title(&Scene::new(saved), &BTreeSet::new()), "On save: 3 unchanged");
}

#[test]
fn disabling_a_server_stops_it_and_enabling_starts_it() {
    let off = TWO.replacen("\"command\": \"a\"", "\"command\": \"a\", \"enabled\": false", 1);
    let title = |scene: &Scene| {
        let options = LensOptions { needs_trust: Some(BTreeSet::new()), ..LensOptions::default() };
        lenses(&scene.config(), &options)[0].title.clone()
    };
    assert_eq!(title(&Scene::new(TWO).typed(&off)), "On save: 1 stops, 1 unchanged");
    assert_eq!(title(&Scene::new(&off).typed(TWO)), "On save: 1 starts, 1 unchanged");
}

#[test]
fn the_outline_shows_that_a_definition_is_overridden() {
    let scene = Scene::with_user(TWO, r#"{ "servers": { "a": { "command": "x" } } }"#).in_user_file();
    let outline = crate::ide::symbols::symbols(&scene.config());
    assert_eq!(outline[0].children[0].detail.as_deref(), Some("x · overridden by scope project"));
}

#[test]
fn a_saved_file_with_syntax_errors_says_what_is_in_force() {
    let first = |scene: &Scene| lenses(&scene.config(), &LensOptions::default())[0].title.clone();
    let broken = Scene::new(TWO).typed(r#"{ "servers": { "a": { "command": "a" }, "b" "#);
    assert_eq!(first(&broken), "This file has syntax errors: its last valid version stays in effect");
    assert_eq!(first(&Scene::new(r#"{ "servers" "#)), "This file has syntax errors: nothing in it is in effect");
}

#[test]
fn a_server_that_the_editor_starts_itself_says_so_and_can_be_taken_over() {
    let scene = Scene::new(TWO).connected("a", &["x"]);
    let options = LensOptions { owner: Some("VS Code".to_owned()), ..LensOptions::default() };
    let lenses = lenses(&scene.config(), &options);
    let owned = lenses.iter().find(|lens| lens.kind == "owner").unwrap();
    assert_eq!(owned.title, "VS Code starts it itself, without your rules · let MCP Sidecar run it");
    let params = serde_json::Value::Object(owned.command.arguments.clone());
    assert_eq!(params, serde_json::json!({ "server": "a", "from": "project", "to": "project", "file": "mcp.json" }));
}
