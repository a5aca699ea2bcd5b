//! Servers exchanged with other programs that host MCP: their files read as they are, and written as they want them.
//!
//! Both ways lead through [`ServerSpec`](super::ServerSpec): `incoming` makes one of a foreign entry, `outgoing` a
//! foreign entry of one. Everything is text in, text out, but for `exchange`, which reads and writes the files.
//! Whatever could not be carried over is told in a note; a literal secret becomes a variable and is never shown.

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
