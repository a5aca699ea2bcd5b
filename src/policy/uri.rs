//! Compares the URI of a resource with the pattern of a rule.
//!
//! A server may read a URI in another way than we do: it decodes it, resolves `..`, or ignores case. A pattern therefore
//! matches for certain only if the URI is plain, so that everyone reads it alike, and surely does not match only if it
//! matches in no reading. Otherwise it is unknown, and the rule can only restrict.

use globset::{Glob, GlobMatcher};
use regex::RegexBuilder;

use super::condition::Truth;
use super::glob::NameGlob;
use crate::text::{glob, has_invisible};

/// How often a URI is decoded. More layers than this have no purpose but to hide something.
const MAX_DECODED: usize = 4;
/// A longer template matches nothing.
const MAX_TEMPLATE: usize = 4_096;
const MAX_TEMPLATE_BYTES: usize = 1 << 20;
/// Characters that Unicode treats as another form of `.`, `/`, `\`, `:` and `%`.
const LOOKALIKES: &str = "\u{2024}\u{2025}\u{2026}\u{2044}\u{2215}\u{2216}\u{29f8}\u{fe52}\u{fe55}\u{fe68}\u{fe6a}\u{ff05}\u{ff0e}\u{ff0f}\u{ff1a}\u{ff3c}";

/// The part of a rule's pattern after `resource:`.
#[derive(Debug)]
pub struct UriPattern {
    text: String,
    glob: NameGlob,
    /// For the readings of a URI.
    loose: Vec<GlobMatcher>,
}

impl UriPattern {
    /// A URI, a glob, or a template as the server lists it.
    pub fn new(text: &str) -> Self {
        let build = |text: &str| glob(text, |glob| glob.case_insensitive(true)).ok().or_else(|| literal(text));
        Self { text: text.to_owned(), glob: NameGlob::new(text), loose: loose(&with_wildcards(text), build) }
    }

    pub fn literal(uri: &str) -> Self {
        Self { text: uri.to_owned(), glob: NameGlob::Literal(uri.to_owned()), loose: loose(uri, literal) }
    }

    /// `template` is the template of the server that the URI is an instance of.
    pub fn matches(&self, uri: &str, template: Option<&str>) -> Truth {
        if self.text == uri {
            return Truth::Yes;
        }
        if is_plain(uri) && (template == Some(&self.text) || self.glob.is_match(uri)) {
            return Truth::Yes;
        }
        let Some(readings) = readings(uri) else { return Truth::Unknown };
        let matches = |reading: &String| self.loose.iter().any(|glob| glob.is_match(reading));
        if template == Some(&self.text) || readings.iter().any(matches) { Truth::Unknown } else { Truth::No }
    }
}

/// The globs for readings: as written, and decoded.
fn loose(pattern: &str, build: impl Fn(&str) -> Option<Glob>) -> Vec<GlobMatcher> {
    let decoded = decode(pattern);
    let texts = [Some(pattern.to_owned()), decoded].into_iter().flatten().flat_map(|text| [normal(&text), text]);
    texts.filter_map(|text| build(&text)).map(|glob| glob.compile_matcher()).collect()
}

/// A glob that matches only this text. It needs no limits: it has no groups, and is compiled in linear time. One of the
/// readings that it is compared with is in lower case.
fn literal(text: &str) -> Option<Glob> {
    Glob::new(&globset::escape(text)).ok()
}

/// `file:///{+path}` as `file:///*`. A group with a comma and without an operator is a list of alternatives.
fn with_wildcards(pattern: &str) -> String {
    let mut wild = String::new();
    let mut rest = pattern;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((inside, behind)) = after.split_once('}') else { break };
        wild.push_str(before);
        if inside.contains(',') && !inside.starts_with(OPERATORS) {
            wild.push_str(&format!("{{{inside}}}"));
        } else {
            wild.push('*');
        }
        rest = behind;
    }
    wild + rest
}

/// The operators of RFC 6570.
const OPERATORS: [char; 7] = ['+', '#', '.', '/', ';', '?', '&'];

/// Whether everyone reads this URI alike: nothing encoded, no `.` and `..`, nothing empty, a scheme in lower case.
pub fn is_plain(uri: &str) -> bool {
    let Some((scheme, rest)) = uri.split_once(':') else { return false };
    let path = rest.strip_prefix("//").map_or(rest, |rest| rest.strip_prefix('/').unwrap_or(rest));
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._~:/?#@!$&'()*+,;=".contains(c);
    let segment = |segment: &str| !segment.is_empty() && segment != "." && !segment.starts_with("..");
    let in_order = path.trim_end_matches('/').split(['/', '?', '#', '&', '=']).all(segment);
    let is_scheme = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "+-.".contains(c);
    scheme.starts_with(|c: char| c.is_ascii_lowercase())
        && scheme.chars().all(is_scheme)
        && rest.chars().all(plain)
        && (in_order || path.is_empty())
        && !path.ends_with("//")
}

