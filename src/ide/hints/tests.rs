use super::*;
use crate::ide::tests::Scene;

fn shown(scene: &Scene) -> String {
    let all = 0..scene.text.len();
    let found = hints(&scene.config(), &all, |name| (name == "fs").then(|| format!("/usr/bin/{name}").into()));
    let mut text = scene.text.clone();
    for hint in found.iter().rev() {
        text.insert_str(hint.at, &format!("‹{}›", hint.label));
    }
    text
}

#[test]
fn an_overridden_rule_shows_the_rule_that_decides() {
    let text =
        r#"{ "servers": { "fs": { "command": "fs", "tools": { "read": "deny", "drop_it": "require-approval" } } } }"#;
    let user = r#"{ "policy": { "denylist": [{ "server": "*", "tool": "drop_*" }] } }"#;
    let scene = Scene::with_user(text, user).connected("fs", &["read", "drop_it"]);
    insta::assert_snapshot!(shown(&scene), @r#"{ "servers": { "fs"‹2 tools, ~27 tokens›: { "command": "fs"‹/usr/bin/fs›, "tools": { "read": "deny", "drop_it": "require-approval"‹deny · user mcp.json:1 policy.denylist */drop_*› } } } }"#);
}

#[test]
fn a_glob_shows_how_many_tools_it_matches() {
    let text = r#"{ "servers": { "fs": { "command": "./fs", "tools": { "read": "deny", "re*": "disable", "x*": "deny" } } } }"#;
    let scene = Scene::new(text).connected("fs", &["read", "rename"]);
    insta::assert_snapshot!(shown(&scene), @r#"{ "servers": { "fs"‹1 tool, ~13 tokens›: { "command": "./fs", "tools": { "read": "deny", "re*": "disable"‹2 tools, 1 set by other rules›, "x*": "deny"‹0 tools› } } } }"#);
}

#[test]
fn a_level_of_an_untrusted_server_shows_the_level_in_effect() {
    let text = r#"{ "servers": { "fs": { "command": "./fs", "tools": { "read": "allow-always" } } } }"#;
    let scene = Scene::new(text).untrusted("fs").connected("fs", &["read"]);
    assert!(shown(&scene).contains("\"allow-always\"‹require-approval · built-in default›"));
}

#[test]
fn an_unsaved_rule_has_no_hint() {
    let text = r#"{ "servers": { "fs": { "command": "./fs", "tools": { "re*": "deny" } } } }"#;
    let typed = text.replace("deny", "disable");
    let scene = Scene::new(text).connected("fs", &["read"]).typed(&typed);
    assert_eq!(shown(&scene).replace("‹1 tool, ~13 tokens›", ""), typed);
}
