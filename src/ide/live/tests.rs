use std::time::Instant;

use super::*;
use crate::ide::tests::{Scene, marked};

fn shown(scene: &Scene) -> String {
    marked(&scene.text, &problems(&scene.config()))
}

#[test]
fn a_failed_connection_is_reported_at_its_target() {
    let scene = Scene::new(
        r#"{ "servers": {
  "web": { "url": "https://example.test/mcp" },
  "port": { "type": "tcp", "port": 3001 },
  "prog": { "command": ["prog", "-x"] },
  "auth": { "url": "https://example.test/b" }
} }"#,
    );
    let closed =
        ServerError { port_closed: true, ..ServerError::from("127.0.0.1:3001: connection refused".to_owned()) };
    let stderr = vec!["no key".to_owned()];
    let exited = ServerError { stderr, ..ServerError::from("exited with code 1".to_owned()) };
    let scene = scene
        .status("web", Status::Failed, Some("no route to example.test"))
        .failed("port", Status::Failed, Some(closed))
        .failed("prog", Status::Pending(PendingReason::Retry(Instant::now())), Some(exited))
        .status("auth", Status::NeedsAuth, None);
    insta::assert_snapshot!(shown(&scene), @r#"
      "web": { "url": "https://example.test/mcp" },
                      ^^^^^^^^^^^^^^^^^^^^^^^^^^ error connection-failed: no route to example.test
      "port": { "type": "tcp", "port": 3001 },
                                       ^^^^ error port-closed: 127.0.0.1:3001: connection refused
      "prog": { "command": ["prog", "-x"] },
                            ^^^^^^ warning connection-failed: exited with code 1
                            help: last lines of its stderr:
      no key
      "auth": { "url": "https://example.test/b" }
                       ^^^^^^^^^^^^^^^^^^^^^^^^ warning needs-sign-in: `auth` requires you to sign in (HTTP 401)
    "#);
}

