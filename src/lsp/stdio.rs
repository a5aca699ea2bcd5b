//! A session on standard input and output.

use std::io::Cursor;

use tokio::io::AsyncReadExt;

use super::guard::{End, Reason};
use super::{Peer, serve, streams};
use crate::engine::Engine;

/// Serves the editor that started us until it disconnects or a signal arrives. The caller stops the servers. `opening`
/// contains the bytes that were already read.
pub async fn stdio(engine: Engine, opening: Vec<u8>) -> End {
    let input = Cursor::new(opening).chain(streams::input());
    let peer = Peer { process: Some(std::process::id()), ..Peer::default() };
    tokio::select! {
        end = serve(input, streams::output(), engine, peer) => end,
        () = signal() => End { reason: Reason::Signal, after_shutdown: false },
    }
}

/// Waits for SIGTERM or SIGINT. The signals are caught as soon as this function is called, even before the future is
/// polled.
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

/// Waits for Ctrl-C.
#[cfg(not(unix))]
pub async fn signal() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending().await
    }
}
