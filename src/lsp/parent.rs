//! Watches the editor's process, in case it dies without closing anything.

use std::time::Duration;

/// Ends when the process has died. Never ends when it cannot be seen: an editor in another container is no dead editor.
#[cfg(target_os = "linux")]
pub async fn gone(process: u32) {
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    // The constructor that replaces this one is unsafe, for descriptors that somebody else may close; this one is owned.
    #[allow(deprecated)]
    let watched = i32::try_from(process)
        .ok()
        .and_then(Pid::from_raw)
        .and_then(|pid| pidfd_open(pid, PidfdFlags::NONBLOCK).ok())
        .and_then(|process| AsyncFd::with_interest(process, Interest::READABLE).ok());
    match watched {
        // A process descriptor becomes readable when its process ends.
        Some(watched) => _ = watched.readable().await,
        None => look_now_and_then(process).await,
    }
}

#[cfg(not(target_os = "linux"))]
pub async fn gone(process: u32) {
    look_now_and_then(process).await;
}

/// Where nothing tells: a look every ten seconds. The end of the input comes sooner in all ordinary cases.
async fn look_now_and_then(process: u32) {
    if !alive(process) {
        return std::future::pending().await;
    }
    let mut ticks = tokio::time::interval(Duration::from_secs(10));
    while alive(process) {
        ticks.tick().await;
    }
}

#[cfg(unix)]
fn alive(process: u32) -> bool {
    use rustix::io::Errno;
    use rustix::process::{Pid, test_kill_process};

    let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
    // Not being allowed to signal it means that it is there.
    pid.is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH))
}

#[cfg(not(unix))]
fn alive(_process: u32) -> bool {
    false
}
