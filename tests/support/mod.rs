//! Shared by all test targets: include it with `#[path = "../support/mod.rs"] mod support;`.
#![allow(dead_code, unused_imports)]

pub mod bad_client;
pub mod commands;
pub mod editor;
pub mod harness;
pub mod home;
pub mod reliability_page;
pub mod stdio;
pub mod wire;

use mcp_sidecar::engine::Engine;
use mcp_sidecar::lsp::{self, End};
use mcp_sidecar::settings::Settings;
use tokio::task::JoinHandle;

pub use editor::{TestEditor, uri};
pub use harness::Harness;
pub use home::Home;
pub use stdio::StdioEditor;

/// Starts an engine and attaches an editor in memory.
pub fn attach(home: &Home) -> (TestEditor, JoinHandle<End>) {
    attach_to(&Engine::start(home.paths(), Settings::default()))
}

/// Attaches an editor to an engine.
pub fn attach_to(engine: &Engine) -> (TestEditor, JoinHandle<End>) {
    let (near, far) = tokio::io::duplex(1 << 20);
    let (reader, writer) = tokio::io::split(far);
    let session = tokio::spawn(lsp::serve(reader, writer, engine.clone(), lsp::Peer::default()));
    let (reader, writer) = tokio::io::split(near);
    (TestEditor::on(reader, writer), session)
}
