//! Journeys through the whole: real servers, real sockets, real processes.

<<<<<<< HEAD
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on should say so at once"
)]

#[cfg(target_os = "linux")]
mod processes;
=======
mod remote;
>>>>>>> 0eec65f (Remote servers: streamable HTTP, legacy SSE, connectors behind a proxy, and signing in)
