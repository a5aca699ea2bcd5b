//! Connects a front to the engine of its repository. All editors and agents of a repository share one process, and in it
//! those of a workspace share one [`Engine`](crate::engine::Engine).
//!
//! A front finds the engine by its socket or starts it. Each side sends one line, and then bytes are forwarded both ways;
//! `lsp` and `agent` handle them. A front reads messages only to continue with another engine. Platforms without Unix
//! sockets run engine and front in one process.

#[cfg(unix)]
mod address;
#[cfg(unix)]
mod bridge;
#[cfg(unix)]
mod exit_on_signal;
#[cfg(unix)]
mod forward;
#[cfg(unix)]
mod handshake;
#[cfg(unix)]
mod hook;
#[cfg(unix)]
mod join;
#[cfg(unix)]
mod listeners;
#[cfg(unix)]
mod lock;
#[cfg(unix)]
mod open_workspaces;
#[cfg(unix)]
mod peer;
#[cfg(unix)]
mod serve;
mod workspace;

#[cfg(test)]
#[cfg(unix)]
mod every_order;

#[cfg(unix)]
pub use address::EngineAddress;
#[cfg(unix)]
pub use bridge::{AgentMemory, EditorMemory, bridge};
#[cfg(unix)]
pub use exit_on_signal::{ExitOnSignal, exit_on_signal};
#[cfg(unix)]
pub use forward::{ReadAhead, Stdio, forward};
#[cfg(unix)]
pub use handshake::{Front, Hello, MAX_HOOK, UrlReply};
#[cfg(unix)]
pub use hook::ask_running;
#[cfg(unix)]
pub use join::{JoinError, Joined, join, join_at, join_listening, join_running, upgrade};
#[cfg(unix)]
pub use listeners::bind;
#[cfg(unix)]
pub use serve::serve;
pub use workspace::root_of;
