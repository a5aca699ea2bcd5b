//! An agent keeps its session when the engine ends, whatever environment it was started with.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use lsp_types::notification::{Notification, ShowMessage};
use mcp_sidecar::protocol::commands::Servers;
use mcp_sidecar::protocol::events::ApprovalsChanged;
use mcp_sidecar::protocol::types::Status;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::Command;

use crate::processes::stage::PROGRAM;
use crate::sharing::{Agent, PATIENCE, Stage, greet};
use crate::support::commands::{start, tool_call};
use crate::support::{StdioEditor, TestEditor};

const OLD: (&str, &str) = ("MCP_SIDECAR_TEST_VERSION", "0.0.1");

fn kill(process: u32) {
    std::process::Command::new("kill").args(["-9", &process.to_string()]).status().unwrap();
}

fn is_news(message: &Value) -> bool {
    message["method"] == "notifications/tools/list_changed"
}

/// Waits until another engine has taken over from this one.
async fn successor(stage: &Stage, old: u32) -> u32 {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(engine) = stage.engine().filter(|engine| *engine != old) {
            return engine;
        }
        assert!(Instant::now() < until, "the engine is still there");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn tools(agent: &mut Agent, id: i64) -> Value {
    agent.ask(id, "tools/list", json!({})).await["result"]["tools"][0]["name"].take()
}

#[tokio::test]
async fn the_session_of_an_agent_continues_when_its_engine_is_killed() {
    let stage = Stage::new();
    let mut agent = Agent::start(&stage, &stage.home.project()).await;
    for round in 0..2 {
        let mut window = stage.window().await;
        let call = json!({ "name": "fixture__echo", "arguments": { "round": round } });
        agent.say(json!({ "jsonrpc": "2.0", "id": 10 + round, "method": "tools/call", "params": call })).await;
        window.editor.event_where(|changed: &ApprovalsChanged| !changed.approvals.is_empty()).await;
        kill(stage.engine().unwrap());
        let failed = agent.answer(10 + round).await;
        assert_eq!(failed["result"]["isError"], true, "{failed}");
        let said = failed["result"]["content"][0]["text"].as_str().unwrap();
        assert!(said.contains("stopped while this request was running"), "{said}");
        agent.heard(is_news).await;
        assert_eq!(tools(&mut agent, 20 + round).await, "fixture__echo");
    }
    agent.quit().await;
    stage.until_nothing_is_left().await;
}

/// An editor without our plugin does not start us again.
#[tokio::test]
async fn the_session_of_a_plain_editor_continues_when_its_engine_is_killed() {
    let stage = Stage::new();
    let saved = r#"{ "servers": { "other": { "command": "sh" } } }"#;
    let path = stage.home.write("mcp.json", saved);
    let mut window = StdioEditor::start(&stage.home, &[]);
    let editor = &mut window.editor;
    let (asked, mut questions) = tokio::sync::mpsc::unbounded_channel();
    editor.handle("window/showMessageRequest", move |params| {
        asked.send(params["message"].as_str().unwrap().to_owned()).unwrap();
        // A call waits; closing a question about trust decides nothing.
        if params["message"].as_str().unwrap().starts_with("Run") { Err(Value::Null) } else { Ok(Value::Null) }
    });
    editor.initialize(&[&stage.home.project()], json!({})).await;
    editor.open(&path, saved);
    editor.change(&path, 2, r#"{ "servers": { "other": { "comand": "sh" } } }"#);
    let mistakes = |params: &Value| params["diagnostics"].to_string().contains("comand");
    editor.notification_where("textDocument/publishDiagnostics", mistakes).await;
    editor.call(start("fixture")).await.unwrap();
    for _ in 0..2 {
        let call = editor.start(tool_call("mcp__fixture__echo", json!({})));
        let mut seen: Vec<String> = Vec::new();
        let expected = ["Trust the server `other`?", "Run `echo` on `fixture`?"];
        while !expected.iter().all(|about| seen.iter().any(|question| question.starts_with(about))) {
            editor.call(Servers::default()).await.unwrap();
            seen.extend(std::iter::from_fn(|| questions.try_recv().ok()));
        }
        let engine = stage.engine().unwrap();
        kill(engine);
        let lost = editor.answer(call).await.unwrap_err();
        assert!(lost.message.contains("stopped while this request was running"), "{lost}");
        let message = editor.notification(ShowMessage::METHOD).await;
        assert!(message["message"].as_str().unwrap().contains("was restarted"), "{message}");
        // The new engine knows the text that was typed.
        editor.notification_where("textDocument/publishDiagnostics", mistakes).await;
        successor(&stage, engine).await;
        assert_eq!(editor.call(start("fixture")).await.unwrap().servers[0].status, Status::Connected);
    }
    editor.ignore("textDocument/publishDiagnostics");
    assert!(window.quit().await.success());
    stage.until_nothing_is_left().await;
}

/// Many agents end their servers when one request fails, so a list must not.
#[tokio::test]
async fn a_list_that_is_waited_for_survives_the_engine() {
    let stage = Stage::new();
    let slow =
        json!({ "servers": { "slow": { "command": "python3", "args": ["-c", "import time; time.sleep(60)"] } } });
    stage.home.write("../config/mcp.json", &slow.to_string());
    let mut agent = Agent::start(&stage, &stage.home.project()).await;
    agent.say(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {} })).await;
    // The list waits for the server, so it is still open when the ping is answered.
    agent.ask(2, "ping", json!({})).await;
    kill(stage.engine().unwrap());
    assert!(agent.answer(1).await["result"]["tools"].is_array());
    agent.quit().await;
}

