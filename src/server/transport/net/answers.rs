//! Our answers to the requests of a server. Each takes a POST, and a server decides how many requests it sends.

use rmcp::model::ClientJsonRpcMessage;
use tokio::sync::Semaphore;

use super::RemoteError;

/// How many answers are sent at a time, and how many may wait.
const MAX_OPEN: usize = 32;
const MAX_WAITING: usize = 1_000;

pub struct Answers {
    open: Semaphore,
    waiting: Semaphore,
}

impl Default for Answers {
    fn default() -> Self {
        Self { open: Semaphore::new(MAX_OPEN), waiting: Semaphore::new(MAX_WAITING) }
    }
}

impl Answers {
    /// Sends a message when it is its turn. Only answers wait: a cancellation must not wait for a server that accepts none.
    pub async fn send(
        &self,
        message: &ClientJsonRpcMessage,
        post: impl Future<Output = Result<(), RemoteError>>,
    ) -> Result<(), RemoteError> {
        if !matches!(message, ClientJsonRpcMessage::Response(_) | ClientJsonRpcMessage::Error(_)) {
            return post.await;
        }
        let not_accepted = |_| {
            let text = format!("the server does not accept answers to its requests: {MAX_WAITING} are waiting");
            RemoteError::Unreachable(text)
        };
        let _waiting = self.waiting.try_acquire().map_err(not_accepted)?;
        let _open = self.open.acquire().await.map_err(|_| RemoteError::Closed)?;
        post.await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::StreamExt;
    use futures::stream::FuturesUnordered;
    use rmcp::model::{ClientNotification, ClientResult, InitializedNotification, RequestId};

    use super::*;

    #[tokio::test]
    async fn few_answers_are_sent_at_a_time_and_too_many_are_an_error() {
        let (answers, open) = (Answers::default(), AtomicUsize::new(0));
        let message = ClientJsonRpcMessage::response(ClientResult::empty(()), RequestId::Number(1));
        let stuck = || async {
            open.fetch_add(1, Ordering::SeqCst);
            std::future::pending().await
        };
        let mut sent: FuturesUnordered<_> = (0..=MAX_WAITING).map(|_| answers.send(&message, stuck())).collect();
        let error = sent.next().await.unwrap().unwrap_err();
        assert!(error.ends_connection() && error.to_string().contains("does not accept answers"), "{error}");
        assert_eq!(open.load(Ordering::SeqCst), MAX_OPEN);
        let initialized = ClientNotification::InitializedNotification(InitializedNotification::default());
        let notification = ClientJsonRpcMessage::notification(initialized);
        assert_eq!(answers.send(&notification, async { Ok(()) }).await, Ok(()));
    }
}