/// All ways to read a URI. `None` if there may be more than we know.
fn readings(uri: &str) -> Option<Vec<String>> {
    let mut stages = vec![uri.to_owned()];
    // Parsers of the web also drop tabs, read `\` as `/` and numbers as addresses.
    if let Ok(mut parsed) = url::Url::parse(uri) {
        parsed.set_username("").ok();
        parsed.set_password(None).ok();
        stages.push(parsed.to_string());
    }
    let mut last = uri.to_owned();
    for round in 0.. {
        check(&last)?;
        let decoded = decode(&last)?;
        if decoded == last {
            break;
        }
        if round == MAX_DECODED {
            return None;
        }
        stages.push(decoded.clone());
        last = decoded;
    }
    let with_parts = |text: String| {
        let before = |end: char| text.split_once(end).map(|(before, _)| before.to_owned());
        let (fragment, query) = (before('#'), before('?'));
        [Some(text), fragment, query].into_iter().flatten().collect::<Vec<_>>()
    };
    Some(stages.into_iter().flat_map(with_parts).flat_map(|text| [normal(&text), text]).collect())
}

/// Whether the text is a URI without characters that programs drop or replace.
fn check(uri: &str) -> Option<()> {
    let scheme = uri.split_once(':')?.0;
    let is_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    let known = scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(is_scheme);
    let odd = |c: char| c.is_control() || (c.is_whitespace() && c != ' ') || LOOKALIKES.contains(c);
    (known && uri.trim() == uri && !uri.contains(odd) && !has_invisible(uri)).then_some(())
}

/// The text with `%2f` and the like decoded once. `None` if a `%` is something else, or the result is not UTF-8.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let code = rest.get(..2).filter(|code| code.iter().all(u8::is_ascii_hexdigit))?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(code).ok()?, 16).ok()?);
        rest = rest.get(2..)?;
    }
    String::from_utf8(bytes).ok()
}

