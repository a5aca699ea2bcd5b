//! One entry of `servers`.

use std::time::Duration;

use super::keys::{DEV, FALLBACK, SERVER};
use super::launch::{self, LaunchEntry};
use super::reader::{Fields, Reader};
use super::{EntrySpec, RestrictionSpec, tools};
use crate::config::problem::{Code, Problem, Severity, TextEdit};
use crate::config::spec::{Dev, Launch, ServerSpec};
use crate::config::tree::{Kind, Member, Node};

/// Larger numbers are milliseconds, as Claude Code and Copilot write timeouts.
pub const MIN_AS_MILLISECONDS: Duration = Duration::from_secs(1000);
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// Reads one entry. Returns `None` after an error, which has been reported. A mistake in `tools` does not disable the
/// server: it denies the affected tools until it is fixed.
pub fn server(reader: &mut Reader<'_>, member: &Member) -> Option<EntrySpec> {
    let before = reader.errors();
    let mut fields = reader.object(&member.value, &SERVER)?;
    flatten_transport(reader, &mut fields);
    let written_enabled = enabled(reader, &fields);
    if restricts(&fields) {
        // A mistake must not enable what the author wanted to disable.
        let enabled = if reader.errors() > before { Some(false) } else { written_enabled };
        let tools = reader.in_restriction(|reader| tools::all(reader, &fields));
        return Some(EntrySpec::Restriction(RestrictionSpec { enabled, tools }));
    }
    let enabled = written_enabled.unwrap_or(true);
    let name = member.key.text.as_str();
    let entry = LaunchEntry { name, key: &member.key.span, fields: &fields, table: &SERVER, enabled };
    let launch = launch::launch(reader, &entry);
    let fallback = fields
        .get("fallback")
        .and_then(|member| reader.in_key(member, |reader| fallback(reader, name, member, enabled)));
    let auto_start =
        fields.get("autoStart").and_then(|member| reader.in_key(member, |reader| reader.flag(&member.value)));
    let description = fields
        .get("description")
        .and_then(|member| reader.in_key(member, |reader| reader.text(&member.value).map(str::to_owned)));
    let startup_timeout =
        fields.get("startupTimeout").and_then(|member| reader.in_key(member, |reader| seconds(reader, &member.value)));
    let timeout =
        fields.get("timeout").and_then(|member| reader.in_key(member, |reader| seconds(reader, &member.value)));
    let timeout = timeout.or_else(|| {
        let member = fields.get("request_timeout_ms")?;
        reader.in_key(member, |reader| milliseconds(reader, &member.value))
    });
    let idle_timeout =
        fields.get("idleTimeout").and_then(|member| reader.in_key(member, |reader| seconds(reader, &member.value)));
    let dev = fields.get("dev").and_then(|member| reader.in_key(member, |reader| dev(reader, &member.value)));
    let failed = reader.errors() > before;
    let tools = tools::all(reader, &fields);
    if failed {
        return None;
    }
    Some(EntrySpec::Server(Box::new(ServerSpec {
        launch: launch?,
        fallback,
        enabled,
        auto_start: auto_start.unwrap_or(true),
        description,
        startup_timeout,
        timeout,
        idle_timeout,
        tools,
        dev,
    })))
}

/// Whether the entry only disables a server or restricts its tools, so that it needs no launch.
fn restricts(fields: &Fields<'_>) -> bool {
    let is_limit = |key: &str| matches!(key, "enabled" | "disabled" | "tools" | "disabled_tools" | "enabled_tools");
    let misspelled = ["command", "url", "port", "type"].iter().any(|key| fields.misspelled(key).is_some());
    let may_restrict = |(key, _): (&'static str, &Member)| is_limit(key) || key == "description";
    !misspelled && fields.iter().all(may_restrict) && fields.iter().any(|(key, _)| is_limit(key))
}

/// Newer Cline files have the launch in an object: `"transport": { "type": …, … }`.
fn flatten_transport<'n>(reader: &mut Reader<'_>, fields: &mut Fields<'n>) {
    let Some(member) =
        fields.get("type").filter(|member| member.key.text == "transport" && member.value.members().is_some())
    else {
        return;
    };
    fields.remove("type");
    let Some(inner) = reader.in_key(member, |reader| reader.object(&member.value, &FALLBACK)) else { return };
    for (name, member) in inner.iter() {
        if !fields.has(name) {
            fields.insert(name, member);
        }
    }
}

