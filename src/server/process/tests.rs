use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::sync::mpsc;

use super::*;
use crate::model::{ServerName, Timestamp};
use crate::server::Event;

struct Started {
    process: Process,
    pipes: Pipes,
    logs: Logs,
    tracker: TaskTracker,
    _events: mpsc::Receiver<(ServerName, u64, Event)>,
}

fn start(script: &str) -> Started {
    let program = Program {
        command: "sh".to_owned(),
        args: ["-c", script].map(Secret::plain).into(),
        env: BTreeMap::new(),
        cwd: Some("/".into()),
        inherit_env: false,
        sandbox: None,
    };
    let environment = BTreeMap::from([("PATH".to_owned(), Secret::plain("/usr/local/bin:/usr/bin:/bin"))]);
    let (events, received) = mpsc::channel(1_000);
    let logs = Logs::new(ServerName::new("it").unwrap(), 1, 256 << 10, events);
    let tracker = TaskTracker::new();
    let (process, pipes) =
        Process::start(&program, &environment, &crate::settings::Settings::default().sandbox, logs.clone(), &tracker)
            .unwrap();
    Started { process, pipes, logs, tracker, _events: received }
}

/// The pids that a script prints, one per line.
async fn pids(pipes: Pipes, count: usize) -> (ChildStdin, Vec<u32>) {
    let mut lines = BufReader::new(pipes.stdout).lines();
    let mut pids = Vec::new();
    while pids.len() < count {
        pids.push(lines.next_line().await.unwrap().unwrap().trim().parse().unwrap());
    }
    (pipes.stdin, pids)
}

fn alive(pid: u32) -> bool {
    proc_table::process(pid).is_some_and(|entry| !entry.zombie)
}

#[tokio::test]
async fn the_exit_is_described_and_the_last_lines_are_logged() {
    let started = start("echo one >&2; echo two >&2; exit 3");
    assert_eq!(started.process.exited().await.to_string(), "exited with code 3");
    assert_eq!(started.logs.recent_stderr(Timestamp::from_unix_millis(0), 5), ["one", "two"]);
    let started = start("kill -9 $$");
    assert_eq!(started.process.exited().await.to_string(), "was killed by signal 9 (SIGKILL)");
}

#[tokio::test]
async fn a_server_that_exits_at_end_of_input_is_not_signalled() {
    let started = start("cat; echo bye >&2");
    drop(started.pipes);
    assert_eq!(started.process.exited().await, Exit::Code(0));
    started.process.end().await;
    assert_eq!(started.logs.last(1)[0].text, "bye");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_whole_tree_ends_including_daemons_and_processes_that_ignore_sigterm() {
    let script = "echo $$; (trap '' TERM; sh -c 'trap \"\" TERM; echo $$; while :; do sleep 1; done' & wait) & \
                  setsid sh -c 'echo $$; while :; do sleep 1; done' & wait";
    let started = start(script);
    let (stdin, pids) = pids(started.pipes, 3).await;
    assert!(pids.iter().all(|pid| alive(*pid)));
    drop(stdin);
    started.process.end().await;
    assert_eq!(pids.into_iter().filter(|pid| alive(*pid)).count(), 0);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn members_that_outlive_their_leader_end_and_leave_no_zombie() {
    let started = start("sleep 600 & echo $!; setsid sleep 600 & sleep 0.1; echo $!; exit 0");
    let (_stdin, pids) = pids(started.pipes, 2).await;
    assert_eq!(started.process.exited().await, Exit::Code(0));
    started.process.end().await;
    for pid in pids {
        assert_eq!(proc_table::process(pid), None, "not even as a zombie");
    }
}

#[tokio::test]
async fn dropping_the_handle_ends_the_process_too() {
    let started = start("trap '' TERM; echo $$; while :; do sleep 1; done");
    let (stdin, pids) = pids(started.pipes, 1).await;
    drop((stdin, started.process));
    started.tracker.close();
    started.tracker.wait().await;
    assert!(!alive(pids[0]));
}

#[tokio::test]
async fn a_flood_on_stderr_is_drained_and_bounded() {
    let started = start("head -c 67108864 /dev/zero | tr '\\0' x >&2; echo done >&2");
    assert_eq!(started.process.exited().await, Exit::Code(0));
    let kept: usize = started.logs.last(usize::MAX).iter().map(|line| line.text.len()).sum();
    assert!(kept < 256 << 10, "{kept} bytes kept");
    assert!(started.logs.last(1)[0].text.contains("more bytes of this line"));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn ten_starts_and_stops_leak_no_descriptor() {
    let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let live = || async {
        let started = start("cat");
        drop(started.pipes);
        started.process.end().await;
        started.tracker.close();
        tokio::time::timeout(Duration::from_secs(5), started.tracker.wait()).await.unwrap();
    };
    live().await;
    // Concurrent tests open and close files, too: only a growth over ten runs counts.
    let mut fewest = usize::MAX;
    for _ in 0..10 {
        let before = descriptors();
        for _ in 0..10 {
            live().await;
        }
        fewest = fewest.min(descriptors().saturating_sub(before));
        if fewest < 10 {
            return;
        }
    }
    panic!("{fewest} descriptors more after ten lives");
}

#[test]
fn oversized_or_invalid_arguments_are_rejected_with_the_limit() {
    let program = |args: Vec<Secret>| Program {
        command: "x".to_owned(),
        args,
        env: BTreeMap::new(),
        cwd: None,
        inherit_env: false,
        sandbox: None,
    };
    let long = program(vec![Secret::plain("x".repeat(10 << 20))]);
    insta::assert_snapshot!(check_arguments(&long).unwrap_err(), @"`command` and `args` are larger than 128 KiB; move long values to a file");
    let nul = program(vec![Secret::plain("a\0b")]);
    insta::assert_snapshot!(check_arguments(&nul).unwrap_err(), @"`command` or `args` contains a NUL character; remove it");
    let environment = BTreeMap::from([("BIG".to_owned(), Secret::plain("x".repeat(200 << 10)))]);
    insta::assert_snapshot!(check_environment(&environment).unwrap_err(), @"the environment variable `BIG` is larger than 128 KiB; move its value to a file");
}
