//! Conditions on the arguments of a call. A condition that cannot be evaluated is false.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use globset::{GlobBuilder, GlobMatcher};
use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};

use super::compile::in_folder;
use crate::config::spec::{Condition, Definition, Launch};

/// How relative paths in a server's arguments are resolved.
#[derive(Debug, Clone)]
pub struct PathContext {
    pub folder: Option<Arc<Path>>,
    base: Option<PathBuf>,
    /// Whether relative paths certainly start at `base`. A user's server runs in its own folder, but may still resolve
    /// paths against the workspace.
    certain: bool,
}

/// A path can be read in more than one way (`link/..` by name, or by the target of the link). A level that allows must
/// match in every reading, one that restricts in any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchMode {
    EveryReading,
    AnyReading,
}

/// All of them must match.
pub struct Conditions(Vec<(String, Check)>);

enum Check {
    Glob(GlobMatcher),
    In(Vec<Value>),
    Matches(Regex),
    Inside(PathBuf),
    Max(f64),
    /// A pattern that does not parse or a folder with a variable: never matches.
    Broken,
}

/// Limits the memory of patterns, because they may come from strangers.
const MAX_PATTERN_BYTES: usize = 1 << 20;
const MAX_SYMLINKS: usize = 40;

impl PathContext {
    pub fn of(definition: &Definition, workspace: Option<&Path>) -> Self {
        let folder = definition.folder.clone().or_else(|| workspace.map(Arc::from));
        let (base, certain) = match &definition.spec.launch {
            Launch::Stdio(stdio) if stdio.cwd.is_some() => {
                (stdio.cwd.as_deref().and_then(|cwd| in_folder(cwd, folder.as_deref())), true)
            }
            Launch::Stdio(_) if definition.folder.is_none() => (folder.as_deref().map(Path::to_path_buf), false),
            _ => (folder.as_deref().map(Path::to_path_buf), true),
        };
        Self { folder, base, certain }
    }
}

impl Conditions {
    pub fn new(when: &[(String, Condition)], context: &PathContext) -> Self {
        Self(when.iter().map(|(path, condition)| (path.clone(), Check::new(condition, context))).collect())
    }

    pub fn hold(&self, arguments: &Map<String, Value>, context: &PathContext, mode: MatchMode) -> bool {
        // A case without conditions is a mistake: it may restrict, but never allow.
        (mode == MatchMode::AnyReading || !self.0.is_empty())
            && self.0.iter().all(|(path, check)| {
                argument(arguments, path).is_some_and(|value| check.holds(value, context, mode).unwrap_or(false))
            })
    }
}

impl Check {
    fn new(condition: &Condition, context: &PathContext) -> Self {
        match condition {
            Condition::Glob(pattern) => match GlobBuilder::new(pattern).literal_separator(true).build() {
                Ok(glob) => Self::Glob(glob.compile_matcher()),
                Err(_) => Self::Broken,
            },
            Condition::In(values) => Self::In(values.clone()),
            Condition::Matches(pattern) => match RegexBuilder::new(pattern).size_limit(MAX_PATTERN_BYTES).build() {
                Ok(regex) => Self::Matches(regex),
                Err(_) => Self::Broken,
            },
            Condition::Inside(dir) => match in_folder(dir, context.folder.as_deref()) {
                Some(dir) => Self::Inside(dir),
                None => Self::Broken,
            },
            Condition::Max(max) => Self::Max(*max),
        }
    }

