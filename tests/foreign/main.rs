//! What others wrote, against the built binary: the official conformance suite, MCP clients that drive `connect`,
//! servers with extensions, an authorization server, a gateway, SSH and a collector of traces.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should say so at once"
)]

mod agents;
mod beyond;
mod compared;
mod connections;
mod endpoint;
mod extensions;
#[path = "../support/servers.rs"]
mod servers;
mod sign_in;
mod stdio_agent;
mod suite;
#[path = "../support/mod.rs"]
mod support;
mod telemetry;
