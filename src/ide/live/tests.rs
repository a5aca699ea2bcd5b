use std::time::Instant;

use super::*;
use crate::ide::tests::{Scene, marked};

fn told(scene: &Scene) -> String {
    marked(&scene.text, &live(&scene.page()))
}

#[test]
fn a_failed_connection_stands_at_what_it_was_made_to() {
    let scene = Scene::new(
        r#"{ "servers": {
  "web": { "url": "https://example.test/mcp" },
  "port": { "type": "tcp", "port": 3001 },
  "prog": { "command": ["prog", "-x"] },
  "auth": { "url": "https://example.test/b" }
} }"#,
    );
    let scene = scene
        .status("web", Status::Failed, Some("no route to example.test"))
        .status("port", Status::Failed, Some("127.0.0.1:3001: connection refused"))
        .status(
            "prog",
            Status::Pending(PendingReason::Retry(Instant::now())),
            Some("exited with code 1; it last said on stderr:\n  no key"),
        )
        .status("auth", Status::NeedsAuth, None);
    insta::assert_snapshot!(told(&scene), @r#"
      "web": { "url": "https://example.test/mcp" },
                      ^^^^^^^^^^^^^^^^^^^^^^^^^^ error connection-failed: no route to example.test
      "port": { "type": "tcp", "port": 3001 },
                                       ^^^^ error port-closed: 127.0.0.1:3001: connection refused
      "prog": { "command": ["prog", "-x"] },
                            ^^^^^^ warning connection-failed: exited with code 1; it last said on stderr
                            help:   no key
      "auth": { "url": "https://example.test/b" }
                       ^^^^^^^^^^^^^^^^^^^^^^^^ warning needs-sign-in: `auth` wants you to sign in (401)
    "#);
}

#[test]
fn what_happened_to_an_older_definition_is_not_held_against_the_new_one() {
    let scene = Scene::new(r#"{ "servers": { "a": { "command": "a" } } }"#).status("a", Status::Failed, Some("gone"));
    assert!(told(&scene).contains("gone"));
    assert_eq!(told(&scene.typed(r#"{ "servers": { "a": { "command": "b" } } }"#)), "");
}

#[test]
fn a_server_that_waits_for_trust_says_so() {
    let scene = Scene::new(r#"{ "servers": { "a": { "command": "a" } } }"#).untrusted("a");
    insta::assert_snapshot!(told(&scene), @r#"
    { "servers": { "a": { "command": "a" } } }
                   ^^^ information awaiting-trust: `a` waits until you have looked at its definition and trust it
    "#);
}

#[test]
fn a_rule_for_a_tool_that_is_not_there_names_the_nearest() {
    let scene = Scene::new(
        r#"{ "servers": {
  "fs": { "command": "fs", "tools": { "read_fiel": "deny", "read_*": "deny", "frobnicate": "deny" } }
},
"policy": { "denylist": [{ "server": "fs", "tool": "wriite" }, { "server": "*", "tool": "none" }] },
"actions": [{ "title": "t", "tool": "mcp__fs__write2" }] }"#,
    );
    assert_eq!(told(&scene), "");
    insta::assert_snapshot!(told(&scene.connected("fs", &["read_file", "write"])), @r#"
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
fn a_definition_that_another_scope_hides_is_grey_and_leads_there() {
    let servers = r#"{ "servers": { "a": { "command": "a" } } }"#;
    let scene = Scene::with_user(servers, "{ \"servers\": {\n \"a\": { \"command\": \"b\" } } }").in_user_file();
    insta::assert_snapshot!(told(&scene), @r#"
    "a": { "command": "b" } } }
    ^^^ information hidden: `a` has no effect here: a file of scope `project` defines it, too, and counts
    "#);
    let problem = live(&scene.page()).remove(0);
    assert!(problem.unnecessary);
    assert_eq!(problem.related[0].file, std::path::Path::new("/w/mcp.json"));
}

#[test]
fn a_text_that_does_not_parse_still_shows_what_its_servers_do() {
    let scene = Scene::new(r#"{ "servers": { "a": { "command": "a" } } }"#).untrusted("a");
    assert!(told(&scene.typed(r#"{ "servers": { "a": { "command": "a", } "#)).contains("awaiting-trust"));
}

#[test]
fn facts_stay_the_same_while_nothing_that_is_shown_changes() {
    let facts = |scene: &Scene| Facts::of(scene.page().snapshot);
    let scene = Scene::new(r#"{ "servers": { "a": { "command": "a" } } }"#).connected("a", &["x"]);
    let before = facts(&scene);
    let scene = scene.change("a", |view| {
        let mut state = crate::model::ServerState::clone(&view.state);
        state.latency = Some(std::time::Duration::from_millis(7));
        view.state = std::sync::Arc::new(state);
    });
    assert!(facts(&scene) == before);
    assert!(facts(&scene.status("a", Status::Failed, None)) != before);
}
