//! Conditions on the arguments of a call. What cannot be evaluated does not hold.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use globset::{GlobBuilder, GlobMatcher};
use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};

use super::compile::in_folder;
use crate::config::spec::{Condition, Definition, Launch};

/// Where relative paths of a server's arguments start.
#[derive(Debug, Clone)]
pub struct Ground {
    pub folder: Option<Arc<Path>>,
    base: Option<PathBuf>,
    /// Whether relative paths start at `base` for sure. A server of the user runs in a folder of its own, and may
    /// resolve paths against the workspace all the same.
    certain: bool,
}

/// A path may be read in more than one way (`link/..` by name, or by where the link leads). A level that widens must
/// be right in every reading, one that narrows in any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    Certain,
    Possible,
}

/// All of them must hold.
pub struct Conditions(Vec<(String, Check)>);

enum Check {
    Glob(GlobMatcher),
    In(Vec<Value>),
    Matches(Regex),
    Inside(PathBuf),
    Max(f64),
    /// A pattern that does not parse, a folder with a variable: never holds.
    Broken,
}

/// Compiled patterns of a file from strangers may not take memory without end.
const PATTERN_BYTES: usize = 1 << 20;
const SYMLINKS: usize = 40;

impl Ground {
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
    pub fn new(when: &[(String, Condition)], ground: &Ground) -> Self {
        Self(when.iter().map(|(path, condition)| (path.clone(), Check::new(condition, ground))).collect())
    }

    pub fn hold(&self, arguments: &Map<String, Value>, ground: &Ground, reach: Reach) -> bool {
        // A case without conditions is a slip of the pen: it may narrow, but it does not open a door.
        (reach == Reach::Possible || !self.0.is_empty())
            && self.0.iter().all(|(path, check)| {
                argument(arguments, path).is_some_and(|value| check.holds(value, ground, reach).unwrap_or(false))
            })
    }
}

impl Check {
    fn new(condition: &Condition, ground: &Ground) -> Self {
        match condition {
            Condition::Glob(pattern) => match GlobBuilder::new(pattern).literal_separator(true).build() {
                Ok(glob) => Self::Glob(glob.compile_matcher()),
                Err(_) => Self::Broken,
            },
            Condition::In(values) => Self::In(values.clone()),
            Condition::Matches(pattern) => match RegexBuilder::new(pattern).size_limit(PATTERN_BYTES).build() {
                Ok(regex) => Self::Matches(regex),
                Err(_) => Self::Broken,
            },
            Condition::Inside(dir) => match in_folder(dir, ground.folder.as_deref()) {
                Some(dir) => Self::Inside(dir),
                None => Self::Broken,
            },
            Condition::Max(max) => Self::Max(*max),
        }
    }

    /// `None` when the value is of another kind than the condition speaks about.
    fn holds(&self, value: &Value, ground: &Ground, reach: Reach) -> Option<bool> {
        Some(match self {
            Self::Glob(glob) => {
                let text = value.as_str()?;
                let plain = glob.is_match(text);
                // `src/**` must not let `src/../../etc/passwd` pass.
                if !text.split(['/', '\\']).any(|part| part == "..") {
                    return Some(plain);
                }
                let straight = glob.is_match(without_dots(Path::new(text)));
                match reach {
                    Reach::Certain => plain && straight,
                    Reach::Possible => plain || straight,
                }
            }
            Self::In(values) => values.iter().any(|wanted| same(wanted, value)),
            Self::Matches(regex) => regex.is_match(value.as_str()?),
            Self::Inside(dir) => {
                let dir = resolve(dir)?;
                let text = value.as_str()?;
                let path = argument_path(text, ground)?;
                if reach == Reach::Certain && !ground.certain && Path::new(text).is_relative() && !is_uri(text) {
                    return None;
                }
                let readings = [resolve(&path), resolve(&without_dots(&path))];
                let mut inside = readings.into_iter().map(|path| path.is_some_and(|path| path.starts_with(&dir)));
                match reach {
                    Reach::Certain => inside.all(|inside| inside),
                    Reach::Possible => inside.any(|inside| inside),
                }
            }
            Self::Max(max) => value.as_f64()? <= *max,
            Self::Broken => return None,
        })
    }
}

/// The argument at a dotted path. Where a key with dots in it and a nested value could both be meant, neither is:
/// nobody knows which of them the server will read.
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

fn same(wanted: &Value, value: &Value) -> bool {
    match (wanted, value) {
        // `1` and `1.0` are the same number; two integers are compared as such, because floats run out of digits.
        (Value::Number(a), Value::Number(b)) if a.is_f64() || b.is_f64() => a.as_f64() == b.as_f64(),
        _ => wanted == value,
    }
}

/// The absolute path that an argument means. `~` would be filled in by the server, if at all: nobody knows.
fn argument_path(text: &str, ground: &Ground) -> Option<PathBuf> {
    if text.is_empty() || text.starts_with('~') || text.contains('\0') {
        return None;
    }
    if is_uri(text) {
        return url::Url::parse(text).ok()?.to_file_path().ok();
    }
    let path = Path::new(text);
    if path.is_absolute() { Some(path.to_path_buf()) } else { Some(ground.base.as_ref()?.join(path)) }
}

fn is_uri(text: &str) -> bool {
    text.starts_with("file:")
}

/// `a/b/../c` as `a/c`, by name alone.
fn without_dots(path: &Path) -> PathBuf {
    let mut straight = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(straight.components().next_back(), Some(Component::Normal(_))) => {
                straight.pop();
            }
            part => straight.push(part),
        }
    }
    straight
}

/// Where a path really leads, also when it does not exist yet: links are followed as far as there are any, a link
/// that leads nowhere included, because writing through it creates its target.
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
                        if links > SYMLINKS {
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

/// The parts of a path, last first, so that the next one can be popped.
fn parts(path: &Path) -> Vec<std::ffi::OsString> {
    let mut parts: Vec<_> = path.components().map(|part| part.as_os_str().to_owned()).collect();
    parts.reverse();
    parts
}
