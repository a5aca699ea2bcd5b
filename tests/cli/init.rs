//! `mcp-sidecar init`: from nothing, and from what other programs have.

use std::process::Command;

use serde_json::{Value, json};

use super::{DEMO, Run, Sandbox};

/// With its own home folder, and without the agents of this machine on the PATH.
fn command(sandbox: &Sandbox, arguments: &[&str]) -> Command {
    std::fs::create_dir_all(sandbox.path("home")).unwrap();
    let mut command = sandbox.command(&[&["init"], arguments].concat());
    command.env("HOME", sandbox.path("home")).env("PATH", "/usr/bin:/bin");
    for variable in ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR"] {
        command.env_remove(variable);
    }
    command
}

fn init(sandbox: &Sandbox, arguments: &[&str]) -> Run {
    sandbox.result(command(sandbox, arguments).output().unwrap())
}

fn written(sandbox: &Sandbox, name: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(sandbox.path(name)).unwrap()).unwrap()
}

#[test]
fn a_user_with_nothing_gets_a_server_and_a_working_call() {
    let sandbox = Sandbox::with_workspace();
    let run = init(&sandbox, &["--yes"]);
    assert_eq!(run.code, 0, "{}\n{}", run.out, run.err);
    assert_eq!(written(&sandbox, "work/mcp.json")["servers"]["demo"]["command"], "mcp-sidecar");
    assert!(run.out.contains("→ demo/add {\"a\":19,\"b\":23}\n42\n"), "{}", run.out);
    let again = init(&sandbox, &["--yes"]);
    assert!(again.code == 0 && !again.out.contains("added"), "{}", again.out);
}

#[test]
fn without_a_user_to_ask_nothing_is_written() {
    let sandbox = Sandbox::with_workspace();
    let claude = format!(r#"{{ "mcpServers": {{ "mini": {DEMO} }} }}"#);
    sandbox.write("home/.claude.json", &claude);
    let run = init(&sandbox, &[]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(
        run.out.contains(
            "Claude Code has 1 server for all your projects: mini. Import? (run `mcp-sidecar import claude`)"
        ),
        "{}",
        run.out
    );
    assert!(run.out.contains("(run `mcp-sidecar setup claude`)"), "{}", run.out);
    assert_eq!(std::fs::read_to_string(sandbox.path("home/.claude.json")).unwrap(), claude);
    assert!(!sandbox.path("work/mcp.json").exists() && !sandbox.path("config/mcp.json").exists());
}

#[test]
fn the_servers_of_an_agent_are_imported_and_the_agent_is_set_up() {
    let sandbox = Sandbox::with_workspace();
    let demo: Value = serde_json::from_str(DEMO).unwrap();
    let work = sandbox.path("work").display().to_string();
    let claude = json!({ "mcpServers": { "demo": demo }, "projects": { work: { "mcpServers": { "own": demo } } } });
    sandbox.write("home/.claude.json", &claude.to_string());
    let run = init(&sandbox, &["--yes"]);
    assert_eq!(run.code, 0, "{}\n{}", run.out, run.err);
    assert_eq!(written(&sandbox, "config/mcp.json")["servers"]["demo"]["args"], json!(["demo-server"]));
    assert_eq!(written(&sandbox, "work/mcp.local.json")["servers"]["own"]["args"], json!(["demo-server"]));
    assert!(!sandbox.path("work/mcp.json").exists(), "there is a server already");
    assert!(run.out.contains("→ demo/add {\"a\":19,\"b\":23}\n42\n"), "{}", run.out);
    assert_eq!(written(&sandbox, "home/.claude.json")["mcpServers"]["mcp-sidecar"]["args"], json!(["connect"]));
    assert!(sandbox.path("home/.claude.json.bak").exists());
}

#[cfg(unix)]
#[test]
fn each_step_is_asked_about_in_a_terminal() {
    let sandbox = Sandbox::with_workspace();
    sandbox.write("home/.claude.json", &format!(r#"{{ "mcpServers": {{ "mini": {DEMO} }} }}"#));
    let answers = [
        ("mini. Import? [Y/n]", "n"),
        ("Add a demo server to mcp.json and call its tool `add`? [Y/n]", ""),
        ("Let Claude Code use these servers, with your rules? [Y/n]", "no"),
    ];
    let run = sandbox.in_terminal(&answers, &command(&sandbox, &[]));
    assert_eq!(run.code, 0, "{}", run.out);
    assert!(run.out.contains("42"), "{}", run.out);
    assert!(sandbox.path("work/mcp.json").exists() && !sandbox.path("config/mcp.json").exists());
    assert!(!sandbox.path("home/.claude.json.bak").exists());
}

#[cfg(unix)]
#[test]
fn the_demo_is_played_in_a_terminal() {
    let sandbox = Sandbox::with_workspace();
    let mut demo = sandbox.command(&["demo"]);
    demo.env("TMPDIR", sandbox.path("work"));
    let answers = [
        ("Type a valid port", "99999"),
        ("Type a valid port", "3001"),
        ("to continue", ""),
        ("[y] trust it", "y"),
        ("add to 19", "1"),
        ("to continue", ""),
        ("[y] allow once", "n"),
        ("[y] allow once", "y"),
        ("to continue", ""),
        ("to continue", ""),
    ];
    let run = sandbox.in_terminal(&answers, &demo);
    assert_eq!(run.code, 0, "{}", run.out);
    // Lines are wrapped between words.
    let words = run.out.split_whitespace().collect::<Vec<_>>().join(" ");
    for shown in
        ["4 problems left", "must be a whole number", "20", "denied: `mcp__demo__take_note`", "saved as note 1"]
    {
        assert!(words.contains(shown), "{shown} is missing in\n{}", run.out);
    }
    assert_eq!(std::fs::read_dir(sandbox.path("work")).unwrap().count(), 0);
    let refused = sandbox.in_terminal(&[("valid port", ""), ("to continue", ""), ("[y] trust it", "n")], &demo);
    assert!(refused.out.contains("nothing in the project runs"), "{}", refused.out);
}