/// Some agents start their servers with `HOME` and `PATH` and little else.
#[tokio::test]
async fn an_agent_joins_the_open_editor_although_its_environment_lacks_the_folders() {
    let stage = Stage::new();
    for folder in ["home", "tmp", "other", "config/mcp-sidecar"] {
        std::fs::create_dir_all(stage.home.path(folder)).unwrap();
    }
    std::fs::rename(stage.home.path("config/mcp.json"), stage.home.path("config/mcp-sidecar/mcp.json")).unwrap();
    let program = |variables: &[(&str, PathBuf)]| {
        let mut command = Command::new(PROGRAM);
        let kept = ["PATH", "MCP_SIDECAR_TEST_ROOT"].map(|name| (name, std::env::var_os(name).unwrap_or_default()));
        command.env_clear().envs(kept).env("HOME", stage.home.path("home")).env("TMPDIR", stage.home.path("tmp"));
        command.envs(variables.iter().cloned()).current_dir(stage.home.project());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        command
    };
    let of_user = [("XDG_CONFIG_HOME", stage.home.path("config")), ("XDG_STATE_HOME", stage.home.path("state"))];
    let mut window = program(&of_user).spawn().unwrap();
    let mut editor = TestEditor::on(window.stdout.take().unwrap(), window.stdin.take().unwrap());
    greet(&mut editor, &stage.home.project()).await;
    let engine = stage.engine().unwrap();

    let other = [("XDG_RUNTIME_DIR", stage.home.path("other"))];
    for variables in [&other[..], &of_user[..], &[]] {
        let mut agent = Agent::with(program(variables)).await;
        assert_eq!(tools(&mut agent, 1).await, "fixture__echo", "{variables:?}");
        assert_eq!(stage.engines(), [engine], "{variables:?}");
        agent.quit().await;
    }
    editor.quit().await;
    window.wait().await.unwrap();
}

