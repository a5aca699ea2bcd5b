//! The front for editors, as an editor sees it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should say so at once"
)]

mod consent;
mod contract;
mod diagnostics;
mod documents;
mod exchange;
mod language_features;
mod lenses;
mod lifecycle;
mod live_diagnostics;
mod private_folders;
mod protocol_page;
mod stdio;
#[path = "../support/mod.rs"]
mod support;
mod tools;
mod trust;
mod without_plugin;
