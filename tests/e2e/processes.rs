//! Real child processes: how they start, end, and are ended, whichever dies first.

pub mod stage;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use mcp_sidecar::model::Status;
use mcp_sidecar::server::{guardian, process};
use stage::{PROGRAM, Pids, Stage, alive, guardian_of};

/// Not a test but the engine of one: this binary, started again, with servers that the test then finds or misses.
#[test]
#[ignore = "started by other tests"]
fn an_engine_to_be_killed() {
    let Some(pids) = std::env::var_os("PIDS") else { return };
    guardian::install_program(PROGRAM.into());
    process::raise_limits();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let pids = Pids::at(pids.into());
        let mut stage = Stage::start(&["--family", "--pids", pids.path()]);
        let state = stage.until_settled().await;
        assert_eq!(state.status, Status::Connected, "{:?}", state.error);
        println!("ready");
        std::future::pending::<()>().await;
    });
}

/// Starts that engine and waits for its servers.
fn engine(pids: &Pids) -> std::process::Child {
    let mut engine = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "processes::an_engine_to_be_killed", "--ignored", "--nocapture"])
        .env("PIDS", pids.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(engine.stdout.take().unwrap());
    assert!(output.lines().map_while(Result::ok).any(|line| line.contains("ready")), "the engine did not start");
    engine
}

