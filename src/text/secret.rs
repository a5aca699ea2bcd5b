//! Secrets: a type that cannot be printed, and masking by value for text that may contain one.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, RwLock};

use serde_json::Value;

use super::escapes;
use super::known_secrets::{Finder, KnownSecrets, Origin};

/// Shown instead of a secret.
pub const MASK: &str = "•••";

/// All secret values of this process. There is one registry, because a secret of one server may appear in the output of
/// another. Private to this file and never held across an await.
static KNOWN: RwLock<KnownSecrets> = RwLock::new(KnownSecrets::new());

/// A value that cannot be printed: its `Debug` shows `•••`, it has no `Display`, and it is not `Serialize`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps the value and registers it for masking.
    pub fn new(value: impl Into<String>) -> Self {
        Self::register(Origin::Used, value.into())
    }

    /// The same for a value that is replaced now and then, such as a token. Only the newest values of this name are masked.
    pub fn replacing(name: &str, value: impl Into<String>) -> Self {
        Self::register(Origin::Named(name), value.into())
    }

    /// The same for a value in a config file that no server has got yet.
    pub fn written(value: impl Into<String>) -> Self {
        Self::register(Origin::Written, value.into())
    }

    fn register(origin: Origin<&str>, value: String) -> Self {
        if let Ok(mut known) = KNOWN.write() {
            known.add(origin, &value);
        }
        Self(value)
    }

    /// Wraps a value that is not secret (a path, a flag), or that is registered elsewhere, where the type requires a `Secret`.
    pub fn plain(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value itself, for the code that passes it to a server.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

/// Masks every known secret in `text`, even if it is escaped or encoded. Everything that is logged, shown or stored
/// passes through here.
pub fn mask(text: &str) -> Cow<'_, str> {
    let Ok(found) = found(text) else { return Cow::Borrowed(MASK) };
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut masked = String::with_capacity(text.len());
    let mut end = 0;
    for Range { start, end: next } in found {
        masked.push_str(text.get(end..start).unwrap_or_default());
        masked.push_str(MASK);
        end = next;
    }
    masked.push_str(text.get(end..).unwrap_or_default());
    Cow::Owned(masked)
}

/// The same for every string of a JSON value, including keys, and for numbers that are secrets.
pub fn mask_value(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(mask(text).into_owned()),
        Value::Array(items) => Value::Array(items.iter().map(mask_value).collect()),
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(key, value)| (mask(key).into_owned(), mask_value(value))).collect())
        }
        Value::Number(number) if holds_secret(&number.to_string()) => Value::from(MASK),
        other => other.clone(),
    }
}

pub fn holds_secret(text: &str) -> bool {
    match finder() {
        Ok(finder) if finder.is_empty() => false,
        Ok(finder) => finder.is_match(text.as_bytes()) || escapes::any(text, |read| finder.is_match(read)),
        Err(()) => true,
    }
}

/// Whether a literal has the format of a credential: the prefixes of well-known tokens.
pub fn looks_secret(text: &str) -> bool {
    const PREFIXES: [&str; 22] = [
        "sk-",
        "sk_live_",
        "rk_live_",
        "ghp_",
        "gho_",
        "ghu_",
        "ghs_",
        "ghr_",
        "github_pat_",
        "glpat-",
        "xoxb-",
        "xoxp-",
        "xoxa-",
        "xapp-",
        "AKIA",
        "ASIA",
        "AIza",
        "npm_",
        "hf_",
        "pypi-",
        "eyJ",
        "lin_api_",
    ];
    let long = |rest: &str| {
        let run = rest.chars().take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')).count();
        run >= 12
    };
    text.contains("-----BEGIN") || PREFIXES.iter().any(|prefix| text.split(prefix).skip(1).any(long))
}

fn finder() -> Result<Arc<Finder>, ()> {
    let built = KNOWN.read().map_err(|_| ())?.finder();
    let finder = match built {
        Some(finder) => finder,
        None => KNOWN.write().map_err(|_| ())?.build_finder(),
    };
    if finder.is_broken { Err(()) } else { Ok(finder) }
}

