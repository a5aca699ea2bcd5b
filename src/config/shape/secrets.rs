//! Finds raw secrets in a file: tokens with a known format, and literals under a key whose name indicates a secret.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::config::expand::{Piece, Reference, pieces};
use crate::config::tree::{Kind, Node};
use crate::text::Secret;

/// Tokens with a recognizable format.
static TOKENS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?x)
        \b(?:
          gh[pousr]_[A-Za-z0-9]{10,} | github_pat_[A-Za-z0-9_]{16,} | glpat-[A-Za-z0-9_-]{10,}
        | sk-[A-Za-z0-9_-]{16,} | (?:sk|rk)_(?:live|test)_[A-Za-z0-9]{10,} | gsk_[A-Za-z0-9]{16,}
        | xox[abeoprs]-[A-Za-z0-9-]{10,} | xapp-[A-Za-z0-9-]{10,}
        | (?:AKIA|ASIA)[A-Z0-9]{16} | AIza[A-Za-z0-9_-]{30,} | ya29\.[A-Za-z0-9_-]{16,}
        | eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*
        | npm_[A-Za-z0-9]{20,} | pypi-[A-Za-z0-9_-]{16,} | hf_[A-Za-z0-9]{20,}
        | SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,} | dop_v1_[a-f0-9]{32,}
        | shp(?:at|ss|ca|pa)_[a-fA-F0-9]{16,} | figd_[A-Za-z0-9_-]{16,} | lin_api_[A-Za-z0-9]{16,}
        | ntn_[A-Za-z0-9]{20,} | tvly-[A-Za-z0-9_-]{16,} | pplx-[A-Za-z0-9]{16,}
        )
        | -----BEGIN\ [A-Z\ ]*PRIVATE\ KEY-----",
    )
    .ok()
});

/// The beginnings of these tokens. The expression is only compiled for a text that contains one of them.
#[rustfmt::skip]
const BEGINNINGS: &[&str] = &[
    "gh", "github_pat_", "glpat-", "sk-", "sk_", "rk_", "gsk_", "xox", "xapp-", "AKIA", "ASIA", "AIza", "ya29.", "eyJ",
    "npm_", "pypi-", "hf_", "SG.", "dop_v1_", "shp", "figd_", "lin_api_", "ntn_", "tvly-", "pplx-", "-----BEGIN",
];

/// The first token with a known format.
fn find_token(text: &str) -> Option<Range<usize>> {
    let is_possible = BEGINNINGS.iter().any(|beginning| text.contains(beginning));
    is_possible.then(|| TOKENS.as_ref()?.find(text).map(|token| token.range())).flatten()
}

/// The part of a text that is a raw secret: a token with a known format, or the whole literal if `name` indicates one.
pub fn find(name: Option<&str>, text: &str) -> Option<Range<usize>> {
    let mut start = 0;
    let mut literal = true;
    for piece in pieces(text) {
        match piece {
            Piece::Text(part) => {
                if let Some(token) = find_token(part) {
                    return Some(start + token.start..start + token.end);
                }
                start += part.len();
            }
            Piece::Reference { span, .. } => {
                literal = false;
                start = span.end;
            }
        }
    }
    let sensitivity = name.map_or(Sensitivity::None, sensitivity);
    if !literal || sensitivity == Sensitivity::None {
        return None;
    }
    let scheme = ["Bearer ", "Basic ", "token ", "Token ", "Bot ", "ApiKey "]
        .into_iter()
        .find(|scheme| text.starts_with(scheme));
    let from = scheme.map_or(0, str::len);
    let value = text.get(from..).unwrap_or_default();
    let flag = matches!(value.to_ascii_lowercase().as_str(), "" | "true" | "false" | "none" | "null");
    let doubtful = value.len() < 8 || value.starts_with(['/', '.', '~']) || value.contains(' ');
    (!flag && (sensitivity == Sensitivity::Sure || !doubtful)).then_some(from..text.len())
}

