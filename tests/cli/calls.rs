//! `call`, `calls`, `grants` and `metrics`: tool calls from a shell, with the same permissions as in an editor.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::Value;

use crate::{DEMO, Place};

fn place() -> Place {
    let place = Place::with_workspace();
    let demo = DEMO.replace("[\"demo-server\"]", "[\"demo-server\"], \"tools\": { \"echo\": \"allow-always\" }");
    place.write("config/mcp.json", &format!(r#"{{ "servers": {{ "demo": {demo} }} }}"#));
    place
}

#[test]
fn the_result_of_an_allowed_tool_is_printed() {
    let place = place();
    for tool in ["demo/echo", "mcp__demo__echo"] {
        let run = place.run(&["call", tool, r#"{"text": "hello\u001b[31m"}"#]);
        assert_eq!((run.code, run.out.as_str(), run.err.as_str()), (0, "hello\n", ""));
    }
    let run = place.run(&["call", "demo/echo", r#"{"text": "hello"}"#, "--json", "--workflow", "w1"]);
    let answer: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(answer["content"][0]["text"], "hello");
    assert_eq!((&answer["isError"], &answer["tool"]), (&Value::Bool(false), &Value::from("echo")));
}

#[test]
fn a_call_that_needs_approval_is_denied_without_a_user_to_ask() {
    let place = place();
    let run = place.run(&["call", "demo/add", r#"{"a": 1, "b": 2}"#]);
    assert_eq!((run.code, run.out.as_str()), (1, ""));
    insta::assert_snapshot!(run.err, @r#"error: `mcp__demo__add` was denied: it requires the user's approval, and there is no editor to ask. To allow it, open this workspace in an editor with mcp-sidecar and call again, or add "tools": { "add": "allow-session" } to the definition of `demo` in ~/config/mcp.json. Or run it in a terminal to be asked, or pass --yes to allow this call"#);
    let run = place.run(&["call", "--yes", "demo/add", r#"{"a": 1, "b": 2}"#]);
    assert_eq!((run.code, run.out.as_str()), (0, "3\n"));
}

#[test]
fn invalid_arguments_are_reported_before_the_call() {
    let place = place();
    let run = place.run(&["call", "demo/echo", r#"{"txt": 1}"#]);
    assert_eq!(run.code, 1);
    assert!(run.err.starts_with("error: the arguments of `echo` do not match its schema:\n  "), "{}", run.err);
    for wrong in [&["call", "echo"][..], &["call", "demo/echo", "[]"], &["call", "demo/echo", "{"], &["call"]] {
        assert_eq!(place.run(wrong).code, 2, "{wrong:?}");
    }
    for (arguments, expected) in [
        ("[1]", "expected a JSON object, found `[1]`"),
        ("{x: 1}", "invalid JSON at line 1, column 2"),
        ("{\"x\": 1", "expected a JSON object, found only its beginning"),
        (" ", "expected a JSON object, found nothing"),
    ] {
        let error = format!("error: cannot parse the arguments: {expected}\n");
        assert_eq!(place.run(&["call", "demo/echo", arguments]).err, error);
    }
    assert_eq!(place.run(&["call", "demo/none"]).code, 1);
    assert_eq!(place.run(&["call", "nobody/none"]).code, 1);
}

#[test]
fn arguments_come_from_stdin_and_progress_goes_to_stderr() {
    let place = place();
    let mut command = place.command(&["call", "-y", "demo/countdown", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(br#"{"from": 2, "interval": 1}"#).unwrap();
    let run = place.result(child.wait_with_output().unwrap());
    assert_eq!((run.code, run.out.as_str()), (0, "lift-off\n"));
    assert_eq!(run.err, "1 of 2  1\n2 of 2  lift-off\n");
}

#[test]
fn every_call_is_logged_and_can_be_filtered() {
    let place = place();
    place.run(&["call", "demo/echo", r#"{"text": "one"}"#, "--workflow", "w1"]);
    place.run(&["call", "demo/add", r#"{"a": 1, "b": 2}"#]);
    let list = |arguments: &[&str]| -> Value {
        let all: Vec<&str> = ["calls", "--json"].iter().chain(arguments).copied().collect();
        serde_json::from_str(&place.run(&all).out).unwrap()
    };
    assert_eq!(list(&[])["calls"].as_array().unwrap().len(), 2);
    assert_eq!(list(&["--failed"])["calls"][0]["tool"], "add");
    assert_eq!(list(&["--workflow", "w1"])["calls"][0]["arguments"]["text"], "one");
    assert_eq!(list(&["--tool", "none"])["calls"].as_array().unwrap().len(), 0);
    assert_eq!(list(&["--since", "2999-01-01T00:00:00Z"])["calls"].as_array().unwrap().len(), 0);
    assert_eq!(list(&["-n", "1", "--since", "1h"])["calls"].as_array().unwrap().len(), 1);
    assert_eq!(place.run(&["calls", "--since", "soon"]).code, 2);

    let table = place.run(&["calls"]).out;
    let column = |line: &str| line.split_whitespace().skip(2).take(3).collect::<Vec<_>>().join(" ");
    let rows: Vec<String> = table.lines().skip(1).map(column).collect();
    assert_eq!(rows, ["demo/add user deny", "demo/echo user allow-always"]);
    assert!(place.run(&["calls", "--full"]).out.contains("  result     {"));
    assert!(place.run(&["metrics"]).out.contains("\ndemo/echo"));
}

#[cfg(unix)]
#[test]
fn an_answer_for_the_project_is_a_grant_that_can_be_revoked() {
    let place = place();
    let screen = place.at_terminal(&[("no: ", "p")], &["call", "demo/add", r#"{"a": 1, "b": 2}"#]);
    assert_eq!(screen.code, 0, "{}", screen.out);
    assert!(screen.out.contains("Run `add` on `demo`?") && screen.out.contains("\"a\": 1"), "{}", screen.out);
    assert!(screen.out.ends_with("3\n"), "{}", screen.out);
    assert_eq!(place.run(&["call", "demo/add", r#"{"a": 2, "b": 2}"#]).out, "4\n");

    let grants: Value = serde_json::from_str(&place.run(&["grants", "--json"]).out).unwrap();
    assert_eq!(grants["grants"][0]["level"], "allow-project");
    assert!(place.run(&["grants"]).out.contains("\ndemo/add  allow-project"));
    let id = grants["grants"][0]["id"].as_str().unwrap();
    assert_eq!(place.run(&["grants", "revoke", id]).out, "revoked 1 grant\n");
    assert_eq!(place.run(&["grants", "revoke", id]).code, 1);
    assert_eq!(place.run(&["grants", "revoke", "--all"]).out, "revoked 0 grants\n");
    assert_eq!(place.run(&["grants", "revoke"]).code, 2);
    assert_eq!(place.run(&["call", "demo/add", r#"{"a": 1, "b": 2}"#]).code, 1);
}

#[cfg(unix)]
#[test]
fn the_user_denies_a_call_and_fills_in_a_form_in_the_terminal() {
    let place = place();
    let screen = place.at_terminal(&[("no: ", "maybe"), ("no: ", "n")], &["call", "demo/add", r#"{"a": 1, "b": 2}"#]);
    assert_eq!(screen.code, 1);
    assert!(screen.out.ends_with("error: `mcp__demo__add` was denied: the user denied it\n"), "{}", screen.out);
    let screen = place.at_terminal(&[("Name", "Ada")], &["call", "--yes", "demo/ask_name"]);
    assert_eq!(screen.code, 0, "{}", screen.out);
    assert!(screen.out.contains("What is your name?") && screen.out.ends_with("Hello, Ada!\n"), "{}", screen.out);
}

#[cfg(unix)]
#[test]
fn control_c_cancels_the_call_and_is_logged() {
    let place = place();
    let mut command = place.command(&["call", "-y", "demo/countdown", r#"{"from": 100, "interval": 500}"#]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    assert!(line.starts_with("1 of 100"), "{line}");
    let pid = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    line.clear();
    stderr.read_line(&mut line).unwrap();
    assert_eq!(line, "error: cancelled\n");
    let calls: Value = serde_json::from_str(&place.run(&["calls", "--json"]).out).unwrap();
    assert_eq!(calls["calls"][0]["error"], "cancelled");
}
