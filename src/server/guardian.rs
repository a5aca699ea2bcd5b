//! No server outlives its engine, even if the engine is killed. On Linux, an engine runs below two small processes (the
//! same binary) that end what it leaves behind: see [`parents`], and if all are killed at once, [`leftovers`].
//!
//! An engine that was started without them, as on other systems and for a single command, has a guardian below it. That
//! reads the process groups from a pipe, and ends them when the pipe closes. This is the engine's side of it;
//! [`run_guardian`] is the other side.

mod leftovers;
mod parents;
mod watch;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

pub use leftovers::{EngineProcess, forget_this_engine, mark_this_engine};
pub use parents::{guard_this_program, kill_rest_without_guardian};
pub use watch::run_guardian;

use super::process::{mark_of_this_engine, spawn_for_thread};

/// The hidden subcommand that runs the guardian; its argument is the engine's mark.
pub const SUBCOMMAND: &str = "guardian";

/// A guardian that ends sooner does not work on this machine, so it is not restarted.
const MIN_LIFETIME: Duration = Duration::from_secs(1);

/// One guardian per process, because a process is an engine. Private to this file and never held over an await.
static GUARDIAN: Mutex<Guardian> =
    Mutex::new(Guardian { is_engine: false, program: None, pipe: None, groups: BTreeMap::new() });

struct Guardian {
    /// This process is a dedicated engine.
    is_engine: bool,
    /// The program to run. `None` before `install`, and for an engine below guardians.
    program: Option<PathBuf>,
    /// The pipe to the guardian, while it runs.
    pipe: Option<ChildStdin>,
    /// Leader of a group → its start time.
    groups: BTreeMap<u32, u64>,
}

/// Guards servers from now on. Only `main` calls it: test binaries do not contain the guardian.
pub fn install() {
    if parents::is_guarded() {
        parents::stop_without_guardian();
        if let Ok(mut guardian) = GUARDIAN.lock() {
            guardian.is_engine = true;
        }
        return;
    }
    let program = if cfg!(target_os = "linux") {
        // The running binary, even if its file has been replaced.
        Some(PathBuf::from("/proc/self/exe"))
    } else {
        std::env::current_exe().ok()
    };
    if let Some(program) = program {
        install_program(program);
    }
}

/// Guards servers with the given binary, for tests.
pub fn install_program(program: PathBuf) {
    if let Ok(mut guardian) = GUARDIAN.lock() {
        guardian.is_engine = true;
        guardian.program = Some(program);
    }
}

/// Whether this process is a dedicated engine.
pub(super) fn is_installed() -> bool {
    GUARDIAN.lock().is_ok_and(|guardian| guardian.is_engine)
}

/// Starts the guardian if it is not running, before the first child starts.
pub(super) fn ensure_running() {
    if let Ok(mut guardian) = GUARDIAN.lock()
        && guardian.pipe.is_none()
    {
        guardian.spawn();
    }
}

/// Adds a group.
pub(super) fn protect(leader: u32, started: u64) {
    if let Ok(mut guardian) = GUARDIAN.lock() {
        guardian.groups.insert(leader, started);
        guardian.send(&format!("add {leader} {started}\n"));
    }
}

/// Removes a group that has ended.
pub(super) fn release(leader: u32) {
    if let Ok(mut guardian) = GUARDIAN.lock() {
        guardian.groups.remove(&leader);
        guardian.send(&format!("remove {leader}\n"));
    }
}

impl Guardian {
    fn spawn(&mut self) {
        let Some(program) = &self.program else { return };
        let mut command = Command::new(program);
        // No environment: with the mark of an outer engine, its guardian would end ours.
        command.arg(SUBCOMMAND).arg(mark_of_this_engine()).env_clear().current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::arg0(&mut command, "mcp-sidecar");
        let mut child = match spawn_for_thread(&mut command) {
            Ok(child) => child,
            Err(error) => {
                tracing::error!(%error, "cannot start the guardian: servers keep running if the engine is killed");
                return;
            }
        };
        self.pipe = child.stdin.take().and_then(set_nonblocking);
        let groups: String = self.groups.iter().map(|(leader, started)| format!("add {leader} {started}\n")).collect();
        self.send(&groups);
        tracing::debug!(pid = child.id(), "guardian started");
        let started = Instant::now();
        let monitor = std::thread::Builder::new().name("guardian".to_owned()).stack_size(64 << 10).spawn(move || {
            child.wait().ok();
            replace(child.id(), started);
        });
        if let Err(error) = monitor {
            tracing::warn!(%error, "the guardian is not monitored");
        }
    }

    fn send(&mut self, lines: &str) {
        if let Some(pipe) = &mut self.pipe
            && let Err(error) = pipe.write_all(lines.as_bytes())
        {
            tracing::warn!(%error, "cannot write to the guardian");
        }
    }
}

/// Replaces a guardian that was killed.
fn replace(pid: u32, started: Instant) {
    super::process::forget(pid);
    let Ok(mut guardian) = GUARDIAN.lock() else { return };
    guardian.pipe = None;
    if started.elapsed() < MIN_LIFETIME {
        tracing::error!("the guardian exited immediately: servers keep running if the engine is killed");
        guardian.program = None;
    } else if !guardian.groups.is_empty() {
        guardian.spawn();
    }
}

/// Lines are much shorter than the pipe's buffer. If the guardian hangs, losing a line is better than blocking.
#[cfg(unix)]
fn set_nonblocking(pipe: ChildStdin) -> Option<ChildStdin> {
    rustix::io::ioctl_fionbio(&pipe, true).ok()?;
    Some(pipe)
}

#[cfg(not(unix))]
fn set_nonblocking(pipe: ChildStdin) -> Option<ChildStdin> {
    Some(pipe)
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn the_very_binary_that_runs_can_be_started_again() {
        let mut command = Command::new("/proc/self/exe");
        std::os::unix::process::CommandExt::arg0(&mut command, "mcp-sidecar");
        let output = command.args(["--list", "the_very_binary_that_runs"]).env_clear().output().unwrap();
        assert!(String::from_utf8_lossy(&output.stdout).contains("can_be_started_again: test"));
    }
}
