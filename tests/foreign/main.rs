//! What others wrote, against the built binary: the official conformance suite, and MCP clients that drive `connect`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should say so at once"
)]

mod agents;
mod compared;
mod connections;
mod endpoint;
#[path = "../support/servers.rs"]
mod servers;
mod suite;
#[path = "../support/mod.rs"]
mod support;
