//! How to start or connect to a server: `type` and the keys for each type.

mod remote;

use std::collections::BTreeMap;

use super::keys::{TYPE_ALIASES, TYPES, Table};
use super::reader::{Fields, Reader, quoted, suggest};
use super::secrets::SecretName;
use super::shell_split::shell_split;
use super::{checks, relative_paths, sandbox, secrets};
use crate::config::interop;
use crate::config::problem::{Code, Problem, Span, TextEdit};
use crate::config::spec::{Launch, Stdio};
use crate::config::tree::{Kind, Member, Node, Step};
use remote::remote;

/// An argument list of this size is safe on every kernel.
const MAX_ARGUMENT_BYTES: usize = 128 * 1024;

/// The entry that the launch belongs to.
pub struct LaunchEntry<'a, 'n> {
    pub name: &'a str,
    pub key: &'a Span,
    pub fields: &'a Fields<'n>,
    pub table: &'static Table,
    /// Whether the server will be started. If not, a missing program is not reported.
    pub enabled: bool,
}

pub fn launch(reader: &mut Reader<'_>, entry: &LaunchEntry<'_, '_>) -> Option<Launch> {
    let kind = kind(reader, entry)?;
    let before = reader.errors();
    let launch = match kind {
        "stdio" => Launch::Stdio(stdio(reader, entry)?),
        "tcp" => tcp(reader, entry)?,
        "http" => Launch::Http(remote(reader, entry, kind)?),
        "sse" => Launch::Sse(remote(reader, entry, kind)?),
        "sdk" => Launch::Sdk { name: optional_text(reader, entry, "name")?.unwrap_or_else(|| entry.name.to_owned()) },
        _ => {
            let id = required(reader, entry, "id", kind);
            let remote = remote(reader, entry, kind);
            let id = reader.in_key(id?, |reader| expandable(reader, &id?.value))?;
            Launch::ClaudeAiProxy { id, remote: remote? }
        }
    };
    if reader.errors() > before {
        return None;
    }
    unused(reader, entry, kind);
    Some(launch)
}

/// The type as written, or inferred from the other keys.
fn kind(reader: &mut Reader<'_>, entry: &LaunchEntry<'_, '_>) -> Option<&'static str> {
    let fields = entry.fields;
    if let Some(member) = fields.get("type") {
        return reader.in_key(member, |reader| kind_of(reader, &member.value));
    }
    let found: Vec<_> = [("command", "stdio"), ("url", "http"), ("port", "tcp")]
        .into_iter()
        .filter_map(|(key, kind)| fields.get(key).map(|member| (member, kind)))
        .collect();
    match found.as_slice() {
        [(_, kind)] => Some(kind),
        [] => {
            if !reader.misspelled(fields, &["command", "url", "port", "type"]) {
                let message = format!("`{}` has no `command`, `url` or `port`", reader.here());
                reader.problem(Code::MissingKey, entry.key, message);
            }
            None
        }
        [(first, _), (second, _), ..] => {
            let later = if first.key.span.start < second.key.span.start { second } else { first };
            let (a, b) = (&first.key.text, &second.key.text);
            let message = format!("`{}` has both `{a}` and `{b}`, so its type is unclear", reader.here());
            reader.report(
                Problem::new(Code::ConflictingKeys, later.key.span.clone(), message)
                    .help("remove one of them, or add `type`"),
            );
            None
        }
    }
}

fn kind_of(reader: &mut Reader<'_>, node: &Node) -> Option<&'static str> {
    let text = reader.text(node)?;
    let own = TYPES.iter().find(|known| **known == text).copied();
    let known = own.or_else(|| TYPE_ALIASES.iter().find(|(alias, _)| *alias == text).map(|(_, known)| *known));
    if known.is_none() {
        let message = match text {
            "ws" | "websocket" => "WebSocket servers are not supported".to_owned(),
            _ => format!("unknown type `{}`", crate::text::one_line(text, 40)),
        };
        let problem = Problem::new(Code::UnknownType, node.span.clone(), message);
        let problem = problem.help(format!("expected one of {}", TYPES.join(", ")));
        reader.report(suggest(problem, text, &node.span, TYPES));
    }
    if let (None, Some(better)) = (own, known) {
        reader.old_spelling(text, better, &node.span);
    }
    if known == Some("sse") {
        let message = "the `sse` transport has been deprecated since 2025";
        reader.report(
            Problem::new(Code::DeprecatedSse, node.span.clone(), message)
                .help("most servers also support `http`, at the same or a similar URL")
                .fix("change to `http`", vec![TextEdit::replace(node.span.clone(), quoted("http"))]),
        );
    }
    known
}

/// The member for a key that this type requires. Reports one problem only: not a missing key if it is misspelled, and
/// the type if the entry has the key of another type.
fn required<'n>(
    reader: &mut Reader<'_>,
    entry: &LaunchEntry<'_, 'n>,
    key: &'static str,
    kind: &str,
) -> Option<&'n Member> {
    let fields = entry.fields;
    if let Some(member) = fields.get(key) {
        return Some(member);
    }
    if reader.misspelled(fields, &[key]) {
        return None;
    }
    let here = reader.here();
    let other =
        ["command", "url", "port"].into_iter().filter(|other| *other != key).find_map(|other| fields.get(other));
    match (fields.get("type"), other) {
        (Some(written), Some(other)) if key != "id" => {
            let message = format!("`{here}` is of type `{kind}`, but has `{}` and no `{key}`", other.key.text);
            let meant = match other.key.text.as_str() {
                "command" => "stdio",
                "port" => "tcp",
                _ => "http",
            };
            let edit = TextEdit::replace(written.value.span.clone(), quoted(meant));
            reader.report(
                Problem::new(Code::TypeMismatch, written.value.span.clone(), message)
                    .fix(format!("change the type to `{meant}`"), vec![edit]),
            );
        }
        _ => reader.problem(Code::MissingKey, entry.key, format!("`{here}` is of type `{kind}` and needs `{key}`")),
    }
    None
}

