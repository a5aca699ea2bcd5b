//! The wire contract with editors as Rust types, and the only vocabulary of the wire. Everything else that describes it
//! is generated from these types: the TypeScript and Lua types of the editor plugins, the JSON Schemas, and the reference
//! tables in `docs/protocol.md`. What a command does is the engine's business, how it travels the front's.

pub mod actions;
pub mod answers;
pub mod commands;
mod convert;
pub mod errors;
pub mod events;
pub mod form;
pub mod mcp;
pub mod run;
mod schema;
pub mod server_form;
pub mod types;

pub use crate::config::Code as DiagnosticCode;

/// The number of the contract; grows only when something in it is taken away.
pub const VERSION: u32 = 1;
