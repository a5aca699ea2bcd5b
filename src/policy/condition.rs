//! Conditions on the arguments of a call.
//!
//! A server may read an argument in another way than we do: it trims, decodes or expands it, or resolves it against
//! another folder. A condition is therefore true only if it holds in every reading, and false only if it holds in none.
//! Otherwise it is unknown, and the caller uses the stricter of both outcomes.

mod paths;

use std::path::Path;

use globset::GlobMatcher;
use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};

use crate::config::spec::Condition;
use crate::text::glob;
pub use paths::PathContext;
use paths::{Folder, is_plain, normalize, readings};

/// The result of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truth {
    Yes,
    No,
    Unknown,
}

impl Truth {
    /// `Yes` if all results are, `No` if none is. Nothing at all is unknown.
    fn of_all(results: impl IntoIterator<Item = Self>) -> Self {
        let mut results = results.into_iter();
        let Some(first) = results.next() else { return Self::Unknown };
        if results.all(|result| result == first) { first } else { Self::Unknown }
    }

    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::No, _) | (_, Self::No) => Self::No,
            (Self::Yes, Self::Yes) => Self::Yes,
            _ => Self::Unknown,
        }
    }
}

impl From<bool> for Truth {
    fn from(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }
}

/// All of them must match.
pub struct Conditions(Vec<(String, Check)>);

enum Check {
    /// A pattern with a `/` is about paths.
    PathGlob(GlobMatcher),
    Glob(TextGlob),
    /// The same for a command of a shell: its words are known exactly.
    Command(TextGlob),
    In(Vec<Value>),
    Matches {
        whole: Regex,
        part: Regex,
    },
    Inside(Folder),
    Max(f64),
    /// A pattern that does not parse or a folder with a variable.
    Broken,
}

/// Limits the memory of patterns, because they may come from strangers.
const MAX_PATTERN_BYTES: usize = 1 << 20;

impl Conditions {
    pub fn new(when: &[(String, Condition)], context: &PathContext) -> Self {
        let check = |path: &str, condition: &Condition| match condition {
            Condition::Glob(pattern) if context.is_command(path) => Check::of_text(pattern, Check::Command),
            condition => Check::new(condition, context),
        };
        Self(when.iter().map(|(path, condition)| (path.clone(), check(path, condition))).collect())
    }

    pub fn hold(&self, arguments: &Map<String, Value>, context: &PathContext) -> Truth {
        // A case without conditions is a mistake: it may restrict, but never allow.
        let start = if self.0.is_empty() { Truth::Unknown } else { Truth::Yes };
        self.0.iter().fold(start, |truth, (path, check)| {
            let values = argument(arguments, path).unwrap_or_default();
            truth.and(Truth::of_all(values.into_iter().map(|value| check.holds(value, context))))
        })
    }
}

impl Check {
    fn new(condition: &Condition, context: &PathContext) -> Self {
        match condition {
            Condition::Glob(pattern) if pattern.contains('/') => {
                let glob = glob(pattern, |glob| glob.literal_separator(true));
                glob.map_or(Self::Broken, |glob| Self::PathGlob(glob.compile_matcher()))
            }
            Condition::Glob(pattern) => Self::of_text(pattern, Self::Glob),
            Condition::In(values) => Self::In(values.clone()),
            Condition::Matches(pattern) => {
                let compile = |pattern: &str| RegexBuilder::new(pattern).size_limit(MAX_PATTERN_BYTES).build();
                match (compile(&format!(r"\A(?:{pattern})\z")), compile(pattern)) {
                    (Ok(whole), Ok(part)) => Self::Matches { whole, part },
                    _ => Self::Broken,
                }
            }
            Condition::Inside(dir) => match context.folder(dir) {
                Some(folder) => Self::Inside(folder),
                None => Self::Broken,
            },
            Condition::Max(max) => Self::Max(*max),
        }
    }

    fn of_text(pattern: &str, check: fn(TextGlob) -> Self) -> Self {
        let compile = |stops| glob(pattern, |glob| glob.literal_separator(stops)).map(|glob| glob.compile_matcher());
        match (compile(true), compile(false)) {
            (Ok(within_parts), Ok(anywhere)) => check(TextGlob { within_parts, anywhere }),
            _ => Self::Broken,
        }
    }

    /// A list means every element.
    fn holds(&self, value: &Value, context: &PathContext) -> Truth {
        match (self, value) {
            (Self::In(values), value) if values.contains(value) => Truth::Yes,
            (_, Value::Array(items)) => Truth::of_all(items.iter().map(|item| self.holds(item, context))),
            (Self::In(values), value) => is_one_of(values, value),
            (Self::Max(max), Value::Number(number)) => number.as_f64().map_or(Truth::Unknown, |n| (n <= *max).into()),
            (Self::Matches { whole, part }, Value::String(text)) => match (whole.is_match(text), part.is_match(text)) {
                (true, _) => Truth::Yes,
                (false, true) => Truth::Unknown,
                (false, false) => Truth::No,
            },
            (Self::Glob(glob), Value::String(text)) => plain_glob(glob, text),
            (Self::Command(glob), Value::String(text)) => glob.holds(text),
            (Self::PathGlob(glob), Value::String(text)) => path_glob(glob, text, context),
            (Self::Inside(folder), Value::String(text)) => folder.contains(text, context),
            _ => Truth::Unknown,
        }
    }
}

