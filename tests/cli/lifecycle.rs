//! `start`, `stop`, `restart`, `logs`, `read`, `prompt` and `input`: servers of a running engine, used from a shell.

use std::io::Write;
use std::process::Stdio;

use serde_json::Value;

use crate::approvals::Editor;
use crate::{DEMO, Run, Sandbox};

/// A workspace with the demo server in the user's own config.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::with_workspace();
    sandbox.write("config/mcp.json", &format!(r#"{{ "servers": {{ "demo": {DEMO} }} }}"#));
    sandbox
}

fn json(run: &Run) -> Value {
    serde_json::from_str(&run.out).unwrap_or_else(|error| panic!("{error}: {}", run.out))
}

fn status(sandbox: &Sandbox) -> Value {
    json(&sandbox.run(&["list", "--json"]))["servers"][0]["status"].clone()
}

#[test]
fn a_server_of_a_running_engine_is_stopped_started_and_restarted() {
    let sandbox = sandbox();
    let _editor = Editor::open(&sandbox);
    let run = sandbox.run(&["stop", "demo"]);
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{}", run.out);
    assert!(run.out.starts_with("demo: "), "{}", run.out);
    assert_eq!(status(&sandbox), "stopped");
    let run = sandbox.run(&["start", "demo"]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.out.starts_with("demo: connected"), "{}", run.out);
    let pid = |run: Run| json(&run)["servers"][0]["pid"].as_u64().unwrap();
    let before = pid(sandbox.run(&["list", "--json"]));
    assert_ne!(pid(sandbox.run(&["restart", "--all", "--json"])), before);
    assert_eq!(status(&sandbox), "connected");
    let run = sandbox.run(&["logs", "demo"]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.out.lines().all(|line| line.contains("sidecar") || line.contains("server") || line.contains("stderr")));
    assert!(json(&sandbox.run(&["logs", "demo", "-n", "1", "--json"]))["lines"].as_array().unwrap().len() <= 1);
    let run = sandbox.run(&["start", "dmeo", "--json"]);
    assert_eq!((run.code, &json(&run)["error"]["kind"]), (1, &Value::from("not-found")), "{}", run.err);
}

#[test]
fn without_an_engine_there_is_nothing_to_start_or_stop() {
    let sandbox = sandbox();
    assert_eq!(sandbox.run(&["stop", "--all"]).out, "no server is running\n");
    let run = sandbox.run(&["start", "demo", "--json"]);
    assert_eq!((run.code, &json(&run)["error"]["kind"]), (1, &Value::from("not-found")));
    assert!(run.err.contains("no editor or agent has this workspace open"), "{}", run.err);
    assert!(sandbox.run(&["logs", "demo"]).err.contains("mcp-sidecar test demo"));
    assert_eq!(sandbox.run(&["start"]).code, 2);
}

#[test]
fn resources_and_prompts_are_printed_as_text() {
    let sandbox = sandbox();
    let run = sandbox.run(&["read", "demo", "demo://notes"]);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    assert!(!run.out.starts_with("[resource"), "{}", run.out);
    let run = sandbox.run(&["read", "demo", "demo://nothing", "--json"]);
    assert_eq!(run.code, 1);
    assert!(json(&run)["error"]["message"].as_str().is_some_and(|message| !message.is_empty()), "{}", run.out);
    let run = sandbox.run(&["prompt", "demo", "greet", "language=Danish"]);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    assert!(run.out.starts_with("user:\n") && run.out.contains("Hej"), "{}", run.out);
    assert_eq!(sandbox.run(&["prompt", "demo", "greet", "Danish"]).code, 2);
}

#[test]
fn every_failure_of_json_is_json_with_a_kind() {
    let sandbox = sandbox();
    let kind = |arguments: &[&str]| json(&sandbox.run(arguments))["error"]["kind"].clone();
    assert_eq!(kind(&["call", "none/echo", "--json"]), "not-found");
    assert_eq!(kind(&["call", "demo/echo", r#"{"text": 1}"#, "--json"]), "invalid-arguments");
    assert_eq!(kind(&["call", "demo/echo", "[]", "--json"]), "invalid-params");
    assert_eq!(kind(&["call", "demo/take_note", r#"{"text": "x"}"#, "--json"]), "denied");
    assert_eq!(kind(&["add", "demo", "--scope", "user", "--json", "--url", "http://127.0.0.1:1"]), "conflict");
}

#[test]
fn an_input_is_answered_in_a_shell_and_the_server_that_waits_starts() {
    let sandbox = Sandbox::with_workspace();
    let entry = DEMO.replace("] }", r#"], "env": { "KEY": "${input:key}" } }"#);
    let inputs = r#"[{ "id": "key", "type": "promptString", "description": "the key of the shop", "password": true }]"#;
    sandbox.write("config/mcp.json", &format!(r#"{{ "servers": {{ "demo": {entry} }}, "inputs": {inputs} }}"#));
    sandbox.write("config/config.toml", "secrets = \"file\"\n");
    let list = || json(&sandbox.run(&["input", "list", "--json"]))["inputs"][0].clone();
    assert_eq!((&list()["id"], &list()["answered"]), (&Value::from("key"), &Value::from(false)));
    assert!(sandbox.run(&["input", "list"]).out.contains("the key of the shop"));

    let _editor = Editor::open(&sandbox);
    assert_eq!(status(&sandbox), "pending");
    let set = |id: &str, value: &str| {
        let mut child =
            sandbox.command(&["input", "set", id]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(value.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, err) = set("key", "a-value-that-stays-hidden\n");
    assert_eq!(code, Some(0), "{err}");
    assert!(!err.contains("a-value-that-stays-hidden"), "{err}");
    assert_eq!(status(&sandbox), "connected");
    assert_eq!(list()["answered"], true);
    let (code, err) = set("kye", "x");
    assert!(code == Some(1) && err.contains("mcp-sidecar input list"), "{err}");

    assert_eq!(sandbox.run(&["input", "remove", "key"]).code, 0);
    assert_eq!(list()["answered"], false);
    let run = sandbox.by_agent(&["input", "set", "key"]);
    assert_eq!(run.code, 1, "{}", run.out);
}

#[test]
fn a_shell_completes_servers_tools_and_templates() {
    let sandbox = sandbox();
    let complete = |words: &[&str]| {
        let mut command = sandbox.command(&["--", "mcp-sidecar"]);
        let output = command.args(words).env("COMPLETE", "fish").output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(
        complete(&["inspect", "d"]).lines().any(|line| line.starts_with("demo")),
        "{}",
        complete(&["inspect", "d"])
    );
    assert!(complete(&["call", "de"]).contains("demo/"));
    assert!(complete(&["add", "x", "--template", ""]).lines().count() > 3);
    let _editor = Editor::open(&sandbox);
    sandbox.run(&["start", "demo"]);
    assert!(complete(&["call", "demo/ta"]).contains("demo/take_note"), "{}", complete(&["call", "demo/ta"]));
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let run = sandbox.run(&["completions", shell]);
        assert!(run.code == 0 && run.out.contains("COMPLETE"), "{shell}: {}", run.out);
    }
}