#[tokio::test]
async fn a_newer_version_takes_over_when_no_editor_is_open() {
    let stage = Stage::new();
    let program = |variables: &[(&str, &str)]| {
        let mut command = Command::new(PROGRAM);
        command.envs(stage.home.variables()).envs(variables.iter().copied()).current_dir(stage.home.project());
        command
    };
    let mut old = Agent::with(program(&[OLD])).await;
    let first = stage.engine().unwrap();

    // Nothing is running, so the engine is replaced at once.
    let mut new = Agent::with(program(&[])).await;
    let second = successor(&stage, first).await;
    old.heard(is_news).await;
    for agent in [&mut old, &mut new] {
        assert_eq!(tools(agent, 1).await, "fixture__echo");
    }
    assert_eq!(stage.engines(), [second]);
    old.quit().await;
    new.quit().await;
    stage.until_nothing_is_left().await;
}

#[tokio::test]
async fn a_newer_version_waits_for_the_editor_and_says_so() {
    let stage = Stage::new();
    let mut command = Command::new(PROGRAM);
    command.envs(stage.home.variables()).envs([OLD]).current_dir(stage.home.project()).kill_on_drop(true);
    let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut editor = TestEditor::on(process.stdout.take().unwrap(), process.stdin.take().unwrap());
    for noise in ["mcp/serverChanged", "mcp/toolsChanged", "mcp/log", "mcp/configReloaded", "mcp/approvalsChanged"] {
        editor.ignore(noise);
    }
    let ours = json!({ "capabilities": { "experimental": { "mcpSidecar": { "version": "1", "approvals": true } } } });
    editor.initialize(&[&stage.home.project()], ours).await;
    editor.call(start("fixture")).await.unwrap();
    let first = stage.engine().unwrap();

    let mut agent = Agent::start(&stage, &stage.home.project()).await;
    let shown = editor.notification(ShowMessage::METHOD).await;
    assert!(shown["message"].as_str().unwrap().contains("is installed"), "{shown}");
    assert_eq!(tools(&mut agent, 1).await, "fixture__echo");
    assert_eq!(stage.engines(), [first]);

    editor.quit().await;
    process.wait().await.unwrap();
    successor(&stage, first).await;
    agent.heard(is_news).await;
    assert_eq!(tools(&mut agent, 2).await, "fixture__echo");
    agent.quit().await;
    stage.until_nothing_is_left().await;
}

#[tokio::test]
async fn a_url_for_agents_stays_the_same_when_the_engine_is_killed() {
    let stage = Stage::new();
    let mut command = Command::new(PROGRAM);
    command.args(["connect", "--http", "--json"]).envs(stage.home.variables()).current_dir(stage.home.project());
    let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let mut text = String::new();
    let endpoint: Value = loop {
        text.push_str(&lines.next_line().await.unwrap().unwrap());
        if let Ok(endpoint) = serde_json::from_str(&text) {
            break endpoint;
        }
    };
    let token = std::fs::read_to_string(endpoint["tokenFile"].as_str().unwrap()).unwrap();
    let address = endpoint["url"].as_str().unwrap().trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    assert_eq!(status(&address, &token).await.as_deref(), Some("200"));
    // The front gives up on an engine that ends at once.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let first = stage.engine().unwrap();
    kill(first);
    successor(&stage, first).await;
    let until = Instant::now() + PATIENCE;
    while status(&address, &token).await.as_deref() != Some("200") {
        assert!(Instant::now() < until);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(status(&address, "wrong").await.as_deref(), Some("401"));
    process.kill().await.unwrap();
    stage.until_nothing_is_left().await;
}

/// The status of a greeting.
async fn status(address: &str, token: &str) -> Option<String> {
    let client = json!({ "name": "tester", "version": "1" });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    let body = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }).to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = TcpStream::connect(address).await.ok()?;
    stream.write_all((head + &body).as_bytes()).await.ok()?;
    let mut reply = [0; 64];
    let length = stream.read(&mut reply).await.ok()?;
    String::from_utf8_lossy(&reply[..length]).split(' ').nth(1).map(str::to_owned)
}
