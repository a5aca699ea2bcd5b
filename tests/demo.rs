//! `mcp-sidecar demo-server` on real pipes, and `mcp-sidecar demo`.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

fn sidecar() -> Command {
    Command::new(env!("CARGO_BIN_EXE_mcp-sidecar"))
}

#[test]
fn the_demo_server_answers_on_pipes_and_exits_when_its_stdin_closes() {
    let mut child = sidecar()
        .arg("demo-server")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut say = |message: Value| writeln!(input, "{message}").unwrap();
    let mut hear = || {
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        serde_json::from_str::<Value>(&line).unwrap()
    };

    let params = json!({
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    });
    say(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }));
    let greeting = hear();
    assert_eq!(greeting["result"]["serverInfo"]["name"], "mcp-sidecar-demo");
    assert_eq!(greeting["result"]["protocolVersion"], "2025-06-18");
    say(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    let call = json!({ "name": "add", "arguments": { "a": 1, "b": 2 } });
    say(json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call }));
    assert_eq!(hear()["result"]["content"][0]["text"], "3");

    drop(input);
    let mut complaints = String::new();
    child.stderr.take().unwrap().read_to_string(&mut complaints).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(complaints, "");
}

#[test]
fn the_demo_runs_to_its_end_and_leaves_no_files_behind() {
    let place = tempfile::tempdir().unwrap();
    let output = sidecar().arg("demo").env("TMPDIR", place.path()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    let expected = [
        "must be a whole number from 1 to 65535",
        "demo: waiting for trust",
        "demo: connected, 9 tools",
        "42",
        "`your-agent` wants to run `take_note`",
        "saved as note 1",
        "`your-agent` wants to run `take_note`",
        "denied: `mcp__demo__take_note`",
        "restarted: none; only permissions changed: demo",
        "denied: `mcp__demo__forget_notes`",
        "you          add            allow-session",
        "your-agent   take_note      allow-once",
        "your-agent   take_note      deny",
        "you          forget_notes   deny",
    ];
    let mut rest = text.as_str();
    for line in expected {
        let (_, after) =
            rest.split_once(line).unwrap_or_else(|| panic!("{line:?} is missing or in the wrong order in\n{text}"));
        rest = after;
    }
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
}
