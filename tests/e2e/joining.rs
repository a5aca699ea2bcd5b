//! Editors that join others on the same engine, in the built binary.

use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use mcp_sidecar::protocol::commands::Servers;
use mcp_sidecar::protocol::events::ApprovalsChanged;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};

use crate::processes::stage::PROGRAM;
use crate::sharing::{Agent, Stage};
use crate::support::commands::{resolve, trust};
use crate::support::{Home, StdioEditor, TestEditor};

const NOISE: [&str; 5] =
    ["mcp/serverChanged", "mcp/toolsChanged", "mcp/log", "mcp/configReloaded", "textDocument/publishDiagnostics"];

async fn greet(editor: &mut TestEditor, stage: &Stage, name: &str) {
    for noise in NOISE {
        editor.ignore(noise);
    }
    let ours = json!({ "version": "1", "approvals": true });
    let more = json!({ "clientInfo": { "name": name }, "capabilities": { "experimental": { "mcpSidecar": ours } } });
    editor.initialize(&[&stage.home.project()], more).await;
    editor.call(Servers::default()).await.unwrap();
}

async fn window(stage: &Stage, name: &str) -> StdioEditor {
    let mut window = StdioEditor::start(&stage.home, &[]);
    greet(&mut window.editor, stage, name).await;
    window
}

/// A window that an agent opened.
async fn window_of_agent(stage: &Stage, name: &str) -> (TestEditor, Child) {
    let (mut editor, process) = start_in_agent(&stage.home, &[]);
    greet(&mut editor, stage, name).await;
    (editor, process)
}

/// A window that an agent opened, with these variables in its environment.
pub fn start_in_agent(home: &Home, variables: &[(&str, &str)]) -> (TestEditor, Child) {
    let agent = home.path("claude");
    std::fs::write(&agent, "\"$@\"\nexit $?\n").unwrap();
    let mut command = Command::new("sh");
    command.arg(agent).arg(PROGRAM).envs(home.variables()).envs(variables.iter().copied()).current_dir(home.project());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut process = command.spawn().unwrap();
    let editor = TestEditor::on(process.stdout.take().unwrap(), process.stdin.take().unwrap());
    (editor, process)
}

