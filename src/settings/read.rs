//! Reads settings from TOML (with positions) and from the JSON of an editor. Both are converted to [`GivenSetting`].

use std::cmp::Ordering;
use std::ops::Range;
use std::path::{Component, Path};

use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::table::{ALL, FromEditor, Kind, Setting};
use super::{Problem, Settings, SettingsFile, agents, headers, secret_commands, sets, units};
use crate::paths::read_file;
use crate::text::toml_reason;

const MAX_FILE_BYTES: usize = 1 << 20;
/// An editor may send the object as the section of this name.
const SECTION: &str = "mcp-sidecar";

/// One value with its full name, from either source.
struct GivenSetting {
    /// `["servers", "timeout"]`
    path: Vec<String>,
    value: Value,
    key_span: Option<Range<usize>>,
    value_span: Option<Range<usize>>,
}

impl GivenSetting {
    fn touches(&self, span: &Range<usize>) -> bool {
        let touches = |own: &Range<usize>| own.start <= span.end && span.start <= own.end;
        self.key_span.as_ref().is_some_and(touches) || self.value_span.as_ref().is_some_and(touches)
    }
}

pub(super) fn file(path: &Path) -> SettingsFile {
    let unreadable = |message: String| SettingsFile {
        exists: true,
        text: String::new(),
        settings: Settings::default(),
        problems: vec![Problem { span: None, message, help: None }],
    };
    let bytes = match read_file(path, MAX_FILE_BYTES) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => {
            let settings = Settings::default();
            return SettingsFile { exists: false, text: String::new(), settings, problems: Vec::new() };
        }
        Err(unreadable_file) => return unreadable(unreadable_file.to_string()),
    };
    let Ok(text) = String::from_utf8(bytes) else {
        return unreadable("the file is not UTF-8".to_owned());
    };
    let (settings, problems) = toml(&text);
    SettingsFile { exists: true, text, settings, problems }
}

pub(super) fn toml(text: &str) -> (Settings, Vec<Problem>) {
    // A mistake in one line must not affect the others.
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut problems: Vec<Problem> = errors
        .iter()
        .map(|error| Problem { span: error.span(), message: toml_reason(error.message()), help: None })
        .collect();
    let mut given = Vec::new();
    collect_toml(table.get_ref(), &[], &mut given);
    // Recovery replaces invalid values by placeholders, which have been reported already.
    let is_broken =
        |given: &mut GivenSetting| errors.iter().filter_map(toml::de::Error::span).any(|span| given.touches(&span));
    let broken: Vec<GivenSetting> = given.extract_if(.., is_broken).collect();
    let mut settings = Settings::default();
    apply(&mut settings, given, &mut problems, Writer::User);
    for setting in ALL.iter().filter(|setting| broken.iter().any(|given| names(setting, &given.path))) {
        protect(&mut settings, setting);
    }
    problems.sort_by_key(|problem| problem.span.as_ref().map(|span| span.start));
    (settings, problems)
}

/// Who wrote the settings.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Writer {
    User,
    /// Settings of an editor may come from a project.
    Editor,
}

pub(super) fn json(settings: &mut Settings, options: &Value) -> Vec<Problem> {
    let mut problems = Vec::new();
    match options {
        Value::Null => {}
        Value::Object(object) => {
            if let Some((_, section)) = object.iter().find(|(key, _)| same(key, SECTION)) {
                return json(settings, section);
            }
            let mut given = Vec::new();
            collect_json(options, &[], &mut given);
            // They could let an agent do more than the user wants.
            for section in [agents::SECTION, sets::SECTION, secret_commands::SECTION] {
                if given.extract_if(.., |given| is_in(section, &given.path)).count() > 0 {
                    problems.push(only_in_file(section));
                }
            }
            apply(settings, given, &mut problems, Writer::Editor);
        }
        // Some editors send an empty list instead of an empty object.
        Value::Array(list) if list.is_empty() => {}
        _ => problems.push(Problem {
            span: None,
            message: "expected an object such as `{ \"servers\": { \"timeout\": 60 } }`".to_owned(),
            help: None,
        }),
    }
    problems
}

