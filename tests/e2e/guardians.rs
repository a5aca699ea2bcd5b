//! Whatever is killed first, nothing that a server has started is left: not a daemon without an environment, and not a
//! process that forks all the time.

use std::path::Path;
use std::time::{Duration, Instant};

use mcp_sidecar::protocol::types::Status;
use serde_json::json;

use crate::processes::stage::alive;
use crate::sharing::engine_of;
use crate::support::commands::start;
use crate::support::{Home, StdioEditor};
use crate::workspace::fixture;

/// The promise is five seconds; a loaded machine gets more.
const PATIENCE: Duration = Duration::from_secs(30);

/// The processes that were started with this argument.
fn with_argument(argument: &Path) -> Vec<u32> {
    let wanted = argument.to_str().unwrap().as_bytes();
    let all = std::fs::read_dir("/proc").unwrap();
    let pids = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let has = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|argument| argument == wanted) && alive(*pid)
    };
    pids.filter(has).collect()
}

fn parent(pid: u32) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(')').unwrap().1.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn kill(pid: u32, must_be_there: bool) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    let killed = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    assert!(killed.is_ok() || !must_be_there, "{killed:?}");
}

/// Which processes are killed, and how.
#[derive(Clone, Copy)]
struct Killing {
    /// The arguments of the front.
    arguments: &'static [&'static str],
    /// Whether the editor has our plugin. A front of another editor joins the next engine.
    plugin: bool,
    /// 0 is the engine, 1 its guardian, 2 the guardian of that, 3 the front.
    order: &'static [usize],
    /// Before each kill but the first.
    pause: Duration,
}

const KILLING: Killing = Killing { arguments: &[], plugin: true, order: &[], pause: Duration::ZERO };

/// Starts an engine with the server from hell, and checks that nothing is left of it after the killing.
async fn kill_all(Killing { arguments, plugin, order, pause }: Killing) {
    let home = Home::new();
    let token = home.path("token");
    let server = fixture("faulty.py", &["forker", token.to_str().unwrap()]);
    let words: Vec<&str> = server["args"].as_array().unwrap().iter().filter_map(|word| word.as_str()).collect();
    let script = home.path("bad.sh");
    let line = format!("exec {} '{}'\n", server["command"].as_str().unwrap(), words.join("' '"));
    std::fs::write(&script, line).unwrap();
    let bad = json!({ "command": "sh", "args": [script] });
    std::fs::write(home.path("config/mcp.json"), json!({ "servers": { "bad": bad } }).to_string()).unwrap();
    let mut window = open_editor(&home, arguments, plugin).await;
    let started = window.editor.call(start("bad")).await.unwrap().servers.remove(0);
    assert_eq!(started.status, Status::Connected, "{started:?}");
    let server = started.pid.unwrap();
    let engine = parent(server);
    if arguments.is_empty() {
        assert_eq!(engine_of(&home), Some(engine));
    }
    let processes = [engine, parent(engine), parent(parent(engine)), window.process.id().unwrap()];
    // One that forks may be between two lives.
    assert!(with_argument(&token).len() >= 2, "the server, a daemon, and one that forks");
    // The next engine cannot start it again.
    std::fs::remove_file(script).unwrap();
    for (count, killed) in order.iter().enumerate() {
        if count > 0 {
            tokio::time::sleep(pause).await;
        }
        // The others may have ended it.
        kill(processes[*killed], count == 0);
    }
    let until = Instant::now() + PATIENCE;
    let _next = if order.contains(&3) { Some(open_editor(&home, arguments, plugin).await) } else { None };
    // One that forks may be between two lives: it has to be missing several times in a row.
    let mut missing = 0;
    while missing < 10 {
        missing = if with_argument(&token).is_empty() { missing + 1 } else { 0 };
        assert!(Instant::now() < until, "{arguments:?} {order:?}: left {:?}", with_argument(&token));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    while processes[..3].iter().any(|pid| alive(*pid)) {
        assert!(Instant::now() < until, "{arguments:?} {order:?}: some of {processes:?} stay");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn open_editor(home: &Home, arguments: &[&str], plugin: bool) -> StdioEditor {
    let mut window = StdioEditor::start(home, arguments);
    for noise in ["mcp/serverChanged", "mcp/toolsChanged", "mcp/log", "mcp/configReloaded", "window/showMessage"] {
        window.editor.ignore(noise);
    }
    let ours = json!({ "capabilities": { "experimental": { "mcpSidecar": { "version": "1" } } } });
    window.editor.initialize(&[&home.project()], if plugin { ours } else { json!({}) }).await;
    window
}

#[tokio::test]
async fn nothing_outlives_a_killed_engine_whatever_is_killed_before_or_after() {
    for order in [&[0][..], &[1], &[2], &[0, 1], &[1, 0], &[2, 0], &[0, 2], &[1, 2]] {
        kill_all(Killing { order, ..KILLING }).await;
    }
}

#[tokio::test]
async fn nothing_outlives_an_engine_that_an_editor_has_for_itself() {
    for order in [&[0][..], &[1], &[2], &[1, 0], &[2, 0]] {
        kill_all(Killing { arguments: &["lsp", "--standalone"], order, ..KILLING }).await;
    }
}

#[tokio::test]
async fn nothing_outlives_an_engine_that_is_killed_together_with_both_guardians() {
    for plugin in [true, false] {
        for order in [&[0, 1, 2], &[1, 2, 0], &[2, 1, 0]] {
            kill_all(Killing { plugin, order, ..KILLING }).await;
        }
    }
}

#[tokio::test]
async fn the_next_engine_ends_what_is_left_if_the_front_was_killed_as_well() {
    for order in [&[0, 1, 2, 3], &[3, 2, 1, 0]] {
        kill_all(Killing { order, ..KILLING }).await;
    }
}

#[tokio::test]
async fn nothing_outlives_an_engine_whose_processes_are_all_killed_one_by_one() {
    for order in [&[0, 1, 2], &[0, 2, 1], &[1, 0, 2], &[1, 2, 0], &[2, 0, 1], &[2, 1, 0]] {
        kill_all(Killing { order, pause: Duration::from_millis(700), ..KILLING }).await;
    }
}
