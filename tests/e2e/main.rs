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
#[cfg(target_os = "linux")]
mod environment;
#[cfg(unix)]
mod faults;
#[cfg(target_os = "linux")]
mod guardians;
#[cfg(target_os = "linux")]
mod joining;
#[cfg(unix)]
mod lifecycle;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(target_os = "linux")]
mod processes;
#[cfg(unix)]
mod rejoin;
mod reload;
mod remote;
#[cfg(target_os = "linux")]
mod sandbox;
#[cfg(unix)]
mod servers;
#[cfg(target_os = "linux")]
mod sharing;
#[cfg(target_os = "linux")]
mod socket_access;
#[cfg(target_os = "linux")]
mod worktrees;