/// Whether a name indicates a secret value.
pub fn is_named(name: &str) -> bool {
    sensitivity(name) != Sensitivity::None
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sensitivity {
    None,
    /// `…key`: often a secret, sometimes a path or a name.
    Likely,
    Sure,
}

/// How likely the value of a key is a secret: `GITHUB_TOKEN`, `clientSecret`, `--db-password`, `X-Api-Key`.
fn sensitivity(name: &str) -> Sensitivity {
    let words = words(name);
    // `TOKEN_FILE` and `PASSWORD_LENGTH` are about a secret, but are not secrets.
    const ABOUT: &[&str] = &[
        "file", "path", "dir", "url", "uri", "endpoint", "name", "id", "limit", "limits", "length", "count", "max",
        "min", "ttl", "expiry", "type", "env", "header", "prefix", "store", "provider",
    ];
    if words.last().is_some_and(|last| ABOUT.contains(&last.as_str())) {
        return Sensitivity::None;
    }
    const SURE: &[&str] = &[
        "token",
        "secret",
        "secrets",
        "password",
        "passwd",
        "passphrase",
        "pwd",
        "pat",
        "apikey",
        "credential",
        "credentials",
        "authorization",
        "cookie",
    ];
    if words.iter().any(|word| SURE.contains(&word.as_str())) {
        return Sensitivity::Sure;
    }
    match words.last().map(String::as_str) {
        Some("key" | "auth") => Sensitivity::Likely,
        _ => Sensitivity::None,
    }
}

fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for c in name.chars() {
        let new = !c.is_alphanumeric() || (c.is_uppercase() && before.is_lowercase());
        if new {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut()
            && c.is_alphanumeric()
        {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Finds raw secrets in arguments: `--token=x`, `--token` followed by `x`, `-e NAME=x`, `Header: x`, or a token with a
/// known format. Returns the index of the argument, the range in it, and the name that indicates the secret.
pub fn find_in_args(args: &[String]) -> Vec<(usize, Range<usize>, Option<String>)> {
    let mut found = Vec::new();
    let mut flag: Option<String> = None;
    for (index, arg) in args.iter().enumerate() {
        let before = flag.take();
        if let Some((name, value)) = arg.split_once('=').filter(|(name, _)| !name.contains([' ', '/', ':'])) {
            let name = name.trim_start_matches('-');
            let offset = arg.len() - value.len();
            if let Some(span) = find(Some(name), value) {
                found.push((index, span.start + offset..span.end + offset, Some(name.to_owned())));
            }
        } else if let Some((name, value)) = arg.split_once(':').filter(|(name, _)| header(name)) {
            let value = value.trim_start();
            let offset = arg.len() - value.len();
            if let Some(span) = find(Some(name), value) {
                found.push((index, span.start + offset..span.end + offset, Some(name.to_owned())));
            }
        } else if let Some(name) = arg.strip_prefix("--").filter(|name| !name.is_empty()) {
            flag = Some(name.to_owned());
        } else if let Some(span) = find(before.as_deref(), arg) {
            found.push((index, span, before));
        }
    }
    found
}

/// `Authorization: Bearer …`, as an argument of `mcp-remote`.
fn header(name: &str) -> bool {
    sensitivity(name) != Sensitivity::None && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

/// Finds raw secrets in a URL, in order: a password before the host, query parameters whose name indicates a secret, and
/// tokens with a known format. Returns each range with a noun for it.
pub fn find_in_url(url: &str) -> Vec<(Range<usize>, &'static str)> {
    let mut found: Vec<(Range<usize>, &'static str)> = Vec::new();
    let after_scheme = url.find("://").map_or(0, |at| at + 3);
    let authority = url.get(after_scheme..).unwrap_or_default().split(['/', '?', '#']).next().unwrap_or_default();
    if let Some((user, _)) = authority.rsplit_once('@')
        && let Some((_, password)) = user.split_once(':')
        && !password.is_empty()
        && !password.contains("${")
    {
        let end = after_scheme + user.len();
        found.push((end - password.len()..end, "password"));
    }
    let query = url.find('?').map_or(url.len(), |at| at + 1);
    let mut at = query;
    for pair in url.get(query..).unwrap_or_default().split(['&', '#']) {
        if let Some((name, value)) = pair.split_once('=') {
            let start = at + name.len() + 1;
            let key = matches!(name.to_ascii_lowercase().as_str(), "key" | "sig" | "signature")
                && value.len() >= 8
                && !value.contains("${");
            if key {
                found.push((start..start + value.len(), "key"));
            } else if let Some(span) = find(Some(name), value) {
                found.push((start + span.start..start + span.end, "token"));
            }
        }
        at += pair.len() + 1;
    }
    if let Some(token) = find(None, url)
        && !found.iter().any(|(span, _)| span.start <= token.start && token.end <= span.end)
    {
        found.push((token, "token"));
        found.sort_by_key(|(span, _)| span.start);
    }
    found
}

/// Registers every password in the URLs of a text for masking, as in `--db=postgres://me:password@host/`.
pub fn register_passwords(text: &str) {
    for_each_password(text, |password| drop(Secret::new(password)));
}

/// The passwords in the URLs of a text, as they are written and decoded.
pub fn for_each_password(text: &str, mut act: impl FnMut(String)) {
    for (start, _) in text.match_indices("://") {
        let rest = text.get(start + 3..).unwrap_or_default();
        let authority = rest.split(['/', '?', '#', ' ', '\t', '\n', '"', '\'']).next().unwrap_or_default();
        let user = authority.rsplit_once('@').map(|(user, _)| user);
        if let Some((_, password)) = user.and_then(|user| user.split_once(':')).filter(|(_, word)| !word.is_empty()) {
            act(password.to_owned());
            act(percent_decoded(password));
        }
    }
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let code = rest.strip_prefix('%').and_then(|rest| rest.get(..2));
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = rest.get(3..).unwrap_or_default();
            }
            None => {
                bytes.extend_from_slice(c.to_string().as_bytes());
                rest = rest.get(c.len_utf8()..).unwrap_or_default();
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Describes a secret: its server, its key, and the preferred name for its variable.
#[derive(Clone, Copy)]
pub struct SecretName<'a> {
    pub server: &'a str,
    pub name: &'a str,
    pub own: Option<&'a str>,
}

/// The variables for secrets, so that two values never share one. The values are never shown.
#[derive(Default)]
pub struct Variables(BTreeMap<String, Option<String>>);

impl Variables {
    /// The variables that a file refers to. Their values are unknown, so no secret may use their names.
    pub fn used_in(root: Option<&Node>) -> Self {
        let mut variables = Self::default();
        if let Some(root) = root {
            variables.collect(root);
        }
        variables
    }

    fn collect(&mut self, node: &Node) {
        match &node.kind {
            Kind::Text(text) if text.contains("${") => {
                let name = |piece| match piece {
                    Piece::Reference { reference: Reference::Variable { name, .. }, .. } => Some((name, None)),
                    _ => None,
                };
                self.0.extend(pieces(text).into_iter().filter_map(name));
            }
            Kind::List(items) => items.iter().for_each(|item| self.collect(item)),
            Kind::Object(members) => members.iter().for_each(|member| self.collect(&member.value)),
            _ => {}
        }
    }

    /// Returns a variable that is unused or already has this value.
    pub fn claim(&mut self, secret_name: SecretName<'_>, secret: &str) -> String {
        let specific = variable_name(secret_name.server, secret_name.name);
        let numbered = (2..).map(|number| format!("{specific}_{number}"));
        let own = secret_name.own.filter(|name| is_plain(name)).map(str::to_owned);
        let mut candidates = own.into_iter().chain([specific.clone()]).chain(numbered);
        let free = |candidate: &String| self.0.get(candidate).is_none_or(|taken| taken.as_deref() == Some(secret));
        let name = candidates.find(free).unwrap_or(specific);
        self.0.insert(name.clone(), Some(secret.to_owned()));
        name
    }
}

/// Whether a name is valid in `${env:…}`.
fn is_plain(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// A variable name for a secret in a file.
fn variable_name(server: &str, name: &str) -> String {
    let upper = |text: &str| {
        text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect::<String>()
    };
    let name = upper(name.trim_start_matches('-'));
    let name = match name.as_str() {
        "AUTHORIZATION" | "COOKIE" | "" => "TOKEN",
        other => other,
    };
    let variable = format!("{}_{name}", upper(server));
    if variable.starts_with(|c: char| c.is_ascii_digit()) { format!("_{variable}") } else { variable }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, text: &str) -> String {
        find(Some(name), text).map(|span| text[span].to_owned()).unwrap_or_default()
    }

    #[test]
    fn tokens_with_a_known_format_are_found_anywhere() {
        assert_eq!(found("X", "pre ghp_0123456789abcdefghij post"), "ghp_0123456789abcdefghij");
        assert_eq!(found("X", "AKIAIOSFODNN7EXAMPLE"), "AKIAIOSFODNN7EXAMPLE");
        assert!(!found("X", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln").is_empty());
        assert!(!found("X", "xoxb-123456789012-abcdef").is_empty());
        assert_eq!(found("X", "just words, sk-short"), "");
    }

    #[test]
    fn every_known_format_is_found() {
        let formats = [
            "ghp_*",
            "gho_*",
            "ghu_*",
            "ghs_*",
            "ghr_*",
            "github_pat_*",
            "glpat-*",
            "sk-*",
            "sk_live_*",
            "sk_test_*",
            "rk_live_*",
            "rk_test_*",
            "gsk_*",
            "xoxa-*",
            "xoxb-*",
            "xoxe-*",
            "xoxo-*",
            "xoxp-*",
            "xoxr-*",
            "xoxs-*",
            "xapp-*",
            "ya29.*",
            "npm_*",
            "pypi-*",
            "hf_*",
            "SG.*.*",
            "dop_v1_*",
            "shpat_*",
            "shpss_*",
            "shpca_*",
            "shppa_*",
            "figd_*",
            "lin_api_*",
            "ntn_*",
            "tvly-*",
            "pplx-*",
            "AIza*",
            "eyJ*.eyJ*.*",
        ];
        for format in formats {
            let token = format.replace('*', "0123456789abcdef0123456789abcdef");
            assert_eq!(found("X", &format!("pre {token} post")), token, "{format}");
        }
        for token in ["AKIA0123456789ABCDEF", "ASIA0123456789ABCDEF", "-----BEGIN RSA PRIVATE KEY-----"] {
            assert_eq!(found("X", &format!("pre {token} post")), token);
        }
    }

    #[test]
    fn a_literal_under_a_name_that_indicates_a_secret_is_one() {
        assert_eq!(found("DB_PASSWORD", "hunter2"), "hunter2");
        assert_eq!(found("Authorization", "Bearer abc"), "abc");
        assert_eq!(found("clientSecret", "abc"), "abc");
        assert_eq!(found("OPENAI_API_KEY", "abcdefgh1"), "abcdefgh1");
        for (name, text) in [
            ("GITHUB_TOKEN", "${GITHUB_TOKEN}"),
            ("Authorization", "Bearer ${T}"),
            ("MAX_TOKENS", "4096"),
            ("TOKEN_FILE", "/run/x"),
            ("SSH_KEY", "/home/me/.ssh/id"),
            ("USE_TOKEN", "true"),
            ("MONKEY", "abcdefgh1"),
            ("TOKEN", ""),
        ] {
            assert_eq!(found(name, text), "", "{name}={text}");
        }
    }

    #[test]
    fn secrets_in_arguments_and_urls_are_found() {
        let args = |list: &[&str]| find_in_args(&list.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>()).len();
        assert_eq!(args(&["--token", "abc"]), 1);
        assert_eq!(args(&["--api-key=abcdefgh1"]), 1);
        assert_eq!(args(&["-e", "GITHUB_TOKEN=abc"]), 1);
        assert_eq!(args(&["--header", "Authorization: Bearer abc"]), 1);
        assert_eq!(args(&["--header", "Authorization: Bearer ${T}", "http://host:1"]), 0);
        assert_eq!(args(&["-e", "GITHUB_TOKEN", "--token", "${T}", "--token-file", "/x"]), 0);
        let url = |text: &str| {
            find_in_url(text).into_iter().map(|(span, _)| text[span].to_owned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(url("https://me:pw@host/ghp_0123456789abcdef?token=abc"), "pw ghp_0123456789abcdef abc");
        assert_eq!(url("https://host/mcp?a=1&token=abc#x"), "abc");
        assert_eq!(url("https://host/mcp?key=abcdefgh"), "abcdefgh");
        assert_eq!(url("https://host/mcp?token=${T}&page=2"), "");
    }

    #[test]
    fn a_variable_is_named_after_server_and_key() {
        assert_eq!(variable_name("git-hub", "Authorization"), "GIT_HUB_TOKEN");
        assert_eq!(variable_name("x", "--api-key"), "X_API_KEY");
        assert_eq!(variable_name("2x", "token"), "_2X_TOKEN");
    }
}
