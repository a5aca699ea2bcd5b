//! Warnings about valid entries: missing programs, shells, URLs, secrets.

use std::net::IpAddr;
use std::ops::Range;

use super::reader::{Reader, quoted};
use super::secrets::SecretName;
use crate::config::address::{AddressKind, LEADS_TO_METADATA, Target};
use crate::config::problem::{Code, Problem, Span, TextEdit};
use crate::config::spec::Stdio;
use crate::config::tree::{Member, Node};
use crate::config::{expand, risky};
use crate::text::{code_point, find_deceptive, one_line, parse_url};

/// Reports a secret in the file. No message contains its value; the fix removes it from the file.
pub fn raw_secret(reader: &mut Reader<'_>, span: &Span, text: &str, secret: Range<usize>, secret_name: SecretName<'_>) {
    let message = format!("`{}` contains a secret in plain text", reader.here());
    let before = text.get(..secret.start).unwrap_or_default();
    let after = text.get(secret.end..).unwrap_or_default();
    let variable = reader.variables.claim(secret_name, text.get(secret).unwrap_or_default());
    let moved = quoted(&format!("{before}${{env:{variable}}}{after}"));
    reader.report(
        Problem::new(Code::RawSecret, span.clone(), message)
            .help(format!("move it to the variable `{variable}`, or use `${{input:…}}` or `${{keyring:…}}`"))
            .fix(format!("replace with ${{env:{variable}}}"), vec![TextEdit::replace(span.clone(), moved)]),
    );
}

/// Reports a character of a project's launch that would hide or reorder what the user is asked to trust.
pub fn deceptive(reader: &mut Reader<'_>, node: &Node, text: impl Iterator<Item = char>) -> Option<()> {
    let found = find_deceptive(text).filter(|_| reader.scope.needs_trust());
    let Some(c) = found else { return Some(()) };
    let message = format!("`{}` contains {}, which can hide or reorder text; remove it", reader.here(), code_point(c));
    reader.problem(Code::InvisibleText, &node.span, message);
    None
}

/// Reports a missing program, and a shell that runs a script.
pub fn program(reader: &mut Reader<'_>, stdio: &Stdio, span: &Span, enabled: bool) {
    let command = stdio.command.as_str();
    let base = command.rsplit(['/', '\\']).next().unwrap_or_default().to_ascii_lowercase();
    let base = base.strip_suffix(".exe").unwrap_or(&base);
    let runs_text = stdio.args.iter().any(|arg| {
        let short = arg
            .strip_prefix('-')
            .is_some_and(|flags| !flags.starts_with('-') && flags.ends_with('c') && flags.len() <= 4);
        short || arg.eq_ignore_ascii_case("/c") || arg.eq_ignore_ascii_case("-command")
    });
    let shell =
        matches!(base, "sh" | "bash" | "zsh" | "dash" | "ksh" | "fish" | "cmd" | "powershell" | "pwsh") && runs_text;
    if shell {
        let message = format!("`{base}` is a shell and runs its argument as a script, which can execute any command");
        reader.report(
            Problem::new(Code::Shell, span.clone(), message)
                .help("put the program itself in `command` and its arguments in `args`"),
        );
    }
    // If the server has its own PATH, we cannot know where the program is.
    if !enabled || stdio.env.contains_key("PATH") {
        return;
    }
    let values = &reader.values;
    let Some(program) = expand::known_text(command, values) else { return };
    let folder = match &stdio.cwd {
        Some(cwd) => expand::known_text(cwd, values).map(|cwd| expand::resolve(&cwd, reader.folder, values)),
        None => reader.folder.map(Into::into),
    };
    let path = program.contains(['/', '\\']);
    if path && folder.is_none() && !std::path::Path::new(&program).is_absolute() {
        return;
    }
    if !reader.machine.finds(&program, folder.as_deref(), reader.folder) {
        let shown = one_line(command, 80);
        let message = if path {
            format!("`{shown}` does not exist or is not executable")
        } else {
            format!("`{shown}` was not found on the PATH")
        };
        let help = match base {
            "npx" | "npm" | "node" => Some("install Node.js"),
            "uvx" | "uv" => Some("install uv"),
            "docker" => Some("install Docker"),
            _ if command.contains(' ') => Some("put the arguments in `args`, each as a separate string"),
            _ => None,
        };
        let problem = Problem::new(Code::CommandNotFound, span.clone(), message);
        reader.report(match help {
            Some(help) => problem.help(help),
            None => problem,
        });
    }
}