/// The URI in lower case with single slashes, without `.`, `..` and the host of a file: `file:/etc/passwd`.
fn normal(uri: &str) -> String {
    let lower = uri.to_lowercase().replace('\\', "/");
    let Some((scheme, mut rest)) = lower.split_once(':') else { return lower };
    if scheme == "file"
        && let Some(host) = rest.strip_prefix("//")
    {
        rest = host.find('/').and_then(|start| host.get(start..)).unwrap_or_default();
    }
    let mut segments: Vec<&str> = Vec::new();
    for segment in rest.split('/').filter(|segment| !segment.is_empty() && *segment != ".") {
        match segment {
            ".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    format!("{scheme}:/{}", segments.join("/"))
}

/// Whether a URI is an instance of a template. Values of a variable without an operator contain no `/`, `?` and `#`.
pub fn is_instance(template: &str, uri: &str) -> bool {
    if template.len() > MAX_TEMPLATE {
        return false;
    }
    let mut pattern = String::from(r"\A");
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((inside, behind)) = after.split_once('}') else { return false };
        pattern.push_str(&regex::escape(before));
        pattern.push_str(match inside.chars().next() {
            Some('+' | '#') => ".*",
            Some('/') => "(?:/[^?#]*)?",
            Some('?' | '&') => "(?:[?&][^#]*)?",
            _ => "[^/?#]*",
        });
        rest = behind;
    }
    pattern.push_str(&regex::escape(rest));
    pattern.push_str(r"\z");
    RegexBuilder::new(&pattern).size_limit(MAX_TEMPLATE_BYTES).build().is_ok_and(|pattern| pattern.is_match(uri))
}

/// The URI that a template would give with the values that are known so far. Others are empty.
pub fn expanded(template: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let mut uri = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((inside, behind)) = after.split_once('}') else { break };
        uri.push_str(before);
        for variable in inside.trim_start_matches(OPERATORS).split(',') {
            let name = variable.trim_end_matches('*').split(':').next().unwrap_or_default();
            uri.push_str(&value(name).unwrap_or_default());
        }
        rest = behind;
    }
    uri + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(pattern: &str, uris: &[&str]) -> String {
        let pattern = UriPattern::new(pattern);
        uris.iter().map(|uri| format!("{:?} {}\n", pattern.matches(uri, None), uri.escape_default())).collect()
    }

    #[test]
    fn only_a_plain_uri_matches_for_certain_and_no_spelling_escapes() {
        let spellings = [
            "file:///etc/passwd",
            "FILE:///etc/passwd",
            "file:///ETC/passwd",
            "file:///etc/%70asswd",
            "file:///%65%74%63/passwd",
            "file:///etc%2fpasswd",
            "file:///etc%252fpasswd",
            "file:///home/../etc/passwd",
            "file:///home/%2e%2e/etc/passwd",
            "file:///home/..%2fetc/passwd",
            "file:///./etc//passwd",
            "file:////etc/passwd",
            "file:/etc/passwd",
            "file://localhost/etc/passwd",
            "file:\\\\\\etc\\passwd",
            "file:///etc/passwd?x",
            "file:///home\u{ff0f}../etc/passwd",
            "file:///e\u{200b}tc/passwd",
            "file:///%c0%ae%c0%ae/etc",
            "file:///100%/x",
            " file:///etc/passwd",
            "\u{9}file:///etc/passwd",
            "etc/passwd",
            "file:///home/me",
            "file:///home/a%20b",
            "http://host/etc/passwd",
        ];
        insta::assert_snapshot!(table("file:///etc/*", &spellings), @r"
        Yes file:///etc/passwd
        Unknown FILE:///etc/passwd
        Unknown file:///ETC/passwd
        Unknown file:///etc/%70asswd
        Unknown file:///%65%74%63/passwd
        Unknown file:///etc%2fpasswd
        Unknown file:///etc%252fpasswd
        Unknown file:///home/../etc/passwd
        Unknown file:///home/%2e%2e/etc/passwd
        Unknown file:///home/..%2fetc/passwd
        Unknown file:///./etc//passwd
        Unknown file:////etc/passwd
        Unknown file:/etc/passwd
        Unknown file://localhost/etc/passwd
        Unknown file:\\\\\\etc\\passwd
        Yes file:///etc/passwd?x
        Unknown file:///home\u{ff0f}../etc/passwd
        Unknown file:///e\u{200b}tc/passwd
        Unknown file:///%c0%ae%c0%ae/etc
        Unknown file:///100%/x
        Unknown  file:///etc/passwd
        Unknown \tfile:///etc/passwd
        Unknown etc/passwd
        No file:///home/me
        No file:///home/a%20b
        No http://host/etc/passwd
        ");
    }

    #[test]
    fn a_host_in_another_spelling_is_the_same_host() {
        let spellings = [
            "https://internal/a",
            "https://INTERNAL/a",
            "https://internal:443/a",
            "https://me@internal/a",
            "https://me:x@internal/a",
            "https:/\\internal/a",
            "https://internal.example/a",
        ];
        insta::assert_snapshot!(table("https://internal/*", &spellings), @r"
        Yes https://internal/a
        Unknown https://INTERNAL/a
        Unknown https://internal:443/a
        Unknown https://me@internal/a
        Unknown https://me:x@internal/a
        Unknown https:/\\internal/a
        No https://internal.example/a
        ");
    }

    #[test]
    fn a_template_is_matched_by_its_text_and_as_a_pattern() {
        let rule = UriPattern::new("notes://{user}/{+path}");
        let template = Some("notes://{user}/{+path}");
        assert_eq!(rule.matches("notes://me/a/b", template), Truth::Yes);
        assert_eq!(rule.matches("notes://me/../b", template), Truth::Unknown, "not plain");
        assert_eq!(rule.matches("notes://me/a/b", Some("notes://{name}/{+path}")), Truth::Unknown, "renamed");
        assert_eq!(rule.matches("other://me/a", None), Truth::No);
        let alternatives = UriPattern::new("notes://{me,you}/*");
        assert_eq!(alternatives.matches("notes://me/a", None), Truth::Yes);
        assert_eq!(alternatives.matches("notes://them/a", None), Truth::No);
    }

    #[test]
    fn instances_of_templates_are_recognized() {
        assert!(is_instance("demo://note/{number}", "demo://note/1"));
        assert!(!is_instance("demo://note/{number}", "demo://note/1/2"));
        assert!(is_instance("file:///{+path}", "file:///a/b"));
        assert!(is_instance("db://t{?q,limit}", "db://t?q=1") && is_instance("db://t{?q,limit}", "db://t"));
        assert!(!is_instance("db://t{?q", "db://t"));
        assert!(!is_instance(&"{a}".repeat(2_000), "x"), "too long");
        let value = |name: &str| (name == "path").then(|| "etc/pa".to_owned());
        assert_eq!(expanded("file:///{+path}{?x*}", value), "file:///etc/pa");
    }

    #[test]
    fn a_literal_has_no_wildcards() {
        let literal = UriPattern::literal("db://x/[a]?b=*");
        assert_eq!(literal.matches("db://x/[a]?b=*", None), Truth::Yes);
        assert_eq!(literal.matches("db://x/a?b=1", None), Truth::No);
        assert_eq!(literal.matches("DB://x/%5ba%5d?b=*", None), Truth::Unknown);
    }

    #[test]
    fn no_spelling_of_a_long_uri_escapes_a_denial() {
        for part in ["?a=[1]&", "{{", "}", "%7b{x,", "é"] {
            let uri = format!("db://x/{}", part.repeat(1_000));
            for rule in [UriPattern::literal(&uri), UriPattern::new(&uri)] {
                assert_ne!(rule.matches(&uri, None), Truth::No, "{part}");
                assert_ne!(rule.matches(&uri.replacen("db:", "DB:", 1), None), Truth::No, "{part}");
                assert_ne!(rule.matches(&uri.replacen("x/", "%78/", 1), None), Truth::No, "{part}");
            }
        }
    }

    #[test]
    fn a_template_is_matched_to_its_end() {
        for (template, uri, expected) in [
            ("db://{table}/rows", "db://users/rows", true),
            ("db://{table}/rows", "db://users/secrets", false),
            ("db://{table}/rows", "db://users/rows/1", false),
            ("db://{table}/rows", "x-db://users/rows", false),
            ("db://{table}", "db://a/b", false),
            ("db://{+path}", "db://a/b?c#d", true),
            ("db:{/path}", "db:/a/b", true),
            ("db:{/path}", "db:a", false),
            ("db:{/path}", "db:", true),
            ("db://a{?q}", "db://a?q=1", true),
            ("db://a{?q}", "db://ab", false),
            ("db://{open", "db://{open", false),
        ] {
            assert_eq!(is_instance(template, uri), expected, "{template} {uri}");
        }
        assert!(is_instance(&"a".repeat(MAX_TEMPLATE), &"a".repeat(MAX_TEMPLATE)));
        assert!(!is_instance(&"a".repeat(MAX_TEMPLATE + 1), &"a".repeat(MAX_TEMPLATE + 1)));
    }

    #[test]
    fn a_uri_is_plain_only_with_a_scheme_in_lower_case() {
        let is = |pattern: &str, uri: &str| UriPattern::new(pattern).matches(uri, None);
        assert_eq!(is("a1+b-c.d://*", "a1+b-c.d://x/y"), Truth::Yes);
        for (pattern, uri) in [("etc/*", "etc/passwd"), ("d?://x/*", "dB://x/a"), ("d?://x/*", "d_://x/a")] {
            assert_eq!(is(pattern, uri), Truth::Unknown, "{uri}");
        }
    }

    #[test]
    fn a_uri_in_other_letters_or_with_other_slashes_may_be_the_same() {
        for (literal, uri) in [
            ("db://x/a", "db://x//a"),
            ("db://x/a", "db://x/%252e/a"),
            ("db://x/a", "DB://X/%41"),
            // Only their lower case is equal.
            ("db://x/i\u{307}", "db://x/\u{130}"),
        ] {
            assert_eq!(UriPattern::literal(literal).matches(uri, None), Truth::Unknown, "{uri}");
        }
        assert_eq!(UriPattern::new(r"db://x/\[a\]").matches("DB://x/[a]", None), Truth::Unknown);
        assert_eq!(UriPattern::literal("db://x/a").matches("db://x/b/a", None), Truth::No);
    }

    /// What is not a plain URI may be read in a way that we do not know.
    #[test]
    fn an_ambiguous_uri_never_counts_as_certainly_different() {
        let is = |uri: &str| UriPattern::new("db://x/*").matches(uri, None);
        for other in ["db://y/a", "a1+b-c.d://y", "db1://x/a"] {
            assert_eq!(is(other), Truth::No, "{other}");
        }
        for odd in ["1db://y/a", "d_b://y/a", "d%62://y/a", "db://y/a ", "db://y/\u{2003}a", "db://y/%4", "db://y/%4g"]
        {
            assert_eq!(is(odd), Truth::Unknown, "{odd:?}");
        }
        for spelling in ["db://y/%g4", "DB://X/A", "db://x//a", "db://x/./a", "db://x/a//"] {
            assert_eq!(is(spelling), Truth::Unknown, "{spelling}");
        }
        assert_eq!(is("db://x/a/"), Truth::Yes);
    }
}
