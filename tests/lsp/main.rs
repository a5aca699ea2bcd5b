//! The front for editors, as an editor sees it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should say so at once"
)]

mod addresses;
mod argument_rules;
mod client_support;
mod consent;
mod content_pins;
mod contract;
mod diagnostics;
mod documents;
mod exchange;
mod foreign_actions;
mod gate;
mod hidden_text;
mod hostile_repository;
mod language_features;
mod lenses;
mod lifecycle;
mod live_diagnostics;
#[cfg(unix)]
mod lsprotocol;
mod masking;
mod next_steps;
mod outside_root;
#[cfg(unix)]
mod own_config;
mod plain_commands;
mod plain_forms;
mod private_folders;
mod protocol_page;
mod reads;
mod restrictions;
#[cfg(unix)]
mod secret_commands;
#[cfg(unix)]
#[path = "../support/servers.rs"]
mod servers;
mod settings_file;
mod stdio;
#[path = "../support/mod.rs"]
mod support;
mod tools;
mod trust;
mod what_leaves;
mod without_plugin;
