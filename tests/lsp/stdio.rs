//! The built program, as an editor starts it.

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

use crate::support::{Home, StdioEditor, wire};

/// Starts the process, for input that no proper editor would send.
fn start(home: &Home) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcp-sidecar"));
    command.arg("lsp").envs(home.variables()).current_dir(home.project()).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

async fn exit_code(process: &mut Child) -> Option<i32> {
    tokio::time::timeout(Duration::from_secs(60), process.wait()).await.expect("it should have ended").unwrap().code()
}

/// Sends bytes and then `initialize`. Returns the codes of the errors before its response.
async fn survives(bytes: Vec<u8>) -> Vec<Value> {
    let home = Home::new();
    let mut process = start(&home);
    let (mut input, mut output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
    tokio::spawn(async move {
        input.write_all(&bytes).await.ok();
        let params = json!({ "processId": null, "capabilities": {} });
        let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
        wire::write(&mut input, &initialize).await.ok();
        // Held open until the answer has been read.
        std::future::pending::<()>().await;
    });
    let mut errors = Vec::new();
    loop {
        let answer = tokio::time::timeout(Duration::from_secs(60), wire::read(&mut output)).await.expect("no hang");
        let answer = answer.expect("the session goes on");
        match answer.get("error") {
            Some(error) => errors.push(error["code"].clone()),
            None => {
                assert_eq!((&answer["id"], answer["result"]["capabilities"].is_object()), (&json!(1), true));
                return errors;
            }
        }
    }
}

#[tokio::test]
async fn an_editor_can_start_and_quit_it() {
    let home = Home::new();
    let path = home.write("mcp.json", r#"{ "servers": { "#);
    let mut session = StdioEditor::start(&home, &["lsp", "--stdio"]);
    session.editor.initialize(&[&home.project()], json!({})).await;
    let report = session.editor.diagnostics(&path).await;
    assert_eq!(report["diagnostics"].as_array().unwrap().len(), 1);
    assert!(session.quit().await.success());
}

#[tokio::test]
async fn a_bad_header_does_not_end_it() {
    assert_eq!(survives(b"Content-Length: many\r\n\r\n{}".to_vec()).await, [-32700]);
    assert_eq!(survives(b"\x00\xff\xfe garbage \r\n\r\n".to_vec()).await, [-32700]);
}

#[tokio::test]
async fn an_endless_header_does_not_end_it() {
    let mut endless = b"X-Filler: ".to_vec();
    endless.resize(50 << 20, b'x');
    assert_eq!(survives(endless).await, [-32700]);
}

#[tokio::test]
async fn a_body_that_is_not_json_does_not_end_it() {
    assert_eq!(survives(b"Content-Length: 4\r\n\r\n{{{{".to_vec()).await, [-32700]);
    assert_eq!(survives(b"Content-Length: 4\r\n\r\n\xff\xff\xff\xff".to_vec()).await, [-32700]);
    let deep = "[".repeat(200_000);
    assert_eq!(survives(format!("Content-Length: {}\r\n\r\n{deep}", deep.len()).into_bytes()).await, [-32700]);
}

#[tokio::test]
async fn a_message_above_the_limit_is_refused() {
    assert_eq!(survives(b"Content-Length: 99999999999\r\n\r\n{}".to_vec()).await, [-32700]);
}

#[tokio::test]
async fn exit_without_shutdown_is_a_failure_even_while_input_stays_open() {
    let home = Home::new();
    let mut process = start(&home);
    let mut input = process.stdin.take().unwrap();
    wire::write(&mut input, &json!({ "jsonrpc": "2.0", "method": "exit" })).await.unwrap();
    assert_eq!(exit_code(&mut process).await, Some(1));
}

#[tokio::test]
async fn the_end_of_input_ends_it() {
    let home = Home::new();
    let mut process = start(&home);
    drop(process.stdin.take());
    assert_eq!(exit_code(&mut process).await, Some(1));
    let mut said = String::new();
    process.stderr.take().unwrap().read_to_string(&mut said).await.unwrap();
    assert_eq!(said, "", "an editor keeps every line of stderr for ever");
}

#[tokio::test]
async fn it_does_not_crash_if_the_editor_stops_reading() {
    let home = Home::new();
    let mut process = start(&home);
    drop(process.stdout.take());
    let mut input = process.stdin.take().unwrap();
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "capabilities": {} } });
    wire::write(&mut input, &request).await.unwrap();
    assert_eq!(exit_code(&mut process).await, Some(1), "ended by itself, not by a signal");
}

#[cfg(unix)]
#[tokio::test]
async fn a_signal_ends_it_cleanly() {
    use rustix::process::{Pid, Signal, kill_process};

    for signal in [Signal::TERM, Signal::INT] {
        for arguments in [["lsp", "--standalone"].as_slice(), &["lsp"]] {
            let home = Home::new();
            let mut session = StdioEditor::start(&home, arguments);
            session.editor.initialize(&[&home.project()], json!({})).await;
            let process = i32::try_from(session.process.id().unwrap()).ok().and_then(Pid::from_raw).unwrap();
            kill_process(process, signal).unwrap();
            assert_eq!(exit_code(&mut session.process).await, Some(0), "{signal:?} {arguments:?}");
        }
    }
}

#[cfg(unix)]
#[tokio::test]
async fn it_ends_with_the_process_of_the_editor() {
    let home = Home::new();
    let mut editor = Command::new("sleep").arg("60").kill_on_drop(true).spawn().unwrap();
    let mut session = StdioEditor::start(&home, &["lsp"]);
    session.editor.initialize(&[&home.project()], json!({ "processId": editor.id() })).await;
    editor.kill().await.unwrap();
    assert_eq!(exit_code(&mut session.process).await, Some(1));
}
