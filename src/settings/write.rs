//! Settings written out: as a `config.toml` that explains itself, and as an object for programs.

use serde_json::{Map, Value, json};

use super::table::{ALL, Kind, Setting};
use super::units::{write_bytes, write_duration};
use super::{Settings, agents};

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
        for line in wrap(setting.about) {
            text.push_str(&format!("# {line}\n"));
        }
        text.push_str(&format!(
            "{} = {}\n",
            setting.key,
            toml::Value::try_from(value(setting, settings))
                .map_or_else(|_| "\"\"".to_owned(), |value| value.to_string())
        ));
    }
    text.push_str(&agents::to_toml(settings));
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
    object.extend(agents::to_json(settings).map(|agents| (agents::SECTION.to_owned(), agents)));
    Value::Object(object)
}

/// The value of a setting as a person would write it.
fn value(setting: &Setting, settings: &Settings) -> Value {
    let mut settings = settings.clone();
    let settings = &mut settings;
    match &setting.kind {
        Kind::Duration(at) => json!(write_duration(*at(settings))),
        Kind::Bytes(at) => json!(write_bytes(*at(settings))),
        Kind::Count(at) => json!(at(settings)),
        Kind::Number(at) => json!(at(settings)),
        Kind::Strings(at) | Kind::Files(at) => json!(at(settings)),
        Kind::Choice(_, at) => json!(at(settings)),
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

fn wrap(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.len() + 1 + word.len() <= WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back_as_the_same_settings() {
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
    fn every_default_is_written_with_what_it_is_for() {
        insta::assert_snapshot!(Settings::default().to_toml(), @r#"
        # "strict" writes the record of a call before the call is sent, and refuses calls that it cannot
        # record.
        audit = "normal"

        # How many days the records of calls are kept.
        audit-keep-days = 30

        # Where answers to inputs and sign-ins are kept. "file": where there is no keyring, in a file that
        # only you can read.
        secrets = "keyring"

        [files]
        # Config files looked for in each workspace folder, strongest first.
        project = ["mcp.json", ".mcp.json", ".vscode/mcp.json", ".cursor/mcp.json"]

        # Personal config files of a workspace folder, meant for .gitignore.
        local = ["mcp.local.json"]

        [servers]
        # From start to the complete list of tools. A server's own `startupTimeout` comes first.
        startup-timeout = "30s"

        # How long a call may go without a sign of life. A server's own `timeout` comes first.
        timeout = "1m"

        # A call ends after this long even while it reports progress.
        max-timeout = "10m"

        # An idle server is pinged this often; two missed pings restart it.
        ping-interval = "30s"

        # Wait before the first restart; it doubles with each failure in a row.
        backoff-first = "1s"

        # Longest wait between restarts.
        backoff-longest = "1m"

        # Failures in a row after which a server stays failed.
        attempts = 5

        # Hosts beside this machine that servers of type `tcp` may be reached at.
        tcp-hosts = []

        # Least important messages that servers are asked to log: debug, info, notice, warning, error,
        # critical, alert or emergency.
        log-level = "info"

        [approvals]
        # A question that nobody answers for this long counts as no.
        timeout = "5m"

        [limits]
        # Largest config file.
        config-bytes = "1 MiB"

        # Deepest nesting of a config file.
        config-depth = 64

        # Most servers of one workspace.
        servers = 256

        # Largest message from a server or an agent.
        message-bytes = "16 MiB"

        # Most tools of one server.
        tools = 5000

        # Most pages of one list of a server.
        pages = 200

        # Memory that all lists of one server may take, about; the rest is left out.
        list-bytes = "64 MiB"

        # Longest description of a tool; what is longer is cut.
        description-bytes = "32 KiB"

        # Kept of the stderr of each server.
        stderr-bytes = "256 KiB"

        # Most questions waiting at once.
        approvals = 1024

        # Most calls of one agent waiting at once.
        agent-calls = 256

        # Kept of the arguments and of the result in the record of a call.
        record-bytes = "16 KiB"

        [log]
        # error, warn, info, debug or trace.
        level = "info"

        # How many daily log files are kept.
        days = 7

        [editor]
        # Code lenses to leave out because the editor shows its own, such as "status", "start" or "stop".
        hide-lenses = []

        # What agents see, by the name that an agent gives itself (or that `connect --name` gives it). Such a
        # section counts alone: nothing is taken over from another. "*" is for agents that no other section
        # names, and other names may hold `*` as well. Without a section, an agent sees everything.
        # [agents."claude-code"]
        # Servers, and tools as `server__tool`: those that match; with `!` in front all but those.
        # servers = ["github", "docs-*"]
        # tools = ["*", "!github__delete_*"]
        # No call runs more freely than this: deny, require-approval, allow-once, allow-session, ….
        # ceiling = "require-approval"
        # "list" shows every tool; "search" shows `find_tools` and `call_tool` to agents that would drown in a list.
        # mode = "search"
        "#);
    }
}
