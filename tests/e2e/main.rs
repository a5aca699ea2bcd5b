//! End-to-end tests with real servers, sockets and processes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test that cannot go on should say so at once"
)]

#[path = "../support/servers.rs"]
mod public;
#[path = "../support/mod.rs"]
mod support;
#[cfg(unix)]
mod workspace;

#[cfg(unix)]
mod call_interaction;
#[cfg(unix)]
mod faults;
#[cfg(unix)]
mod lifecycle;
#[cfg(target_os = "linux")]
mod processes;
#[cfg(unix)]
mod reload;
mod remote;
#[cfg(unix)]
mod servers;
#[cfg(target_os = "linux")]
mod sharing;
#[cfg(target_os = "linux")]
mod socket_access;