fn collect_toml(table: &DeTable<'_>, above: &[String], given: &mut Vec<GivenSetting>) {
    for (key, value) in table {
        let path: Vec<String> = above.iter().cloned().chain([key.get_ref().to_string()]).collect();
        match value.get_ref() {
            DeValue::Table(inner) if contains_settings(&path) && !inner.is_empty() => collect_toml(inner, &path, given),
            DeValue::Table(_) if path.len() == 1 && is_section(&path) => {}
            _ => given.push(GivenSetting {
                path,
                value: toml_to_json(value),
                key_span: Some(key.span()),
                value_span: Some(value.span()),
            }),
        }
    }
}

fn collect_json(options: &Value, above: &[String], given: &mut Vec<GivenSetting>) {
    for (key, value) in options.as_object().into_iter().flatten() {
        let path: Vec<String> = above.iter().cloned().chain(key.split('.').map(str::to_owned)).collect();
        match value {
            Value::Null => {}
            Value::Object(_) if path.len() == 1 => collect_json(value, &path, given),
            _ => given.push(GivenSetting { path, value: value.clone(), key_span: None, value_span: None }),
        }
    }
}

fn toml_to_json(value: &Spanned<DeValue<'_>>) -> Value {
    match value.get_ref() {
        DeValue::String(text) => Value::from(text.as_ref()),
        DeValue::Integer(number) => {
            i64::from_str_radix(number.as_str(), number.radix()).map_or(Value::Null, Value::from)
        }
        DeValue::Float(number) => number.as_str().parse::<f64>().map_or(Value::Null, Value::from),
        DeValue::Boolean(yes) => Value::from(*yes),
        DeValue::Datetime(time) => Value::from(time.to_string()),
        DeValue::Array(items) => items.iter().map(toml_to_json).collect(),
        DeValue::Table(table) => {
            Value::Object(table.iter().map(|(key, value)| (key.get_ref().to_string(), toml_to_json(value))).collect())
        }
    }
}

fn only_in_file(name: &str) -> Problem {
    let message = format!("`{name}` is only allowed in config.toml: editor settings may come from a project");
    Problem { span: None, message, help: None }
}

fn apply(settings: &mut Settings, given: Vec<GivenSetting>, problems: &mut Vec<Problem>, writer: Writer) {
    for GivenSetting { path, value, key_span, value_span } in given {
        let named = match () {
            () if is_in(agents::SECTION, &path) => Some(agents::set(settings, &path, &value)),
            () if is_in(sets::SECTION, &path) => Some(sets::set(settings, &path, &value)),
            () if is_in(secret_commands::SECTION, &path) => Some(secret_commands::set(settings, &path, &value)),
            () => None,
        };
        if let Some(done) = named {
            if let Err(wrong) = done {
                problems.push(Problem {
                    span: value_span,
                    message: format!("`{}`: {wrong}", path.join(".")),
                    help: None,
                });
            }
            continue;
        }
        let Some(setting) = ALL.iter().find(|setting| names(setting, &path)) else {
            problems.push(unknown(&path, key_span));
            continue;
        };
        let before = settings.clone();
        let done = set(settings, setting, &value);
        if done.is_ok() && writer == Writer::User {
            settings.stated.0.insert(setting.name());
        }
        let refused = match writer {
            Writer::User => None,
            Writer::Editor => refusal(setting, &mut before.clone(), settings),
        };
        if refused.is_some() {
            *settings = before;
        }
        problems.extend(refused);
        if let Err(wrong) = done {
            if writer == Writer::User {
                protect(settings, setting);
            }
            let message = format!("`{}`: {wrong}", setting.name());
            problems.push(Problem { span: value_span, message, help: Some(setting.about.to_owned()) });
        }
    }
}