fn optional_text(reader: &mut Reader<'_>, entry: &LaunchEntry<'_, '_>, key: &str) -> Option<Option<String>> {
    match entry.fields.get(key) {
        Some(member) => reader.in_key(member, |reader| expandable(reader, &member.value)).map(Some),
        None => Some(None),
    }
}

/// A string that may contain `${…}`, on one line.
fn expandable(reader: &mut Reader<'_>, node: &Node) -> Option<String> {
    let text = value(reader, node)?;
    checks::deceptive(reader, node, text.chars())?;
    Some(text)
}

/// The same, with line breaks and tabs: an argument may be a script.
fn argument(reader: &mut Reader<'_>, node: &Node) -> Option<String> {
    let text = value(reader, node)?;
    checks::deceptive(reader, node, text.chars().filter(|c| !matches!(c, '\n' | '\t')))?;
    Some(text)
}

/// The same, with any character that a variable can have.
fn value(reader: &mut Reader<'_>, node: &Node) -> Option<String> {
    let Some(text) = node.text().map(str::to_owned) else {
        reader.wrong_string(node);
        return None;
    };
    if text.contains('\0') {
        let message = format!("`{}` contains a NUL character, which cannot be passed to a program", reader.here());
        reader.problem(Code::Nul, &node.span, message);
        return None;
    }
    reader.references(&text, &node.span);
    Some(text)
}

