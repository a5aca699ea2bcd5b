//! `trust`, `secret` and `doctor`.

use std::io::Write;
use std::process::Stdio;

use serde_json::Value;

use crate::{DEMO, Place, Run};

fn place() -> Place {
    let place = Place::with_workspace();
    place.write("work/mcp.json", &format!(r#"{{ "servers": {{ "demo": {DEMO} }} }}"#));
    place
}

fn trust_of(place: &Place) -> Value {
    let list: Value = serde_json::from_str(&place.run(&["trust", "--list", "--json"]).out).unwrap();
    list["servers"][0]["trust"].clone()
}

#[test]
fn a_server_is_trusted_after_a_review_and_trust_can_be_revoked() {
    let place = place();
    assert_eq!(trust_of(&place), "waiting");
    let run = place.run(&["trust", "demo"]);
    assert_eq!(run.code, 2);
    let shown = run.err.replace(env!("CARGO_BIN_EXE_mcp-sidecar"), "mcp-sidecar");
    insta::assert_snapshot!(shown, @"

    Trust the server `demo`?
      from      ~/work/mcp.json
      runs      mcp-sidecar demo-server
      program   mcp-sidecar
    error: cannot ask without a terminal; pass --yes to trust the server
    ");
    assert_eq!(trust_of(&place), "waiting");

    let run = place.run(&["trust", "--all", "--yes"]);
    assert_eq!(run.code, 0);
    assert!(run.err.ends_with("`demo` is trusted\n"), "{}", run.err);
    assert_eq!(trust_of(&place), "trusted");
    assert_eq!(place.run(&["call", "-y", "demo/add", r#"{"a": 1, "b": 2}"#]).out, "3\n");
    assert_eq!(place.run(&["trust", "demo"]).err, "`demo` is already trusted\n");

    assert_eq!(place.run(&["trust", "demo", "--revoke"]).err, "`demo` is no longer trusted\n");
    assert_eq!(trust_of(&place), "refused");
    assert_eq!(place.run(&["call", "-y", "demo/add", r#"{"a": 1, "b": 2}"#]).code, 1);

    assert_eq!(place.run(&["trust"]).code, 2);
    assert_eq!(place.run(&["trust", "nobody", "--yes"]).code, 1);
}

#[test]
fn a_changed_definition_must_be_trusted_again() {
    let place = place();
    place.run(&["trust", "demo", "--yes"]);
    let changed = DEMO.replace("[\"demo-server\"]", "[\"demo-server\", \"--more\"]");
    place.write("work/mcp.json", &format!(r#"{{ "servers": {{ "demo": {changed} }} }}"#));
    assert_eq!(trust_of(&place), "changed");
    let shown = place.run(&["trust", "demo"]).err;
    assert!(shown.contains("has changed. Trust it again?") && shown.contains("--more"), "{shown}");
}

#[cfg(unix)]
#[test]
fn the_answer_in_a_terminal_applies_to_what_was_shown() {
    let place = place();
    let screen = place.at_terminal(&[("[n] no: ", "n")], &["trust", "demo"]);
    assert_eq!(screen.code, 1, "{}", screen.out);
    assert_eq!(trust_of(&place), "waiting");
    // Before a call, a server that is not trusted yet is asked about as well.
    let answers = [("[n] no: ", "y"), ("[n] no: ", "y")];
    let screen = place.at_terminal(&answers, &["call", "demo/add", r#"{"a": 1, "b": 2}"#]);
    assert_eq!(screen.code, 0, "{}", screen.out);
    assert!(screen.out.contains("Trust the server `demo`?") && screen.out.ends_with("3\n"), "{}", screen.out);
    assert_eq!(trust_of(&place), "trusted");
}

fn set(place: &Place, name: &str, value: &str) -> Run {
    let mut command = place.command(&["secret", "set", name]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(value.as_bytes()).unwrap();
    place.result(child.wait_with_output().unwrap())
}

#[test]
fn a_secret_is_stored_listed_and_removed_but_never_printed() {
    let place = Place::with_workspace();
    place.write("config/config.toml", "secrets = \"file\"\n");
    let kept = set(&place, "github", "value-of-the-secret\n");
    assert_eq!((kept.code, kept.out.as_str()), (0, ""), "{}", kept.err);
    assert!(kept.err.ends_with("; use ${keyring:github} in mcp.json\n"), "{}", kept.err);
    assert_eq!(place.run(&["secret", "list"]).out, "github\n");
    assert!(!kept.err.contains("value-of"));
    assert_eq!(place.run(&["secret", "remove", "github"]).code, 0);
    assert_eq!(place.run(&["secret", "remove", "github"]).code, 1);
    assert!(place.run(&["secret", "list"]).out.starts_with("no secrets"));
    assert_eq!(set(&place, "github", "\n").code, 1);
}

#[cfg(unix)]
#[test]
fn a_typed_secret_is_not_shown() {
    let place = Place::with_workspace();
    place.write("config/config.toml", "secrets = \"file\"\n");
    let screen = place.at_terminal(&[("value of github: ", "typed-by-hand")], &["secret", "set", "github"]);
    assert_eq!(screen.code, 0, "{}", screen.out);
    assert!(!screen.out.contains("typed-by-hand"), "{}", screen.out);
    assert!(std::fs::read_to_string(place.path("state/secrets.json")).unwrap().contains("typed-by-hand"));
}

#[test]
fn the_doctor_reports_what_is_missing_and_how_to_fix_it() {
    let place = place();
    let find = |name: &str| -> Value {
        let answer: Value = serde_json::from_str(&place.run(&["doctor", "--json"]).out).unwrap();
        let checks = answer["checks"].as_array().unwrap();
        checks.iter().find(|check| check["name"] == name).cloned().unwrap_or_default()
    };
    for name in ["npx", "program of `demo`", "project config", "settings", "keyring", "socket folder", "database"] {
        assert_eq!(find(name)["ok"], true, "{name}");
    }
    let missing = r#"{ "command": "no-such-program", "env": { "A": "${NOBODY_SET_THIS}" } }"#;
    place.write("config/mcp.json", &format!(r#"{{ "servers": {{ "gone": {missing}, }}, "odd" }}"#));
    assert_eq!(find("user config")["ok"], false);
    place.write("config/mcp.json", &format!(r#"{{ "servers": {{ "gone": {missing} }} }}"#));
    assert_eq!(find("program of `gone`")["fix"], "install it or use its full path");
    assert_eq!(find("variables of `gone`")["message"], "not set: NOBODY_SET_THIS");
    let run = place.run(&["doctor"]);
    assert_eq!(run.code, 1);
    assert!(run.out.contains("✗ program of `gone`") && run.out.ends_with("checks failed\n"), "{}", run.out);
}
