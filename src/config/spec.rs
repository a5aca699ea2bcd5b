//! The contents of config files as typed data. `${…}` is not expanded until a server starts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::problem::Span;
use crate::model::{HookAgent, Level, Scope, ServerName};

/// The merged contents of all config files.
#[derive(Debug, Clone, Default)]
pub struct Config {
    pub servers: BTreeMap<ServerName, Arc<Definition>>,
    /// The `policy` of each file that has one, in order of precedence.
    pub policies: Vec<FilePolicy>,
    /// The `agentTools` of each file, in order of precedence.
    pub agent_tools: Vec<AgentToolRules>,
    pub inputs: Vec<Input>,
    pub actions: Vec<Action>,
    /// Programs of servers that were not found.
    pub missing: BTreeSet<MissingProgram>,
    /// Workspace folders that no longer exist. Their servers are kept, but do not run.
    pub gone: BTreeSet<Arc<Path>>,
}

/// A program as written in a definition, and the workspace folder of the definition.
pub type MissingProgram = (String, Option<Arc<Path>>);

/// The definition of a server, and the definitions that it overrides.
#[derive(Debug, Clone)]
pub struct Definition {
    pub name: ServerName,
    /// The name as written in the file. If two workspace folders use it, `name` has the folder's name as a prefix.
    pub key: ServerName,
    pub scope: Scope,
    /// `None` for the session scope.
    pub file: Option<Arc<Path>>,
    /// The workspace folder of the file, which is the value of `${workspaceFolder}`.
    pub folder: Option<Arc<Path>>,
    /// The position of its key in the file.
    pub key_span: Span,
    /// Zero-based line of `key_span`.
    pub line: u32,
    /// Zero-based lines of its rules by pattern. Not part of `spec`, because moving a rule does not change it.
    pub rule_lines: BTreeMap<String, u32>,
    pub spec: ServerSpec,
    /// The entry as written, never expanded.
    pub written: Arc<Value>,
    /// The definitions that this one overrides, in order of precedence.
    pub hides: Vec<Hidden>,
    /// The entries of other files that disable it or restrict its tools, in order of precedence. `spec.enabled` already
    /// follows them.
    pub restrictions: Vec<Restriction>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Hidden {
    pub scope: Scope,
    pub file: Option<Arc<Path>>,
    /// The position of its key in the file.
    pub key_span: Span,
    /// Zero-based line of `key_span`.
    pub line: u32,
    /// Its rules. Those that deny still apply.
    pub tools: Vec<ToolRule>,
}

/// An entry that defines no server. It disables the server of that name, or restricts its tools.
#[derive(Debug, Clone, PartialEq)]
pub struct Restriction {
    pub scope: Scope,
    pub file: Option<Arc<Path>>,
    /// The workspace folder of the file, which is the value of `${workspaceFolder}` in its rules.
    pub folder: Option<Arc<Path>>,
    /// The position of its key in the file.
    pub key_span: Span,
    /// Zero-based line of `key_span`.
    pub line: u32,
    /// Zero-based lines of its rules by pattern.
    pub rule_lines: BTreeMap<String, u32>,
    /// As written. `true` only overrides what an entry of lower precedence says.
    pub enabled: Option<bool>,
    /// Whether it is the entry that disables the server.
    pub disables: bool,
    /// Its rules. They apply where they are stricter than what applies without them.
    pub tools: Vec<ToolRule>,
}

impl Restriction {
    /// What it does, in a few words.
    pub fn effect(&self) -> String {
        let rules = self.tools.len();
        match self.disables {
            true => "disables it".to_owned(),
            false if rules == 0 => "changes nothing".to_owned(),
            false => format!("restricts its tools ({})", crate::text::counted(rules, "rule")),
        }
    }
}

impl Definition {
    /// A definition that is not in a file.
    pub fn of_session(name: ServerName, spec: ServerSpec, written: Value) -> Self {
        Self {
            key: name.clone(),
            name,
            scope: Scope::Session,
            file: None,
            folder: None,
            key_span: Span::default(),
            line: 0,
            rule_lines: BTreeMap::new(),
            spec,
            written: Arc::new(written),
            hides: Vec::new(),
            restrictions: Vec::new(),
        }
    }

