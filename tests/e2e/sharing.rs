//! One engine for every window and agent of a workspace, in the built binary.

use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use mcp_sidecar::protocol::answers::ServerList;
use mcp_sidecar::protocol::commands::Servers;
use mcp_sidecar::protocol::errors::ErrorKind;
use mcp_sidecar::protocol::events::ApprovalsChanged;
use mcp_sidecar::protocol::types::{ServerStatus, Status};
use mcp_sidecar::session::EngineAddress;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};

use crate::processes::stage::{PROGRAM, Pids, alive, private_kilobytes};
use crate::support::commands::{resolve, start, tool_call};
use crate::support::{Home, StdioEditor, TestEditor};

/// No wait takes longer on the slowest machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

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

    pub fn address(&self) -> EngineAddress {
        EngineAddress::of(&self.home.project(), &self.home.paths()).unwrap()
    }

    /// A window of the project whose server has started.
    pub async fn window(&self) -> StdioEditor {
        let mut window = StdioEditor::start(&self.home, &[]);
        greet(&mut window.editor, &self.home.project()).await;
        window
    }

    /// The process that serves them all.
    pub fn engine(&self) -> Option<u32> {
        engine_of(&self.home)
    }

    pub fn engines(&self) -> Vec<u32> {
        engines_of(&self.home)
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

/// The shared engine of a project.
pub fn engine_of(home: &Home) -> Option<u32> {
    engines_of(home).first().copied()
}

fn engines_of(home: &Home) -> Vec<u32> {
    let root = home.project().canonicalize().unwrap();
    let wanted = format!("mcp-sidecar\0engine\0--workspace\0{}\0", root.display());
    let all = std::fs::read_dir("/proc").unwrap();
    let pids = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let read = |pid: u32, file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    // Its guardians are copies of it, by another name.
    let is_engine =
        |pid: &u32| read(*pid, "cmdline") == wanted && read(*pid, "comm") != "mcp-guardian\n" && alive(*pid);
    pids.filter(is_engine).collect()
}

/// Greets as our plugin would, and starts the server.
pub async fn greet(editor: &mut TestEditor, folder: &Path) -> ServerStatus {
    for noise in ["mcp/serverChanged", "mcp/toolsChanged", "mcp/log", "mcp/configReloaded", "mcp/callFinished"] {
        editor.ignore(noise);
    }
    // Other editors that join are announced; see `joining`.
    editor.ignore("window/showMessage");
    let ours = json!({ "version": "1", "approvals": true });
    editor.initialize(&[folder], json!({ "capabilities": { "experimental": { "mcpSidecar": ours } } })).await;
    let started = editor.call(start("fixture")).await.unwrap().servers.remove(0);
    assert_eq!(started.status, Status::Connected, "{started:?}");
    started
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
    let listed = second.editor.call(Servers::default()).await.unwrap();
    assert_eq!(listed.servers[0].pid, Some(stage.pids.read()[0]));
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
    let call = first.0.start(tool_call("mcp__fixture__echo", json!({ "a": 1 })));
    let asks = |changed: &ApprovalsChanged| !changed.approvals.is_empty();
    let seen_by_first = first.0.event_where(asks).await;
    let seen_by_second = second.0.event_where(asks).await;
    let approval = &seen_by_second.approvals[0];
    assert_eq!(seen_by_first.approvals[0].id, approval.id);

    let answer = resolve(approval, "allow-once");
    second.0.call(answer.clone()).await.unwrap();
    assert_eq!(first.0.answer(call).await.unwrap().blocks()[0]["text"], r#"{"a": 1}"#);
    let late = first.0.call(answer).await.unwrap_err();
    assert_eq!(late.kind(), Some(ErrorKind::NotFound), "{late}");
    drop((first, second));
    stage.until_nothing_is_left().await;
}

#[tokio::test]
async fn a_socket_without_a_listener_is_taken_over() {
    let stage = Stage::new();
    stage.address().secure().unwrap();
    drop(UnixListener::bind(stage.address().socket).unwrap());
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
async fn a_window_that_disconnects_without_shutdown_exits_with_an_error() {
    let stage = Stage::new();
    let (editor, mut process) = stage.window().await.into_parts();
    drop(editor);
    assert_eq!(ended(&mut process).await.code(), Some(1));
    stage.until_nothing_is_left().await;
}

#[tokio::test]
async fn a_killed_window_ends_only_what_no_other_window_used() {
    let stage = Stage::new();
    let (_editor, mut process) = stage.window().await.into_parts();
    process.start_kill().unwrap();
    ended(&mut process).await;
    stage.until_nothing_is_left().await;
}

/// The engine keeps running for a moment after its last front, and a shell joins it.
#[tokio::test]
async fn a_shell_sees_the_project_after_a_killed_editor_or_an_agent() {
    let stage = Stage::new();
    stage.home.write("mcp.json", r#"{ "servers": { "of-the-project": { "command": "x", "enabled": false } } }"#);
    for with_agent in [false, true] {
        let mut front = match with_agent {
            true => Agent::start(&stage, &stage.home.project()).await.process,
            false => stage.window().await.into_parts().1,
        };
        front.start_kill().unwrap();
        ended(&mut front).await;
        let engine = stage.engine().expect("it lingers");
        for _ in 0..2 {
            let mut shell = Command::new(PROGRAM);
            shell.args(["list", "--json"]).envs(stage.home.variables()).current_dir(stage.home.project());
            let listed: ServerList = serde_json::from_slice(&shell.output().await.unwrap().stdout).unwrap();
            let names: Vec<&str> = listed.servers.iter().map(|server| server.name.as_str()).collect();
            assert_eq!(names, ["fixture", "of-the-project"]);
            assert_eq!(stage.engine(), Some(engine));
        }
        stage.until_nothing_is_left().await;
    }
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
async fn in_a_folder_that_others_can_write_an_editor_gets_its_own_engine() {
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
        Self::start_with(&stage.home, folder, &[]).await
    }

    /// The same with these variables.
    pub async fn start_with(home: &Home, folder: &Path, variables: &[(&str, &Path)]) -> Self {
        let mut command = Command::new(PROGRAM);
        command.envs(home.variables()).envs(variables.iter().copied()).current_dir(folder);
        Self::with(command).await
    }

    /// The program, with its folder and environment.
    pub async fn with(mut command: Command) -> Self {
        use tokio::io::AsyncBufReadExt;
        command.arg("connect").kill_on_drop(true);
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

    pub async fn say(&mut self, message: Value) {
        use tokio::io::AsyncWriteExt;
        self.process.stdin.as_mut().unwrap().write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    pub async fn ask(&mut self, id: i64, method: &str, params: Value) -> Value {
        self.say(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        self.answer(id).await
    }

    pub async fn answer(&mut self, id: i64) -> Value {
        self.heard(|message| message["id"] == id).await
    }

    /// Waits for a message.
    pub async fn heard(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = tokio::time::timeout(PATIENCE, self.lines.next_line()).await.expect("no hang").unwrap().unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            if wanted(&message) {
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
    let asks = |changed: &ApprovalsChanged| !changed.approvals.is_empty();
    let asked = editor.event_where(asks).await;
    assert_eq!(asked.approvals[0].requester.name, "tester");
    let seen = other.event_where(asks).await;
    assert_eq!(seen.approvals[0].id, asked.approvals[0].id);
    let answer = resolve(&asked.approvals[0], "allow-once");
    other.call(answer.clone()).await.unwrap();
    assert_eq!(agents[0].answer(2).await["result"]["content"][0]["text"], r#"{"b": 2}"#);
    let late = editor.call(answer).await.unwrap_err();
    assert_eq!(late.kind(), Some(ErrorKind::NotFound), "{late}");

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
