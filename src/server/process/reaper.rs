//! Adopts orphans. On Linux the engine becomes the parent of orphaned descendants, so that daemons stay known; in
//! return it has to reap them.
//!
//! Children that tokio waits for must not be reaped here: their exit code would be lost.

use std::collections::BTreeSet;
use std::io;
use std::sync::Mutex;

use tokio::process::{Child, Command};

/// Children that others wait for. Locked while a child starts, so that it cannot be reaped before it is added; private
/// to this file and never held over an await.
static WAITED_FOR: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// Starts a child that the caller will wait for.
pub fn spawn(command: &mut Command) -> io::Result<Child> {
    adopt();
    let Ok(mut waited_for) = WAITED_FOR.lock() else { return Err(io::ErrorKind::Other.into()) };
    let child = command.spawn()?;
    waited_for.extend(child.id());
    Ok(child)
}

/// Starts a child that one of our threads will wait for.
pub fn spawn_for_thread(command: &mut std::process::Command) -> io::Result<std::process::Child> {
    let Ok(mut waited_for) = WAITED_FOR.lock() else { return Err(io::ErrorKind::Other.into()) };
    let child = command.spawn()?;
    waited_for.insert(child.id());
    Ok(child)
}

/// The caller has seen the exit of this child.
pub fn forget(pid: u32) {
    if let Ok(mut waited_for) = WAITED_FOR.lock() {
        waited_for.remove(&pid);
    }
}

#[cfg(not(target_os = "linux"))]
pub fn reap() {}

#[cfg(not(target_os = "linux"))]
pub fn reap_in(_processes: &[super::proc_table::ProcEntry]) {}

#[cfg(not(target_os = "linux"))]
pub fn orphans() -> Vec<super::proc_table::ProcEntry> {
    Vec::new()
}

/// Adopted orphans that are alive: daemons of a server. If one has cleared its environment, its server is unknown.
#[cfg(target_os = "linux")]
pub fn orphans() -> Vec<super::proc_table::ProcEntry> {
    if !super::proc_table::has_children() {
        return Vec::new();
    }
    let Some(me) = super::proc_table::process(std::process::id()) else { return Vec::new() };
    let Ok(waited_for) = WAITED_FOR.lock() else { return Vec::new() };
    let mut processes = super::proc_table::processes();
    processes.retain(|entry| {
        !entry.zombie && entry.parent == me.pid && entry.session != me.session && !waited_for.contains(&entry.pid)
    });
    processes
}

#[cfg(not(target_os = "linux"))]
pub fn kill_orphans() {}

/// Kills orphans until none is left. Without a pause: a process may fork faster than the table of processes is read.
#[cfg(target_os = "linux")]
pub fn kill_orphans() {
    use std::time::{Duration, Instant};

    use super::{Signal, descendants::send};

    let until = Instant::now() + Duration::from_secs(2);
    let me = std::process::id();
    let Some(session) = super::proc_table::process(me).map(|entry| entry.session) else { return };
    while Instant::now() < until {
        reap();
        let Ok(waited_for) = WAITED_FOR.lock() else { return };
        let mut orphans = super::proc_table::living_children_of(me);
        orphans.retain(|orphan| !waited_for.contains(&orphan.pid) && orphan.session != session);
        if orphans.is_empty() {
            return;
        }
        for orphan in orphans {
            send(orphan.pid, Signal::Kill);
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn adopt() {}

/// Reaps dead orphans: our children that nothing else waits for, from a server's group or a daemon's session.
#[cfg(target_os = "linux")]
pub fn reap() {
    reap_in(&super::proc_table::processes());
}

/// The same for the orphans in this table.
#[cfg(target_os = "linux")]
pub fn reap_in(processes: &[super::proc_table::ProcEntry]) {
    use rustix::process::{Pid, WaitOptions, waitpid};

    // `/proc` and not the system call tells our group and session: in a container their leaders may be outside, then
    // both are 0, which rustix does not accept.
    let own = std::process::id();
    let Some(me) = processes.iter().find(|entry| entry.pid == own) else { return };
    let Ok(waited_for) = WAITED_FOR.lock() else { return };
    for entry in processes {
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

/// Becomes the parent of orphans, and reaps them while the runtime lives.
#[cfg(target_os = "linux")]
fn adopt() {
    use std::time::Duration;
    use tokio::signal::unix::{SignalKind, signal};

    /// The listening task, if its runtime still lives.
    static LISTENER: Mutex<Option<tokio::task::JoinHandle<()>>> = Mutex::new(None);
    /// Exits come in bursts; one scan handles all of them.
    const BURST: Duration = Duration::from_millis(200);

    let Ok(mut listener) = LISTENER.lock() else { return };
    if listener.as_ref().is_some_and(|task| !task.is_finished()) {
        return;
    }
    if let Err(error) = rustix::process::set_child_subreaper(Some(rustix::process::getpid())) {
        tracing::debug!(%error, "cannot become the parent of orphaned processes");
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
