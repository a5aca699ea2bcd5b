//! mcp-sidecar: one engine next to the editor that runs the MCP servers of `mcp.json`.
//!
//! The map of the code. Modules are in reading order: each may use those above it, never those below.
//! `tests/tidy.rs` checks the order, `ARCHITECTURE.md` explains it.
//!
//! | module | purpose |
//! |---|---|
//! | [`model`] | names, levels, status, calls, errors: plain data |
//! | [`text`] [`paths`] | safe text and masked secrets · the locations of files |
//! | [`pipes`] [`os`] | larger pipes · the calls to the C library that are `unsafe` |
//! | [`settings`] [`logging`] | `config.toml` · tracing |
//! | [`config`] | parses `mcp.json` files into definitions and problems |
//! | [`policy`] | decides which call may run and which definition may start; only it creates `Permitted` and `Trusted` |
//! | [`store`] [`secrets`] | the state database · keyring and inputs |
//! | [`server`] | one MCP server: its lifecycle, process and connection |
//! | [`registry`] | where servers come from: the MCP registry and bundles, as definitions |
//! | [`engine`] | all servers, the gate to every tool, approvals; a front holds nothing else |
//! | [`protocol`] | the wire protocol with editors, as types |
//! | [`ide`] | language features for config files, as pure functions |
//! | [`lsp`] [`agent`] [`session`] [`cli`] | the fronts, which translate requests and contain no logic |
//! | [`lsp_client`] | an LSP client for the shell, the demo and the tests |
//! | [`demo`] | the built-in MCP server, for trying things out and for documentation |
//! | [`fuzzing`] | what the fuzz targets run; not part of the program |

pub mod model;

pub mod text;

pub mod paths;

mod pipes;

mod os;

pub mod settings;

mod logging;

pub mod config;

pub mod policy;

pub mod store;

mod secrets;

pub mod server;

pub mod registry;

pub mod engine;

pub mod protocol;

mod ide;

pub mod lsp;

pub mod lsp_client;

pub mod agent;

pub mod session;

mod demo;

pub mod cli;

#[cfg(any(test, fuzzing))]
pub mod fuzzing;