/// An invalid value of a protection that can be on or off was probably meant to turn it on.
fn protect(settings: &mut Settings, setting: &Setting) {
    if let (FromEditor::More, Kind::Toggle(_, at)) = (setting.editor, &setting.kind) {
        *at(settings) = true;
        settings.stated.0.insert(setting.name());
    }
}

/// Why an editor cannot change a setting like this: it would lower a protection.
fn refusal(setting: &Setting, before: &mut Settings, after: &mut Settings) -> Option<Problem> {
    let change = match &setting.kind {
        Kind::Duration(at) => at(after).cmp(&at(before)),
        Kind::Bytes(at) | Kind::Count(at) => at(after).cmp(&at(before)),
        Kind::Number(at) => at(after).cmp(&at(before)),
        Kind::Strings(at) | Kind::Files(at) => {
            let (after, before) = (at(after), at(before));
            match after == before {
                true => Ordering::Equal,
                false if after.iter().all(|item| before.contains(item)) => Ordering::Less,
                false => Ordering::Greater,
            }
        }
        // There is no order between the words.
        Kind::Choice(_, at) | Kind::Text(at) if at(after) == at(before) => Ordering::Equal,
        Kind::Headers(at) if at(after) == at(before) => Ordering::Equal,
        Kind::Choice(..) | Kind::Text(_) | Kind::Headers(_) => Ordering::Greater,
        Kind::Toggle(_, at) => at(after).cmp(&at(before)),
    };
    let name = setting.name();
    let is_weaker = match setting.editor {
        FromEditor::Any => false,
        FromEditor::Less => change.is_gt(),
        FromEditor::More => change.is_lt(),
        FromEditor::Nothing => return change.is_ne().then(|| only_in_file(&name)),
    };
    (is_weaker && before.stated.0.contains(&name)).then(|| Problem {
        span: None,
        message: format!("`{name}` keeps the value of config.toml: editor settings can only make it stricter"),
        help: None,
    })
}

fn set(settings: &mut Settings, setting: &Setting, value: &Value) -> Result<(), String> {
    match &setting.kind {
        Kind::Duration(at) => *at(settings) = units::duration(value)?,
        Kind::Bytes(at) => *at(settings) = units::bytes(value)?,
        Kind::Count(at) => *at(settings) = units::count(value)?,
        Kind::Number(at) => *at(settings) = u32::try_from(units::count(value)?).map_err(|_| "must be smaller")?,
        Kind::Strings(at) => *at(settings) = list(value)?,
        Kind::Files(at) => *at(settings) = files(value)?,
        Kind::Headers(at) => *at(settings) = headers::read(value)?,
        Kind::Text(at) => *at(settings) = value.as_str().ok_or("expected a text")?.to_owned(),
        Kind::Choice(words, at) => *at(settings) = choice(value, words)?.to_owned(),
        Kind::Toggle(words, at) => *at(settings) = choice(value, words)? == words[1],
    }
    Ok(())
}

pub(super) fn choice<'a>(value: &Value, words: &[&'a str]) -> Result<&'a str, String> {
    let text = value.as_str().unwrap_or_default();
    words.iter().find(|word| **word == text).copied().ok_or_else(|| {
        format!("expected {}", words.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(" or "))
    })
}

pub(super) fn list(value: &Value) -> Result<Vec<String>, String> {
    value
        .as_array()
        .and_then(|items| items.iter().map(|item| item.as_str().map(str::to_owned)).collect())
        .ok_or_else(|| "expected a list of strings".to_owned())
}

/// Rejects paths outside the workspace folder, which would apply the files of one project to another.
fn files(value: &Value) -> Result<Vec<String>, String> {
    let files = list(value)?;
    let leads_out = |file: &&String| {
        file.is_empty()
            || !Path::new(file).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
    };
    match files.iter().find(leads_out) {
        Some(file) => Err(format!("{file:?} is not a path inside the workspace folder")),
        None => Ok(files),
    }
}

