//! The wire contract with editors as Rust types; `docs/protocol.md` says the same with an example of each message.
//! Only shapes live here: what a command does is the engine's business, how it travels the front's.

pub mod commands;
pub mod errors;
pub mod run;
pub mod types;

/// The number of the contract; grows only when something in it is taken away.
pub const VERSION: u32 = 1;
