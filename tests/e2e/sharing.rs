//! One engine for every window and agent of a workspace, in the built binary.

use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use mcp_sidecar::session::EngineAddress;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};

use crate::processes::stage::{PROGRAM, Pids, alive, private_kilobytes};
use crate::support::{Home, StdioEditor, TestEditor};

/// No wait takes longer on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A home whose user has one server, which writes down every process of it that starts.
pub struct Stage {
    pub home: Home,
    pids: Pids,
}

impl Stage {
    pub fn new() -> Self {
        let home = Home::new();
        let pids = Pids::at(home.path("pids"));
        let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/server.py");
        let config = json!({ "servers": { "fixture": {
            "command": "python3", "args": [fixture, "--pids", pids.path()], "tools": { "echo": "require-approval" },
        } } });
        std::fs::write(home.path("config/mcp.json"), config.to_string()).unwrap();
        Self { home, pids }
    }

    pub fn place(&self) -> EngineAddress {
        EngineAddress::of(&self.home.project(), &self.home.paths()).unwrap()
    }

    /// A window of the project whose server has started.
    pub async fn window(&self) -> StdioEditor {
        let mut window = StdioEditor::start(&self.home, &[]);
        greet(&mut window.editor, &self.home.project()).await;
        window
    }

    /// The process that serves them all.
    fn engine(&self) -> Option<u32> {
        let root = self.home.project().canonicalize().unwrap();
        let wanted = format!("mcp-sidecar\0engine\0--workspace\0{}\0", root.display());
        let all = std::fs::read_dir("/proc").unwrap();
        all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).find(|pid: &u32| {
            std::fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line == wanted) && alive(*pid)
        })
    }

    /// Waits until neither engine, server nor socket is left.
    pub async fn until_nothing_is_left(&self) {
        let until = Instant::now() + PATIENCE;
        let left = || {
            let files = std::fs::read_dir(self.home.path("runtime")).unwrap().count();
            let servers: Vec<u32> = self.pids.read().into_iter().filter(|pid| alive(*pid)).collect();
            (self.engine(), files, servers)
        };
        while left() != (None, 0, Vec::new()) {
            assert!(Instant::now() < until, "still there: {:?}", left());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Greets as our plugin would, and starts the server.
async fn greet(editor: &mut TestEditor, folder: &Path) -> Value {
    for noise in ["mcp/serverChanged", "mcp/toolsChanged", "mcp/log", "mcp/configReloaded", "mcp/callFinished"] {
        editor.ignore(noise);
    }
    let ours = json!({ "version": "1", "approvals": true });
    editor.initialize(&[folder], json!({ "capabilities": { "experimental": { "mcpSidecar": ours } } })).await;
    let started = editor.command("mcp.server.start", json!({ "server": "fixture" })).await.unwrap();
    assert_eq!(started["servers"][0]["status"], "connected", "{started:#}");
    started["servers"][0].clone()
}

async fn ended(process: &mut Child) -> ExitStatus {
    tokio::time::timeout(PATIENCE, process.wait()).await.expect("it should have ended").unwrap()
}

#[tokio::test]
async fn two_windows_share_one_process_per_server_and_the_last_leaves_nothing() {
    let stage = Stage::new();
    let first = stage.window().await;
    let mut second = stage.window().await;
    assert_eq!(stage.pids.read().len(), 1);
    let engine = stage.engine().unwrap();

    assert!(first.quit().await.success());
    let listed = second.editor.command("mcp.servers", json!({})).await.unwrap();
    assert_eq!(listed["servers"][0]["pid"], stage.pids.read()[0]);
    assert_eq!(stage.engine(), Some(engine));
    assert!(second.quit().await.success());
    stage.until_nothing_is_left().await;
    assert_eq!(stage.pids.read().len(), 1);
}

#[tokio::test]
async fn windows_that_start_at_once_end_up_with_one_engine() {
    let stage = Stage::new();
    let mut windows: Vec<StdioEditor> = (0..4).map(|_| StdioEditor::start(&stage.home, &["lsp"])).collect();
    let project = stage.home.project();
    futures::future::join_all(windows.iter_mut().map(|window| greet(&mut window.editor, &project))).await;
    assert_eq!(stage.pids.read().len(), 1);
    for window in windows {
        assert!(window.quit().await.success());
    }
    stage.until_nothing_is_left().await;
}

#[tokio::test]
async fn a_question_stands_in_every_window_and_the_first_answer_counts() {
    let stage = Stage::new();
    let mut first = stage.window().await.into_parts();
    let mut second = stage.window().await.into_parts();
    let call = first.0.begin_command("mcp.tool.call", json!({ "tool": "mcp__fixture__echo", "arguments": { "a": 1 } }));
    let asks = |params: &Value| !params["approvals"].as_array().unwrap().is_empty();
    let seen_by_first = first.0.notification_where("mcp/approvalsChanged", asks).await;
    let seen_by_second = second.0.notification_where("mcp/approvalsChanged", asks).await;
    let id = &seen_by_second["approvals"][0]["id"];
    assert_eq!(&seen_by_first["approvals"][0]["id"], id);

    let answer = json!({ "id": id, "decision": "allow-once" });
    second.0.command("mcp.approval.resolve", answer.clone()).await.unwrap();
    assert_eq!(first.0.answer(call).await.unwrap()["content"][0]["text"], r#"{"a": 1}"#);
    let late = first.0.command("mcp.approval.resolve", answer).await.unwrap_err();
    assert_eq!(late["data"]["kind"], "not-found", "{late:#}");
    drop((first, second));
    stage.until_nothing_is_left().await;
}

#[tokio::test]
async fn a_socket_that_nobody_listens_on_is_taken_over() {
    let stage = Stage::new();
    stage.place().secure().unwrap();
    drop(UnixListener::bind(stage.place().socket).unwrap());
    let window = stage.window().await;
    assert!(window.quit().await.success());
    stage.until_nothing_is_left().await;
}

#[tokio::test]
async fn an_engine_that_is_killed_is_noticed_and_the_next_start_works() {
    let stage = Stage::new();
    let mut command = Command::new(PROGRAM);
    command.envs(stage.home.variables()).current_dir(stage.home.project()).kill_on_drop(true);
    let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut editor = TestEditor::on(process.stdout.take().unwrap(), process.stdin.take().unwrap());
    greet(&mut editor, &stage.home.project()).await;
    assert_eq!(stage.pids.read().len(), 1);
    std::process::Command::new("kill").args(["-9", &stage.engine().unwrap().to_string()]).status().unwrap();
    assert_eq!(ended(&mut process).await.code(), Some(1));
    let mut said = String::new();
    process.stderr.take().unwrap().read_to_string(&mut said).await.unwrap();
    assert!(said.contains("the engine of this workspace ended unexpectedly"), "{said}");

    let window = stage.window().await;
    assert_eq!(stage.pids.read().len(), 2);
    assert!(window.quit().await.success());
    stage.until_nothing_is_left().await;
}

#[tokio::test]
async fn a_window_that_goes_without_a_word_is_a_failure_of_its_own() {
    let stage = Stage::new();
    let (editor, mut process) = stage.window().await.into_parts();
    drop(editor);
    assert_eq!(ended(&mut process).await.code(), Some(1));
    stage.until_nothing_is_left().await;
}

#[tokio::test]
async fn a_killed_window_takes_nobody_along_but_what_only_it_used() {
    let stage = Stage::new();
    let (_editor, mut process) = stage.window().await.into_parts();
    process.start_kill().unwrap();
    ended(&mut process).await;
    stage.until_nothing_is_left().await;
}

#[tokio::test]
async fn a_front_costs_next_to_nothing() {
    let stage = Stage::new();
    let window = stage.window().await;
    let kilobytes = private_kilobytes(window.process.id().unwrap());
    assert!(kilobytes < 3 << 10, "{kilobytes} KiB");
    assert!(window.quit().await.success());
    stage.until_nothing_is_left().await;
}

#[tokio::test]
async fn in_a_folder_that_others_can_write_an_editor_gets_an_engine_of_its_own() {
    use std::os::unix::fs::PermissionsExt;
    let stage = Stage::new();
    let runtime = stage.home.path("runtime");
    std::fs::set_permissions(&runtime, std::fs::Permissions::from_mode(0o777)).unwrap();
    let window = stage.window().await;
    assert_eq!(stage.engine(), None);
    assert_eq!(std::fs::read_dir(&runtime).unwrap().count(), 0);
    assert!(window.quit().await.success());
}

/// An agent on the built binary: says one line, hears one line.
pub struct Agent {
    process: Child,
    lines: tokio::io::Lines<tokio::io::BufReader<tokio::process::ChildStdout>>,
}

impl Agent {
    pub async fn start(stage: &Stage, folder: &Path) -> Self {
        use tokio::io::AsyncBufReadExt;
        let mut command = Command::new(PROGRAM);
        command.arg("connect").envs(stage.home.variables()).current_dir(folder).kill_on_drop(true);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = tokio::io::BufReader::new(process.stdout.take().unwrap()).lines();
        let mut agent = Self { process, lines };
        let client = json!({ "name": "tester", "version": "1" });
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
        let greeting = agent.ask(0, "initialize", params).await;
        assert_eq!(greeting["result"]["serverInfo"]["name"], "mcp-sidecar", "{greeting:#}");
        agent.say(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        agent
    }

    async fn say(&mut self, message: Value) {
        use tokio::io::AsyncWriteExt;
        self.process.stdin.as_mut().unwrap().write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn ask(&mut self, id: i64, method: &str, params: Value) -> Value {
        self.say(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        self.answer(id).await
    }

    async fn answer(&mut self, id: i64) -> Value {
        loop {
            let line = tokio::time::timeout(PATIENCE, self.lines.next_line()).await.expect("no hang").unwrap().unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                return message;
            }
        }
    }

    /// Goes as an agent should: it closes its side.
    pub async fn quit(mut self) {
        drop(self.process.stdin.take());
        assert!(ended(&mut self.process).await.success());
    }
}

#[tokio::test]
async fn windows_and_agents_of_a_workspace_share_one_process_per_server() {
    let stage = Stage::new();
    let below = stage.home.project().join("below");
    std::fs::create_dir(&below).unwrap();
    let project = stage.home.project();
    let mut agents = Vec::new();
    for folder in [&project, &below, &project] {
        agents.push(Agent::start(&stage, folder).await);
    }
    let (first, second) = (stage.window().await, stage.window().await);
    for agent in &mut agents {
        let tools = agent.ask(1, "tools/list", json!({})).await;
        assert_eq!(tools["result"]["tools"][0]["name"], "fixture__echo", "{tools:#}");
    }
    assert_eq!(stage.pids.read().len(), 1);

    // Asked about in both windows, for the agent, by name; the first answer counts.
    let (mut editor, mut process) = first.into_parts();
    let (mut other, mut other_process) = second.into_parts();
    let call = json!({ "name": "fixture__echo", "arguments": { "b": 2 } });
    agents[0].say(json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call })).await;
    let asks = |params: &Value| !params["approvals"].as_array().unwrap().is_empty();
    let asked = editor.notification_where("mcp/approvalsChanged", asks).await;
    assert_eq!(asked["approvals"][0]["requester"]["name"], "tester");
    let seen = other.notification_where("mcp/approvalsChanged", asks).await;
    assert_eq!(seen["approvals"][0]["id"], asked["approvals"][0]["id"]);
    let answer = json!({ "id": asked["approvals"][0]["id"], "decision": "allow-once" });
    other.command("mcp.approval.resolve", answer.clone()).await.unwrap();
    assert_eq!(agents[0].answer(2).await["result"]["content"][0]["text"], r#"{"b": 2}"#);
    let late = editor.command("mcp.approval.resolve", answer).await.unwrap_err();
    assert_eq!(late["data"]["kind"], "not-found", "{late:#}");

    // Windows come and go; whoever stays is served by the same process.
    drop(editor);
    ended(&mut process).await;
    let third = stage.window().await;
    drop(other);
    ended(&mut other_process).await;
    for (id, agent) in (4..).zip(&mut agents) {
        assert!(agent.ask(id, "ping", json!({})).await["result"].is_object());
    }
    for agent in agents {
        agent.quit().await;
    }
    assert!(third.quit().await.success());
    stage.until_nothing_is_left().await;
    assert_eq!(stage.pids.read().len(), 1);
}

#[tokio::test]
async fn an_agent_that_is_ended_by_a_signal_ends_in_order_and_leaves_nothing() {
    let stage = Stage::new();
    for signal in ["-TERM", "-INT"] {
        let mut agent = Agent::start(&stage, &stage.home.project()).await;
        let call = json!({ "name": "fixture__echo", "arguments": {} });
        agent.say(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call })).await;
        std::process::Command::new("kill").args([signal, &agent.process.id().unwrap().to_string()]).status().unwrap();
        assert_eq!(ended(&mut agent.process).await.code(), Some(0), "{signal}");
    }
    stage.until_nothing_is_left().await;
}

#[tokio::test]
async fn in_a_folder_that_others_can_write_an_agent_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let stage = Stage::new();
    std::fs::set_permissions(stage.home.path("runtime"), std::fs::Permissions::from_mode(0o777)).unwrap();
    let mut command = Command::new(PROGRAM);
    command.arg("connect").envs(stage.home.variables()).current_dir(stage.home.project());
    let output = command.stdin(Stdio::null()).output().await.unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("is not safe to use"), "{said}");
    assert_eq!(stage.engine(), None);
}
