//! Turns errors of libraries into messages for users: what was expected, and what was found.

use std::io;

use url::{ParseError, Url};

use super::one_line;

/// Parses a URL. The error says what is wrong with it.
pub fn parse_url(text: &str) -> Result<Url, &'static str> {
    Url::parse(text).map_err(|error| match error {
        ParseError::RelativeUrlWithoutBase | ParseError::RelativeUrlWithCannotBeABaseBase => {
            "it must start with `https://` or `http://`"
        }
        ParseError::EmptyHost => "the host is missing",
        ParseError::InvalidPort => "the port must be a number from 0 to 65535",
        ParseError::InvalidIpv4Address => "the host is not a valid IPv4 address",
        ParseError::InvalidIpv6Address => "the host is not a valid IPv6 address",
        ParseError::IdnaError | ParseError::InvalidDomainCharacter => {
            "the host contains a character that is not allowed"
        }
        ParseError::Overflow => "it is too long",
        _ => "it cannot be parsed",
    })
}

/// Why a regular expression is not valid. The library's message quotes the expression over several lines.
pub fn regex_reason(error: &regex::Error) -> String {
    let regex::Error::Syntax(message) = error else { return "it is too large".to_owned() };
    let last = message.lines().last().unwrap_or_default();
    match last.trim_start_matches("error: ") {
        "unclosed group" => "a `(` is not closed".to_owned(),
        "unopened group" => "a `)` has no `(`".to_owned(),
        "unclosed character class" => "a `[` is not closed".to_owned(),
        "repetition operator missing expression" => "there is nothing to repeat before `*`, `+`, `?` or `{`".to_owned(),
        "incomplete escape sequence, reached end of pattern prematurely" => {
            "there is nothing after the last `\\`".to_owned()
        }
        other => one_line(other, 120),
    }
}

/// Why TOML cannot be parsed: the first line of the library's message, or better words for it.
pub fn toml_reason(message: &str) -> String {
    match message.lines().next().unwrap_or_default() {
        first if first.starts_with("string values must be quoted") || first.starts_with("invalid boolean") => {
            "expected a value; text needs quotes".to_owned()
        }
        first if first.starts_with("invalid basic string") => "the closing quote of a string is missing".to_owned(),
        _ => message.replace('\n', ", "),
    }
}

/// Why a file, a folder or a socket cannot be used, without the number of the error.
pub fn io_reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "it does not exist".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::AlreadyExists => "it already exists".to_owned(),
        io::ErrorKind::AddrInUse => "the port is in use".to_owned(),
        io::ErrorKind::InvalidData => "it is not UTF-8".to_owned(),
        _ => {
            let text = error.to_string();
            let text = text.split(" (os error").next().unwrap_or_default();
            let mut letters = text.chars();
            letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
        }
    }
}

/// Why JSON does not have the expected form.
pub fn json_reason(error: &serde_json::Error) -> String {
    if error.is_syntax() || error.is_eof() {
        return match error.is_eof() {
            true => "the JSON ends too early".to_owned(),
            false => format!("invalid JSON at line {}, column {}", error.line(), error.column()),
        };
    }
    let text = error.to_string();
    let text = text.split(" at line ").next().unwrap_or_default();
    let mismatch = text.strip_prefix("invalid type: ").or_else(|| text.strip_prefix("invalid value: "));
    if let Some((found, expected)) = mismatch.and_then(|rest| rest.split_once(", expected ")) {
        return format!("expected {}, found {}", noun(expected), noun(found));
    }
    if let Some(field) = text.strip_prefix("missing field ") {
        return format!("{field} is missing");
    }
    match text.strip_prefix("unknown variant ").or_else(|| text.strip_prefix("unknown field ")) {
        Some(rest) => rest.replacen(", expected one of ", " is not one of ", 1).replacen(", expected ", " is not ", 1),
        None => text.to_owned(),
    }
}

