//! What tests share. A test target takes it in with `#[path = "../support/mod.rs"] mod support;` and uses what it needs.
#![allow(dead_code, unused_imports)]

pub mod desk;
pub mod editor;
pub mod home;
pub mod stdio;
pub mod wire;

use mcp_sidecar::engine::Engine;
use mcp_sidecar::lsp::{self, End};
use mcp_sidecar::settings::Settings;
use tokio::task::JoinHandle;

pub use desk::Desk;
pub use editor::{TestEditor, Voice, uri};
pub use home::Home;
pub use stdio::StdioEditor;

/// The real front in memory, with an engine of its own.
pub fn attach(home: &Home) -> (TestEditor, JoinHandle<End>) {
    attach_to(&Engine::start(home.paths(), Settings::default()))
}

/// One more editor at an engine.
pub fn attach_to(engine: &Engine) -> (TestEditor, JoinHandle<End>) {
    let (near, far) = tokio::io::duplex(1 << 20);
    let (reader, writer) = tokio::io::split(far);
    let session = tokio::spawn(lsp::serve(reader, writer, engine.clone()));
    let (reader, writer) = tokio::io::split(near);
    (TestEditor::on(reader, writer), session)
}
