//! The environment of a child process: a safe subset of ours, overridden by `envFile` and then by `env`.

use std::collections::BTreeMap;

use super::{ExpandError, Program};
use crate::config::Environment;
use crate::text::{Secret, looks_secret};

/// Variables for every child process. None of them contains a credential of the editor, an agent or another server.
const SAFE: &[&str] = &[
    "HOME",
    "LOGNAME",
    "USER",
    "SHELL",
    "PATH",
    "TERM",
    "LANG",
    "TZ",
    "TMPDIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "DOCKER_HOST",
    "SSH_AUTH_SOCK",
];
/// Never inherited: they contain the working folder of the engine, and some programs use them.
const NEVER_INHERITED: &[&str] = &["PWD", "OLDPWD", "INIT_CWD"];
const SAFE_PREFIXES: &[&str] = &["LC_", "XDG_"];

/// Variables that programs on Windows require.
#[cfg(windows)]
const SAFE_ON_WINDOWS: &[&str] = &[
    "APPDATA",
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "USERNAME",
    "USERPROFILE",
    "WINDIR",
];
#[cfg(not(windows))]
const SAFE_ON_WINDOWS: &[&str] = &[];

/// Common words, which are not masked: this would make logs unreadable without hiding a secret.
const COMMON_VALUES: &[&str] = &[
    "production",
    "development",
    "testing",
    "staging",
    "default",
    "enabled",
    "disabled",
    "verbose",
    "warning",
    "notice",
    "localhost",
    "127.0.0.1",
    "0.0.0.0",
];

/// The complete environment of the child process.
pub fn child_environment(environment: &Environment, program: &Program) -> BTreeMap<String, Secret> {
    let mut child: BTreeMap<String, Secret> = environment
        .iter()
        .filter(|(name, _)| (program.inherit_env && is_inherited(name)) || is_passed_on(name))
        .map(|(name, value)| (name.clone(), Secret::plain(value.clone())))
        .collect();
    for (name, value) in &program.env {
        match value {
            Some(value) => child.insert(name.clone(), value.clone()),
            None => child.remove(name),
        };
    }
    child
}

/// Whether the value of a variable in our environment may be shown: a location, a common word, a short number or a
/// flag.
pub fn harmless(name: &str, value: &str) -> bool {
    // The URL of a proxy may contain a password.
    let proxy = name.to_ascii_lowercase().ends_with("_proxy");
    (is_known(name) && !proxy && !looks_secret(value)) || is_common(value)
}

/// The same for a literal in a file. Its author chooses the name, so only a value that fits a harmless name is one.
pub fn harmless_literal(name: &str, value: &str) -> bool {
    let is_place = value.starts_with(['/', '~', '.']) && !value.contains("://");
    let is_locale = {
        let (language, encoding) = value.split_once('.').unwrap_or((value, ""));
        let word = |text: &str, max: usize| text.len() <= max && text.chars().all(|c| c.is_ascii_alphabetic());
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        language.split(['_', '@']).all(|part| word(part, 8)) && encoding.len() <= 10 && encoding.chars().all(plain)
    };
    let fits = if name.starts_with("LC_") || matches!(name, "LANG" | "LANGUAGE") { is_locale } else { is_place };
    (is_known(name) && fits && !looks_secret(value)) || is_common(value)
}

/// Whether programs use a variable for a location, a locale or a program.
fn is_known(name: &str) -> bool {
    const MORE: &[&str] =
        &["PWD", "EDITOR", "VISUAL", "PAGER", "DISPLAY", "HOSTNAME", "COLORTERM", "SHLVL", "NODE_ENV"];
    is_passed_on(name) || MORE.contains(&name)
}

/// A longer number may be a PIN or a one-time password.
fn is_common(value: &str) -> bool {
    COMMON_VALUES.contains(&value.to_ascii_lowercase().as_str()) || value.len() < 6 && value.parse::<f64>().is_ok()
}

/// Whether a child process with `inheritEnv` gets this variable.
pub fn is_inherited(name: &str) -> bool {
    !NEVER_INHERITED.contains(&name)
}

/// Whether every child process gets this variable.
pub fn is_passed_on(name: &str) -> bool {
    SAFE.contains(&name)
        || SAFE_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || SAFE_ON_WINDOWS.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Parses `NAME=value` lines with `#` comments, an optional `export `, literal single quotes, and double quotes with
/// escapes and several lines. Nothing is expanded.
pub fn parse_env_file(text: &str) -> Result<Vec<(String, String)>, ExpandError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut entries = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with('#') {
            continue;
        }
        let trimmed = trimmed.strip_prefix("export ").unwrap_or(trimmed);
        let wrong = ExpandError::EnvFile { line: number + 1 };
        let Some((name, value)) = trimmed.split_once('=') else { return Err(wrong) };
        let name = name.trim();
        if name.is_empty() || name.contains(|c: char| c.is_whitespace() || c == '\0') || value.contains('\0') {
            return Err(wrong);
        }
        let mut value = value.trim().to_owned();
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
        let value = match quote {
            Some(quote) => loop {
                if let Some(inner) = quoted(&value, quote) {
                    break inner;
                }
                let Some((_, next)) = lines.next() else { return Err(wrong) };
                value.push('\n');
                value.push_str(next);
            },
            None => value.split(" #").next().unwrap_or_default().trim().to_owned(),
        };
        entries.push((name.to_owned(), value));
    }
    Ok(entries)
}

/// The content of a quoted text; `None` if the closing quote is missing.
fn quoted(text: &str, quote: char) -> Option<String> {
    let mut inner = String::new();
    let mut chars = text.chars().skip(1);
    while let Some(c) = chars.next() {
        match c {
            c if c == quote => return Some(inner),
            '\\' if quote == '"' => match chars.next()? {
                'n' => inner.push('\n'),
                'r' => inner.push('\r'),
                't' => inner.push('\t'),
                c @ ('"' | '\\' | '$') => inner.push(c),
                c => inner.extend(['\\', c]),
            },
            c => inner.push(c),
        }
    }
    None
}