/// A type or a value as users know it.
fn noun(written: &str) -> String {
    let word = written.split([' ', '`', '"']).next().unwrap_or_default();
    match word {
        "i8" | "i16" | "i32" | "i64" | "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "struct" | "map" => "an object".to_owned(),
        "sequence" | "tuple" => "a list".to_owned(),
        "string" => "a string".to_owned(),
        "integer" | "floating" => format!("the number {}", written.split('`').nth(1).unwrap_or_default()),
        "boolean" => written.split('`').nth(1).unwrap_or("a boolean").to_owned(),
        _ => match written {
            "a sequence" => "a list".to_owned(),
            "a map" => "an object".to_owned(),
            _ => one_line(written, 120),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_url_error_says_what_is_wrong() {
        let error = |text: &str| parse_url(text).unwrap_err();
        assert_eq!(error("example.test/mcp"), "it must start with `https://` or `http://`");
        assert_eq!(error("https://"), "the host is missing");
        assert_eq!(error("https://example.test:x/"), "the port must be a number from 0 to 65535");
        assert_eq!(error("https://1.2.3.999/"), "the host is not a valid IPv4 address");
        assert_eq!(error("https://[::g]/"), "the host is not a valid IPv6 address");
        assert_eq!(error("https://exam ple.test/"), "the host contains a character that is not allowed");
    }

    #[test]
    fn a_regex_error_says_what_is_wrong() {
        let error = |text: &str| regex_reason(&regex::Regex::new(text).unwrap_err());
        assert_eq!(error("(a"), "a `(` is not closed");
        assert_eq!(error("a)"), "a `)` has no `(`");
        assert_eq!(error("[a"), "a `[` is not closed");
        assert_eq!(error("*a"), "there is nothing to repeat before `*`, `+`, `?` or `{`");
        assert_eq!(error("(?=a)"), "look-around, including look-ahead and look-behind, is not supported");
        assert_eq!(error("a{1000}{1000}{1000}"), "it is too large");
    }

    #[test]
    fn a_toml_error_says_what_is_wrong() {
        let error = |text: &str| toml_reason(toml::from_str::<toml::Table>(text).unwrap_err().message());
        assert_eq!(error("x ="), "expected a value; text needs quotes");
        assert_eq!(error("x = file"), "expected a value; text needs quotes");
        assert_eq!(error("x = \"a"), "the closing quote of a string is missing");
        assert_eq!(error("[x"), "unclosed table, expected `]`");
    }

    #[test]
    fn an_io_error_has_no_number() {
        let folder = tempfile::tempdir().unwrap();
        let missing = std::fs::read(folder.path().join("missing")).unwrap_err();
        assert_eq!(io_reason(&missing), "it does not exist");
        let directory = std::fs::read(folder.path()).unwrap_err();
        assert_eq!(io_reason(&directory), "is a directory");
    }

    #[test]
    fn a_json_error_says_what_was_expected() {
        #[derive(Debug, serde::Deserialize)]
        #[serde(rename_all = "lowercase")]
        enum Kind {
            One,
            Two,
        }
        fn error<T: serde::de::DeserializeOwned + std::fmt::Debug>(text: &str) -> String {
            json_reason(&serde_json::from_str::<T>(text).unwrap_err())
        }
        assert_eq!(error::<u16>("\"x\""), "expected a whole number, found a string");
        assert_eq!(error::<u16>("-1"), "expected a whole number, found the number -1");
        assert_eq!(error::<bool>("[]"), "expected a boolean, found a list");
        assert_eq!(error::<BTreeMap<String, u8>>("true"), "expected an object, found true");
        assert_eq!(error::<Kind>("\"three\""), "`three` is not `one` or `two`");
        assert_eq!(error::<serde_json::Value>("{x"), "invalid JSON at line 1, column 2");
        assert_eq!(error::<bool>("[tru"), "expected a boolean, found a list");
        assert_eq!(error::<Vec<bool>>("[true"), "the JSON ends too early");
    }
}
