//! Servers take turns to start. Starting a program is expensive: a hundred interpreters that start at once leave nothing of
//! the processor to the editor, and none of them is faster for it.
//!
//! A server that the user or a call waits for does not wait behind those that start by themselves.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// Most programs have done the expensive part of their start after this time. One that waits for something else, or hangs,
/// does not delay the others for longer.
const LONGEST_TURN: Duration = Duration::from_secs(3);

/// Shared by all servers of an engine.
pub struct StartQueue {
    automatic: Arc<Semaphore>,
    requested: Arc<Semaphore>,
}

/// The turn of one server. It ends when it is dropped, or after a while.
pub struct StartTurn(#[expect(dead_code, reason = "ends the turn when dropped")] AbortOnDropHandle<()>);

impl Default for StartQueue {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Self::new(cores + 2)
    }
}

impl StartQueue {
    /// `most` servers may start at a time, and as many again if they are requested.
    fn new(most: usize) -> Self {
        Self { automatic: Arc::new(Semaphore::new(most)), requested: Arc::new(Semaphore::new(most)) }
    }

    /// Waits for a turn. `requested` is cancelled as soon as a caller waits for the server.
    pub async fn turn(&self, requested: &CancellationToken) -> StartTurn {
        let permit = tokio::select! {
            biased;
            permit = self.automatic.clone().acquire_owned() => permit,
            permit = async {
                requested.cancelled().await;
                self.requested.clone().acquire_owned().await
            } => permit,
        };
        StartTurn(AbortOnDropHandle::new(tokio::spawn(hold(permit.ok()))))
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
}
