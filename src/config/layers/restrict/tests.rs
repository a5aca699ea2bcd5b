use serde_json::{Value, json};

use crate::config::layers::tests::{load_files, problems};
use crate::config::{Definition, Loaded};

const USER: &str = "/home/me/.config/mcp-sidecar/mcp.json";

/// One line for each server: whether it is enabled, and what restricts it.
fn servers(loaded: &Loaded) -> String {
    let line = |definition: &Definition| {
        let by = definition.restrictions.iter().map(|one| format!(" · {} {}", one.scope, one.effect()));
        let state = if definition.spec.enabled { "on" } else { "off" };
        format!("{} {} {state}{}", definition.name, definition.scope, by.collect::<String>())
    };
    loaded.config.servers.values().map(|definition| line(definition)).collect::<Vec<_>>().join("\n")
}

fn load(files: &[(&str, Value)]) -> Loaded {
    load_with(files, json!({}))
}

fn load_with(files: &[(&str, Value)], session: Value) -> Loaded {
    let texts: Vec<(&str, String)> =
        files.iter().map(|(path, servers)| (*path, json!({ "servers": servers }).to_string())).collect();
    let texts: Vec<(&str, &str)> = texts.iter().map(|(path, text)| (*path, text.as_str())).collect();
    load_files(&["/a", "/b"], &texts, session)
}

#[test]
fn a_project_disables_a_server_of_the_user_and_restricts_another() {
    let loaded = load(&[
        ("/a/mcp.json", json!({ "slack": { "enabled": false }, "mail": { "tools": { "post_*": "deny" } } })),
        (USER, json!({ "slack": { "command": "slack" }, "mail": { "command": "mail" } })),
    ]);
    insta::assert_snapshot!(servers(&loaded), @"
    mail user on · project restricts its tools (1 rule)
    slack user off · project disables it
    ");
    assert_eq!(problems(&loaded), "");
}

#[test]
fn other_spellings_disable_too_and_comments_do_not_matter() {
    for entry in [
        json!({ "disabled": true }),
        json!({ "disabled": true, "autoApprove": [], "$comment": "not here" }),
        json!({ "enabled": false, "description": "not here" }),
        json!({ "enabled": "no" }),
    ] {
        let loaded = load(&[("/a/mcp.json", json!({ "x": entry })), (USER, json!({ "x": { "command": "x" } }))]);
        assert!(!loaded.config.servers["x"].spec.enabled, "{entry}");
    }
}

#[test]
fn an_entry_with_other_keys_is_an_incomplete_definition() {
    for entry in [json!({}), json!({ "args": ["x"], "enabled": false }), json!({ "comand": "x", "enabled": false })] {
        let loaded = load(&[("/a/mcp.json", json!({ "x": entry })), (USER, json!({ "x": { "command": "x" } }))]);
        assert!(loaded.config.servers["x"].spec.enabled, "{entry}");
        assert!(problems(&loaded).contains(" error "), "{entry}: {}", problems(&loaded));
    }
}

#[test]
fn the_entry_with_the_highest_precedence_decides_and_nothing_enables_a_disabled_definition() {
    let user = json!({ "x": { "command": "x" }, "off": { "command": "off", "enabled": false } });
    let loaded = load(&[
        ("/a/mcp.local.json", json!({ "x": { "enabled": true } })),
        ("/a/mcp.json", json!({ "x": { "enabled": false }, "off": { "enabled": true } })),
        (USER, user),
    ]);
    insta::assert_snapshot!(servers(&loaded), @"
    off user off · project changes nothing
    x user on · local changes nothing · project changes nothing
    ");
    insta::assert_snapshot!(problems(&loaded), @"/a/mcp.json warning only-restricts: `off` stays disabled: only the file that defines it can enable it");
}

#[test]
fn an_entry_without_a_server_is_reported_with_the_closest_name() {
    let loaded = load(&[
        ("/a/mcp.json", json!({ "slak": { "enabled": false } })),
        (USER, json!({ "slack": { "command": "slack" } })),
    ]);
    insta::assert_snapshot!(servers(&loaded), @"slack user on");
    insta::assert_snapshot!(problems(&loaded), @"/a/mcp.json warning unknown-server: no file defines a server `slak`, so there is nothing to disable or restrict; add `command`, `url` or `port` to define it");
    let problem = loaded.files.iter().find_map(|file| file.problems.first()).unwrap();
    assert_eq!(problem.fix.as_ref().unwrap().title, "change to `slack`");
}

#[test]
fn levels_that_allow_more_are_reported() {
    let user = json!({ "x": { "command": "x", "tools": { "drop": "deny", "read_*": "allow-session", "*": "allow-once" } },
        "plain": { "command": "plain" } });
    let project = json!({
        "x": { "tools": { "drop": "require-approval", "read_*": "require-approval", "read_all": "allow-always" } },
        "plain": { "tools": { "read": "allow-session", "post": "require-approval" } }
    });
    let loaded = load(&[("/a/mcp.json", project), (USER, user.clone())]);
    insta::assert_snapshot!(problems(&loaded), @"
    /a/mcp.json warning only-restricts: the definition of `x` sets `drop` to `deny`; an entry without a definition cannot allow more
    /a/mcp.json warning only-restricts: the definition of `x` sets `read_all` to `allow-session`; an entry without a definition cannot allow more
    /a/mcp.json warning only-restricts: an entry without a definition cannot allow tools of `plain`, only restrict them
    ");
    // An exception of a stricter rule beside it allows nothing by itself.
    let exception = json!({ "plain": { "tools": { "*": "deny", "read": "allow-session" } } });
    assert_eq!(problems(&load(&[("/a/mcp.json", exception), (USER, user)])), "");
}

#[test]
fn only_files_of_higher_precedence_and_the_user_restrict() {
    let loaded = load_with(
        &[
            ("/etc/mcp-sidecar/mcp.json", json!({ "m": { "command": "m" }, "u": { "enabled": false } })),
            ("/a/mcp.json", json!({ "p": { "command": "p" }, "m": { "enabled": false }, "s": { "enabled": false } })),
            ("/a/.vscode/mcp.json", json!({ "p": { "enabled": false } })),
            (USER, json!({ "u": { "command": "u" }, "p": { "tools": { "x": "deny" } }, "m": { "enabled": false } })),
        ],
        json!({ "s": { "command": "s" }, "p": { "enabled": false } }),
    );
    insta::assert_snapshot!(servers(&loaded), @"
    m managed off · user disables it
    p project off · session disables it · user restricts its tools (1 rule)
    s session on
    u user off · managed disables it
    ");
    insta::assert_snapshot!(problems(&loaded), @"
    /a/mcp.json information hidden: `m` has no effect: its definition in scope `managed` takes precedence
    /a/mcp.json information hidden: `s` has no effect: its definition for this session takes precedence
    /a/.vscode/mcp.json information hidden: `p` has no effect: its definition in scope `project` takes precedence
    ");
}

#[test]
fn a_restriction_means_the_servers_of_its_own_folder() {
    let loaded = load(&[
        ("/a/mcp.local.json", json!({ "db": { "enabled": false }, "only-b": { "enabled": false } })),
        ("/a/mcp.json", json!({ "db": { "command": "a" } })),
        ("/b/mcp.json", json!({ "db": { "command": "b" }, "only-b": { "command": "b" } })),
    ]);
    insta::assert_snapshot!(servers(&loaded), @"
    a-db project off · local disables it
    b-db project on
    only-b project on
    ");
    assert!(problems(&loaded).contains("unknown-server: no file defines a server `only-b`"), "{}", problems(&loaded));
}
