//! Servers take turns to start. Starting a program is expensive: a hundred interpreters that start at once leave no CPU
//! time for the editor, and none of them starts faster that way.
//!
//! A server that the user or a call waits for does not wait behind those that start by themselves.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// Most programs have done the expensive part of their start after this time. One that waits for something else, or hangs,
/// does not delay the others for longer.
const LONGEST_TURN: Duration = Duration::from_secs(3);

/// Starts come in bursts. After this time without one, a burst has ended.
const BURST: Duration = Duration::from_secs(1);

/// Shared by all servers of an engine.
pub struct StartQueue {
    automatic: Arc<Semaphore>,
    requested: Arc<Semaphore>,
    ended: Arc<Notify>,
}

/// The turn of one server. It ends when it is dropped, or after a while.
pub struct StartTurn {
    _holding: AbortOnDropHandle<()>,
    ended: Arc<Notify>,
}

impl Drop for StartTurn {
    fn drop(&mut self) {
        self.ended.notify_one();
    }
}

impl Default for StartQueue {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Self::new(cores + 2)
    }
}

impl StartQueue {
    /// `most` servers may start at a time, and as many again if they are requested.
    fn new(most: usize) -> Self {
        Self {
            automatic: Arc::new(Semaphore::new(most)),
            requested: Arc::new(Semaphore::new(most)),
            ended: Arc::default(),
        }
    }

    /// Waits for a turn. `requested` is cancelled as soon as something waits for the server.
    pub async fn turn(&self, requested: &CancellationToken) -> StartTurn {
        let permit = tokio::select! {
            biased;
            permit = self.automatic.clone().acquire_owned() => permit,
            permit = async {
                requested.cancelled().await;
                self.requested.clone().acquire_owned().await
            } => permit,
        };
        let holding = AbortOnDropHandle::new(tokio::spawn(hold(permit.ok())));
        StartTurn { _holding: holding, ended: self.ended.clone() }
    }

    /// Waits until servers have started, and no other one has for a while. There can be one task that waits.
    pub async fn settled(&self) {
        self.ended.notified().await;
        while timeout(BURST, self.ended.notified()).await.is_ok() {}
    }
}

async fn hold(permit: Option<OwnedSemaphorePermit>) {
    tokio::time::sleep(LONGEST_TURN).await;
    drop(permit);
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn requested_servers_start_before_others_and_slow_ones_do_not_block() {
        let queue = StartQueue::new(1);
        let (automatic, requested) = (CancellationToken::new(), CancellationToken::new());
        let first = queue.turn(&automatic).await;
        assert!(queue.turn(&automatic).now_or_never().is_none(), "one at a time");
        let mut waiting = Box::pin(queue.turn(&requested));
        assert!((&mut waiting).now_or_never().is_none());
        requested.cancel();
        let second = waiting.await;
        assert!(queue.turn(&automatic).now_or_never().is_none());
        drop(first);
        // Neither is dropped: they only take too long.
        let _third = queue.turn(&automatic).await;
        let _fourth = queue.turn(&automatic).await;
        drop(second);
    }

    #[tokio::test(start_paused = true)]
    async fn starts_have_settled_once_after_a_burst() {
        let (queue, requested) = (StartQueue::new(2), CancellationToken::new());
        let mut settled = Box::pin(queue.settled());
        assert!((&mut settled).now_or_never().is_none(), "nothing has started");
        drop(queue.turn(&requested).await);
        tokio::time::sleep(BURST / 2).await;
        assert!((&mut settled).now_or_never().is_none());
        drop(queue.turn(&requested).await);
        tokio::time::sleep(BURST / 2).await;
        assert!((&mut settled).now_or_never().is_none(), "another one has just started");
        settled.await;
        assert!(queue.settled().now_or_never().is_none(), "once");
    }
}