fn stdio(reader: &mut Reader<'_>, entry: &LaunchEntry<'_, '_>) -> Option<Stdio> {
    let command = required(reader, entry, "command", "stdio");
    let mut stdio = Stdio::default();
    let mut nodes: Vec<&Node> = Vec::new();
    let read =
        command.and_then(|member| reader.in_key(member, |reader| command_line(reader, &member.value, &mut nodes)));
    if let Some(member) = entry.fields.get("args") {
        let args = reader.in_key(member, |reader| arguments(reader, &member.value));
        nodes.extend(member.value.items().unwrap_or_default());
        stdio.args = args.unwrap_or_default();
    }
    if let Some(member) = entry.fields.get("env") {
        stdio.env = reader.in_key(member, |reader| environment(reader, entry.name, &member.value)).unwrap_or_default();
    }
    stdio.env_file = optional_text(reader, entry, "envFile").flatten();
    stdio.cwd = optional_text(reader, entry, "cwd").flatten();
    if let Some(member) = entry.fields.get("inheritEnv") {
        stdio.inherit_env = reader.in_key(member, |reader| reader.flag(&member.value)).unwrap_or_default();
    }
    if let Some(member) = entry.fields.get("sandbox") {
        stdio.sandbox = Some(reader.in_key(member, |reader| sandbox::sandbox(reader, &member.value))?);
    }
    let mut words = read?.into_iter();
    stdio.command = words.next()?;
    stdio.args.splice(0..0, words);
    let command = command?;
    if stdio.args.iter().map(|arg| arg.len() + 1).sum::<usize>() > MAX_ARGUMENT_BYTES {
        let place = entry.fields.get("args").unwrap_or(command);
        reader.problem(Code::ArgumentsTooLong, &place.value.span, "the argument list is larger than 128 KiB");
        return None;
    }
    for (index, span, name) in secrets::find_in_args(&stdio.args) {
        let (Some(node), Some(arg)) = (nodes.get(index), stdio.args.get(index)) else { continue };
        let secret_name = SecretName { server: entry.name, name: name.as_deref().unwrap_or("token"), own: None };
        reader.within(Step::Key("args".to_owned()), |reader| {
            reader.within(Step::Index(index), |reader| checks::raw_secret(reader, &node.span, arg, span, secret_name));
        });
    }
    let place = command.value.items().and_then(|items| items.first()).unwrap_or(&command.value).span.clone();
    // Files that we read may also tell agents to start us.
    if interop::is_sidecar(&stdio.command, &stdio.args) {
        let message = "this entry starts mcp-sidecar itself; it is meant for other programs and is ignored here";
        reader.report(Problem::new(Code::Ourselves, place, message));
        return None;
    }
    checks::program(reader, &stdio, &place, entry.enabled);
    if !reader.scope.needs_trust() {
        relative_paths::report(reader, entry, &stdio, &place, &nodes);
    }
    Some(stdio)
}

/// `command` as a string, a list, or the object of older Zed files. Adds the nodes of the arguments to `nodes`.
fn command_line<'n>(reader: &mut Reader<'_>, node: &'n Node, nodes: &mut Vec<&'n Node>) -> Option<Vec<String>> {
    let words = match &node.kind {
        Kind::Text(_) => vec![expandable(reader, node)?],
        Kind::List(items) => {
            nodes.extend(items.iter().skip(1));
            if let Some(program) = items.first() {
                checks::deceptive(reader, program, program.text().unwrap_or_default().chars())?;
            }
            arguments(reader, node)?
        }
        Kind::Object(_) => {
            let path = node.get("path")?;
            let mut words = vec![reader.in_key(path, |reader| expandable(reader, &path.value))?];
            if let Some(args) = node.get("args") {
                nodes.extend(args.value.items().unwrap_or_default());
                words.extend(reader.in_key(args, |reader| arguments(reader, &args.value))?);
            }
            words
        }
        _ => {
            reader.wrong_type(node, "a string, or a list of the program and its arguments");
            return None;
        }
    };
    if words.first().is_none_or(|word| word.trim().is_empty()) {
        let message = format!("`{}` is empty", reader.here());
        reader.problem(Code::MissingKey, &node.span, message);
        return None;
    }
    Some(words)
}

fn arguments(reader: &mut Reader<'_>, node: &Node) -> Option<Vec<String>> {
    let Some(items) = node.items() else {
        match node.text().and_then(shell_split) {
            Some(words) => {
                let message = format!("`{}` must be a list of strings, not a string", reader.here());
                let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
                let edit = TextEdit::replace(node.span.clone(), format!("[{}]", words.join(", ")));
                let problem = Problem::new(Code::WrongType, node.span.clone(), message);
                reader.report(problem.fix("change it to a list", vec![edit]));
            }
            None => reader.wrong_type(node, "a list of strings"),
        }
        return None;
    };
    let read = |(index, item): (usize, &Node)| reader.within(Step::Index(index), |reader| argument(reader, item));
    let words: Vec<Option<String>> = items.iter().enumerate().map(read).collect();
    words.into_iter().collect()
}