/// Whether a table at this path is a section.
fn contains_settings(path: &[String]) -> bool {
    path.len() == 1 || (path.len() == 2 && (is_in(agents::SECTION, path) || is_in(sets::SECTION, path)))
}

/// Whether a setting is in a section whose keys the user chooses.
fn is_in(section: &str, path: &[String]) -> bool {
    path.first().is_some_and(|name| same(name, section))
}

fn names(setting: &Setting, path: &[String]) -> bool {
    match path {
        [key] => setting.section.is_empty() && same(setting.key, key),
        [section, key] => !setting.section.is_empty() && same(setting.section, section) && same(setting.key, key),
        _ => false,
    }
}

fn is_section(path: &[String]) -> bool {
    let is_named = is_in(secret_commands::SECTION, path);
    is_named
        || path
            .first()
            .is_some_and(|name| ALL.iter().any(|setting| !setting.section.is_empty() && same(setting.section, name)))
}

/// `startupTimeout`, `startup_timeout` and `startup-timeout` are the same name.
fn normalized(key: &str) -> String {
    key.chars().filter(|c| !matches!(c, '-' | '_')).map(|c| c.to_ascii_lowercase()).collect()
}

fn same(one: &str, other: &str) -> bool {
    normalized(one) == normalized(other)
}

