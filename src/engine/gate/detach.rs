//! Work that runs in the task of its caller, because a separate task costs as much as the rest of a small call. If the
//! caller goes away, the work moves to its own task and ends there.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

type Caught<T> = Result<T, Box<dyn Any + Send>>;

/// Work that continues if this is dropped. A panic in it is returned.
pub struct Detach<T: Send + 'static> {
    work: Option<BoxFuture<'static, Caught<T>>>,
    gone: CancellationToken,
}

impl<T: Send + 'static> Detach<T> {
    /// `gone` is cancelled when the caller goes away.
    pub fn new(work: impl Future<Output = T> + Send + 'static, gone: CancellationToken) -> Self {
        Self { work: Some(AssertUnwindSafe(work).catch_unwind().boxed()), gone }
    }
}

impl<T: Send + 'static> Future for Detach<T> {
    type Output = Caught<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Caught<T>> {
        let Some(work) = &mut self.work else { return Poll::Pending };
        let done = ready!(work.as_mut().poll(context));
        self.work = None;
        Poll::Ready(done)
    }
}

impl<T: Send + 'static> Drop for Detach<T> {
    fn drop(&mut self) {
        self.gone.cancel();
        if let (Some(work), Ok(runtime)) = (self.work.take(), Handle::try_current()) {
            runtime.spawn(work);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn work_continues_without_its_caller() {
        let gone = CancellationToken::new();
        let (sender, receiver) = oneshot::channel();
        let noticed = gone.clone();
        let mut work = Detach::new(
            async move {
                noticed.cancelled().await;
                sender.send("ended").ok();
            },
            gone,
        );
        assert!((&mut work).now_or_never().is_none());
        drop(work);
        assert_eq!(receiver.await.unwrap(), "ended");
    }

    #[tokio::test]
    async fn a_panic_is_returned() {
        let work = Detach::new(async { panic!("as expected") }, CancellationToken::new());
        let caught: Caught<()> = work.await;
        assert!(caught.is_err());
    }
}