fn environment(reader: &mut Reader<'_>, server: &str, node: &Node) -> Option<BTreeMap<String, Option<String>>> {
    let mut env = BTreeMap::new();
    for member in reader.entries(node)? {
        let name = &member.key.text;
        if name.is_empty() || name.contains(['=', '\0']) {
            reader.problem(Code::BadVariable, &member.key.span, "variable names must not be empty or contain `=`");
            continue;
        }
        checks::risky_variable(reader, member);
        let value = reader.in_key(member, |reader| match &member.value.kind {
            Kind::Null => Some(None),
            Kind::Bool(flag) => Some(Some(flag.to_string())),
            Kind::Number(number) => Some(Some(number.to_string())),
            Kind::Text(_) => value(reader, &member.value).map(Some),
            _ => {
                reader.wrong_type(&member.value, "a string, a number, a boolean or null");
                None
            }
        });
        let Some(value) = value else { continue };
        if let (Some(text), Kind::Text(_)) = (&value, &member.value.kind)
            && let Some(span) = secrets::find(Some(name), text)
        {
            // Suggest the same name: the variable can be set in the environment of the engine.
            let secret_name = SecretName { server, name, own: Some(name) };
            reader.in_key(member, |reader| checks::raw_secret(reader, &member.value.span, text, span, secret_name));
        }
        env.insert(name.clone(), value);
    }
    Some(env)
}

fn tcp(reader: &mut Reader<'_>, entry: &LaunchEntry<'_, '_>) -> Option<Launch> {
    let port = required(reader, entry, "port", "tcp");
    let host = optional_text(reader, entry, "host")?.unwrap_or_else(|| "127.0.0.1".to_owned());
    let port = reader.in_key(port?, |reader| self::port(reader, &port?.value))?;
    if let Some(member) = entry.fields.get("host") {
        let url = if host.contains(':') { format!("tcp://[{host}]/") } else { format!("http://{host}/") };
        reader.in_key(member, |reader| checks::not_metadata(reader, &member.value.span, &url))?;
    }
    if let Some(member) = entry.fields.get("host")
        && !host.contains("${")
        && !checks::loopback(&host)
    {
        let message = format!(
            "`{}` is not this machine; to allow the connection, add it to `servers.tcp-hosts` in config.toml",
            crate::text::one_line(&host, 60)
        );
        reader.report(Problem::new(Code::TcpHost, member.value.span.clone(), message));
    }
    Some(Launch::Tcp { host, port })
}

pub fn port(reader: &mut Reader<'_>, node: &Node) -> Option<u16> {
    let port = match &node.kind {
        Kind::Number(number) => number.as_u64().and_then(|number| u16::try_from(number).ok()).filter(|port| *port > 0),
        Kind::Missing => return None,
        _ => None,
    };
    if port.is_none() {
        let message = format!("`{}` must be a whole number from 1 to 65535", reader.here());
        let mut problem = Problem::new(Code::BadPort, node.span.clone(), message);
        if let Some(number) = node.text().and_then(|text| text.parse::<u16>().ok()).filter(|port| *port > 0) {
            problem = problem.fix("remove the quotes", vec![TextEdit::replace(node.span.clone(), number.to_string())]);
        }
        reader.report(problem);
    }
    port
}

/// Reports keys of other types, which have no effect.
fn unused(reader: &mut Reader<'_>, entry: &LaunchEntry<'_, '_>, kind: &str) {
    for (name, member) in entry.fields.iter() {
        let Some(key) = entry.table.key(name) else { continue };
        // mcphub files have `name` for any type, because mcphub shows it.
        if key.types.is_empty() || key.types.contains(&kind) || name == "name" {
            continue;
        }
        let message = format!("`{}` has no effect for a server of type `{kind}`", member.key.text);
        reader.report(Problem::new(Code::UnusedKey, member.key.span.clone(), message).unnecessary());
    }
}