fn unknown(path: &[String], span: Option<Range<usize>>) -> Problem {
    let (message, section) = match path {
        [name] if is_section(path) => {
            (format!("`{name}` is a section: put its settings under `[{name}]`"), normalized(name))
        }
        [section, ..] if is_section(path) => (format!("unknown setting `{}`", path.join(".")), normalized(section)),
        _ => (format!("unknown setting `{}`", path.join(".")), String::new()),
    };
    let mut known: Vec<&str> =
        ALL.iter().filter(|setting| normalized(setting.section) == section).map(|setting| setting.key).collect();
    if section.is_empty() {
        known.extend([
            "[files]",
            "[servers]",
            "[approvals]",
            "[limits]",
            "[log]",
            "[sandbox]",
            "[registry]",
            "[telemetry]",
            "[editor]",
        ]);
    }
    Problem { span, message, help: Some(format!("available settings: {}", known.join(", "))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Each problem as `text at its position: message`.
    fn problems(text: &str) -> String {
        let (_, problems) = toml(text);
        problems
            .iter()
            .map(|problem| {
                let place = problem.span.clone().and_then(|span| text.get(span)).unwrap_or("?");
                format!("{place}: {}", problem.message)
            })
            .collect::<Vec<_>>()
            .join("\n")
    }

    #[test]
    fn invalid_settings_are_reported_at_their_position_and_the_others_still_apply() {
        let text = r#"
            audit = "strict"
            speed = 9
            log = "loud"
            [servers]
            timeout = "2m"
            attempts = "five"
            startup-timeout = 0
            log-level = "chatty"
            tcp-hosts = ["box", 7]
            colour = "red"
            [limits]
            tools = 10
            [files]
            project = ["mcp.json", "../mcp.json"]
            [fonts]
            size = 3
        "#;
        insta::assert_snapshot!(problems(text), @r#"
        speed: unknown setting `speed`
        log: `log` is a section: put its settings under `[log]`
        "five": `servers.attempts`: expected a whole number
        0: `servers.startup-timeout`: must be at least 1 ms
        "chatty": `servers.log-level`: expected "debug" or "info" or "notice" or "warning" or "error" or "critical" or "alert" or "emergency"
        ["box", 7]: `servers.tcp-hosts`: expected a list of strings
        colour: unknown setting `servers.colour`
        ["mcp.json", "../mcp.json"]: `files.project`: "../mcp.json" is not a path inside the workspace folder
        size: unknown setting `fonts.size`
        "#);
        let (settings, _) = toml(text);
        assert!(settings.audit.strict);
        assert_eq!(settings.servers.timeout.as_secs(), 120);
        assert_eq!(settings.limits.tools, 10);
        assert_eq!(settings.servers.attempts, Settings::default().servers.attempts);
    }

    #[test]
    fn an_invalid_value_does_not_turn_a_protection_off() {
        for text in ["audit = \"strct\"", "audit = strict", "audit = true", "audit = "] {
            let (mut settings, problems) = toml(text);
            assert!(settings.audit.strict && !problems.is_empty(), "{text}");
            assert!(!settings.overlay(&json!({ "audit": "normal" })).is_empty(), "{text}");
        }
        assert!(!toml("secrets = \"fil\"").0.secrets.file);
    }

    #[test]
    fn an_invalid_line_does_not_affect_the_others() {
        let text = "[servers]\ntimeout = \n[limits]\ntools = 3\n";
        let (settings, problems) = toml(text);
        assert_eq!(settings.limits.tools, 3);
        assert_eq!(problems.len(), 1);
        assert!(problems[0].span.is_some());
    }

    #[test]
    fn an_editor_may_use_nested_or_dotted_keys_and_our_name_as_a_section() {
        for options in [
            json!({ "servers": { "startupTimeout": 5 } }),
            json!({ "servers.startupTimeout": "5s" }),
            json!({ "mcpSidecar": { "servers": { "startup-timeout": 5 } } }),
            json!({ "mcp-sidecar": { "servers": { "startup_timeout": 5, "timeout": null } } }),
        ] {
            let mut settings = Settings::default();
            assert_eq!(settings.overlay(&options), [""; 0], "{options}");
            assert_eq!(settings.servers.startup_timeout.as_secs(), 5, "{options}");
        }
        for nothing in [json!(null), json!([]), json!({})] {
            let mut settings = Settings::default();
            assert_eq!(settings.overlay(&nothing), [""; 0], "{nothing}");
            assert_eq!(settings, Settings::default());
        }
    }

    #[test]
    fn invalid_settings_of_an_editor_are_reported_by_name() {
        let mut settings = Settings::default();
        let messages = settings.overlay(&json!({ "audit": "loose", "limits": { "toools": 1, "pages": 2 }, "log": 3 }));
        assert_eq!(settings.limits.pages, 2);
        insta::assert_snapshot!(messages.join("\n"), @r#"
        `audit`: expected "normal" or "strict"
        unknown setting `limits.toools`
        `log` is a section: put its settings under `[log]`
        "#);
        assert_eq!(settings.overlay(&json!("x")).len(), 1);
    }

    /// For each setting, what an editor wants after `config.toml` has set it: once stricter, once weaker.
    #[test]
    fn an_editor_can_make_the_settings_of_the_user_stricter_but_not_weaker() {
        let file = r#"
            audit = "strict"
            audit-keep-days = 20
            secrets = "keyring"
            [files]
            project = ["mcp.json", "b.json"]
            local = ["mcp.json", "b.json"]
            [servers]
            tcp-hosts = ["one", "two"]
            [limits]
            config-bytes = "1 MiB"
            config-depth = 64
            servers = 10
            message-bytes = "1 MiB"
            tools = 10
            pages = 10
            list-bytes = "1 MiB"
            description-bytes = "1 KiB"
            stderr-bytes = "1 KiB"
            approvals = 10
            agents = 10
            agent-calls = 10
            subscriptions = 10
            pending-bytes = "1 MiB"
            total-pending-bytes = "1 MiB"
            record-bytes = "1 KiB"
            [log]
            days = 9
            [sandbox]
            method = "landlock"
            bubblewrap = "/opt/bwrap"
            [registry]
            url = "https://registry.example.test"
            [telemetry]
            otlp-endpoint = "http://127.0.0.1:4318"
            otlp-headers = { Authorization = "Bearer ${keyring:otlp}" }
        "#;
        let (from_file, problems) = toml(file);
        assert_eq!(problems, []);
        let mut refused = String::new();
        for setting in ALL.iter().filter(|setting| setting.editor != FromEditor::Any) {
            let name = setting.name();
            assert!(from_file.stated().contains(&name) || name == "approvals.ask-agent", "{name} is not in the table");
            let (less, more) = match &setting.kind {
                Kind::Toggle([no, yes], _) => (json!(no), json!(yes)),
                Kind::Files(_) => (json!(["mcp.json"]), json!(["mcp.json", "b.json", "evil.json"])),
                Kind::Strings(_) => (json!(["two"]), json!(["one", "three"])),
                Kind::Choice(..) if name == "sandbox.method" => (json!("auto"), json!("bubblewrap")),
                Kind::Choice(..) | Kind::Text(_) => (json!("never"), json!("always")),
                Kind::Headers(_) => (json!({}), json!({ "A": "${keyring:github}" })),
                _ => (json!(2), json!(8_000_000)),
            };
            for (change, value) in [("less", less), ("more", more)] {
                let mut settings = from_file.clone();
                let messages = settings.overlay(&json!({ name.as_str(): value }));
                assert_eq!(settings == from_file, !messages.is_empty() || settings.to_json() == from_file.to_json());
                if !messages.is_empty() {
                    refused.push_str(&format!("{name}: {change}\n"));
                }
            }
        }
        insta::assert_snapshot!(refused, @"
        audit: less
        audit-keep-days: less
        secrets: more
        files.project: more
        files.local: more
        servers.tcp-hosts: more
        approvals.ask-agent: less
        approvals.ask-agent: more
        limits.config-bytes: less
        limits.config-bytes: more
        limits.config-depth: less
        limits.config-depth: more
        limits.servers: more
        limits.message-bytes: more
        limits.tools: more
        limits.pages: more
        limits.list-bytes: more
        limits.description-bytes: more
        limits.stderr-bytes: more
        limits.approvals: more
        limits.agents: more
        limits.agent-calls: more
        limits.subscriptions: more
        limits.pending-bytes: more
        limits.total-pending-bytes: more
        limits.record-bytes: less
        log.days: less
        sandbox.method: less
        sandbox.method: more
        sandbox.bubblewrap: less
        sandbox.bubblewrap: more
        registry.url: less
        registry.url: more
        telemetry.otlp-endpoint: less
        telemetry.otlp-endpoint: more
        telemetry.otlp-headers: less
        telemetry.otlp-headers: more
        ");
        let mut settings = from_file;
        assert_eq!(
            settings.overlay(&json!({ "audit": "normal", "log": { "level": "debug" } })),
            ["`audit` keeps the value of config.toml: editor settings can only make it stricter"]
        );
        assert_eq!((settings.audit.strict, settings.log.level.as_str()), (true, "debug"));
    }

    #[test]
    fn an_editor_sets_what_the_user_has_left_open() {
        let mut settings = Settings::default();
        let options = json!({ "secrets": "file", "auditKeepDays": 5, "servers": { "tcpHosts": ["box"] }, "limits": { "tools": 9999 } });
        assert_eq!(settings.overlay(&options), [""; 0]);
        assert!(settings.secrets.file && settings.audit.keep_days == 5 && settings.limits.tools == 9999);
        // The files with the rules of the user are always read.
        assert_eq!(settings.overlay(&json!({ "limits": { "configBytes": 1 } })).len(), 1);
        assert_eq!(settings.limits.config_bytes, Settings::default().limits.config_bytes);
    }

    #[test]
    fn a_missing_file_means_defaults_and_a_folder_is_a_problem() {
        let folder = tempfile::tempdir().unwrap();
        let none = file(&folder.path().join("config.toml"));
        assert_eq!((none.exists, none.settings, none.problems), (false, Settings::default(), Vec::new()));
        let odd = file(folder.path());
        assert_eq!((odd.exists, odd.problems.len()), (true, 1));
    }
}