    /// The entry of another file that disables it.
    pub fn disabled_by(&self) -> Option<&Restriction> {
        self.restrictions.iter().find(|restriction| restriction.disables)
    }

    /// Whether its own entry disables it.
    pub fn disables_itself(&self) -> bool {
        let says = |key: &str, value: bool| self.written.get(key).and_then(Value::as_bool) == Some(value);
        says("enabled", false) || says("disabled", true)
    }

    /// Whether it comes from a project and overrides a definition of the user.
    pub fn replaces_own(&self) -> bool {
        self.scope.needs_trust() && self.hides.iter().any(|hidden| !hidden.scope.needs_trust())
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct ServerSpec {
    pub launch: Launch,
    /// Used if `launch` fails.
    pub fallback: Option<Launch>,
    pub enabled: bool,
    /// `false`: starts when first used.
    pub auto_start: bool,
    pub description: Option<String>,
    pub startup_timeout: Option<Duration>,
    pub timeout: Option<Duration>,
    /// It stops after this time without a use, and starts again when it is used.
    pub idle_timeout: Option<Duration>,
    /// The rules of `tools`, in file order.
    pub tools: Vec<ToolRule>,
    pub dev: Option<Dev>,
}

impl ServerSpec {
    /// A spec with this launch and defaults for everything else.
    pub fn new(launch: Launch) -> Self {
        Self {
            launch,
            fallback: None,
            enabled: true,
            auto_start: true,
            description: None,
            startup_timeout: None,
            timeout: None,
            idle_timeout: None,
            tools: Vec::new(),
            dev: None,
        }
    }
}

/// How to start or connect to a server.
#[derive(Debug, Clone, PartialEq)]
pub enum Launch {
    Stdio(Stdio),
    Tcp {
        host: String,
        port: u16,
    },
    Http(Remote),
    Sse(Remote),
    /// A server inside the editor with this name.
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

    /// The program to start.
    pub fn stdio(&self) -> Option<&Stdio> {
        match self {
            Self::Stdio(stdio) => Some(stdio),
            Self::Tcp { .. } | Self::Http(_) | Self::Sse(_) | Self::Sdk { .. } | Self::ClaudeAiProxy { .. } => None,
        }
    }

    /// The URL, headers and sign-in options of a remote server.
    pub fn remote(&self) -> Option<&Remote> {
        match self {
            Self::Http(remote) | Self::Sse(remote) | Self::ClaudeAiProxy { remote, .. } => Some(remote),
            Self::Stdio(_) | Self::Tcp { .. } | Self::Sdk { .. } => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Stdio {
    pub command: String,
    pub args: Vec<String>,
    /// `None` unsets the variable.
    pub env: BTreeMap<String, Option<String>>,
    pub env_file: Option<String>,
    pub cwd: Option<String>,
    pub inherit_env: bool,
    pub sandbox: Option<Sandbox>,
}

/// `sandbox`: what the program may reach. Everything else is closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    /// `None`: it may read every file.
    pub read: Option<Vec<String>>,
    pub write: Vec<String>,
    pub network: bool,
    /// Do not start the program if this machine cannot enforce this.
    pub required: bool,
}

impl Sandbox {
    /// The paths as written.
    pub fn paths(&self) -> impl Iterator<Item = &String> {
        self.read.iter().flatten().chain(&self.write)
    }

    /// As lines `key: value`, for fingerprints and prompts.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let Self { read, write, network, required } = self;
        let list = |paths: &[String]| if paths.is_empty() { "nothing".to_owned() } else { paths.join(", ") };
        vec![
            ("read", read.as_deref().map_or_else(|| "everything".to_owned(), list)),
            ("write", list(write)),
            ("network", network.to_string()),
            ("required", required.to_string()),
        ]
    }
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Remote {
    pub url: String,
    pub headers: BTreeMap<String, String>,
    pub oauth: Option<OAuth>,
}

/// OAuth settings for servers that do not provide them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OAuth {
    /// The id that was registered for us, or the URL of our client metadata document.
    pub client_id: Option<String>,
    /// Not expanded until the user signs in.
    pub client_secret: Option<String>,
    /// Instead of the secret, for a client that signs in by itself. A reference to a key in PEM format.
    pub private_key: Option<String>,
    pub scopes: Vec<String>,
    pub callback_port: Option<u16>,
    pub grant: Grant,
}

/// How a token is obtained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Grant {
    /// The user signs in.
    #[default]
    AuthorizationCode,
    /// The client signs in with its own secret or key, without a user.
    ClientCredentials,
}

impl Grant {
    /// The values of `grantType`, as OAuth spells them.
    pub const NAMES: &[&str] = &["authorization_code", "client_credentials"];

    pub fn name(self) -> &'static str {
        match self {
            Self::AuthorizationCode => "authorization_code",
            Self::ClientCredentials => "client_credentials",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        [Self::AuthorizationCode, Self::ClientCredentials].into_iter().find(|grant| grant.name() == name)
    }
}

/// `dev`: restart the server when its source files change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dev {
    pub watch: Vec<String>,
}

/// One entry of `tools`: an exact name or a glob, and its level.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolRule {
    pub pattern: String,
    pub level: LevelRule,
}

/// A level that may depend on the arguments: the level of the first matching case, otherwise `rest`.
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

/// A case applies if all its conditions are met, or if that is unknown and it is stricter than what applies without it.
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

/// The `policy` of one file.
#[derive(Debug, Clone, PartialEq)]
pub struct FilePolicy {
    pub scope: Scope,
    pub file: Option<Arc<Path>>,
    pub default: Option<DefaultPolicy>,
    pub allowlist: Vec<Matcher>,
    pub denylist: Vec<Matcher>,
    pub read_only: Option<Level>,
    pub destructive: Option<Level>,
    /// The only programs that may be started; `None` = no restriction.
    pub commands: Option<Vec<String>>,
    /// It has an error, so it is not known what else it denies: no call runs without a question, and none at all if it is the
    /// administrator's.
    pub is_invalid: bool,
}

impl FilePolicy {
    pub fn new(scope: Scope) -> Self {
        Self {
            scope,
            file: None,
            default: None,
            allowlist: Vec::new(),
            denylist: Vec::new(),
            read_only: None,
            destructive: None,
            commands: None,
            is_invalid: false,
        }
    }

