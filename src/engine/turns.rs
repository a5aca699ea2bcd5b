//! The order in which the commands of one connection take effect.
//!
//! Every command runs in its own task, so without this a later one could overtake an earlier one: a "deny" and a
//! following "allow" would race. A connection gives each command a turn in the order of arrival. A command holds its
//! turn until its effect is decided, and may continue without it.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::sync::{Mutex, OwnedMutexGuard};

/// The turns of one connection.
#[derive(Clone, Default)]
pub struct Turns(Arc<Mutex<()>>);

/// Later commands of the same connection wait until this is dropped.
#[derive(Default)]
pub struct Turn {
    _held: Option<OwnedMutexGuard<()>>,
}

impl Turns {
    /// Queues for a turn now, not when the future is first polled. Dropping the future leaves the queue.
    pub fn queue(&self) -> impl Future<Output = Turn> + Send + use<> {
        // Tokio's mutex serves in the order of the first poll. Unconstrained, because that poll would not queue a task
        // that has used up its budget.
        let mut waiting = Box::pin(tokio::task::unconstrained(self.0.clone().lock_owned()));
        let first = waiting.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        async move {
            let held = match first {
                Poll::Ready(held) => held,
                Poll::Pending => waiting.await,
            };
            Turn { _held: Some(held) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn turns_are_served_in_order_and_dropped_ones_are_skipped() {
        let turns = Turns::default();
        let (first, second, third) = (turns.queue(), turns.queue(), turns.queue());
        let mut third = Box::pin(third);
        let first = first.await;
        assert!(futures::poll!(third.as_mut()).is_pending());
        drop(second);
        assert!(futures::poll!(third.as_mut()).is_pending(), "the first still holds its turn");
        drop(first);
        drop(third.await);
    }
}
