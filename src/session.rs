//! How a front meets its engine: one engine for each workspace, shared by every window and agent of its user.
//!
//! A front finds the engine by its socket or starts it, says in one line who it is, gets one line back, and from then
//! on bytes pass both ways unread. What is said over them is the business of `lsp` and `agent`. Platforms without such
//! sockets run engine and front in one process.

#[cfg(unix)]
mod forward;
#[cfg(unix)]
mod hello;
#[cfg(unix)]
mod join;
#[cfg(unix)]
mod leaving;
#[cfg(unix)]
mod lock;
#[cfg(unix)]
mod place;
#[cfg(unix)]
mod serve;
mod workspace;

#[cfg(unix)]
pub use forward::{Opening, Stdio, forward};
#[cfg(unix)]
pub use hello::{Front, Hello, Opened};
#[cfg(unix)]
pub use join::{JoinError, Joined, join, join_running};
#[cfg(unix)]
pub use leaving::{Leaving, leave_on_signal};
#[cfg(unix)]
pub use place::Place;
#[cfg(unix)]
pub use serve::{bind, serve};
pub use workspace::root_of;