/// The next message to the user.
async fn message(editor: &mut TestEditor) -> String {
    let shown = editor.notification("window/showMessage").await;
    assert_eq!(shown["type"], 3, "{shown}");
    shown["message"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn an_editor_that_joins_is_announced_once_to_the_others() {
    let stage = Stage::new();
    let mut first = window(&stage, "First").await;
    let second = window(&stage, "Second").await;
    let pid = second.process.id().unwrap();
    let expected = format!("Another editor joined this workspace: Second, process {pid} (mcp-sidecar).");
    assert_eq!(message(&mut first.editor).await, expected);

    // Neither a restart nor a shell command is another editor: the next message is about the third.
    assert!(second.quit().await.success());
    let again = window(&stage, "Second").await;
    let mut list = Command::new(PROGRAM);
    list.arg("list").envs(stage.home.variables()).current_dir(stage.home.project());
    assert!(list.output().await.unwrap().status.success());
    let mut third = window(&stage, "Third").await;
    assert!(message(&mut first.editor).await.contains("workspace: Third, process "));
    third.editor.assert_quiet();

    let logs = stage.home.path("state/logs");
    let read = |entry: std::io::Result<std::fs::DirEntry>| std::fs::read_to_string(entry.unwrap().path()).unwrap();
    let log: String = std::fs::read_dir(logs).unwrap().map(read).collect();
    assert_eq!(log.matches("another editor joined").count(), 2, "{log}");
    third.quit().await;
    // It was told about the third as well.
    let mut again = again.into_parts();
    assert!(message(&mut again.0).await.contains("workspace: Third, process "));
    first.quit().await;
    drop(again);
    stage.until_nothing_is_left().await;
}

#[tokio::test]
async fn a_program_that_calls_itself_a_shell_command_is_announced_with_its_process() {
    let stage = Stage::new();
    let mut first = window(&stage, "First").await;
    let stream = UnixStream::connect(stage.address().socket).await.unwrap();
    let (read, mut write) = stream.into_split();
    let hello = json!({ "front": "editor", "version": env!("CARGO_PKG_VERSION"), "pid": 1 });
    write.write_all(format!("{hello}\n").as_bytes()).await.unwrap();
    let mut read = BufReader::new(read);
    let mut welcome = String::new();
    read.read_line(&mut welcome).await.unwrap();
    let mut other = TestEditor::on(read, write);
    let shell = json!({ "capabilities": { "experimental": { "mcpSidecar": { "version": "1", "shell": true } } } });
    other.initialize(&[&stage.home.project()], shell).await;
    let process = format!("an editor without a name, process {} (", std::process::id());
    let shown = message(&mut first.editor).await;
    assert!(shown.contains(&process), "{shown}");
    drop(other);
    first.quit().await;
}

#[tokio::test]
async fn an_editor_of_an_agent_is_announced_as_read_only_and_gets_no_ticket() {
    let stage = Stage::new();
    stage.home.write("mcp.json", r#"{ "servers": { "theirs": { "command": "true" } } }"#);
    let mut first = window(&stage, "First").await;
    first.editor.ignore("mcp/approvalsChanged");
    let (mut second, process) = window_of_agent(&stage, "First").await;
    let shown = message(&mut first.editor).await;
    assert!(shown.contains("started by the agent `claude`, so it is read-only"), "{shown}");
    let ours = |editor: &TestEditor| editor.greeting["capabilities"]["experimental"]["mcpSidecar"].clone();
    assert!(ours(&first.editor)["ticket"].is_string());
    assert_eq!(ours(&second)["ticket"], Value::Null, "it could skip approvals");
    let listed = second.call(Servers::default()).await.unwrap().servers;
    let theirs = listed.iter().find(|server| server.name.as_str() == "theirs").unwrap();
    let refused = second.call(trust(theirs)).await.unwrap_err();
    assert!(refused.to_string().contains("this program was started by the agent `claude`"), "{refused}");
    drop((second, process));
    first.quit().await;
}

/// The text of a file of every process that has the folder of the test in its environment.
fn of_all_processes(stage: &Stage, file: &str) -> Vec<(u32, String)> {
    let place = stage.home.path("runtime").display().to_string();
    let read = |pid: u32, file: &str| {
        String::from_utf8_lossy(&std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default()).into_owned()
    };
    let all = std::fs::read_dir("/proc").unwrap();
    let pids = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| read(*pid, "environ").contains(&place)).map(|pid| (pid, read(pid, file))).collect()
}

#[tokio::test]
async fn the_ticket_is_in_no_environment_and_no_command_line() {
    let stage = Stage::new();
    let mut first = stage.window().await;
    let ticket = first.editor.greeting["capabilities"]["experimental"]["mcpSidecar"]["ticket"].clone();
    let (ticket, file) = (ticket.as_str().unwrap().to_owned(), stage.home.path("ticket"));
    let call = json!({ "name": "fixture__echo", "arguments": { "a": 1 } });
    for (mode, is_accepted) in [(0o600, true), (0o644, false)] {
        std::fs::write(&file, &ticket).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        let mut agent =
            Agent::start_with(&stage.home, &stage.home.project(), &[("MCP_SIDECAR_TICKET_FILE", &file)]).await;
        assert!(!file.exists(), "it is removed");
        for what in ["environ", "cmdline"] {
            let processes = of_all_processes(&stage, what);
            assert!(processes.len() >= 4, "engine, guardians, window and agent: {}", processes.len());
            for (pid, text) in processes {
                assert!(!text.contains(&ticket), "the {what} of {pid} contains the ticket");
            }
        }
        agent.say(json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call })).await;
        if !is_accepted {
            let asked = first.editor.event_where(|changed: &ApprovalsChanged| !changed.approvals.is_empty()).await;
            first.editor.call(resolve(&asked.approvals[0], "deny")).await.unwrap();
        }
        let answer = agent.answer(2).await;
        assert_eq!(answer["result"]["isError"] != true, is_accepted, "{answer}");
        agent.quit().await;
    }
    first.editor.ignore("mcp/approvalsChanged");
    assert!(first.quit().await.success());
    stage.until_nothing_is_left().await;
}
