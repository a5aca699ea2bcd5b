//! The list of all settings: name, description, type and field of each.

use std::time::Duration;

use super::{Headers, Settings};
use FromEditor::{Any, Less, More, Nothing};

/// One setting. Its name in `config.toml` is `key` below `[section]`; the empty section is the top of the file.
pub(super) struct Setting {
    pub section: &'static str,
    pub key: &'static str,
    pub about: &'static str,
    pub editor: FromEditor,
    pub kind: Kind,
}

/// What an editor may do with a setting. Its settings may come from a project, so it cannot lower a protection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FromEditor {
    /// Change it: it protects nothing.
    Any,
    /// If `config.toml` sets it: only a smaller number, a part of the list, or the first word.
    Less,
    /// If `config.toml` sets it: only a greater number, or the second word.
    More,
    /// Nothing.
    Nothing,
}

/// The type of a setting, and its field.
pub(super) enum Kind {
    Duration(fn(&mut Settings) -> &mut Duration),
    Bytes(fn(&mut Settings) -> &mut usize),
    Count(fn(&mut Settings) -> &mut usize),
    Number(fn(&mut Settings) -> &mut u32),
    Strings(fn(&mut Settings) -> &mut Vec<String>),
    /// Paths below a workspace folder.
    Files(fn(&mut Settings) -> &mut Vec<String>),
    /// Header → value that refers to secrets.
    Headers(fn(&mut Settings) -> &mut Headers),
    /// Any text.
    Text(fn(&mut Settings) -> &mut String),
    /// One of these words.
    Choice(&'static [&'static str], fn(&mut Settings) -> &mut String),
    /// The first word is `false`, the second `true`.
    Toggle([&'static str; 2], fn(&mut Settings) -> &mut bool),
}

impl Setting {
    /// The full name, such as `servers.timeout`.
    pub fn name(&self) -> String {
        match self.section {
            "" => self.key.to_owned(),
            section => format!("{section}.{}", self.key),
        }
    }
}

const LOG_LEVELS: &[&str] = &["error", "warn", "info", "debug", "trace"];
const MCP_LEVELS: &[&str] = &["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

const SANDBOX_METHODS: &[&str] = &["auto", "landlock", "bubblewrap"];
const ASK_AGENT: &[&str] = &["without-editor", "always", "never"];

const fn row(section: &'static str, key: &'static str, about: &'static str, editor: FromEditor, kind: Kind) -> Setting {
    Setting { section, key, about, editor, kind }
}

/// In the order in which `config --default` prints them.
pub(super) const ALL: &[Setting] = &[
    row(
        "",
        "audit",
        "With \"strict\", a call is recorded before it is sent, and refused if it cannot be recorded.",
        More,
        Kind::Toggle(["normal", "strict"], |s| &mut s.audit.strict),
    ),
    row(
        "",
        "audit-keep-days",
        "How many days to keep the records of calls.",
        More,
        Kind::Number(|s| &mut s.audit.keep_days),
    ),
    row(
        "",
        "secrets",
        "Where to save inputs and sign-ins. \"file\" saves them in a file that only you can read if there is no keyring.",
        Less,
        Kind::Toggle(["keyring", "file"], |s| &mut s.secrets.file),
    ),
    row(
        "files",
        "project",
        "Config files to read in each workspace folder, in order of precedence.",
        Less,
        Kind::Files(|s| &mut s.files.project),
    ),
    row(
        "files",
        "local",
        "Personal config files of a workspace folder. Add them to .gitignore.",
        Less,
        Kind::Files(|s| &mut s.files.local),
    ),
    row(
        "servers",
        "startup-timeout",
        "How long a server may take to start and list its tools. `startupTimeout` of a server overrides this.",
        Any,
        Kind::Duration(|s| &mut s.servers.startup_timeout),
    ),
    row(
        "servers",
        "timeout",
        "How long a call may take without progress or a log message. `timeout` of a server overrides this.",
        Any,
        Kind::Duration(|s| &mut s.servers.timeout),
    ),
    row(
        "servers",
        "max-timeout",
        "How long a call may take in total, even if it reports progress.",
        Any,
        Kind::Duration(|s| &mut s.servers.max_timeout),
    ),
    row(
        "servers",
        "ping-interval",
        "How often to ping an idle server. After two missed pings, the server is restarted.",
        Any,
        Kind::Duration(|s| &mut s.servers.ping_interval),
    ),
    row(
        "servers",
        "backoff-first",
        "How long to wait before the first restart. The wait doubles with each consecutive failure.",
        Any,
        Kind::Duration(|s| &mut s.servers.backoff_first),
    ),
    row(
        "servers",
        "backoff-longest",
        "Longest wait between restarts.",
        Any,
        Kind::Duration(|s| &mut s.servers.backoff_longest),
    ),
    row(
        "servers",
        "attempts",
        "After this many consecutive failures, a server is not restarted.",
        Any,
        Kind::Number(|s| &mut s.servers.attempts),
    ),
    row(
        "servers",
        "tcp-hosts",
        "Hosts other than this machine that servers of type `tcp` may use.",
        Less,
        Kind::Strings(|s| &mut s.servers.tcp_hosts),
    ),
    row(
        "servers",
        "log-level",
        "The lowest level of messages that servers should log: debug, info, notice, warning, error, critical, alert or emergency.",
        Any,
        Kind::Choice(MCP_LEVELS, |s| &mut s.servers.log_level),
    ),
    row(
        "approvals",
        "timeout",
        "A question that is not answered within this time is refused.",
        Any,
        Kind::Duration(|s| &mut s.approvals.timeout),
    ),
    row(
        "approvals",
        "ask-agent",
        "When to ask in the agent's own dialog: without-editor (no editor can show the question), always or never.",
        Nothing,
        Kind::Choice(ASK_AGENT, |s| &mut s.approvals.ask_agent),
    ),
    row(
        "limits",
        "config-bytes",
        "Maximum size of a config file.",
        Nothing,
        Kind::Bytes(|s| &mut s.limits.config_bytes),
    ),
    row(
        "limits",
        "config-depth",
        "Maximum depth of a config file.",
        Nothing,
        Kind::Count(|s| &mut s.limits.config_depth),
    ),
    row("limits", "servers", "Maximum number of servers in a workspace.", Less, Kind::Count(|s| &mut s.limits.servers)),
    row(
        "limits",
        "message-bytes",
        "Maximum size of a message from a server or an agent.",
        Less,
        Kind::Bytes(|s| &mut s.limits.message_bytes),
    ),
    row("limits", "tools", "Maximum number of tools of a server.", Less, Kind::Count(|s| &mut s.limits.tools)),
    row("limits", "pages", "Maximum number of pages of a list.", Less, Kind::Count(|s| &mut s.limits.pages)),
    row(
        "limits",
        "list-bytes",
        "Approximate memory limit for all lists of a server. Further entries are dropped.",
        Less,
        Kind::Bytes(|s| &mut s.limits.list_bytes),
    ),
    row(
        "limits",
        "description-bytes",
        "Maximum size of a tool's description. Longer ones are truncated.",
        Less,
        Kind::Bytes(|s| &mut s.limits.description_bytes),
    ),
    row(
        "limits",
        "stderr-bytes",
        "How much stderr to keep per server.",
        Less,
        Kind::Bytes(|s| &mut s.limits.stderr_bytes),
    ),
    row("limits", "approvals", "Maximum number of open questions.", Less, Kind::Count(|s| &mut s.limits.approvals)),
    row("limits", "agents", "Maximum number of connected agents.", Less, Kind::Count(|s| &mut s.limits.agents)),
    row(
        "limits",
        "agent-calls",
        "Maximum pending calls of an agent.",
        Less,
        Kind::Count(|s| &mut s.limits.agent_calls),
    ),
    row(
        "limits",
        "subscriptions",
        "Maximum number of resources that an agent may subscribe to.",
        Less,
        Kind::Count(|s| &mut s.limits.subscriptions),
    ),
    row(
        "limits",
        "pending-bytes",
        "How much memory the pending requests of an agent may use.",
        Less,
        Kind::Bytes(|s| &mut s.limits.pending_bytes),
    ),
    row(
        "limits",
        "total-pending-bytes",
        "How much memory the pending requests of all agents may use.",
        Less,
        Kind::Bytes(|s| &mut s.limits.total_pending_bytes),
    ),
    row(
        "limits",
        "record-bytes",
        "How much of the arguments and of the result to keep in the record of a call.",
        More,
        Kind::Bytes(|s| &mut s.limits.record_bytes),
    ),
    row(
        "log",
        "level",
        "One of error, warn, info, debug and trace.",
        Any,
        Kind::Choice(LOG_LEVELS, |s| &mut s.log.level),
    ),
    row("log", "days", "How many daily log files to keep.", More, Kind::Count(|s| &mut s.log.days)),
    row(
        "sandbox",
        "method",
        "What enforces `sandbox` of a server: landlock, bubblewrap, or auto for the first of them that this machine supports.",
        Nothing,
        Kind::Choice(SANDBOX_METHODS, |s| &mut s.sandbox.method),
    ),
    row(
        "sandbox",
        "bubblewrap",
        "The full path of bwrap. If empty, it is looked up in the system folders.",
        Nothing,
        Kind::Text(|s| &mut s.sandbox.bubblewrap),
    ),
    row(
        "registry",
        "url",
        "The MCP registry that `search` and `add --from-registry` use. MCP_SIDECAR_REGISTRY overrides this.",
        Nothing,
        Kind::Text(|s| &mut s.registry.url),
    ),
    row(
        "telemetry",
        "otlp-endpoint",
        "The base URL of an OpenTelemetry collector (OTLP over HTTP) that gets a span and a log record of each call. If empty, nothing is exported.",
        Nothing,
        Kind::Text(|s| &mut s.telemetry.otlp_endpoint),
    ),
    row(
        "telemetry",
        "otlp-headers",
        "Headers for the collector, such as { Authorization = \"Bearer ${keyring:otlp}\" }. Each value must refer to a secret: an entry of the keyring, or the output of a command under [secret-commands].",
        Nothing,
        Kind::Headers(|s| &mut s.telemetry.otlp_headers),
    ),
    row(
        "editor",
        "hide-lenses",
        "Code lenses to hide because the editor shows its own, such as \"status\", \"start\" or \"stop\".",
        Any,
        Kind::Strings(|s| &mut s.editor.hide_lenses),
    ),
    row(
        "editor",
        "own-files",
        "Config files whose servers the editor starts itself. mcp-sidecar starts them only when they are used.",
        Any,
        Kind::Files(|s| &mut s.editor.own_files),
    ),
];
