//! mcp-sidecar: one engine beside the editor that turns `mcp.json` into a live workspace.
//!
//! The map of the code. Modules stand in reading order: each may use those above it, never those below.
//! `tests/tidy.rs` holds the order, `ARCHITECTURE.md` tells the reasons.
//!
//! | module | what it is |
//! |---|---|
//! | [`model`] | names, levels, status, calls, errors: plain data |
//! | [`text`] [`paths`] [`settings`] [`logging`] | foreign text made safe, secrets masked · where files live · `config.toml` · tracing |
//! | [`config`] | `mcp.json` files → what they ask for, and what is wrong with them |
//! | [`policy`] | which call may run and which definition may start; the only maker of `Permitted` and `Trusted` |
//! | [`store`] [`secrets`] | the state database · keyring and inputs |
//! | [`server`] | one MCP server: its life, its process, its connection |
//! | [`engine`] | all servers, the one door to every tool, approvals: the only thing a front holds |
//! | [`ide`] | language features of config files, pure |
//! | [`protocol`] | the wire contract with editors as types |
//! | [`lsp`] [`agent`] [`session`] [`cli`] | the fronts: they translate, and hold no logic of their own |
//! | [`demo`] | the MCP server that is built in, for first tries and documents |

pub mod model;

pub mod text;

pub mod paths;

pub mod settings;

pub mod logging;

pub mod config;

pub mod policy;

pub mod store;

pub mod secrets;

pub mod server;

pub mod engine;

pub mod ide;

pub mod protocol;

pub mod lsp;

pub mod agent;

pub mod session;

pub mod demo;

pub mod cli;
