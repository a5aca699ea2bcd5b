//! The handshake: a front and an engine send each other one line.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::agent::AgentOptions;

/// The longest line that is read. Names of servers can make it long.
pub const MAX_LINE: usize = 64 << 10;

/// What a front is, and what follows the handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Front {
    /// LSP follows.
    Editor,
    /// MCP follows.
    Agent,
    /// The engine sends a [`UrlReply`] and serves agents at a URL until this stream ends.
    Url,
    /// Nothing follows: asks for the exit code of an earlier session.
    End,
}

/// The line of a front.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    pub front: Front,
    pub version: String,
    pub pid: u32,
    #[serde(flatten)]
    pub agent: AgentOptions,
    /// The port of the URL; 0 for any free port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Identifies the engine if one of its servers started this process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<String>,
    /// The session whose exit code is requested.
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

/// The line of the engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Welcome {
    /// Accepted, with the number of the session.
    Session(u64),
    /// The exit code of the requested session.
    Code(u8),
    /// Refused, with the reason.
    Refused(String),
}

/// The URL at which agents are served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum UrlReply {
    #[serde(rename_all = "camelCase")]
    At { url: String, token_file: PathBuf },
    /// The reason why there is no URL.
    Failed(String),
}

/// Serializes a value as one line.
pub fn line<T: Serialize>(value: &T) -> Vec<u8> {
    let mut line = serde_json::to_vec(value).unwrap_or_default();
    line.push(b'\n');
    line
}
