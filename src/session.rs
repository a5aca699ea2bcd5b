//! Connects a front to the engine of its workspace. All editors and agents of a workspace share one engine.
//!
//! A front finds the engine by its socket or starts it. Each side sends one line, and then bytes are forwarded both ways
//! without being parsed; `lsp` and `agent` handle them. Platforms without Unix sockets run engine and front in one process.

#[cfg(unix)]
mod address;
#[cfg(unix)]
mod exit_on_signal;
#[cfg(unix)]
mod forward;
#[cfg(unix)]
mod handshake;
#[cfg(unix)]
mod join;
#[cfg(unix)]
mod lock;
#[cfg(unix)]
mod serve;
mod workspace;

#[cfg(unix)]
pub use address::EngineAddress;
#[cfg(unix)]
pub use exit_on_signal::{ExitOnSignal, exit_on_signal};
#[cfg(unix)]
pub use forward::{ReadAhead, Stdio, forward};
#[cfg(unix)]
pub use handshake::{Front, Hello, UrlReply};
#[cfg(unix)]
pub use join::{JoinError, Joined, join, join_running};
#[cfg(unix)]
pub use serve::{bind, serve};
pub use workspace::root_of;
