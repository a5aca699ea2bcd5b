//! The front for editors: LSP in, one engine call across, LSP out.
//!
//! `guard` owns the connection and keeps handlers from harming it, `front` sends each message to its place. tower-lsp
//! gives the router, the types and the order of `initialize` and `shutdown`.

mod action;
mod actions;
mod aside;
mod ask;
mod attached;
mod backend;
mod capabilities;
mod commands;
mod convert;
mod diagnostics;
mod documents;
mod editor;
mod edits;
mod first;
mod frames;
mod front;
mod greeting;
mod guard;
mod health;
mod look;
mod message;
mod pages;
mod parent;
mod publish;
mod reference;
mod refresh;
mod sdk;
mod seat;
mod sheets;
mod show;
mod stdio;
pub mod streams;
mod told;

use tokio::io::{AsyncRead, AsyncWrite};

pub use editor::{AskError, Editor};
pub use first::{First, first};
pub use guard::{End, Reason};
pub use stdio::{signal, stdio};

use crate::engine::Engine;

/// Serves one editor on any stream of bytes, until it goes. The engine outlives it.
pub async fn serve<R, W>(input: R, output: W, engine: Engine) -> End
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    guard::run(input, output, |editor| front::Front::new(engine, editor)).await
}
