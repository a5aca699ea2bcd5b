//! Writes settings as a commented `config.toml`, and as a JSON object.

use serde_json::{Map, Value, json};

use super::table::{ALL, Kind, Setting};
use super::units::{write_bytes, write_duration};
use super::{SettingInfo, Settings, agents, secret_commands, sets};
use crate::text::wrap_words;

const WIDTH: usize = 100;

pub(super) fn toml(settings: &Settings) -> String {
    let mut text = String::new();
    let mut section = "";
    for setting in ALL {
        if !text.is_empty() {
            text.push('\n');
        }
        if setting.section != section {
            section = setting.section;
            text.push_str(&format!("[{section}]\n"));
        }
        for line in wrap_words(setting.about, WIDTH) {
            text.push_str(&format!("# {line}\n"));
        }
        text.push_str(&format!("{} = {}\n", setting.key, toml_value(setting, settings)));
    }
    text.push_str(&secret_commands::to_toml(settings));
    text.push_str(&agents::to_toml(settings));
    text.push_str(&sets::to_toml(settings));
    text
}

pub(super) fn json(settings: &Settings) -> Value {
    let mut object = Map::new();
    for setting in ALL {
        let value = value(setting, settings);
        if setting.section.is_empty() {
            object.insert(camel(setting.key), value);
        } else if let Some(section) =
            object.entry(setting.section).or_insert_with(|| Value::Object(Map::new())).as_object_mut()
        {
            section.insert(camel(setting.key), value);
        }
    }
    object.extend(secret_commands::to_json(settings).map(|commands| (camel(secret_commands::SECTION), commands)));
    object.extend(agents::to_json(settings).map(|agents| (agents::SECTION.to_owned(), agents)));
    object.extend(sets::to_json(settings).map(|sets| (sets::SECTION.to_owned(), sets)));
    Value::Object(object)
}

pub(super) fn describe() -> Vec<SettingInfo> {
    let defaults = Settings::default();
    let row = |setting: &Setting| SettingInfo {
        section: setting.section,
        key: setting.key,
        about: setting.about,
        default: toml_value(setting, &defaults),
        choices: match &setting.kind {
            Kind::Choice(words, _) => words.to_vec(),
            Kind::Toggle(words, _) => words.to_vec(),
            _ => Vec::new(),
        },
    };
    ALL.iter()
        .map(row)
        .chain([secret_commands::describe()])
        .chain(agents::describe())
        .chain([sets::describe()])
        .collect()
}

fn toml_value(setting: &Setting, settings: &Settings) -> String {
    let value = toml::Value::try_from(value(setting, settings));
    value.map_or_else(|_| "\"\"".to_owned(), |value| value.to_string())
}

/// The value of a setting as a user would write it.
fn value(setting: &Setting, settings: &Settings) -> Value {
    let mut settings = settings.clone();
    let settings = &mut settings;
    match &setting.kind {
        Kind::Duration(at) => json!(write_duration(*at(settings))),
        Kind::Bytes(at) => json!(write_bytes(*at(settings))),
        Kind::Count(at) => json!(at(settings)),
        Kind::Number(at) => json!(at(settings)),
        Kind::Strings(at) | Kind::Files(at) => json!(at(settings)),
        Kind::Choice(_, at) | Kind::Text(at) => json!(at(settings)),
        Kind::Headers(at) => json!(at(settings)),
        Kind::Toggle([no, yes], at) => json!(if *at(settings) { yes } else { no }),
    }
}