fn gone_within(pids: &[u32], patience: Duration) -> bool {
    let until = Instant::now() + patience;
    while pids.iter().any(|pid| alive(*pid)) {
        if Instant::now() > until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

#[test]
fn no_process_outlives_a_killed_engine() {
    let pids = Pids::new();
    let mut engine = engine(&pids);
    let family = pids.wait_for(4);
    let guardian = guardian_of(engine.id()).expect("a guardian stands by");
    assert!(family.iter().all(|pid| alive(*pid)));
    engine.kill().unwrap();
    engine.wait().unwrap();
    assert!(gone_within(&family, Duration::from_secs(30)), "a process is left");
    assert!(gone_within(&[guardian], Duration::from_secs(30)), "the guardian stays");
}

#[test]
fn a_guardian_that_is_killed_is_replaced() {
    let pids = Pids::new();
    let mut engine = engine(&pids);
    let family = pids.wait_for(4);
    let first = guardian_of(engine.id()).expect("a guardian stands by");
    // One that dies in its first second is not replaced: it would not work any better the second time.
    std::thread::sleep(Duration::from_millis(1_100));
    Command::new("kill").args(["-9", &first.to_string()]).status().unwrap();
    let until = Instant::now() + Duration::from_secs(30);
    while guardian_of(engine.id()).is_none_or(|pid| pid == first) {
        assert!(Instant::now() < until, "nobody took over");
        std::thread::sleep(Duration::from_millis(20));
    }
    engine.kill().unwrap();
    engine.wait().unwrap();
    assert!(gone_within(&family, Duration::from_secs(30)), "a process is left");
}

#[test]
fn the_guardian_is_small_and_ignores_signals() {
    let pids = Pids::new();
    let mut engine = engine(&pids);
    let guardian = guardian_of(engine.id()).expect("a guardian stands by");
    for signal in ["-TERM", "-INT", "-HUP"] {
        Command::new("kill").args([signal, &guardian.to_string()]).status().unwrap();
    }
    let private = stage::private_kilobytes(guardian);
    assert!(private < 2 << 10, "{private} kB of its own");
    assert!(alive(guardian));
    engine.kill().unwrap();
    engine.wait().unwrap();
    assert!(gone_within(&pids.wait_for(4), Duration::from_secs(30)));
}

#[tokio::test]
async fn an_exit_before_the_handshake_is_reported_with_code_and_stderr() {
    let mut stage = Stage::start(&["--exit", "3"]);
    let state = stage.until(|state| state.error.is_some()).await;
    assert_eq!(
        state.error.as_ref().unwrap().to_string(),
        "the server exited with code 3 before it answered `initialize`; last lines of its stderr:\n  cannot go on like this"
    );
    assert!(state.status.reason().unwrap().starts_with("retrying in"));
    stage.server.shutdown().await;
}

#[tokio::test]
async fn a_program_that_is_missing_fails_at_once_with_advice() {
    let mut stage = Stage::run("no-such-program", &[]);
    let state = stage.until_settled().await;
    assert_eq!(state.status, Status::Failed);
    assert_eq!(
        state.error.as_ref().unwrap().message,
        "`no-such-program` was not found on the PATH; install it or use its full path"
    );
}

#[tokio::test]
async fn a_stopped_server_ends_its_descendants() {
    let pids = Pids::new();
    let mut stage = Stage::start(&["--family", "--pids", pids.path()]);
    assert_eq!(stage.until_settled().await.status, Status::Connected);
    let family = pids.wait_for(4);
    let state = stage.server.stop().await.unwrap();
    assert_eq!(state.status, Status::Stopped);
    assert_eq!(state.pid, None);
    assert!(family.iter().all(|pid| !alive(*pid)), "a process is left");
}

#[tokio::test]
async fn a_server_that_is_changed_while_it_starts_is_one_process_in_the_end() {
    let pids = Pids::new();
    for _ in 0..5 {
        let slow = Stage::start(&["--slow", "600", "--pids", pids.path()]);
        pids.wait_for_more().await;
        slow.server.shutdown().await;
    }
    let mut last = Stage::start(&["--pids", pids.path()]);
    let state = last.until_settled().await;
    assert_eq!(state.status, Status::Connected);
    let living: Vec<u32> = pids.read().into_iter().filter(|pid| alive(*pid)).collect();
    assert_eq!(living, [state.pid.unwrap()]);
    last.server.shutdown().await;
    assert!(!alive(living[0]));
}

#[tokio::test]
async fn quick_restarts_leave_one_process() {
    let pids = Pids::new();
    let mut stage = Stage::start(&["--pids", pids.path()]);
    stage.until_settled().await;
    let hurry = (0..5).map(|_| stage.server.restart());
    futures::future::join_all(hurry).await;
    let state = stage.server.state();
    assert_eq!(state.status, Status::Connected);
    let living: Vec<u32> = pids.read().into_iter().filter(|pid| alive(*pid)).collect();
    assert_eq!(living, [state.pid.unwrap()]);
}

#[tokio::test]
async fn a_flood_on_stderr_neither_blocks_nor_fills_memory() {
    let mut stage = Stage::start(&["--flood"]);
    assert_eq!(stage.until_settled().await.status, Status::Connected);
    let kept: usize = stage.server.logs(usize::MAX).iter().map(|line| line.text.len()).sum();
    assert!(kept < 256 << 10);
}

#[tokio::test]
async fn the_built_in_server_connects_and_lists_its_tools() {
    let mut stage = Stage::run(PROGRAM, &["demo-server"]);
    let state = stage.until_settled().await;
    assert_eq!(state.status, Status::Connected, "{:?}", state.error);
    assert!(!state.tools.is_empty());
}

#[tokio::test]
async fn a_killed_server_comes_back() {
    let mut stage = Stage::start(&[]);
    let pid = stage.until_settled().await.pid.unwrap();
    Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
    let state = stage.until(|state| state.error.is_some()).await;
    assert_eq!(state.error.as_ref().unwrap().message, "the server was killed by signal 9 (SIGKILL)");
    let state = stage.until(|state| state.status == Status::Connected).await;
    assert_ne!(state.pid, Some(pid));
    assert_eq!(state.restarts, 1);
}

#[tokio::test]
async fn a_request_whose_server_dies_ends_at_once_with_the_exit_and_stderr() {
    let mut stage = Stage::start(&["--crash"]);
    assert_eq!(stage.until_settled().await.status, Status::Connected);
    let error = stage.server.unsubscribe("test://any".to_owned(), Duration::from_secs(60)).await.unwrap_err();
    assert_eq!(error.kind(), "process-failed");
    assert_eq!(
        error.to_string(),
        "server `fixture`: the server exited with code 7; last lines of its stderr:\n  about to fall over"
    );
}

#[tokio::test]
async fn ten_runs_leak_neither_threads_nor_descriptors() {
    // In a process of its own: the tests around this one open files and threads, too.
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "processes::ten_lives", "--ignored", "--nocapture", "--test-threads=1"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
#[ignore = "started by another test"]
fn ten_lives() {
    let count = |what: &str| std::fs::read_dir(format!("/proc/self/{what}")).unwrap().count();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let live = || {
        runtime.block_on(async {
            let mut stage = Stage::start(&["--exit", "1"]);
            stage.until(|state| state.error.is_some()).await;
            stage.server.shutdown().await;
            let mut stage = Stage::start(&[]);
            assert_eq!(stage.until_settled().await.status, Status::Connected);
            stage.server.shutdown().await;
        });
    };
    live();
    let before = (count("fd"), count("task"));
    for _ in 0..10 {
        live();
    }
    // A thread of the runtime's pool may have come or gone; what a life left behind would be there ten times. The last
    // descriptors are closed in the background.
    let until = Instant::now() + Duration::from_secs(30);
    let after = loop {
        let after = (count("fd"), count("task"));
        if after.0 <= before.0 && after.1 <= before.1 + 2 || Instant::now() > until {
            break after;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(after.0 <= before.0 && after.1 <= before.1 + 2, "{before:?} became {after:?}");
}