/// `None` if the entry does not say it.
fn enabled(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<bool> {
    let mut flag = |key: &str| {
        let member = fields.get(key)?;
        Some((member, reader.in_key(member, |reader| reader.flag(&member.value))?))
    };
    let (enabled, disabled) = (flag("enabled"), flag("disabled"));
    if let (Some((_, true)), Some((member, true))) = (enabled, disabled) {
        let message = "`enabled` and `disabled` contradict each other; `disabled` takes precedence";
        let problem = Problem::new(Code::ConflictingKeys, member.key.span.clone(), message);
        reader.report(problem.severity(Severity::Warning));
    }
    match (enabled, disabled) {
        (None, None) => None,
        (enabled, disabled) => {
            Some(enabled.is_none_or(|(_, enabled)| enabled) && !disabled.is_some_and(|(_, disabled)| disabled))
        }
    }
}

fn fallback(reader: &mut Reader<'_>, name: &str, member: &Member, enabled: bool) -> Option<Launch> {
    let fields = reader.object(&member.value, &FALLBACK)?;
    launch::launch(reader, &LaunchEntry { name, key: &member.key.span, fields: &fields, table: &FALLBACK, enabled })
}

/// A duration in seconds. A number that is too large for seconds is read as milliseconds and reported.
fn seconds(reader: &mut Reader<'_>, node: &Node) -> Option<Duration> {
    let number = number(reader, node, "a number of seconds")?;
    if number < MIN_AS_MILLISECONDS.as_secs_f64() {
        return duration(reader, node, number);
    }
    let read = duration(reader, node, number / 1000.0)?;
    if read >= MIN_AS_MILLISECONDS {
        // Such a long timeout cannot be written in seconds, so there is nothing to report.
        return Some(read);
    }
    let message = format!("`{}` is in seconds; {number} was read as milliseconds", reader.here());
    let edit = TextEdit::replace(node.span.clone(), (number / 1000.0).to_string());
    reader
        .report(Problem::new(Code::Milliseconds, node.span.clone(), message).fix("convert it to seconds", vec![edit]));
    Some(read)
}

fn milliseconds(reader: &mut Reader<'_>, node: &Node) -> Option<Duration> {
    let number = number(reader, node, "a number of milliseconds")?;
    duration(reader, node, number / 1000.0)
}

fn number(reader: &mut Reader<'_>, node: &Node, wanted: &str) -> Option<f64> {
    if let Kind::Number(number) = &node.kind {
        return number.as_f64();
    }
    let digits = node.text().map(|text| text.trim_end_matches(['s', ' '])).filter(|text| text.parse::<f64>().is_ok());
    match digits {
        Some(digits) => {
            let message = format!("`{}` must be {wanted}, not a string", reader.here());
            let edit = TextEdit::replace(node.span.clone(), digits);
            reader.report(
                Problem::new(Code::WrongType, node.span.clone(), message).fix("change it to a number", vec![edit]),
            );
        }
        None => reader.wrong_type(node, wanted),
    }
    None
}

/// Whether a timeout can be this long.
pub fn is_timeout(duration: &Duration) -> bool {
    !duration.is_zero() && *duration <= MAX_TIMEOUT
}

fn duration(reader: &mut Reader<'_>, node: &Node, seconds: f64) -> Option<Duration> {
    let duration = Duration::try_from_secs_f64(seconds).ok().filter(is_timeout);
    if duration.is_none() {
        let message = format!("`{}` must be greater than 0 and at most one day", reader.here());
        reader.problem(Code::BadDuration, &node.span, message);
    }
    duration
}

fn dev(reader: &mut Reader<'_>, node: &Node) -> Option<Dev> {
    let fields = reader.object(node, &DEV)?;
    let member = fields.get("watch")?;
    let watch = reader.in_key(member, |reader| {
        let globs = reader.text_or_texts(&member.value)?;
        globs.iter().try_for_each(|glob| tools::glob(reader, glob, &member.value.span))?;
        Some(globs)
    })?;
    Some(Dev { watch })
}