/// `startup-timeout` → `startupTimeout`.
fn camel(key: &str) -> String {
    let mut words = key.split('-');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |mut name, word| {
        let mut chars = word.chars();
        name.extend(chars.next().map(|c| c.to_ascii_uppercase()));
        name.push_str(chars.as_str());
        name
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_survive_a_round_trip() {
        let default = Settings::default();
        assert_eq!(Settings::from_toml(&default.to_toml()), (default.clone(), Vec::new()));
        let mut same = default.clone();
        assert_eq!(same.overlay(&default.to_json()), [""; 0]);
        assert_eq!(same, default);

        let mut other = default;
        other.audit.strict = true;
        other.servers.tcp_hosts = vec!["box\"1".to_owned()];
        other.limits.tools = 7;
        assert_eq!(Settings::from_toml(&other.to_toml()), (other.clone(), Vec::new()));
        let mut same = Settings::default();
        assert_eq!(same.overlay(&other.to_json()), [""; 0]);
        assert_eq!(same, other);
    }

    #[test]
    fn every_default_is_written_with_a_comment() {
        insta::assert_snapshot!(Settings::default().to_toml(), @r#"
        # With "strict", a call is recorded before it is sent, and refused if it cannot be recorded.
        audit = "normal"

        # How many days to keep the records of calls.
        audit-keep-days = 30

        # Where to save inputs and sign-ins. "file" saves them in a file that only you can read if there is no
        # keyring.
        secrets = "keyring"

        [files]
        # Config files to read in each workspace folder, in order of precedence.
        project = ["mcp.json", ".mcp.json", ".vscode/mcp.json", ".cursor/mcp.json"]

        # Personal config files of a workspace folder. Add them to .gitignore.
        local = ["mcp.local.json"]

        [servers]
        # How long a server may take to start and list its tools. `startupTimeout` of a server overrides this.
        startup-timeout = "30s"

        # How long a call may take without progress or a log message. `timeout` of a server overrides this.
        timeout = "30s"

        # How long a call may take in total, even if it reports progress.
        max-timeout = "10m"

        # How often to ping an idle server. After two missed pings, the server is restarted.
        ping-interval = "30s"

        # How long to wait before the first restart. The wait doubles with each consecutive failure.
        backoff-first = "1s"

        # Longest wait between restarts.
        backoff-longest = "1m"

        # After this many consecutive failures, a server is not restarted.
        attempts = 5

        # Hosts other than this machine that servers of type `tcp` may use.
        tcp-hosts = []

        # The lowest level of messages that servers should log: debug, info, notice, warning, error, critical,
        # alert or emergency.
        log-level = "info"

        [approvals]
        # A question that is not answered within this time is refused.
        timeout = "5m"

        # When to ask in the agent's own dialog: without-editor (no editor can show the question), always or
        # never.
        ask-agent = "without-editor"

        [limits]
        # Maximum size of a config file.
        config-bytes = "1 MiB"

        # Maximum depth of a config file.
        config-depth = 64

        # Maximum number of servers in a workspace.
        servers = 256

        # Maximum size of a message from a server or an agent.
        message-bytes = "16 MiB"

        # Maximum number of tools of a server.
        tools = 5000

        # Maximum number of pages of a list.
        pages = 200

        # Approximate memory limit for all lists of a server. Further entries are dropped.
        list-bytes = "64 MiB"

        # Maximum size of a tool's description. Longer ones are truncated.
        description-bytes = "32 KiB"

        # How much stderr to keep per server.
        stderr-bytes = "256 KiB"

        # Maximum number of open questions.
        approvals = 1024

        # Maximum number of connected agents.
        agents = 64

        # Maximum pending calls of an agent.
        agent-calls = 256

        # Maximum number of resources that an agent may subscribe to.
        subscriptions = 1000

        # How much memory the pending requests of an agent may use.
        pending-bytes = "32 MiB"

        # How much memory the pending requests of all agents may use.
        total-pending-bytes = "64 MiB"

        # How much of the arguments and of the result to keep in the record of a call.
        record-bytes = "16 KiB"

        [log]
        # One of error, warn, info, debug and trace.
        level = "info"

        # How many daily log files to keep.
        days = 7

        [sandbox]
        # What enforces `sandbox` of a server: landlock, bubblewrap, or auto for the first of them that this
        # machine supports.
        method = "auto"

        # The full path of bwrap. If empty, it is looked up in the system folders.
        bubblewrap = ""

        [registry]
        # The MCP registry that `search` and `add --from-registry` use. MCP_SIDECAR_REGISTRY overrides this.
        url = "https://registry.modelcontextprotocol.io"

        [telemetry]
        # The base URL of an OpenTelemetry collector (OTLP over HTTP) that gets a span and a log record of
        # each call. If empty, nothing is exported.
        otlp-endpoint = ""

        # Headers for the collector, such as { Authorization = "Bearer ${keyring:otlp}" }. Each value must
        # refer to a secret: an entry of the keyring, or the output of a command under [secret-commands].
        otlp-headers = {}

        [editor]
        # Code lenses to hide because the editor shows its own, such as "status", "start" or "stop".
        hide-lenses = []

        # Config files whose servers the editor starts itself. mcp-sidecar starts them only when they are
        # used.
        own-files = []

        # Programs that print a secret. `${keyring:github}` in mcp.json uses the output of the first one
        # instead of an entry of the keyring. They are not run in a shell.
        # [secret-commands]
        # github = ["op", "read", "op://Private/GitHub/token"]
        # weather = ["pass", "show", "weather"]

        # What an agent may see and call, by the name of the agent (set by the agent itself or by
        # `connect --name`). Names may contain `*`. Only the best matching section applies to an agent, and
        # "*" applies to agents without another section. Agents without any section can see everything.
        # [agents."claude-code"]
        # Globs for servers, and for tools as `server__tool`. A glob that starts with `!` excludes.
        # servers = ["github", "docs-*"]
        # tools = ["*", "!github__delete_*"]
        # The most permissive level for calls: deny, require-approval, allow-once, allow-session, ….
        # ceiling = "require-approval"
        # "list" shows every tool. "search" shows `find_tools` and `call_tool` instead, for long lists of tools.
        # mode = "search"
        # How many tokens (estimated) of a result the agent gets at once. It can read the rest with `read_result`.
        # result-limit = 8000

        # Named sets of tools. `connect --set review` offers an agent only the tools of the set, and
        # `mcp-sidecar set review` switches agents that are running. Globs are the same as for agents.
        # [sets.review]
        # tools = ["git__*", "github__get_*", "!git__push"]
        "#);
    }
}
