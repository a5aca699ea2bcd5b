//! Takes in orphans. On Linux the engine asks to become the parent of whoever loses its own below it, so that a daemon
//! never becomes a stranger's child; in return it has to take note of their child_exits.
//!
//! The children that tokio waits for are left to it: taking note of one of those here would lose its exit code.

use std::collections::BTreeSet;
use std::io;
use std::sync::Mutex;

use tokio::process::{Child, Command};

/// Children that somebody else waits for. Held while a child is born, so that a death is never noted between its
/// birth and its entry here; private to this file and never held over an await.
static WAITED_FOR: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// Starts a child that the caller will wait for.
pub fn spawn(command: &mut Command) -> io::Result<Child> {
    adopt();
    let Ok(mut waited_for) = WAITED_FOR.lock() else { return Err(io::ErrorKind::Other.into()) };
    let child = command.spawn()?;
    waited_for.extend(child.id());
    Ok(child)
}

/// The same for a child that a thread of ours waits for.
pub fn spawn_for_thread(command: &mut std::process::Command) -> io::Result<std::process::Child> {
    let Ok(mut waited_for) = WAITED_FOR.lock() else { return Err(io::ErrorKind::Other.into()) };
    let child = command.spawn()?;
    waited_for.insert(child.id());
    Ok(child)
}

/// The caller knows of this child's end.
pub fn forget(pid: u32) {
    if let Ok(mut waited_for) = WAITED_FOR.lock() {
        waited_for.remove(&pid);
    }
}

#[cfg(not(target_os = "linux"))]
pub fn reap() {}

#[cfg(not(target_os = "linux"))]
pub fn orphans() -> Vec<super::proc_table::ProcEntry> {
    Vec::new()
}

/// Orphans that were taken in and live: daemons of a server that has left them. One that gave up its environment
/// carries no mark, and whose it was nobody can tell any more.
#[cfg(target_os = "linux")]
pub fn orphans() -> Vec<super::proc_table::ProcEntry> {
    let Some(me) = super::proc_table::process(std::process::id()) else { return Vec::new() };
    let Ok(waited_for) = WAITED_FOR.lock() else { return Vec::new() };
    let mut processes = super::proc_table::processes();
    processes.retain(|entry| {
        !entry.zombie && entry.parent == me.pid && entry.session != me.session && !waited_for.contains(&entry.pid)
    });
    processes
}

#[cfg(not(target_os = "linux"))]
fn adopt() {}

/// Takes note of dead orphans: children of ours that nobody waits for, born into a server's group or a daemon's session.
#[cfg(target_os = "linux")]
pub fn reap() {
    use rustix::process::{Pid, WaitOptions, waitpid};

    // The proc_table and not the system call says which group and session are ours: in a container their leaders may be
    // outside, both numbers are 0 then, and rustix takes no 0 for a process.
    let Some(me) = super::proc_table::process(std::process::id()) else { return };
    let Ok(waited_for) = WAITED_FOR.lock() else { return };
    for entry in super::proc_table::processes() {
        let is_orphan = (entry.group != me.group && entry.group != entry.pid) || entry.session != me.session;
        if entry.zombie
            && entry.parent == me.pid
            && is_orphan
            && !waited_for.contains(&entry.pid)
            && let Some(pid) = i32::try_from(entry.pid).ok().and_then(Pid::from_raw)
        {
            waitpid(Some(pid), WaitOptions::NOHANG).ok();
        }
    }
}

/// Becomes the one who inherits orphans, and keeps taking note of their child_exits while the runtime lives.
#[cfg(target_os = "linux")]
fn adopt() {
    use std::time::Duration;
    use tokio::signal::unix::{SignalKind, signal};

    /// The task that listens, if its runtime still lives.
    static LISTENER: Mutex<Option<tokio::task::JoinHandle<()>>> = Mutex::new(None);
    /// Deaths come in swarms; one look serves them all.
    const BURST: Duration = Duration::from_millis(200);

    let Ok(mut listener) = LISTENER.lock() else { return };
    if listener.as_ref().is_some_and(|task| !task.is_finished()) {
        return;
    }
    if let Err(error) = rustix::process::set_child_subreaper(Some(rustix::process::getpid())) {
        tracing::debug!(%error, "cannot take in orphans");
        return;
    }
    let Ok(mut child_exits) = signal(SignalKind::child()) else { return };
    *listener = Some(tokio::spawn(async move {
        while child_exits.recv().await.is_some() {
            tokio::time::sleep(BURST).await;
            reap();
        }
    }));
}
