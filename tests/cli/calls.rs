//! `call`, `calls`, `grants` and `metrics`: tool calls from a shell, with the same permissions as in an editor.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::{DEMO, Sandbox};

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::with_workspace();
    let demo = DEMO.replace("[\"demo-server\"]", "[\"demo-server\"], \"tools\": { \"echo\": \"allow-always\" }");
    sandbox.write("config/mcp.json", &format!(r#"{{ "servers": {{ "demo": {demo} }} }}"#));
    sandbox
}

#[test]
fn the_result_of_an_allowed_tool_is_printed() {
    let sandbox = sandbox();
    for tool in ["demo/echo", "mcp__demo__echo"] {
        let run = sandbox.run(&["call", tool, r#"{"text": "hello\u001b[31m"}"#]);
        assert_eq!((run.code, run.out.as_str(), run.err.as_str()), (0, "hello⟨U+001B⟩[31m\n", ""));
    }
    let run = sandbox.run(&["call", "demo/echo", r#"{"text": "hello"}"#, "--json", "--workflow", "w1"]);
    let answer: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(answer["content"][0]["text"], "hello");
    assert_eq!((&answer["isError"], &answer["tool"]), (&Value::Bool(false), &Value::from("echo")));
}

#[test]
fn a_call_that_needs_approval_is_denied_without_a_user_to_ask() {
    let sandbox = sandbox();
    let run = sandbox.run(&["call", "demo/add", r#"{"a": 1, "b": 2}"#]);
    assert_eq!((run.code, run.out.as_str()), (1, ""));
    insta::assert_snapshot!(run.err, @r#"error: `mcp__demo__add` was not allowed: it requires the user's approval, and there is no editor to ask. To allow it, open this workspace in an editor with mcp-sidecar and call again, or add "tools": { "add": "allow-session" } to the definition of `demo` in ~/config/mcp.json. Or run it in a terminal to be asked, or pass --yes to allow this call"#);
    let run = sandbox.run(&["call", "--yes", "demo/add", r#"{"a": 1, "b": 2}"#]);
    assert_eq!((run.code, run.out.as_str()), (0, "3\n"));
}

/// Terminals obey C1 characters, and bidirectional ones change what is read.
#[cfg(unix)]
#[test]
fn json_in_a_terminal_is_the_same_value_without_hidden_characters() {
    let sandbox = sandbox();
    let hidden = "C1 \u{9b}8m, bidi \u{202e}, invisible \u{200b}, tag \u{e0041}, delete \u{7f}, é";
    let arguments = serde_json::json!({ "text": hidden }).to_string();
    sandbox.write("config/config.toml", "[agents.\"a\u{202e}b\"]\nservers = [\"\u{9b}8m\"]\n");
    for command in [&["call", "demo/echo", &arguments, "--json"][..], &["calls", "--json"], &["config", "--json"]] {
        let (piped, shown) = (sandbox.run(command), sandbox.at_terminal(&[], command));
        let value = |text: &str| {
            let at = text.find('{').unwrap_or_else(|| panic!("{command:?}: {text}"));
            let mut value: Value = serde_json::from_str(&text[at..]).unwrap_or_else(|error| panic!("{error}: {text}"));
            // They differ between two calls.
            for key in ["callId", "durationMs"] {
                value.as_object_mut().unwrap().remove(key);
            }
            value
        };
        let is_hidden = |c: char| "\u{9b}\u{202e}\u{200b}\u{e0041}\u{7f}".contains(c);
        assert!(piped.out.contains(is_hidden), "{command:?} is unchanged in a pipe: {}", piped.out);
        assert!(!shown.out.contains(is_hidden), "{command:?}: {}", shown.out);
        if command[0] != "calls" {
            assert_eq!(value(&shown.out), value(&piped.out), "{command:?}");
        }
    }
}

#[test]
fn invalid_arguments_are_reported_before_the_call() {
    let sandbox = sandbox();
    let run = sandbox.run(&["call", "demo/echo", r#"{"txt": 1}"#]);
    assert_eq!(run.code, 1);
    assert!(run.err.starts_with("error: the arguments of `echo` do not match its schema:\n  "), "{}", run.err);
    for wrong in [&["call", "echo"][..], &["call", "demo/echo", "[]"], &["call", "demo/echo", "{"], &["call"]] {
        assert_eq!(sandbox.run(wrong).code, 2, "{wrong:?}");
    }
    for (arguments, expected) in [
        ("[1]", "expected a JSON object, found `[1]`"),
        ("{x: 1}", "invalid JSON at line 1, column 2"),
        ("{\"x\": 1", "expected a JSON object, found only its beginning"),
        (" ", "expected a JSON object, found nothing"),
    ] {
        let error = format!("error: cannot parse the arguments: {expected}\n");
        assert_eq!(sandbox.run(&["call", "demo/echo", arguments]).err, error);
    }
    assert_eq!(sandbox.run(&["call", "demo/none"]).code, 1);
    assert_eq!(sandbox.run(&["call", "nobody/none"]).code, 1);
}

#[test]
fn arguments_come_from_stdin_and_progress_goes_to_stderr() {
    let sandbox = sandbox();
    let mut command = sandbox.command(&["call", "-y", "demo/countdown", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(br#"{"from": 2, "interval": 1}"#).unwrap();
    let run = sandbox.result(child.wait_with_output().unwrap());
    assert_eq!((run.code, run.out.as_str()), (0, "lift-off\n"));
    assert_eq!(run.err, "1 of 2  1\n2 of 2  lift-off\n");
}

#[test]
fn every_call_is_logged_and_can_be_filtered() {
    let sandbox = sandbox();
    sandbox.run(&["call", "demo/echo", r#"{"text": "one"}"#, "--workflow", "w1"]);
    sandbox.run(&["call", "demo/add", r#"{"a": 1, "b": 2}"#]);
    let list = |arguments: &[&str]| -> Value {
        let all: Vec<&str> = ["calls", "--json"].iter().chain(arguments).copied().collect();
        serde_json::from_str(&sandbox.run(&all).out).unwrap()
    };
    assert_eq!(list(&[])["calls"].as_array().unwrap().len(), 2);
    assert_eq!(list(&["--failed"])["calls"][0]["tool"], "add");
    assert_eq!(list(&["--workflow", "w1"])["calls"][0]["arguments"]["text"], "one");
    assert_eq!(list(&["--tool", "none"])["calls"].as_array().unwrap().len(), 0);
    assert_eq!(list(&["--since", "2999-01-01T00:00:00Z"])["calls"].as_array().unwrap().len(), 0);
    assert_eq!(list(&["-n", "1", "--since", "1h"])["calls"].as_array().unwrap().len(), 1);
    assert_eq!(sandbox.run(&["calls", "--since", "soon"]).code, 2);

    let table = sandbox.run(&["calls"]).out;
    let column = |line: &str| line.split_whitespace().skip(2).take(3).collect::<Vec<_>>().join(" ");
    let rows: Vec<String> = table.lines().skip(1).map(column).collect();
    assert_eq!(rows, ["demo/add user deny", "demo/echo user allow-always"]);
    let full = sandbox.run(&["calls", "--full"]);
    assert!(full.out.contains("  result     {"), "{}{}", full.out, full.err);
    assert!(sandbox.run(&["metrics"]).out.contains("\ndemo/echo"));
}

#[test]
fn verify_says_whether_the_call_log_is_whole_and_which_record_was_changed() {
    let sandbox = sandbox();
    let run = sandbox.run(&["calls", "--verify"]);
    assert_eq!((run.code, run.out.as_str()), (0, "There are no call records to check.\n"));
    for text in ["one", "two"] {
        sandbox.run(&["call", "demo/echo", &format!(r#"{{"text": "{text}"}}"#)]);
    }
    let run = sandbox.run(&["calls", "--verify"]);
    assert_eq!((run.code, run.out.as_str()), (0, "The call log is intact: 2 records are unchanged.\n"));
    let whole: Value = serde_json::from_str(&sandbox.run(&["calls", "--verify", "--json"]).out).unwrap();
    assert_eq!((&whole["whole"], &whole["checked"], &whole["unchecked"]), (&true.into(), &2.into(), &0.into()));
    assert_eq!(whole["head"].as_str().map(str::len), Some(64));

    let database = rusqlite::Connection::open(sandbox.path("state/state.db")).unwrap();
    database.execute("UPDATE calls SET tool = 'add' WHERE id = 2", []).unwrap();
    let run = sandbox.run(&["calls", "--verify"]);
    assert_eq!(run.code, 1);
    assert!(run.out.starts_with("The call log was changed: the record of the call to demo/add at "), "{}", run.out);
    assert!(run.out.ends_with(" does not match entry 2 of the chain.\n"), "{}", run.out);
    let run = sandbox.run(&["calls", "--verify", "--json"]);
    assert_eq!(run.code, 1);
    assert_eq!(serde_json::from_str::<Value>(&run.out).unwrap()["whole"], false);
    assert_eq!(sandbox.run(&["calls", "--verify", "--failed"]).code, 2);
}

#[cfg(unix)]
#[test]
fn an_answer_for_the_project_is_a_grant_that_can_be_revoked() {
    let sandbox = sandbox();
    let answers = [("Deny: ", ""), ("Deny: ", "p")];
    let screen = sandbox.at_terminal(&answers, &["call", "demo/add", r#"{"a": 1, "b": 2}"#]);
    assert!(screen.out.contains("\ntype one of the letters in brackets, then press Enter\n"), "{}", screen.out);
    assert_eq!(screen.code, 0, "{}", screen.out);
    assert!(screen.out.contains("Run `add` on `demo`?") && screen.out.contains("\"a\": 1"), "{}", screen.out);
    assert!(
        screen.out.contains(
            "The tool `add` of `demo` is allowed in this project.\nTo undo this, run `mcp-sidecar grants revoke ID`"
        ),
        "{}",
        screen.out
    );
    assert!(screen.out.ends_with("3\n"), "{}", screen.out);
    assert_eq!(sandbox.run(&["call", "demo/add", r#"{"a": 2, "b": 2}"#]).out, "4\n");

    let grants: Value = serde_json::from_str(&sandbox.run(&["grants", "--json"]).out).unwrap();
    assert_eq!(grants["grants"][0]["level"], "allow-project");
    assert!(sandbox.run(&["grants"]).out.contains("\ndemo/add  allow-project"));
    let id = grants["grants"][0]["id"].as_str().unwrap();
    assert_eq!(sandbox.run(&["grants", "revoke", id]).out, "revoked 1 grant\n");
    assert_eq!(sandbox.run(&["grants", "revoke", id]).code, 1);
    assert_eq!(sandbox.run(&["grants", "revoke", "--all"]).out, "revoked 0 grants\n");
    assert_eq!(sandbox.run(&["grants", "revoke"]).code, 2);
    assert_eq!(sandbox.run(&["call", "demo/add", r#"{"a": 1, "b": 2}"#]).code, 1);
}

#[cfg(unix)]
#[test]
fn the_user_denies_a_call_and_fills_in_a_form_in_the_terminal() {
    let sandbox = sandbox();
    let screen =
        sandbox.at_terminal(&[("Deny: ", "maybe"), ("Deny: ", "n")], &["call", "demo/add", r#"{"a": 1, "b": 2}"#]);
    assert_eq!(screen.code, 1);
    assert!(screen.out.ends_with("error: `mcp__demo__add` was denied: the user denied it\n"), "{}", screen.out);
    assert_eq!(screen.out.matches("Run `add` on `demo`?").count(), 1, "a question is printed once: {}", screen.out);
    let screen = sandbox.at_terminal(&[("Name", "Ada")], &["call", "--yes", "demo/ask_name"]);
    assert_eq!(screen.code, 0, "{}", screen.out);
    assert!(
        screen.out.matches("What is your name?").count() == 1 && screen.out.ends_with("Hello, Ada!\n"),
        "{}",
        screen.out
    );
}

#[cfg(unix)]
#[test]
fn control_c_cancels_the_call_and_is_logged() {
    let sandbox = sandbox();
    let mut command = sandbox.command(&["call", "-y", "demo/countdown", r#"{"from": 100, "interval": 500}"#]);
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
    let calls: Value = serde_json::from_str(&sandbox.run(&["calls", "--json"]).out).unwrap();
    assert_eq!(calls["calls"][0]["error"], "cancelled");
}

fn message(id: u64, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

fn initialize() -> Value {
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": { "name": "liner", "version": "1" } });
    message(1, "initialize", params)
}

fn echo(id: u64, text: &str, meta: Value) -> Value {
    message(id, "tools/call", json!({ "name": "demo__echo", "arguments": { "text": text }, "_meta": meta }))
}

/// The workflow of the call with this text, after checking that `calls --workflow` shows only that many calls.
fn workflow(sandbox: &Sandbox, text: &str, count: usize) -> String {
    let calls: Value = serde_json::from_str(&sandbox.run(&["calls", "--json"]).out).unwrap();
    let of_text = |call: &&Value| call["arguments"]["text"] == text;
    let call = calls["calls"].as_array().unwrap().iter().find(of_text).unwrap();
    let workflow = call["workflow"].as_str().unwrap().to_owned();
    let run = sandbox.run(&["calls", "--json", "--workflow", &workflow]);
    let found: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(found["calls"].as_array().unwrap().len(), count, "{text}: {found:#}");
    workflow
}

#[test]
fn the_calls_of_an_agent_are_grouped_by_workflow() {
    let sandbox = sandbox();
    let mut agent = sandbox.command(&["connect"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut stdin, mut lines) = (agent.stdin.take().unwrap(), BufReader::new(agent.stdout.take().unwrap()).lines());
    let mut ask = |request: Value| {
        writeln!(stdin, "{request}").unwrap();
        let messages = lines.by_ref().map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
        messages.into_iter().find(|message| message["id"] == request["id"]).expect("there should be a response");
    };
    ask(initialize());
    ask(echo(2, "a", json!({})));
    ask(echo(3, "b", json!({})));
    ask(echo(4, "c", json!({ "workflow": "release" })));
    ask(echo(5, "d", json!({ "mcp-sidecar/workflow": "release" })));
    let trace = "0af7651916cd43dd8448eb211c80319c";
    ask(echo(6, "e", json!({ "traceparent": format!("00-{trace}-b7ad6b7169203331-01") })));
    let own = workflow(&sandbox, "a", 2);
    assert_eq!(workflow(&sandbox, "b", 2), own);
    assert_eq!((workflow(&sandbox, "c", 2), workflow(&sandbox, "d", 2)), ("release".to_owned(), "release".to_owned()));
    assert_eq!(workflow(&sandbox, "e", 1), trace);
    drop(stdin);
    agent.wait().unwrap();
}

#[test]
fn the_calls_of_an_agent_at_a_url_are_grouped_by_workflow() {
    let sandbox = sandbox();
    let mut command = sandbox.command(&["connect", "--http", "--json"]);
    let mut site = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut printed = serde_json::Deserializer::from_reader(site.stdout.take().unwrap()).into_iter::<Value>();
    let endpoint = printed.next().unwrap().unwrap();
    let address = endpoint["url"].as_str().unwrap().strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    let token = std::fs::read_to_string(endpoint["tokenFile"].as_str().unwrap()).unwrap();
    let post = |session: &str, body: Value| -> String {
        let body = body.to_string();
        let mut stream = TcpStream::connect(address).unwrap();
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n{session}\
             Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        assert!(response.starts_with("HTTP/1.1 2"), "{response}");
        response
    };
    let greeting = post("", initialize());
    let id = greeting.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).expect("a session");
    let session = format!("Mcp-Session-Id: {id}\r\nMcp-Protocol-Version: 2025-06-18\r\n");
    post(&session, json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    for (call, text) in [(2, "a"), (3, "b")] {
        assert!(post(&session, echo(call, text, json!({}))).contains(&format!(r#""text":"{text}""#)));
    }
    post(&session, echo(4, "c", json!({ "workflow": "release" })));
    let own = workflow(&sandbox, "a", 2);
    assert_eq!(workflow(&sandbox, "b", 2), own);
    assert_eq!(workflow(&sandbox, "c", 1), "release");
    site.kill().unwrap();
    site.wait().unwrap();
}
