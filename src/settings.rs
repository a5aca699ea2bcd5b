//! The settings of mcp-sidecar: `config.toml`, overridden by the editor's `initializationOptions`.
//!
//! Reading never fails. An invalid setting is a [`Problem`], and all other settings still apply.
//! `table` defines all names, descriptions and types; `mcp-sidecar config --default` prints them.

mod agents;
mod headers;
mod read;
mod secret_commands;
mod sets;
mod table;
mod units;
mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

use serde_json::Value;

use crate::paths::Paths;
pub use agents::{Agent, SECTION as AGENTS};
pub use headers::{Headers, Part as HeaderPart, parts as header_parts};
pub use sets::SECTION as SETS;

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
    pub sandbox: Sandbox,
    pub registry: Registry,
    pub telemetry: Telemetry,
    pub editor: Editor,
    /// By the name of the agent.
    pub agents: BTreeMap<String, Agent>,
    /// Name → the globs of the tools in the set.
    pub sets: BTreeMap<String, Vec<String>>,
    /// Name → the program that prints the secret, and its arguments.
    pub secret_commands: BTreeMap<String, Vec<String>>,
    stated: SettingsInFile,
}

/// The names of the settings that `config.toml` contains. An editor cannot lower these protections.
#[derive(Debug, Clone, Default)]
struct SettingsInFile(BTreeSet<String>);

/// Settings with the same values are equal, whether they were written down or are the defaults.
impl PartialEq for SettingsInFile {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Files {
    /// Project config files to read in each workspace folder, in order of precedence.
    pub project: Vec<String>,
    /// Personal config files of a workspace folder.
    pub local: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Servers {
    pub startup_timeout: Duration,
    pub timeout: Duration,
    /// The time limit for a call that reports progress.
    pub max_timeout: Duration,
    pub ping_interval: Duration,
    pub backoff_first: Duration,
    pub backoff_longest: Duration,
    /// The number of consecutive failures after which a server is not restarted.
    pub attempts: u32,
    /// Hosts other than loopback that servers of type `tcp` may use.
    pub tcp_hosts: Vec<String>,
    /// The MCP log level that servers should use.
    pub log_level: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Approvals {
    pub timeout: Duration,
    /// `without-editor`, `always` or `never`; see [`AskAgent`].
    pub ask_agent: String,
}

/// When a question is asked in the dialog of the agent that caused it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskAgent {
    WithoutEditor,
    Always,
    Never,
}

impl Approvals {
    pub fn ask_agent(&self) -> AskAgent {
        match self.ask_agent.as_str() {
            "always" => AskAgent::Always,
            "never" => AskAgent::Never,
            _ => AskAgent::WithoutEditor,
        }
    }
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
    pub agents: usize,
    pub agent_calls: usize,
    pub subscriptions: usize,
    pub pending_bytes: usize,
    pub total_pending_bytes: usize,
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
    /// Record each call before it is sent, and refuse calls that cannot be recorded.
    pub strict: bool,
    pub keep_days: u32,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Secrets {
    /// If there is no keyring, save secrets in a file that only the user can read.
    pub file: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Sandbox {
    /// `auto`, `landlock` or `bubblewrap`.
    pub method: String,
    /// The path of `bwrap`; empty: look in the system folders.
    pub bubblewrap: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Registry {
    pub url: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Telemetry {
    /// The base URL of an OTLP collector; empty: nothing is exported.
    pub otlp_endpoint: String,
    /// What each export is sent with.
    pub otlp_headers: Headers,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Editor {
    /// Lenses to hide because the editor shows its own: `start`, `stop`, `restart`, `status`, ….
    pub hide_lenses: Vec<String>,
    /// Config files whose servers the editor starts itself.
    pub own_files: Vec<String>,
}

/// An invalid setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Byte range in `config.toml`; `None` for settings of an editor and for an unreadable file.
    pub span: Option<Range<usize>>,
    /// Lower case, no full stop; contains the name of the setting.
    pub message: String,
    pub help: Option<String>,
}

/// What a setting means, for completion and hover.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingInfo {
    /// Empty at the top of the file; [`AGENTS`] for what can be set for each agent, [`SETS`] for each set.
    pub section: &'static str,
    pub key: &'static str,
    pub about: &'static str,
    /// As TOML. For an agent, an example.
    pub default: String,
    /// The words that it can be set to, if there are only a few.
    pub choices: Vec<&'static str>,
}

impl SettingInfo {
    /// The full name, such as `servers.timeout`.
    pub fn name(&self) -> String {
        match self.section {
            "" => self.key.to_owned(),
            section => format!("{section}.{}", self.key),
        }
    }
}

/// `config.toml` after reading: its text, its settings and its problems.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingsFile {
    pub exists: bool,
    pub text: String,
    pub settings: Settings,
    pub problems: Vec<Problem>,
}

impl Settings {
    /// Reads `config.toml`. If it does not exist, returns the defaults.
    pub fn from_file(paths: &Paths) -> SettingsFile {
        read::file(&paths.settings_file())
    }

    /// Parses the text of a `config.toml`.
    pub fn from_toml(text: &str) -> (Self, Vec<Problem>) {
        read::toml(text)
    }

    /// Everything that can be set, in the order of `to_toml`.
    pub fn describe() -> Vec<SettingInfo> {
        write::describe()
    }

    /// The names of the settings that `config.toml` contains, even if with the default value.
    pub fn stated(&self) -> &BTreeSet<String> {
        &self.stated.0
    }

    /// Applies the settings of an editor: `initializationOptions`, or those of `workspace/didChangeConfiguration`. They can
    /// only strengthen the protections that `config.toml` sets.
    /// Keys are camelCase, nested or dotted, and may be inside `mcpSidecar`. Returns messages about invalid settings.
    pub fn overlay(&mut self, options: &Value) -> Vec<String> {
        read::json(self, options).into_iter().map(|problem| problem.message).collect()
    }

    /// Writes a `config.toml` with a comment for each setting.
    pub fn to_toml(&self) -> String {
        write::toml(self)
    }

    /// Writes the object that an editor would send.
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
                timeout: seconds(30),
                max_timeout: seconds(600),
                ping_interval: seconds(30),
                backoff_first: seconds(1),
                backoff_longest: seconds(60),
                attempts: 5,
                tcp_hosts: Vec::new(),
                log_level: "info".to_owned(),
            },
            approvals: Approvals { timeout: seconds(300), ask_agent: "without-editor".to_owned() },
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
                agents: 64,
                agent_calls: 256,
                subscriptions: 1_000,
                pending_bytes: 32 << 20,
                total_pending_bytes: 64 << 20,
                record_bytes: 16 << 10,
            },
            log: Log { level: "info".to_owned(), days: 7 },
            audit: Audit { strict: false, keep_days: 30 },
            secrets: Secrets { file: false },
            sandbox: Sandbox { method: "auto".to_owned(), bubblewrap: String::new() },
            registry: Registry { url: "https://registry.modelcontextprotocol.io".to_owned() },
            telemetry: Telemetry { otlp_endpoint: String::new(), otlp_headers: Headers::new() },
            editor: Editor { hide_lenses: Vec::new(), own_files: Vec::new() },
            agents: BTreeMap::new(),
            sets: BTreeMap::new(),
            secret_commands: BTreeMap::new(),
            stated: SettingsInFile::default(),
        }
    }
}
