//! `trust`, `secret` and `doctor`.

use std::io::Write;
use std::process::Stdio;

use serde_json::Value;

use crate::{DEMO, Run, Sandbox};

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::with_workspace();
    sandbox.write("work/mcp.json", &format!(r#"{{ "servers": {{ "demo": {DEMO} }} }}"#));
    sandbox
}

fn trust_of(sandbox: &Sandbox) -> Value {
    let list: Value = serde_json::from_str(&sandbox.run(&["trust", "--list", "--json"]).out).unwrap();
    list["servers"][0]["trust"].clone()
}

#[test]
fn a_server_is_trusted_after_a_review_and_trust_can_be_revoked() {
    let sandbox = sandbox();
    assert_eq!(trust_of(&sandbox), "waiting");
    let run = sandbox.run(&["trust", "demo"]);
    assert_eq!(run.code, 2);
    let shown = run.err.replace(env!("CARGO_BIN_EXE_mcp-sidecar"), "mcp-sidecar");
    insta::assert_snapshot!(shown, @"

    Trust the server `demo`?
      from      ~/work/mcp.json
      runs      mcp-sidecar demo-server
      program   mcp-sidecar
    error: cannot ask without a terminal; pass --yes to trust the server
    ");
    assert_eq!(trust_of(&sandbox), "waiting");

    let run = sandbox.run(&["trust", "--all", "--yes"]);
    assert_eq!(run.code, 0);
    assert!(run.err.ends_with("`demo` is trusted\n"), "{}", run.err);
    assert_eq!(trust_of(&sandbox), "trusted");
    assert_eq!(sandbox.run(&["call", "-y", "demo/add", r#"{"a": 1, "b": 2}"#]).out, "3\n");
    assert_eq!(sandbox.run(&["trust", "demo"]).err, "`demo` is already trusted\n");

    assert_eq!(sandbox.run(&["trust", "demo", "--revoke"]).err, "`demo` is no longer trusted\n");
    assert_eq!(trust_of(&sandbox), "refused");
    assert_eq!(sandbox.run(&["call", "-y", "demo/add", r#"{"a": 1, "b": 2}"#]).code, 1);

    assert_eq!(sandbox.run(&["trust"]).code, 2);
    assert_eq!(sandbox.run(&["trust", "nobody", "--yes"]).code, 1);
}

#[test]
fn a_changed_definition_must_be_trusted_again() {
    let sandbox = sandbox();
    sandbox.run(&["trust", "demo", "--yes"]);
    let changed = DEMO.replace("[\"demo-server\"]", "[\"demo-server\", \"--more\"]");
    sandbox.write("work/mcp.json", &format!(r#"{{ "servers": {{ "demo": {changed} }} }}"#));
    assert_eq!(trust_of(&sandbox), "changed");
    let shown = sandbox.run(&["trust", "demo"]).err;
    assert!(shown.contains("has changed. Trust it again?") && shown.contains("--more"), "{shown}");
}

#[cfg(unix)]
#[cfg(unix)]
#[test]
fn a_launch_in_the_own_config_is_answered_in_a_shell_but_not_by_an_agent() {
    let add = ["call", "-y", "mine/add", r#"{"a": 1, "b": 2}"#];
    let changed = DEMO.replace(r#""args""#, r#""env": { "NEW": "1" }, "args""#);
    let write = |sandbox: &Sandbox, server: &str| {
        sandbox.write("config/mcp.json", &format!(r#"{{ "servers": {{ "mine": {server} }} }}"#));
    };
    let sandbox = Sandbox::with_workspace();
    write(&sandbox, DEMO);
    assert_eq!(sandbox.run(&add).out, "3\n");

    write(&sandbox, &changed);
    let run = sandbox.run(&add);
    assert!(run.code == 1 && run.err.contains("trust"), "{}", run.err);
    let run = sandbox.by_agent(&["trust", "mine", "--yes"]);
    assert!(run.code == 1 && run.err.contains("this program was started by the agent `claude`"), "{}", run.err);
    let run = sandbox.run(&["trust", "mine"]);
    assert!(run.err.contains("Did you change the server `mine` in your own config?"), "{}", run.err);
    assert!(run.err.contains("+ env.NEW: (set)"), "{}", run.err);
    assert_eq!(sandbox.run(&add).code, 1);
    let run = sandbox.run(&["trust", "mine", "--yes"]);
    assert!(run.code == 0 && run.err.ends_with("`mine` is trusted\n"), "{}", run.err);
    assert_eq!(sandbox.run(&add).out, "3\n");
}

/// An import is a change of the user, but not if an agent runs it.
#[cfg(unix)]
#[test]
fn an_import_into_the_own_config_asks_nothing_unless_an_agent_runs_it() {
    let sandbox = Sandbox::with_workspace();
    sandbox.write("config/mcp.json", &format!(r#"{{ "servers": {{ "mine": {DEMO} }} }}"#));
    assert_eq!(sandbox.run(&["call", "-y", "mine/add", r#"{"a": 1, "b": 2}"#]).out, "3\n");
    for (server, by_agent) in [("first", false), ("second", true)] {
        sandbox.write("other.json", &format!(r#"{{ "mcpServers": {{ "{server}": {DEMO} }} }}"#));
        let path = sandbox.path("other.json");
        let import = ["import", "cursor", "--path", path.to_str().unwrap()];
        let run = if by_agent { sandbox.by_agent(&import) } else { sandbox.run(&import) };
        assert!(run.code == 0 && run.out.contains(server), "{} {}", run.out, run.err);
        let run = sandbox.run(&["call", "-y", &format!("{server}/add"), r#"{"a": 1, "b": 2}"#]);
        assert_eq!(run.code == 0, !by_agent, "{} {}", run.out, run.err);
    }
}

#[test]
fn the_answer_in_a_terminal_applies_to_what_was_shown() {
    let sandbox = sandbox();
    for no in ["n", ""] {
        let screen = sandbox.at_terminal(&[("[n] no: ", no)], &["trust", "demo"]);
        assert_eq!(screen.code, 1, "{}", screen.out);
        assert!(screen.out.ends_with("\n`demo` is not trusted, so it does not start\n"), "{}", screen.out);
    }
    assert_eq!(trust_of(&sandbox), "waiting");
    // Before a call, a server that is not trusted yet is asked about as well.
    let answers = [("[n] no: ", "y"), ("Deny: ", "y")];
    let screen = sandbox.at_terminal(&answers, &["call", "demo/add", r#"{"a": 1, "b": 2}"#]);
    assert_eq!(screen.code, 0, "{}", screen.out);
    assert!(screen.out.contains("Trust the server `demo`?") && screen.out.ends_with("3\n"), "{}", screen.out);
    assert_eq!(trust_of(&sandbox), "trusted");
}

#[cfg(unix)]
#[test]
fn the_servers_of_a_file_are_one_question() {
    let sandbox = Sandbox::with_workspace();
    let servers = ["zebra", "ant", "bee"].map(|name| format!("\n\"{name}\": {DEMO}")).join(",");
    sandbox.write("work/mcp.json", &format!(r#"{{ "servers": {{ {servers} }} }}"#));
    let trusted = || -> Vec<String> {
        let list: Value = serde_json::from_str(&sandbox.run(&["trust", "--list", "--json"]).out).unwrap();
        let trusted = list["servers"].as_array().unwrap().iter().filter(|server| server["trust"] == "trusted");
        trusted.map(|server| server["server"].as_str().unwrap().to_owned()).collect()
    };
    let all = ["trust", "--all"];
    for none in ["n", "", "4", "1 x"] {
        let screen = sandbox.at_terminal(&[("numbers such as 1 3: ", none)], &all);
        assert_eq!((screen.code, trusted().len()), (1, 0), "{none}: {}", screen.out);
    }
    let screen = sandbox.at_terminal(&[("numbers such as 1 3: ", "1, 3 1")], &all);
    assert_eq!((screen.code, trusted()), (1, vec!["bee".to_owned(), "zebra".to_owned()]), "{}", screen.out);
    let order: Vec<usize> = ["[1]", "`zebra`", "[2]", "`ant`", "[3]", "`bee`", "[a] all 3"]
        .map(|part| screen.out.find(part).unwrap_or_else(|| panic!("no {part}: {}", screen.out)))
        .to_vec();
    assert!(order.is_sorted(), "in the order of the file: {}", screen.out);
    assert!(screen.out.ends_with("\n`ant` is not trusted, so it does not start\n"), "{}", screen.out);
    assert_eq!(sandbox.run(&["trust", "--all", "--revoke"]).code, 0);
    sandbox.write(
        "work/mcp.json",
        &format!(r#"{{ "servers": {{ {} }} }}"#, servers.replace("[\"demo-server\"]", "[\"demo-server\", \"x\"]")),
    );
    let screen = sandbox.at_terminal(&[("numbers such as 1 3: ", "a")], &all);
    assert_eq!((screen.code, trusted().len()), (0, 3), "{}", screen.out);
}

fn set(sandbox: &Sandbox, name: &str, value: &str) -> Run {
    let mut command = sandbox.command(&["secret", "set", name]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(value.as_bytes()).unwrap();
    sandbox.result(child.wait_with_output().unwrap())
}

#[test]
fn a_secret_is_stored_listed_and_removed_but_never_printed() {
    let sandbox = Sandbox::with_workspace();
    sandbox.write("config/config.toml", "secrets = \"file\"\n");
    let kept = set(&sandbox, "github", "value-of-the-secret\n");
    assert_eq!((kept.code, kept.out.as_str()), (0, ""), "{}", kept.err);
    assert!(kept.err.ends_with("; use ${keyring:github} in mcp.json\n"), "{}", kept.err);
    assert_eq!(sandbox.run(&["secret", "list"]).out, "github\n");
    assert!(!kept.err.contains("value-of"));
    assert_eq!(sandbox.run(&["secret", "remove", "github"]).code, 0);
    assert_eq!(sandbox.run(&["secret", "remove", "github"]).code, 1);
    assert!(sandbox.run(&["secret", "list"]).out.starts_with("no secrets"));
    assert_eq!(set(&sandbox, "github", "\n").code, 1);
}

#[cfg(unix)]
#[test]
fn a_typed_secret_is_not_shown() {
    let sandbox = Sandbox::with_workspace();
    sandbox.write("config/config.toml", "secrets = \"file\"\n");
    let screen = sandbox.at_terminal(&[("value of github: ", "typed-by-hand")], &["secret", "set", "github"]);
    assert_eq!(screen.code, 0, "{}", screen.out);
    assert!(!screen.out.contains("typed-by-hand"), "{}", screen.out);
    assert!(std::fs::read_to_string(sandbox.path("state/secrets.json")).unwrap().contains("typed-by-hand"));
}

#[test]
fn the_doctor_reports_what_is_missing_and_how_to_fix_it() {
    let sandbox = sandbox();
    let find = |name: &str| -> Value {
        let answer: Value = serde_json::from_str(&sandbox.run(&["doctor", "--json"]).out).unwrap();
        let checks = answer["checks"].as_array().unwrap();
        checks.iter().find(|check| check["name"] == name).cloned().unwrap_or_default()
    };
    for name in ["npx", "program of `demo`", "project config", "settings", "keyring", "socket folder", "database"] {
        assert_eq!(find(name)["ok"], true, "{name}");
    }
    let missing = r#"{ "command": "no-such-program", "env": { "A": "${NOBODY_SET_THIS}" } }"#;
    sandbox.write("config/mcp.json", &format!(r#"{{ "servers": {{ "gone": {missing}, }}, "odd" }}"#));
    assert_eq!(find("user config")["ok"], false);
    sandbox.write("config/mcp.json", &format!(r#"{{ "servers": {{ "gone": {missing} }} }}"#));
    assert_eq!(find("program of `gone`")["fix"], "install it or use its full path");
    assert_eq!(find("variables of `gone`")["message"], "not set: NOBODY_SET_THIS");
    let run = sandbox.run(&["doctor"]);
    assert_eq!(run.code, 1);
    assert!(run.out.contains("✗ program of `gone`") && run.out.ends_with("checks failed\n"), "{}", run.out);
}

#[cfg(unix)]
#[test]
fn the_doctor_distinguishes_a_broken_program_from_a_missing_one_and_runs_none_in_the_workspace() {
    use std::os::unix::fs::PermissionsExt;
    let sandbox = Sandbox::with_workspace();
    let program = |name: &str, script: &str| {
        sandbox.write(name, &format!("#!/bin/sh\n{script}\n"));
        std::fs::set_permissions(sandbox.path(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    let ran = sandbox.path("ran");
    program("bin/npx", "echo 'cannot find module npm-cli.js' >&2; exit 1");
    program("bin/uvx", &format!("pwd > '{}'; echo 'uvx 9.9.9'", ran.display()));
    program("work/docker", &format!("touch '{}'", sandbox.path("ran-in-workspace").display()));
    let servers = r#"{ "servers": { "a": { "command": "npx" }, "b": { "command": "uvx" } } }"#;
    sandbox.write("work/mcp.json", servers);
    let path = format!("{}:{}:/usr/bin:/bin", sandbox.path("bin").display(), sandbox.path("work").display());
    let output = sandbox.command(&["doctor", "--json"]).env("PATH", path).output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let check =
        |name: &str| answer["checks"].as_array().unwrap().iter().find(|check| check["name"] == name).unwrap().clone();
    let npx = check("npx");
    let message = npx["message"].as_str().unwrap();
    assert_eq!(npx["ok"], false);
    assert!(message.contains("is broken") && message.contains("cannot find module npm-cli.js"), "{message}");
    assert!(check("uvx")["message"].as_str().unwrap().ends_with("(uvx 9.9.9)"), "{answer:#}");
    let folder = std::fs::read_to_string(&ran).unwrap();
    assert!(folder.starts_with(sandbox.path("state").to_str().unwrap()), "{folder}");
    assert!(!sandbox.path("ran-in-workspace").exists());
}