/// Reports variables that can make any program run foreign code, in files that are part of the project.
pub fn risky_variable(reader: &mut Reader<'_>, member: &Member) {
    let name = &member.key.text;
    if let Some(effect) = risky::effect(name).filter(|_| reader.scope.needs_trust()) {
        let (name, can) = (one_line(name, 80), effect.as_str());
        let message = format!("`{name}` can {can}; check it before you trust this server");
        reader.problem(Code::RiskyVariable, &member.key.span, message);
    }
}

/// Checks a URL. Parts that are only known after expansion are not checked.
pub fn url(reader: &mut Reader<'_>, span: &Span, written: &str) -> Option<()> {
    let here = reader.here();
    if written.trim().is_empty() {
        reader.problem(Code::BadUrl, span, format!("`{here}` is empty"));
        return None;
    }
    not_metadata(reader, span, written)?;
    if written.contains("${") {
        return Some(());
    }
    let url = match parse_url(written) {
        Ok(url) => url,
        Err(reason) => {
            let mut problem =
                Problem::new(Code::BadUrl, span.clone(), format!("`{here}` is not a valid URL: {reason}"));
            if let Some(scheme) = missing_scheme(written) {
                problem = with_scheme(problem, span, written, scheme);
            }
            reader.report(problem);
            return None;
        }
    };
    if !matches!(url.scheme(), "http" | "https") {
        // In `localhost:3000`, the host parses as a scheme.
        let problem = match missing_scheme(written) {
            Some(scheme) => {
                let problem = Problem::new(Code::BadUrl, span.clone(), format!("`{here}` must start with `{scheme}`"));
                with_scheme(problem, span, written, scheme)
            }
            None => {
                let message = format!("`{here}` must start with `https://` or `http://`, not `{}:`", url.scheme());
                Problem::new(Code::BadUrl, span.clone(), message)
            }
        };
        reader.report(problem);
        return None;
    }
    let host = url.host_str().unwrap_or_default();
    if url.scheme() == "http" && !loopback(host) {
        let message = format!("plain `http` to `{}` is not encrypted: others can read the traffic", one_line(host, 60));
        let edit = TextEdit::replace(span.clone(), quoted(&written.replacen("http://", "https://", 1)));
        reader.report(Problem::new(Code::PlainHttp, span.clone(), message).fix("change to `https`", vec![edit]));
    }
    Some(())
}

/// Refuses a URL of a project that leads to a metadata service.
pub fn not_metadata(reader: &mut Reader<'_>, span: &Span, url: &str) -> Option<()> {
    let target = Target::of(url).filter(|_| reader.scope.needs_trust());
    if target.is_none_or(|target| target.kind != Some(AddressKind::Metadata)) {
        return Some(());
    }
    let message = format!("`{}` {LEADS_TO_METADATA}", reader.here());
    reader.problem(Code::BlockedAddress, span, message);
    None
}

/// The missing scheme, if adding one makes a valid URL. Servers on this machine rarely use `https`.
fn missing_scheme(written: &str) -> Option<&'static str> {
    if written.contains("://") {
        return None;
    }
    let url = url::Url::parse(&format!("https://{written}")).ok()?;
    Some(if loopback(url.host_str()?) { "http://" } else { "https://" })
}

fn with_scheme(problem: Problem, span: &Span, written: &str, scheme: &str) -> Problem {
    let edit = TextEdit::replace(span.clone(), quoted(&format!("{scheme}{written}")));
    problem.help(format!("URLs start with `{scheme}`")).fix(format!("add `{scheme}`"), vec![edit])
}

/// The host of a URL, if it is another machine.
pub fn other_host(url: &str) -> Option<String> {
    let host = match url::Url::parse(url) {
        Ok(url) => url.host_str()?.to_owned(),
        // A host that contains variables may be any host.
        Err(_) => url.split_once("://")?.1.split(['/', '?', '#']).next().filter(|host| host.contains("${"))?.to_owned(),
    };
    (!loopback(&host)).then_some(host)
}

/// Reports a file of the project that sends one of the user's secrets to another host.
pub fn secret_to_host(reader: &mut Reader<'_>, span: &Span, value: &str, host: &str) {
    use expand::{Piece, Reference, pieces};
    let secret = pieces(value).into_iter().find_map(|piece| match piece {
        Piece::Reference { reference: Reference::Variable { name, .. }, .. } => {
            Some(format!("the environment variable `{name}`"))
        }
        Piece::Reference { reference: Reference::Keyring(name), .. } => Some(format!("`{name}` from your keyring")),
        _ => None,
    });
    if let Some(secret) = secret.filter(|_| reader.scope.needs_trust()) {
        let message = format!("{secret} is sent to `{}`; check this before you trust the server", one_line(host, 80));
        reader.report(Problem::new(Code::SecretToHost, span.clone(), message));
    }
}

pub fn loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || host.to_ascii_lowercase().ends_with(".localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