#[test]
fn the_failure_of_an_older_definition_is_not_reported() {
    let scene = Scene::new(r#"{ "servers": { "a": { "command": "a" } } }"#).status("a", Status::Failed, Some("gone"));
    assert!(shown(&scene).contains("gone"));
    assert_eq!(shown(&scene.typed(r#"{ "servers": { "a": { "command": "b" } } }"#)), "");
}

#[test]
fn a_server_that_waits_for_trust_is_reported() {
    let scene = Scene::new(r#"{ "servers": { "a": { "command": "a" } } }"#).untrusted("a");
    insta::assert_snapshot!(shown(&scene), @r#"
    { "servers": { "a": { "command": "a" } } }
                   ^^^ information awaiting-trust: `a` is waiting for trust; review its definition and trust it to start it
    "#);
}

#[test]
fn a_rule_for_an_unknown_tool_suggests_a_similar_one() {
    let scene = Scene::new(
        r#"{ "servers": {
  "fs": { "command": "fs", "tools": { "read_fiel": "deny", "read_*": "deny", "frobnicate": "deny" } }
},
"policy": { "denylist": [{ "server": "fs", "tool": "wriite" }, { "server": "*", "tool": "none" }] },
"actions": [{ "title": "t", "tool": "mcp__fs__write2" }] }"#,
    );
    assert_eq!(shown(&scene), "");
    insta::assert_snapshot!(shown(&scene.connected("fs", &["read_file", "write"])), @r#"
      "fs": { "command": "fs", "tools": { "read_fiel": "deny", "read_*": "deny", "frobnicate": "deny" } }
                                          ^^^^^^^^^^^ warning unknown-tool: `fs` has no tool `read_fiel`
                                          help: did you mean `read_file`?
                                                                                 ^^^^^^^^^^^^ warning unknown-tool: `fs` has no tool `frobnicate`
    "policy": { "denylist": [{ "server": "fs", "tool": "wriite" }, { "server": "*", "tool": "none" }] },
                                                       ^^^^^^^^ warning unknown-tool: `fs` has no tool `wriite`
                                                       help: did you mean `write`?
    "actions": [{ "title": "t", "tool": "mcp__fs__write2" }] }
                                        ^^^^^^^^^^^^^^^^^ warning unknown-tool: `fs` has no tool `write2`
                                        help: did you mean `write`?
    "#);
}

#[test]
fn an_overridden_definition_is_greyed_out_and_refers_to_the_other() {
    let servers = r#"{ "servers": { "a": { "command": "a" } } }"#;
    let scene = Scene::with_user(servers, "{ \"servers\": {\n \"a\": { \"command\": \"b\" } } }").in_user_file();
    insta::assert_snapshot!(shown(&scene), @r#"
    "a": { "command": "b" } } }
    ^^^ information hidden: `a` has no effect here: the definition in scope `project` overrides it
    "#);
    let problem = problems(&scene.config()).remove(0);
    assert!(problem.unnecessary);
    assert_eq!(problem.related[0].file, std::path::Path::new("/home/you/shop/mcp.json"));
}

#[test]
fn a_text_that_does_not_parse_still_shows_the_state_of_its_servers() {
    let scene = Scene::new(r#"{ "servers": { "a": { "command": "a" } } }"#).untrusted("a");
    assert!(shown(&scene.typed(r#"{ "servers": { "a": { "command": "a", } "#)).contains("awaiting-trust"));
}

#[test]
fn the_live_state_ignores_what_is_not_shown() {
    let state = |scene: &Scene| LiveState::of(scene.config().snapshot);
    let scene = Scene::new(r#"{ "servers": { "a": { "command": "a" } } }"#).connected("a", &["x"]);
    let before = state(&scene);
    let scene = scene.change("a", |view| {
        let mut state = crate::model::ServerState::clone(&view.state);
        state.latency = Some(std::time::Duration::from_millis(7));
        view.state = std::sync::Arc::new(state);
    });
    assert!(state(&scene) == before);
    assert!(state(&scene.status("a", Status::Failed, None)) != before);
}

#[test]
fn tools_that_are_never_called_are_reported_and_can_be_hidden_and_shown_again() {
    let names: Vec<String> = (0..60).map(|number| format!("tool{number:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let text = "{ \"servers\": {\n  \"a\": { \"command\": \"a\" } // mine\n} }";
    let mut scene = Scene::new(text).connected("a", &names);
    assert_eq!(shown(&scene), "", "nothing is known about its use");
    scene.snapshot.usage = ToolUsage::of("a", &[("tool00", 15), ("tool01", 4)]).into();
    assert_eq!(shown(&scene), "", "it is hardly used");
    scene.snapshot.usage = ToolUsage::of("a", &[("tool00", 15), ("tool01", 5), ("gone", 1)]).into();
    let found = problems(&scene.config());
    assert_eq!(found.len(), 1);
    assert_eq!(
        found[0].message,
        "the tools of `a` use ~780 tokens of each agent's context; 58 of 60 tools were never called in 30 days"
    );
    assert!(found[0].help.as_ref().unwrap().starts_with("never called: tool02, tool03, "), "{:?}", found[0].help);
    let fix = crate::ide::fixes::fixes(&scene.config(), &found[0]).remove(0);
    assert_eq!(fix.title, "hide 58 unused tools from agents");
    let mut hidden = text.to_owned();
    hidden.replace_range(fix.edits[0].span.clone(), &fix.edits[0].text);
    assert!(hidden.contains("\"tool59\": \"disable\"") && hidden.contains("// mine"), "{hidden}");
    assert!(!hidden.contains("tool00") && !hidden.contains("tool01"), "{hidden}");
    let scene = Scene::new(&hidden).connected("a", &names);
    let config = scene.config();
    let entry = config.entries().remove(0);
    let fix = crate::ide::fixes::show_hidden_tools(&config, &entry).unwrap();
    assert_eq!(fix.title, "show 58 hidden tools to agents again");
    let mut again = hidden.clone();
    again.replace_range(fix.edits[0].span.clone(), &fix.edits[0].text);
    assert!(!again.contains("disable") && again.contains("// mine"), "{again}");
}
