//! The one list of all settings: what each is called, what it is for, what it holds and where that is kept.

use std::time::Duration;

use super::Settings;

/// One setting. Its name in `config.toml` is `key` below `[section]`; the empty section is the top of the file.
pub(super) struct Setting {
    pub section: &'static str,
    pub key: &'static str,
    pub about: &'static str,
    pub kind: Kind,
}

/// What a setting holds, and where.
pub(super) enum Kind {
    Duration(fn(&mut Settings) -> &mut Duration),
    Bytes(fn(&mut Settings) -> &mut usize),
    Count(fn(&mut Settings) -> &mut usize),
    Number(fn(&mut Settings) -> &mut u32),
    Strings(fn(&mut Settings) -> &mut Vec<String>),
    /// Paths below a workspace folder.
    Files(fn(&mut Settings) -> &mut Vec<String>),
    /// One of these words.
    Choice(&'static [&'static str], fn(&mut Settings) -> &mut String),
    /// The first word is `false`, the second `true`.
    Toggle([&'static str; 2], fn(&mut Settings) -> &mut bool),
}

impl Setting {
    /// `servers.timeout`, as messages name it.
    pub fn name(&self) -> String {
        match self.section {
            "" => self.key.to_owned(),
            section => format!("{section}.{}", self.key),
        }
    }
}

const LOG_LEVELS: &[&str] = &["error", "warn", "info", "debug", "trace"];
const MCP_LEVELS: &[&str] = &["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

const fn row(section: &'static str, key: &'static str, about: &'static str, kind: Kind) -> Setting {
    Setting { section, key, about, kind }
}

/// In the order in which they are written out.
pub(super) const ALL: &[Setting] = &[
    row(
        "",
        "audit",
        "\"strict\" writes the record of a call before the call is sent, and refuses calls that it cannot record.",
        Kind::Toggle(["normal", "strict"], |s| &mut s.audit.strict),
    ),
    row(
        "",
        "audit-keep-days",
        "How many days the records of calls are kept.",
        Kind::Number(|s| &mut s.audit.keep_days),
    ),
    row(
        "",
        "secrets",
        "Where answers to inputs and sign-ins are kept. \"file\": where there is no keyring, in a file that only you can read.",
        Kind::Toggle(["keyring", "file"], |s| &mut s.secrets.file),
    ),
    row(
        "files",
        "project",
        "Config files looked for in each workspace folder, strongest first.",
        Kind::Files(|s| &mut s.files.project),
    ),
    row(
        "files",
        "local",
        "Personal config files of a workspace folder, meant for .gitignore.",
        Kind::Files(|s| &mut s.files.local),
    ),
    row(
        "servers",
        "startup-timeout",
        "From start to the complete list of tools. A server's own `startupTimeout` comes first.",
        Kind::Duration(|s| &mut s.servers.startup_timeout),
    ),
    row(
        "servers",
        "timeout",
        "How long a call may go without a sign of life. A server's own `timeout` comes first.",
        Kind::Duration(|s| &mut s.servers.timeout),
    ),
    row(
        "servers",
        "max-timeout",
        "A call ends after this long even while it reports progress.",
        Kind::Duration(|s| &mut s.servers.max_timeout),
    ),
    row(
        "servers",
        "ping-interval",
        "An idle server is pinged this often; two missed pings restart it.",
        Kind::Duration(|s| &mut s.servers.ping_interval),
    ),
    row(
        "servers",
        "backoff-first",
        "Wait before the first restart; it doubles with each failure in a row.",
        Kind::Duration(|s| &mut s.servers.backoff_first),
    ),
    row(
        "servers",
        "backoff-longest",
        "Longest wait between restarts.",
        Kind::Duration(|s| &mut s.servers.backoff_longest),
    ),
    row(
        "servers",
        "attempts",
        "Failures in a row after which a server stays failed.",
        Kind::Number(|s| &mut s.servers.attempts),
    ),
    row(
        "servers",
        "tcp-hosts",
        "Hosts beside this machine that servers of type `tcp` may be reached at.",
        Kind::Strings(|s| &mut s.servers.tcp_hosts),
    ),
    row(
        "servers",
        "log-level",
        "Least important messages that servers are asked to log: debug, info, notice, warning, error, critical, alert or emergency.",
        Kind::Choice(MCP_LEVELS, |s| &mut s.servers.log_level),
    ),
    row(
        "approvals",
        "timeout",
        "A question that nobody answers for this long counts as no.",
        Kind::Duration(|s| &mut s.approvals.timeout),
    ),
    row("limits", "config-bytes", "Largest config file.", Kind::Bytes(|s| &mut s.limits.config_bytes)),
    row("limits", "config-depth", "Deepest nesting of a config file.", Kind::Count(|s| &mut s.limits.config_depth)),
    row("limits", "servers", "Most servers of one workspace.", Kind::Count(|s| &mut s.limits.servers)),
    row(
        "limits",
        "message-bytes",
        "Largest message from a server or an agent.",
        Kind::Bytes(|s| &mut s.limits.message_bytes),
    ),
    row("limits", "tools", "Most tools of one server.", Kind::Count(|s| &mut s.limits.tools)),
    row("limits", "pages", "Most pages of one list of a server.", Kind::Count(|s| &mut s.limits.pages)),
    row(
        "limits",
        "list-bytes",
        "Memory that all lists of one server may take, about; the rest is left out.",
        Kind::Bytes(|s| &mut s.limits.list_bytes),
    ),
    row(
        "limits",
        "description-bytes",
        "Longest description of a tool; what is longer is cut.",
        Kind::Bytes(|s| &mut s.limits.description_bytes),
    ),
    row("limits", "stderr-bytes", "Kept of the stderr of each server.", Kind::Bytes(|s| &mut s.limits.stderr_bytes)),
    row("limits", "approvals", "Most questions waiting at once.", Kind::Count(|s| &mut s.limits.approvals)),
    row(
        "limits",
        "agent-calls",
        "Most calls of one agent waiting at once.",
        Kind::Count(|s| &mut s.limits.agent_calls),
    ),
    row(
        "limits",
        "record-bytes",
        "Kept of the arguments and of the result in the record of a call.",
        Kind::Bytes(|s| &mut s.limits.record_bytes),
    ),
    row("log", "level", "error, warn, info, debug or trace.", Kind::Choice(LOG_LEVELS, |s| &mut s.log.level)),
    row("log", "days", "How many daily log files are kept.", Kind::Count(|s| &mut s.log.days)),
    row(
        "editor",
        "hide-lenses",
        "Code lenses to leave out because the editor shows its own, such as \"status\", \"start\" or \"stop\".",
        Kind::Strings(|s| &mut s.editor.hide_lenses),
    ),
];
