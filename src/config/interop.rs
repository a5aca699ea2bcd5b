//! Imports servers from other programs that host MCP servers, and exports servers to them.
//!
//! Both directions use [`ServerSpec`](super::ServerSpec): `incoming` converts a foreign entry to one, `outgoing` converts
//! one to a foreign entry. What is special about a program is in its file in `dialects`. Only `exchange` reads and
//! writes files; everything else works on text. Notes list everything that could not be converted. A literal secret becomes a variable and is never shown.

mod dialect;
mod dialects;
mod exchange;
mod export;
mod file;
mod format;
pub mod hooks;
mod import;
mod incoming;
mod literals;
mod locations;
mod native_entry;
mod notes;
mod outgoing;
mod references;
pub mod setup;
mod toml;
mod yaml;

pub use dialect::Dialect;
pub use exchange::{Exported, ImportRequest, Imported, export_to, import_from};
pub use export::export;
pub use format::Syntax;
pub use import::{Destination, import};
pub use locations::{Homes, import_files, project_files, user_files};
pub use native_entry::limit as timeout_value;
pub use setup::{add_sidecar, is_sidecar, remove_sidecar};

#[cfg(test)]
mod tests;
