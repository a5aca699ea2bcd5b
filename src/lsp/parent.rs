//! Watches the editor's process, in case it dies without closing anything.

use std::time::Duration;

/// The editor's process, held on to from the moment it was named.
pub struct Parent {
    process: u32,
    #[cfg(target_os = "linux")]
    descriptor: Option<rustix::fd::OwnedFd>,
}

impl Parent {
    #[cfg(target_os = "linux")]
    pub fn see(process: u32) -> Self {
        use rustix::process::{Pid, PidfdFlags, pidfd_open};

        let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
        Self { process, descriptor: pid.and_then(|pid| pidfd_open(pid, PidfdFlags::NONBLOCK).ok()) }
    }

    #[cfg(not(target_os = "linux"))]
    pub fn see(process: u32) -> Self {
        Self { process }
    }

    /// Ends when the process has died. Never ends when it could not be seen: an editor in another container is no dead
    /// editor.
    #[cfg(target_os = "linux")]
    pub async fn gone(self) {
        use tokio::io::Interest;
        use tokio::io::unix::AsyncFd;

        // The constructor that replaces this one is unsafe, for descriptors that somebody else may close; this one is
        // owned.
        #[allow(deprecated)]
        let watched = self.descriptor.and_then(|process| AsyncFd::with_interest(process, Interest::READABLE).ok());
        match watched {
            // A process descriptor becomes readable when its process ends.
            Some(watched) => _ = watched.readable().await,
            None => look_now_and_then(self.process).await,
        }
    }

    #[cfg(not(target_os = "linux"))]
    pub async fn gone(self) {
        look_now_and_then(self.process).await;
    }
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
