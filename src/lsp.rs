//! The front end for editors: translates between LSP and calls to the engine.
//!
//! `guard` owns the connection and isolates handlers from each other. `front` routes each message. tower-lsp provides
//! the router, and the order of `initialize` and `shutdown`.

mod approval_messages;
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
mod frames;
mod front;
mod guard;
mod health;
mod initialize_info;
mod message;
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
pub mod streams;

use tokio::io::{AsyncRead, AsyncWrite};

pub use editor::{AskError, Editor};
pub use guard::{End, Reason};
pub use peek_initialize::{Peek, peek_initialize};
pub use stdio::{signal, stdio};

use crate::engine::Engine;

/// Serves one editor on any byte stream until the editor leaves. The engine keeps running.
pub async fn serve<R, W>(input: R, output: W, engine: Engine) -> End
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    guard::run(input, output, |editor| front::Front::new(engine, editor)).await
}