/// A glob for a text that is not a path. People read `*` as anything, but what `rm *` allows must not be another folder. So
/// whether it matches a `/` is unknown.
struct TextGlob {
    within_parts: GlobMatcher,
    anywhere: GlobMatcher,
}

impl TextGlob {
    fn holds(&self, text: &str) -> Truth {
        match (self.within_parts.is_match(text), self.anywhere.is_match(text)) {
            (true, _) => Truth::Yes,
            (false, true) => Truth::Unknown,
            (false, false) => Truth::No,
        }
    }
}

/// A text that a server may read as another one is neither matched nor different.
fn plain_glob(glob: &TextGlob, text: &str) -> Truth {
    let odd = text.contains(|c: char| c.is_control() || c == '\\')
        || text.trim() != text
        || text.starts_with(['~', '$', '"', '\''])
        || text.split('/').any(|part| part == "..")
        || has_percent_code(text);
    if odd { Truth::Unknown } else { glob.holds(text) }
}

/// A glob for paths: the text without `//`, `.` and `..`, and where its links lead.
fn path_glob(glob: &GlobMatcher, text: &str, context: &PathContext) -> Truth {
    if !is_plain(text) {
        return Truth::Unknown;
    }
    let is_absolute = glob.glob().glob().starts_with('/');
    let by_name = normalize(Path::new(text));
    let mut found = vec![Truth::from(glob.is_match(&by_name))];
    for (base, real) in readings(text, context) {
        found.push(match real {
            None => Truth::Unknown,
            Some(real) if is_absolute => glob.is_match(&real).into(),
            Some(real) => real.strip_prefix(&base).is_ok_and(|path| glob.is_match(path)).into(),
        });
    }
    let found = Truth::of_all(found);
    // A relative pattern is about the text, an absolute one about the file.
    if is_absolute { context.certain(text, found) } else { found }
}

/// Whether a text contains an encoded character, such as `%2f`.
fn has_percent_code(text: &str) -> bool {
    text.split('%').skip(1).any(|rest| rest.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2)
}

/// A value of another type, or one that differs only in case and blanks, may mean the same to the server.
fn is_one_of(values: &[Value], value: &Value) -> Truth {
    let like = |text: &str| text.trim().trim_matches(['"', '\'']).to_lowercase();
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), like);
    let compare = |wanted: &Value| match (wanted, value) {
        // `1` and `1.0` are equal. Two integers are compared as integers, because floats lose digits.
        (Value::Number(a), Value::Number(b)) if a.is_f64() || b.is_f64() => (a.as_f64() == b.as_f64()).into(),
        (a, b) if a == b => Truth::Yes,
        (Value::Bool(_), Value::Bool(_)) | (Value::Number(_), Value::Number(_)) => Truth::No,
        // To many programs, `1`, `"yes"` and `"true"` are true.
        (Value::Bool(_), _) | (_, Value::Bool(_) | Value::Null | Value::Array(_) | Value::Object(_)) => Truth::Unknown,
        (a, b) => {
            if text(a) == text(b) {
                Truth::Unknown
            } else {
                Truth::No
            }
        }
    };
    let results: Vec<Truth> = values.iter().map(compare).collect();
    [Truth::Yes, Truth::Unknown].into_iter().find(|truth| results.contains(truth)).unwrap_or(Truth::No)
}

/// The arguments at a dotted path; inside a list, those of every element. `None` if there is none, if an element has
/// none, or if both a key with dots and a nested value match: it is unknown which one the server reads.
fn argument<'a>(arguments: &'a Map<String, Value>, path: &str) -> Option<Vec<&'a Value>> {
    let whole = arguments.get(path).map(|value| vec![value]);
    let Some((first, rest)) = path.split_once('.') else { return whole };
    let nested = arguments.get(first).and_then(|value| descend(value, rest));
    match (whole, nested) {
        (Some(values), None) | (None, Some(values)) => Some(values),
        _ => None,
    }
}

fn descend<'a>(value: &'a Value, path: &str) -> Option<Vec<&'a Value>> {
    let (key, rest) = path.split_once('.').map_or((path, None), |(key, rest)| (key, Some(rest)));
    let next = match value {
        Value::Object(fields) => fields.get(key)?,
        Value::Array(items) => match key.parse::<usize>() {
            Ok(index) => items.get(index)?,
            Err(_) => {
                let found: Option<Vec<Vec<&Value>>> = items.iter().map(|item| descend(item, path)).collect();
                return found.map(|found| found.into_iter().flatten().collect());
            }
        },
        _ => return None,
    };
    match rest {
        Some(rest) => descend(next, rest),
        None => Some(vec![next]),
    }
}

#[cfg(test)]
mod tests;