    /// `None` if the value has another type than the condition expects.
    fn holds(&self, value: &Value, context: &PathContext, mode: MatchMode) -> Option<bool> {
        Some(match self {
            Self::Glob(glob) => {
                let text = value.as_str()?;
                let plain = glob.is_match(text);
                // `src/**` must not let `src/../../etc/passwd` pass.
                if !text.split(['/', '\\']).any(|part| part == "..") {
                    return Some(plain);
                }
                let normalized = glob.is_match(normalize(Path::new(text)));
                match mode {
                    MatchMode::EveryReading => plain && normalized,
                    MatchMode::AnyReading => plain || normalized,
                }
            }
            Self::In(values) => values.iter().any(|wanted| is_equal(wanted, value)),
            Self::Matches(regex) => regex.is_match(value.as_str()?),
            Self::Inside(dir) => {
                let dir = resolve(dir)?;
                let text = value.as_str()?;
                let path = argument_path(text, context)?;
                if mode == MatchMode::EveryReading && !context.certain && Path::new(text).is_relative() && !is_uri(text)
                {
                    return None;
                }
                let readings = [resolve(&path), resolve(&normalize(&path))];
                let mut inside = readings.into_iter().map(|path| path.is_some_and(|path| path.starts_with(&dir)));
                match mode {
                    MatchMode::EveryReading => inside.all(|inside| inside),
                    MatchMode::AnyReading => inside.any(|inside| inside),
                }
            }
            Self::Max(max) => value.as_f64()? <= *max,
            Self::Broken => return None,
        })
    }
}

/// The argument at a dotted path. `None` if both a key with dots and a nested value match: it is unknown which one the
/// server reads.
fn argument<'a>(arguments: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    let whole = arguments.get(path);
    let Some((first, rest)) = path.split_once('.') else { return whole };
    let nested = rest.split('.').try_fold(arguments.get(first), |value, key| match value? {
        Value::Object(fields) => Some(fields.get(key)),
        Value::Array(items) => Some(items.get(key.parse::<usize>().ok()?)),
        _ => None,
    });
    let nested = nested.flatten();
    match (whole, nested) {
        (Some(value), None) | (None, Some(value)) => Some(value),
        _ => None,
    }
}

fn is_equal(wanted: &Value, value: &Value) -> bool {
    match (wanted, value) {
        // `1` and `1.0` are equal. Two integers are compared as integers, because floats lose digits.
        (Value::Number(a), Value::Number(b)) if a.is_f64() || b.is_f64() => a.as_f64() == b.as_f64(),
        _ => wanted == value,
    }
}

/// The absolute path of an argument. `None` for `~`, which only the server could expand.
fn argument_path(text: &str, context: &PathContext) -> Option<PathBuf> {
    if text.is_empty() || text.starts_with('~') || text.contains('\0') {
        return None;
    }
    if is_uri(text) {
        return url::Url::parse(text).ok()?.to_file_path().ok();
    }
    let path = Path::new(text);
    if path.is_absolute() { Some(path.to_path_buf()) } else { Some(context.base.as_ref()?.join(path)) }
}

fn is_uri(text: &str) -> bool {
    text.starts_with("file:")
}

/// `a/b/../c` as `a/c`, without resolving links.
fn normalize(path: &Path) -> PathBuf {
    let mut normalized = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(normalized.components().next_back(), Some(Component::Normal(_))) => {
                normalized.pop();
            }
            part => normalized.push(part),
        }
    }
    normalized
}

/// Resolves all links in a path that may not exist yet. This includes dangling links, because writing through one
/// creates its target.
pub fn resolve(path: &Path) -> Option<PathBuf> {
    let mut ahead: Vec<std::ffi::OsString> = parts(path);
    let mut real = PathBuf::new();
    let mut links = 0;
    while let Some(part) = ahead.pop() {
        let step = Path::new(&part);
        match step.components().next()? {
            Component::Prefix(_) | Component::RootDir => real.push(step),
            Component::CurDir => {}
            Component::ParentDir => {
                real.pop();
            }
            Component::Normal(_) => {
                real.push(step);
                match std::fs::symlink_metadata(&real) {
                    Ok(found) if found.file_type().is_symlink() => {
                        links += 1;
                        if links > MAX_SYMLINKS {
                            return None;
                        }
                        let target = std::fs::read_link(&real).ok()?;
                        real.pop();
                        ahead.extend(parts(&target));
                    }
                    Ok(_) => {}
                    Err(error)
                        if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
                    }
                    Err(_) => return None,
                }
            }
        }
    }
    real.is_absolute().then_some(real)
}

/// The components of a path in reverse, so that the next one can be popped.
fn parts(path: &Path) -> Vec<std::ffi::OsString> {
    let mut parts: Vec<_> = path.components().map(|part| part.as_os_str().to_owned()).collect();
    parts.reverse();
    parts
}
