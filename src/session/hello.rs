//! The one line each way with which a front and an engine begin.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::agent::AgentOptions;

/// The longest line that either side reads; names of servers may make one long.
pub const LONGEST: usize = 64 << 10;

/// Who a front is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Front {
    /// LSP follows.
    Editor,
    /// MCP follows.
    Agent,
    /// The engine's [`Opened`] follows: agents are served at a URL until this stream ends.
    Url,
    /// Nothing follows: it asks how an earlier session ended.
    End,
}

/// What a front says first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    pub front: Front,
    pub version: String,
    pub pid: u32,
    #[serde(flatten)]
    pub agent: AgentOptions,
    /// The port of the URL; any that is free where it is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Whose child it is, where a server's process started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<String>,
    /// The session that is asked about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<u64>,
}

impl Hello {
    pub fn new(front: Front) -> Self {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Self {
            front,
            version,
            pid: std::process::id(),
            agent: AgentOptions::default(),
            port: None,
            mark: None,
            session: None,
        }
    }
}

/// What the engine answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Welcome {
    /// Welcome; the session has this number.
    Session(u64),
    /// The exit code of the session that was asked about.
    Code(u8),
    /// Not welcome, and why.
    Refused(String),
}

/// Where agents that need a URL find this engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Opened {
    #[serde(rename_all = "camelCase")]
    At { url: String, token_file: PathBuf },
    /// There is no URL, and why.
    Failed(String),
}

/// A line as it goes on the wire.
pub fn line<T: Serialize>(value: &T) -> Vec<u8> {
    let mut line = serde_json::to_vec(value).unwrap_or_default();
    line.push(b'\n');
    line
}
