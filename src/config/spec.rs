//! What config files ask for, as typed data. Nothing here is expanded: `${…}` stays text until a server starts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::problem::Span;
use crate::model::{Level, Scope, ServerName};

/// Everything that all config files together ask for.
#[derive(Debug, Clone, Default)]
pub struct Config {
    pub servers: BTreeMap<ServerName, Arc<Definition>>,
    /// One voice for each file that has a `policy`, strongest scope first.
    pub policies: Vec<FilePolicy>,
    pub inputs: Vec<Input>,
    pub actions: Vec<Action>,
    /// Programs of servers that are on no folder of the PATH.
    pub missing: BTreeSet<String>,
    /// Workspace folders that are not there any more. What they asked for stays known, and does not run.
    pub gone: BTreeSet<Arc<Path>>,
}

/// A server as one file defines it, with what it hides.
#[derive(Debug, Clone)]
pub struct Definition {
    pub name: ServerName,
    /// As its file writes it; where two workspace folders use one name, `name` has the folder's before it.
    pub key: ServerName,
    pub scope: Scope,
    /// Absent for the session scope.
    pub file: Option<Arc<Path>>,
    /// The workspace folder whose file this is; what `${workspaceFolder}` means for it.
    pub folder: Option<Arc<Path>>,
    /// Where its key stands in the file.
    pub key_span: Span,
    /// Zero-based line of `key_span`.
    pub line: u32,
    /// Zero-based lines of its rules, by their patterns. Not part of `spec`: a rule that only moved says the same.
    pub rule_lines: BTreeMap<String, u32>,
    pub spec: ServerSpec,
    /// The entry as written, never expanded.
    pub written: Arc<Value>,
    /// Definitions of the same name that lost against this one, strongest first.
    pub hides: Vec<Hidden>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hidden {
    pub scope: Scope,
    pub file: Option<Arc<Path>>,
    /// Where its key stands in the file.
    pub key_span: Span,
    /// Zero-based line of `key_span`.
    pub line: u32,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ServerSpec {
    pub launch: Launch,
    /// Tried when the first transport fails.
    pub fallback: Option<Launch>,
    pub enabled: bool,
    /// `false`: lazy, starts at its first use.
    pub auto_start: bool,
    pub description: Option<String>,
    pub startup_timeout: Option<Duration>,
    pub timeout: Option<Duration>,
    /// The `tools` entry: pattern → rule, in the order of the file.
    pub tools: Vec<ToolRule>,
    pub dev: Option<Dev>,
}

impl ServerSpec {
    /// What an entry that tells only how to reach its server asks for.
    pub fn new(launch: Launch) -> Self {
        Self {
            launch,
            fallback: None,
            enabled: true,
            auto_start: true,
            description: None,
            startup_timeout: None,
            timeout: None,
            tools: Vec::new(),
            dev: None,
        }
    }
}

/// How to reach a server.
#[derive(Debug, Clone, PartialEq)]
pub enum Launch {
    Stdio(Stdio),
    Tcp {
        host: String,
        port: u16,
    },
    Http(Remote),
    Sse(Remote),
    /// Lives inside the editor under this name.
    Sdk {
        name: String,
    },
    ClaudeAiProxy {
        id: String,
        remote: Remote,
    },
}

impl Launch {
    /// The transport's name on the wire and in files.
    pub fn transport(&self) -> &'static str {
        match self {
            Self::Stdio(_) => "stdio",
            Self::Tcp { .. } => "tcp",
            Self::Http(_) => "http",
            Self::Sse(_) => "sse",
            Self::Sdk { .. } => "sdk",
            Self::ClaudeAiProxy { .. } => "claudeai-proxy",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Stdio {
    pub command: String,
    pub args: Vec<String>,
    /// `None` unsets the variable for the child.
    pub env: BTreeMap<String, Option<String>>,
    pub env_file: Option<String>,
    pub cwd: Option<String>,
    pub inherit_env: bool,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Remote {
    pub url: String,
    pub headers: BTreeMap<String, String>,
    pub oauth: Option<OAuth>,
}

/// What a file says about signing in, where the server itself does not.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OAuth {
    /// Given to us, or the address of a document about us, for servers that take such an address.
    pub client_id: Option<String>,
    /// As it is written; expanded when the user signs in.
    pub client_secret: Option<String>,
    pub scopes: Vec<String>,
    pub callback_port: Option<u16>,
}

/// `dev`: restart when the server's own sources change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dev {
    pub watch: Vec<String>,
}

/// One entry of `tools`: an exact name or a glob, and the level it gives.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolRule {
    pub pattern: String,
    pub level: LevelRule,
}

/// A level that may depend on the arguments: the first case that holds, otherwise `rest`.
#[derive(Debug, Clone, PartialEq)]
pub struct LevelRule {
    pub cases: Vec<Case>,
    pub rest: Level,
}

impl From<Level> for LevelRule {
    fn from(rest: Level) -> Self {
        Self { cases: Vec::new(), rest }
    }
}

/// All conditions must hold; one that cannot be evaluated does not.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// Dotted path of an argument → condition.
    pub when: Vec<(String, Condition)>,
    pub level: Level,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Condition {
    Glob(String),
    In(Vec<Value>),
    Matches(String),
    /// A folder, after resolving `..` and symlinks.
    Inside(String),
    Max(f64),
}

/// What one file's `policy` says.
#[derive(Debug, Clone, PartialEq)]
pub struct FilePolicy {
    pub scope: Scope,
    pub file: Option<Arc<Path>>,
    pub default: Option<DefaultPolicy>,
    pub allowlist: Vec<Matcher>,
    pub denylist: Vec<Matcher>,
    pub read_only: Option<Level>,
    pub destructive: Option<Level>,
    /// The only programs that may be started; `None` = no limit from this file.
    pub commands: Option<Vec<String>>,
}

/// `policy.default`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DefaultPolicy {
    Deny,
    Confirm,
    Allow,
}

/// `{ "server": glob, "tool": glob }` of an allowlist or denylist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matcher {
    pub server: String,
    pub tool: String,
    /// Zero-based line, so that an explanation can point at it.
    pub line: u32,
}

/// An entry of `inputs`, asked for when `${input:id}` is first needed.
#[derive(Debug, Clone, PartialEq)]
pub struct Input {
    pub id: String,
    pub kind: InputKind,
    pub description: String,
    pub default: Option<String>,
    pub password: bool,
    /// The scope and file of the entry: a file sees its own inputs first.
    pub scope: Scope,
    pub file: Option<Arc<Path>>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum InputKind {
    Prompt,
    /// `(label, value)`
    Pick(Vec<(String, String)>),
}

/// An entry of `actions`: a tool offered as a code action in ordinary files.
#[derive(Debug, Clone, PartialEq)]
pub struct Action {
    pub title: String,
    /// `mcp__server__tool`, with the server's name that counts: of two folders' servers of one name, the file's own.
    pub tool: String,
    pub arguments: Value,
    /// Empty = every filetype.
    pub filetypes: Vec<String>,
    pub result: ActionResult,
    pub scope: Scope,
    pub file: Option<Arc<Path>>,
    pub line: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ActionResult {
    #[default]
    Show,
    Insert,
    Replace,
    Append,
}
