//! The guardian process: reads until the engine's pipe closes, then ends the remaining processes. It uses little memory
//! and blocks in one read all the time.

use std::io::BufRead;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::server::process::{Descendants, Signal};

const AFTER_KILL: Duration = Duration::from_secs(3);
const POLL_INTERVAL: Duration = Duration::from_millis(25);

/// Runs until the engine has ended. `mark` is the argument after the subcommand.
pub fn run_guardian(mark: &str) -> ExitCode {
    // An empty mark would match the children of every engine.
    if mark.len() < 16 {
        return ExitCode::from(2);
    }
    let _signals = detach();
    let mut descendants = Descendants::new(mark.to_owned());
    for line in std::io::stdin().lock().lines() {
        // Skip a line that is not text: the engine did not write it.
        let Ok(line) = line else { continue };
        apply(&mut descendants, &line);
    }
    end(&mut descendants);
    ExitCode::SUCCESS
}

/// `add <leader> <start>` or `remove <leader>`.
fn apply(descendants: &mut Descendants, line: &str) {
    let mut fields = line.split(' ');
    let verb = fields.next();
    let Some(leader) = fields.next().and_then(|field| field.parse().ok()) else { return };
    match verb {
        Some("add") => descendants.add(leader, fields.next().and_then(|field| field.parse().ok()).unwrap_or(0)),
        Some("remove") => descendants.remove(leader),
        _ => {}
    }
}

/// An engine that exits by itself leaves nothing. So it was killed, and this process may be the next: there is no time for
/// SIGTERM.
fn end(descendants: &mut Descendants) {
    let until = Instant::now() + AFTER_KILL;
    while descendants.signal(Signal::Kill) > 0 && Instant::now() < until {
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Leaves the engine's session, so that a signal to the engine's group does not reach the guardian, and ignores signals
/// other than SIGKILL. Dropping the returned value restores the signal handlers.
#[cfg(unix)]
fn detach() -> impl Sized {
    use tokio::signal::unix::{SignalKind, signal};

    rustix::process::setsid().ok();
    #[cfg(target_os = "linux")]
    std::fs::write("/proc/self/comm", "mcp-guardian").ok();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok();
    let guard = runtime.as_ref().map(tokio::runtime::Runtime::enter);
    let signals = [SignalKind::hangup(), SignalKind::interrupt(), SignalKind::terminate(), SignalKind::quit()];
    let signals_guard: Vec<_> = signals.into_iter().filter_map(|kind| signal(kind).ok()).collect();
    drop(guard);
    (runtime, signals_guard)
}

#[cfg(not(unix))]
fn detach() -> impl Sized {}
