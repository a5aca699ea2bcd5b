//! The memory of the engine while editors and agents misbehave. The bounds are generous: what they forbid is growth with
//! the size or the number of what others send.

use std::process::Stdio;
use std::time::Duration;

use mcp_sidecar::protocol::commands::Servers;
use mcp_sidecar::protocol::types::Status;
use serde_json::json;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::processes::stage::PROGRAM;
use crate::sharing::Stage;
use crate::support::StdioEditor;
use crate::support::bad_client::{BadClient, Framing, Step, call};

const MIB: i64 = 1 << 20;

/// The most memory that a process has had.
fn peak_mib(pid: u32) -> i64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().trim_end_matches(" kB").parse::<i64>().unwrap() >> 10
}

fn start(stage: &Stage, arguments: &[&str]) -> (Child, ChildStdout, ChildStdin) {
    let mut command = Command::new(PROGRAM);
    command.envs(stage.home.variables()).args(arguments).current_dir(stage.home.project()).kill_on_drop(true);
    let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (read, write) = (process.stdout.take().unwrap(), process.stdin.take().unwrap());
    (process, read, write)
}

/// An agent with a bad character.
async fn agent(stage: &Stage) -> (Child, BadClient<ChildStdout, ChildStdin>) {
    let (process, read, write) = start(stage, &["connect"]);
    let mut agent = BadClient::new(read, write, Framing::Lines);
    agent.initialize_agent().await;
    (process, agent)
}

/// An editor that shows approvals, or rather would if it ever read a message.
async fn deaf_editor(stage: &Stage) -> (Child, BadClient<ChildStdout, ChildStdin>) {
    let (process, read, write) = start(stage, &[]);
    let mut editor = BadClient::new(read, write, Framing::Lsp);
    editor.initialize_editor(&stage.home.project()).await;
    (process, editor)
}

/// Asks an editor until this many calls of agents wait for approval, or have been refused.
async fn until_asked(window: &mut StdioEditor, count: usize) {
    let all = mcp_sidecar::protocol::commands::Approvals::default();
    while window.editor.call(all.clone()).await.unwrap().approvals.len() < count {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn large_calls_that_wait_for_approval_take_bounded_memory_even_if_an_editor_does_not_read() {
    let stage = Stage::new();
    let mut window = stage.window().await;
    window.editor.ignore("mcp/approvalsChanged");
    let engine = stage.engine().unwrap();
    let idle = peak_mib(engine);
    let (_editor_process, _deaf) = deaf_editor(&stage).await;
    let (_agent_process, mut agent) = agent(&stage).await;
    let request = call("fixture__echo", json!({ "text": "x".repeat(MIB as usize) }));
    // 64 MiB; the limit is half of it.
    agent.run(&[Step::Flood { request, first: 1, count: 64 }, Step::Responses(30)]).await;
    for refused in &agent.responses {
        assert!(refused["error"]["message"].as_str().unwrap().contains("`limits.pending-bytes`"), "{refused:#}");
    }
    until_asked(&mut window, 30).await;
    let peak = peak_mib(engine);
    assert!(peak < idle + 256, "{idle} MiB became {peak} MiB");
    drop(agent);
    let list = window.editor.call(Servers::default()).await.unwrap();
    assert_eq!(list.servers[0].status, Status::Connected);
}

#[tokio::test]
async fn many_small_calls_do_not_fill_the_queue_of_an_editor_that_does_not_read() {
    let stage = Stage::new();
    let mut window = stage.window().await;
    window.editor.ignore("mcp/approvalsChanged");
    let engine = stage.engine().unwrap();
    let idle = peak_mib(engine);
    let (_editor_process, _deaf) = deaf_editor(&stage).await;
    let (_agent_process, mut agent) = agent(&stage).await;
    // Each list of questions would be up to 10 MB, and there are as many lists as calls.
    let request = call("fixture__echo", json!({ "text": "x".repeat(40_000) }));
    agent.run(&[Step::Flood { request, first: 1, count: 250 }]).await;
    until_asked(&mut window, 250).await;
    let peak = peak_mib(engine);
    assert!(peak < idle + 256, "{idle} MiB became {peak} MiB");
}
