//! A session on standard input and output.

use std::io::Cursor;

use tokio::io::AsyncReadExt;

use super::guard::{End, Reason};
use super::{serve, streams};
use crate::engine::Engine;

/// Serves the editor that started us until it goes, or until a signal asks us to. The servers are the caller's to end.
/// `opening` is what has been read of its words already.
pub async fn stdio(engine: Engine, opening: Vec<u8>) -> End {
    let input = Cursor::new(opening).chain(streams::input());
    tokio::select! {
        end = serve(input, streams::output(), engine) => end,
        () = signal() => End { reason: Reason::Signal, after_shutdown: false },
    }
}

/// Ends at the first SIGTERM or SIGINT.
#[cfg(unix)]
pub async fn signal() {
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

/// Ends when somebody asks us to leave.
#[cfg(not(unix))]
pub async fn signal() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending().await
    }
}
