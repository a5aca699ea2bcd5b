//! Work on large messages, which must not delay other tasks.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Smaller messages take less time than it costs to wake another thread, move the other tasks there, and back.
const LARGE: usize = 4 << 20;

/// Runs work on a message of this size. If it is large, the tasks that wait for this thread move to another one.
pub fn heavy<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    // A runtime with one thread has no other one.
    let has_others =
        || Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread);
    if bytes >= LARGE && has_others() { tokio::task::block_in_place(work) } else { work() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn large_work_does_not_hold_up_other_tasks() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let large = tokio::spawn(async move {
            // Waits for a task that runs only if this thread is free for it.
            let other = tokio::spawn(async move { sender.send(()).unwrap() });
            heavy(LARGE, || receiver.recv_timeout(std::time::Duration::from_secs(20)).unwrap());
            other.await.unwrap();
        });
        large.await.unwrap();
    }

    #[tokio::test]
    async fn one_thread_does_it_itself() {
        assert_eq!(heavy(LARGE, || 1), 1);
    }
}
