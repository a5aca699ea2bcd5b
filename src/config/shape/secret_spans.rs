//! Where secrets are in arguments and settings that are shown or stored, and what is shown instead.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::secrets;
use crate::text::MASK;

/// `name=value` and `name: Bearer value`. Whether the name is one of a secret is decided later.
static NAMED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let value = r"(?:(?i:bearer|basic|token|bot)\s+)?(?P<value>[A-Za-z0-9_.+/~=!%*^#@-]+)";
    Regex::new(&format!(r#"(?P<name>[A-Za-z][\w-]*)["']?\s*[=:]\s*["']?{value}"#)).ok()
});

/// The secrets in a text.
pub fn in_text(text: &str) -> Vec<Range<usize>> {
    let mut found = in_addresses(text);
    // The expression is only compiled for a text in which it can match.
    if !text.contains(['=', ':']) {
        return found;
    }
    for captures in NAMED.iter().flat_map(|regex| regex.captures_iter(text)) {
        if let (Some(name), Some(value)) = (captures.name("name"), captures.name("value"))
            && secrets::is_named(name.as_str())
            && !value.as_str().starts_with(['/', '.'])
        {
            found.push(value.range());
        }
    }
    found
}

fn in_addresses(text: &str) -> Vec<Range<usize>> {
    let passwords = text.match_indices("://").filter_map(|(at, _)| {
        let start = at + 3;
        let authority = text.get(start..)?.split(['/', '?', '#', ' ', '\t', '\n', '"', '\'']).next()?;
        let (user, _) = authority.rsplit_once('@')?;
        let (name, password) = user.split_once(':')?;
        let from = start + name.len() + 1;
        (!password.is_empty() && !password.contains("${")).then_some(from..from + password.len())
    });
    passwords.collect()
}

/// The secrets in each argument. A flag can say that the next argument is one.
pub fn in_arguments(args: &[String]) -> Vec<Vec<Range<usize>>> {
    let mut found: Vec<Vec<Range<usize>>> = args.iter().map(|argument| in_text(argument)).collect();
    for (index, span, _) in secrets::find_in_args(args) {
        if let Some(spans) = found.get_mut(index) {
            spans.push(span);
        }
    }
    for (argument, spans) in args.iter().zip(&mut found) {
        spans.extend(password_flag(argument));
    }
    found
}

/// `-pSECRET`, as for `mysql`. Words such as `-profile` and ports are not secrets.
fn password_flag(argument: &str) -> Option<Range<usize>> {
    let value = argument.strip_prefix("-p").filter(|value| value.len() >= 4)?;
    let word = value.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    let port = value.chars().all(|c| c.is_ascii_digit() || ":.-".contains(c));
    (!word && !port && !value.contains(['/', '=', '$', ' '])).then_some(2..argument.len())
}

/// Replaces the spans of a text.
pub fn replace(text: &str, mut spans: Vec<Range<usize>>, with: impl Fn(&str) -> String) -> String {
    spans.sort_by_key(|span| (span.start, std::cmp::Reverse(span.end)));
    let (mut shown, mut at) = (String::new(), 0);
    for span in spans {
        if let (Some(before), Some(secret)) = (text.get(at..span.start), text.get(span.clone())) {
            shown.push_str(before);
            shown.push_str(&with(secret));
            at = span.end;
        }
    }
    shown.push_str(text.get(at..).unwrap_or_default());
    shown
}

/// Arguments as a question shows them: a secret must not hide a script, so only single words are masked, and in a text
/// of several words only passwords in addresses and headers.
pub fn shown_arguments(args: &[String]) -> Vec<String> {
    let is_word = |text: &str| !text.contains(|c: char| c.is_whitespace() || "$`;|&()<>'\"\\".contains(c));
    let spans = args.iter().zip(in_arguments(args));
    let mask = |(argument, mut spans): (&String, Vec<Range<usize>>)| {
        let is_header = argument.split_once(": ").is_some_and(|(name, _)| secrets::is_named(name) && is_word(name));
        if argument.contains(char::is_whitespace) && !is_header {
            spans = in_addresses(argument);
        }
        spans.retain(|span| argument.get(span.clone()).is_some_and(is_word));
        replace(argument, spans, |_| MASK.to_owned())
    };
    spans.map(mask).collect()
}