    /// Stands for rules that cannot be read at all, because of an error in this line.
    pub fn unreadable(scope: Scope, line: u32) -> Self {
        let mut policy = Self::new(scope);
        policy.invalidate(line);
        policy.commands = (scope == Scope::Managed).then(Vec::new);
        policy
    }

    /// There is an error in this line.
    pub fn invalidate(&mut self, line: u32) {
        self.is_invalid = true;
        if self.scope == Scope::Managed {
            self.denylist.push(Matcher::all(line));
        }
    }
}

/// The rules of one file for an agent's own tools.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentToolRules {
    /// `None`: every agent without a rule for the tool.
    pub agent: Option<HookAgent>,
    pub scope: Scope,
    pub file: Option<Arc<Path>>,
    /// The workspace folder of the file, which is the value of `${workspaceFolder}` in its rules.
    pub folder: Option<Arc<Path>>,
    /// Zero-based line of the agent's key.
    pub line: u32,
    /// Zero-based lines of the rules by pattern.
    pub rule_lines: BTreeMap<String, u32>,
    pub tools: Vec<ToolRule>,
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
    /// Zero-based line, for explanations.
    pub line: u32,
}

impl Matcher {
    /// Matches every tool.
    pub fn all(line: u32) -> Self {
        Self { server: "*".to_owned(), tool: "*".to_owned(), line }
    }
}

/// An entry of `inputs`. The user is asked when `${input:id}` is first needed.
#[derive(Debug, Clone, PartialEq)]
pub struct Input {
    pub id: String,
    pub kind: InputKind,
    pub description: String,
    pub default: Option<String>,
    pub password: bool,
    /// The scope and file of the entry. Inputs of the same file take precedence.
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
    /// `mcp__server__tool`, with the unique name of the server if two workspace folders use the same one.
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
