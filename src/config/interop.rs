//! Imports servers from other programs that host MCP servers, and exports servers to them.
//!
//! Both directions use [`ServerSpec`](super::ServerSpec): `incoming` converts a foreign entry to one, `outgoing` converts
//! one to a foreign entry. Only `exchange` reads and writes files; everything else works on text. Notes list everything
//! that could not be converted. A literal secret becomes a variable and is never shown.

mod dialect;
mod exchange;
mod export;
mod file;
mod import;
mod incoming;
mod literals;
mod locations;
mod native_entry;
mod notes;
mod outgoing;
mod references;
mod setup;
mod toml;

pub use dialect::Dialect;
pub use exchange::{Exported, ImportRequest, Imported, export_to, import_from};
pub use export::{Export, export};
pub use import::{Import, NameCheck, import};
pub use locations::{Homes, project_file, user_files};
pub use setup::{SetupError, add_sidecar, is_sidecar, remove_sidecar};

#[cfg(test)]
mod tests;