/// The ranges of secrets in `text`. Overlapping ranges are joined, so that no part of a secret remains.
/// `Err` if the registry cannot be read, in which case nothing may be shown.
fn found(text: &str) -> Result<Vec<Range<usize>>, ()> {
    let finder = finder()?;
    if finder.is_empty() {
        return Ok(Vec::new());
    }
    let find = |text: &[u8]| finder.find(text).collect();
    let mut found: Vec<Range<usize>> = find(text.as_bytes());
    found.extend(escapes::places(text, find));
    found.sort_by_key(|range| range.start);
    let mut joined: Vec<Range<usize>> = Vec::with_capacity(found.len());
    for range in found {
        match joined.last_mut() {
            Some(last) if range.start < last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    Ok(joined)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_never_shown() {
        let secret = Secret::new("hunter2-hunter2");
        assert_eq!(format!("{secret:?}"), "•••");
        assert_eq!(mask("token=hunter2-hunter2;"), "token=•••;");
        assert_eq!(mask("nothing here"), "nothing here");
        assert!(holds_secret("xhunter2-hunter2x"));
        assert!(!holds_secret("hunter2"));
    }

    #[test]
    fn a_secret_inside_a_longer_one_is_masked_completely() {
        Secret::new("abcdef-short");
        Secret::new("abcdef-short-and-longer");
        assert_eq!(mask("x abcdef-short-and-longer y"), "x ••• y");
    }

    #[test]
    fn overlapping_secrets_are_masked_completely() {
        Secret::new("overlap-one-two");
        Secret::new("two-three-overlap");
        assert_eq!(mask("<overlap-one-two-three-overlap>"), "<•••>");
    }

    #[test]
    fn a_secret_is_found_when_it_is_escaped_or_encoded() {
        Secret::new("quo\"ted/and+more secret");
        assert_eq!(mask(r#"{"a":"quo\"ted/and+more secret"}"#), r#"{"a":"•••"}"#);
        assert_eq!(mask("https://x/?k=quo%22ted%2Fand%2Bmore%20secret&b"), "https://x/?k=•••&b");
        // base64 of `user:` and the secret: only the character that depends on both remains.
        let header = "Basic dXNlcjpxdW8idGVkL2FuZCttb3JlIHNlY3JldA==";
        assert!(mask(header).contains(MASK), "{}", mask(header));
    }

    #[test]
    fn a_secret_is_found_however_it_is_escaped() {
        Secret::new("tok/en-of-escapes");
        assert_eq!(mask(r#"{"a":"tok\/en-of-escapes"}"#), r#"{"a":"•••"}"#);
        assert_eq!(mask(r#"{"a":"\u0074ok/en-of-esc\u0061pes!"}"#), r#"{"a":"•••!"}"#);
        assert_eq!(mask("GET /%74%6f%6b/en-of%2Descapes?b=%20"), "GET /•••?b=%20");
        assert!(holds_secret(r#"["\u0074ok\/en-of-escapes"]"#));
    }

    #[test]
    fn a_secret_is_found_in_hex_and_across_lines() {
        Secret::new("hexed-secret-1");
        assert_eq!(mask("x 68657865642d7365637265742d31 y"), "x ••• y");
        assert_eq!(mask("x 68657865642D7365637265742D31 y"), "x ••• y");
        assert_eq!(mask(r"\x68\x65xed-secret-1!"), "•••!");
        assert_eq!(mask("a hexed-\n   secret-1 b"), "a ••• b");
        assert_eq!(mask("a hexed-\r\r secret-1 b"), "a ••• b");
        assert!(holds_secret(r#"{"a":"hexed-\nsecret-1"}"#) && holds_secret(r#"{"a":"hexed-\rsecret-1"}"#));
    }

    #[test]
    fn values_are_masked_in_keys_strings_and_numbers() {
        Secret::new("8675309123");
        let value = serde_json::json!({ "n": 8675309123u64, "8675309123": ["a 8675309123"], "ok": 1 });
        assert_eq!(mask_value(&value).to_string(), r#"{"n":"•••","•••":["a •••"],"ok":1}"#);
    }

    #[test]
    fn known_token_formats_look_secret_and_words_do_not() {
        assert!(looks_secret("--key=ghp_abcdefghij0123456789"));
        assert!(looks_secret("-----BEGIN PRIVATE KEY-----"));
        assert!(!looks_secret("task-runner"));
        assert!(!looks_secret("risk-assessment"));
    }
}
