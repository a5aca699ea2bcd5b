//! The front for agents, as an agent sees it, in both eras of MCP.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should say so at once"
)]

mod eras;
mod line;
mod odd;
#[path = "../support/mod.rs"]
mod support;
mod told;
#[cfg(unix)]
mod url;
mod views;
