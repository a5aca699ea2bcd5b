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

/// Ends at the first SIGTERM or SIGINT. They are caught from the call on, not from when somebody waits: whoever has been
/// answered may send one at once.
#[cfg(unix)]
pub fn signal() -> impl Future<Output = ()> {
    use tokio::signal::unix::{SignalKind, signal};

    let caught = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()));
    async move {
        let (Ok(mut terminate), Ok(mut interrupt)) = caught else { return std::future::pending().await };
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    }
}

/// Ends when somebody asks us to leave.
#[cfg(not(unix))]
pub async fn signal() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending().await
    }
}
