//! Journeys through the whole: real servers, real sockets, real processes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test that cannot go on should say so at once"
)]

#[cfg(target_os = "linux")]
mod processes;
mod remote;
