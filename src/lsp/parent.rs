//! Watches the editor's process, in case it dies without closing the connection.

use std::time::Duration;

/// The editor's process. Holds a descriptor, so that a reused process id is not mistaken for it.
pub struct Parent {
    process: u32,
    #[cfg(target_os = "linux")]
    descriptor: Option<rustix::fd::OwnedFd>,
}

impl Parent {
    #[cfg(target_os = "linux")]
    pub fn open(process: u32) -> Self {
        use rustix::process::{Pid, PidfdFlags, pidfd_open};

        let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
        Self { process, descriptor: pid.and_then(|pid| pidfd_open(pid, PidfdFlags::NONBLOCK).ok()) }
    }

    #[cfg(not(target_os = "linux"))]
    pub fn open(process: u32) -> Self {
        Self { process }
    }

    /// Returns when the process dies. Never returns if the process cannot be found: the editor may run in another container.
    #[cfg(target_os = "linux")]
    pub async fn gone(self) {
        use tokio::io::Interest;
        use tokio::io::unix::AsyncFd;

        // The replacement of this constructor is unsafe, for descriptors that other code may close. We own this one.
        #[allow(deprecated)]
        let watched = self.descriptor.and_then(|process| AsyncFd::with_interest(process, Interest::READABLE).ok());
        match watched {
            // A process descriptor becomes readable when its process ends.
            Some(watched) => _ = watched.readable().await,
            None => poll(self.process).await,
        }
    }

    #[cfg(not(target_os = "linux"))]
    pub async fn gone(self) {
        poll(self.process).await;
    }
}

/// Checks every ten seconds. Normally the end of the input is noticed first.
async fn poll(process: u32) {
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
    // A missing permission means that the process exists.
    pid.is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH))
}

#[cfg(not(unix))]
fn alive(_process: u32) -> bool {
    false
}
