//! The handshake: a front and an engine send each other one line.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::agent::AgentOptions;
use crate::config::Environment;

/// The longest line of an engine that is read.
pub const MAX_LINE: usize = 64 << 10;
/// How long an environment may be in the line of a front. A longer one loses its largest variables.
const MAX_ENVIRONMENT: usize = 1 << 20;
/// The longest line of a front that is read. Names of servers can make it long, too.
pub const MAX_HELLO: usize = MAX_LINE + MAX_ENVIRONMENT;

/// The longest question of a hook that is read. An agent with a longer one asks its user itself.
pub const MAX_HOOK: usize = 8 << 20;

/// What a front is, and what follows the handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Front {
    /// LSP follows.
    Editor,
    /// MCP follows.
    Agent,
    /// One line with a [`HookQuestion`](crate::engine::gate::agent_tool::HookQuestion) follows, and one with the answer.
    Hook,
    /// The engine sends a [`UrlReply`] and serves agents at a URL until this stream ends.
    Url,
    /// Nothing follows: asks for the exit code of an earlier session.
    End,
    /// Nothing follows: a newer version asks the engine to end, so that it can start its own.
    Upgrade,
}

/// The line of a front.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    pub front: Front,
    pub version: String,
    pub pid: u32,
    /// The workspace of the front.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    /// It wants to be refused if no other front has that workspace open.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_open: bool,
    #[serde(flatten)]
    pub agent: AgentOptions,
    /// The port of the URL; 0 for any free port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The token of the URL that the agents already know, after its engine has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Identifies the engine if one of its servers started this process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<String>,
    /// The session whose exit code is requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<u64>,
    /// For servers that this front is responsible for. It is never written to a file or a log.
    #[serde(default, skip_serializing_if = "Environment::is_empty")]
    pub environment: Environment,
    /// The names of variables that did not fit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

impl Hello {
    pub fn new(front: Front) -> Self {
        let (environment, left_out) = match front {
            Front::Editor | Front::Agent | Front::Url => Environment::of_this_process().limited(MAX_ENVIRONMENT),
            Front::Hook | Front::End | Front::Upgrade => Default::default(),
        };
        Self {
            front,
            version: version(),
            pid: std::process::id(),
            folder: None,
            only_open: false,
            agent: AgentOptions::default(),
            port: None,
            token: None,
            mark: None,
            session: None,
            environment,
            left_out,
        }
    }

    /// The line of a front in this workspace.
    pub fn of(front: Front, folder: &Path) -> Self {
        Self { folder: folder.canonicalize().ok(), ..Self::new(front) }
    }
}

/// The line of the engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Welcome {
    /// Accepted.
    Session {
        /// No other session has this number, not even one of another engine.
        session: u64,
        /// The version of the engine.
        version: String,
    },
    /// The exit code of the requested session.
    Code(u8),
    /// Refused, with the reason.
    Refused(String),
    /// The engine ends. It has closed its sockets.
    Leaving,
    /// The engine cannot end now.
    Busy,
}

/// Our version. Fronts and engines of all versions understand each other's first line.
pub fn version() -> String {
    // Debug builds let a test pretend.
    let pretended = std::env::var("MCP_SIDECAR_TEST_VERSION").ok().filter(|_| cfg!(debug_assertions));
    pretended.unwrap_or_else(|| env!("CARGO_PKG_VERSION").to_owned())
}

/// Whether a version is older than ours.
pub fn is_older(version: &str) -> bool {
    numbers(version) < numbers(&self::version())
}

pub fn is_newer(version: &str) -> bool {
    numbers(version) > numbers(&self::version())
}

fn numbers(version: &str) -> Vec<u64> {
    let release = version.split(['-', '+']).next().unwrap_or_default();
    release.split('.').map(|number| number.parse().unwrap_or_default()).collect()
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
