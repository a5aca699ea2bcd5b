//! The front for agents, as an agent sees it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should say so at once"
)]

mod board;
mod consent;
mod costs;
mod hidden_text;
mod limits;
mod nonconforming_lists;
mod notifications;
mod own_tools;
mod protocol_versions;
mod raw_agent;
mod reads;
mod refusals;
mod robustness;
#[path = "../support/mod.rs"]
mod support;
mod unknown_fields;
mod unknown_notifications;
#[cfg(unix)]
mod url;
mod views;
