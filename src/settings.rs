//! The sidecar's own settings: `config.toml`, with the editor's `initializationOptions` on top.
//!
//! Reading never fails. What cannot be used is a [`Problem`], and every other setting counts all the same.
//! The names, comments and kinds stand once, in `table`; `mcp-sidecar config --default` writes them all out.

mod agents;
mod read;
mod table;
mod units;
mod write;

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use serde_json::Value;

use crate::paths::Paths;
pub use agents::Agent;

/// Every duration, limit and list that can be set, with its default. See `mcp-sidecar config --default`.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    pub files: Files,
    pub servers: Servers,
    pub approvals: Approvals,
    pub limits: Limits,
    pub log: Log,
    pub audit: Audit,
    pub secrets: Secrets,
    pub editor: Editor,
    /// By the name of the agent.
    pub agents: BTreeMap<String, Agent>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Files {
    /// Project config files looked for in each workspace folder, strongest first.
    pub project: Vec<String>,
    /// Personal config files of a workspace folder.
    pub local: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Servers {
    pub startup_timeout: Duration,
    pub timeout: Duration,
    /// A call ends after this long even while progress flows.
    pub max_timeout: Duration,
    pub ping_interval: Duration,
    pub backoff_first: Duration,
    pub backoff_longest: Duration,
    /// Failures in a row after which a server stays failed.
    pub attempts: u32,
    /// Hosts beside loopback that `tcp` may reach.
    pub tcp_hosts: Vec<String>,
    /// MCP log level asked of servers.
    pub log_level: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Approvals {
    pub timeout: Duration,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    pub config_bytes: usize,
    pub config_depth: usize,
    pub servers: usize,
    pub message_bytes: usize,
    pub tools: usize,
    pub pages: usize,
    pub list_bytes: usize,
    pub description_bytes: usize,
    pub stderr_bytes: usize,
    pub approvals: usize,
    pub agent_calls: usize,
    pub record_bytes: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Log {
    /// `error`, `warn`, `info`, `debug`, `trace`.
    pub level: String,
    pub days: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Audit {
    /// Write each record before its call is sent, and refuse calls that cannot be recorded.
    pub strict: bool,
    pub keep_days: u32,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Secrets {
    /// Where there is no keyring, keep values in a file that only the user can read.
    pub file: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Editor {
    /// Lenses to leave out because the editor shows its own: `start`, `stop`, `restart`, `status`, ….
    pub hide_lenses: Vec<String>,
}

/// A setting that could not be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Bytes in `config.toml`; absent for what an editor sent, and for a file that cannot be read.
    pub span: Option<Range<usize>>,
    /// Lower case, no full stop; names the setting.
    pub message: String,
    pub help: Option<String>,
}

/// `config.toml` after reading: its text for pointing into, what it sets, and what is wrong with it.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingsFile {
    pub exists: bool,
    pub text: String,
    pub settings: Settings,
    pub problems: Vec<Problem>,
}

impl Settings {
    /// Reads `config.toml`; without one, everything has its default.
    pub fn from_file(paths: &Paths) -> SettingsFile {
        read::file(&paths.settings_file())
    }

    /// What a `config.toml` with this text sets.
    pub fn from_toml(text: &str) -> (Self, Vec<Problem>) {
        read::toml(text)
    }

    /// Puts an editor's settings on top: `initializationOptions`, or what `workspace/didChangeConfiguration` brings.
    /// Keys are camelCase, in objects or dotted, perhaps all inside of `mcpSidecar`. Tells what could not be used.
    pub fn overlay(&mut self, options: &Value) -> Vec<String> {
        read::json(self, options).into_iter().map(|problem| problem.message).collect()
    }

    /// As a `config.toml` with a comment on each setting.
    pub fn to_toml(&self) -> String {
        write::toml(self)
    }

    /// As the object that an editor would send.
    pub fn to_json(&self) -> Value {
        write::json(self)
    }
}

impl Default for Settings {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            files: Files {
                project: ["mcp.json", ".mcp.json", ".vscode/mcp.json", ".cursor/mcp.json"].map(str::to_owned).into(),
                local: vec!["mcp.local.json".to_owned()],
            },
            servers: Servers {
                startup_timeout: seconds(30),
                timeout: seconds(60),
                max_timeout: seconds(600),
                ping_interval: seconds(30),
                backoff_first: seconds(1),
                backoff_longest: seconds(60),
                attempts: 5,
                tcp_hosts: Vec::new(),
                log_level: "info".to_owned(),
            },
            approvals: Approvals { timeout: seconds(300) },
            limits: Limits {
                config_bytes: 1 << 20,
                config_depth: 64,
                servers: 256,
                message_bytes: 16 << 20,
                tools: 5_000,
                pages: 200,
                list_bytes: 64 << 20,
                description_bytes: 32 << 10,
                stderr_bytes: 256 << 10,
                approvals: 1_024,
                agent_calls: 256,
                record_bytes: 16 << 10,
            },
            log: Log { level: "info".to_owned(), days: 7 },
            audit: Audit { strict: false, keep_days: 30 },
            secrets: Secrets { file: false },
            editor: Editor { hide_lenses: Vec::new() },
            agents: BTreeMap::new(),
        }
    }
}
