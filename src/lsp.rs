//! The front end for editors: translates between LSP and calls to the engine.
//!
//! `guard` owns the connection and isolates handlers from each other. `front` routes each message. tower-lsp provides
//! the router, and the order of `initialize` and `shutdown`.

mod approval_messages;
mod approval_schedule;
mod approval_text;
mod attached;
mod backend;
mod buffer_edits;
mod capabilities;
mod code_actions;
mod command_feedback;
mod commands;
mod convert;
mod diagnostics;
mod documents;
mod editor;
mod edits;
mod form_file;
mod form_messages;
pub(crate) mod frames;
mod front;
mod guard;
mod health;
mod initialize_info;
#[cfg(unix)]
mod known_buffers;
pub(crate) mod message;
mod open_config;
mod parent;
mod peek_initialize;
mod publish;
mod raw_response;
mod reference;
mod refresh;
mod run_action;
mod sdk;
mod session;
mod show;
mod stdio;
pub(crate) mod streams;

use tokio::io::{AsyncRead, AsyncWrite};

pub use editor::{AskError, Editor};
pub use guard::{End, Reason};
#[cfg(unix)]
pub use known_buffers::KnownBuffers;
pub use peek_initialize::{Peek, peek_initialize};
pub use stdio::{signal, stdio};

use crate::config::Environment;
use crate::engine::Engine;

/// What is known about the front at the other end of the connection.
#[derive(Debug, Clone, Default)]
pub struct Peer {
    /// Its process, if the kernel knows it.
    pub process: Option<u32>,
    /// The environment that it has sent. Empty if it has the environment of the engine.
    pub environment: Environment,
}

/// Serves one editor on any byte stream until the editor leaves. The engine keeps running.
pub async fn serve<R, W>(input: R, output: W, engine: Engine, peer: Peer) -> End
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    guard::run(input, output, |editor| front::Front::new(engine, editor, peer)).await
}
