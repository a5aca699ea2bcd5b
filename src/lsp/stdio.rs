//! A session on standard input and output.

use super::guard::{End, Reason};
use super::{serve, streams};
use crate::engine::Engine;

/// Serves the editor that started us until it goes, or until a signal asks us to. The servers are the caller's to end.
pub async fn stdio(engine: Engine) -> End {
    tokio::select! {
        end = serve(streams::input(), streams::output(), engine) => end,
        () = signal() => End { reason: Reason::Signal, after_shutdown: false },
    }
}

/// Ends at the first SIGTERM or SIGINT.
#[cfg(unix)]
async fn signal() {
    use tokio::signal::unix::{SignalKind, signal};

    let (Ok(mut terminate), Ok(mut interrupt)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

#[cfg(not(unix))]
async fn signal() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending().await
    }
}
