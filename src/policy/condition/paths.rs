//! Paths in arguments: the texts that every server reads as the same path, and the files they lead to.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::Truth;
use crate::config::spec::{Definition, Launch};
use crate::policy::AgentAction;
use crate::policy::compile::in_folder;

const MAX_SYMLINKS: usize = 40;

/// Where the paths in a server's arguments may start.
#[derive(Debug, Clone)]
pub struct PathContext {
    folder: Option<Arc<Path>>,
    /// Every folder that a relative path may start at: the working folder, the folders of the workspace (as MCP roots),
    /// and folders in the server's own arguments.
    bases: Vec<PathBuf>,
    start: Start,
    /// The arguments that are commands of a shell.
    commands: &'static [&'static str],
}

/// Where a relative path starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    /// At one of the bases.
    Bases,
    /// At one of them, or in a folder that contains nothing of the user: the private folder of a user's server, or
    /// another machine.
    Private,
    /// The working folder depends on a variable.
    Anywhere,
}

impl PathContext {
    pub fn of(definition: &Definition, roots: &[Arc<Path>]) -> Self {
        let folder = definition.folder.clone().or_else(|| roots.first().cloned());
        let mut bases: Vec<PathBuf> = folder.iter().chain(roots).map(|folder| folder.to_path_buf()).collect();
        let start = match &definition.spec.launch {
            Launch::Stdio(stdio) => {
                let own = stdio.args.iter().filter(|arg| arg.starts_with(['/', '$']));
                bases.extend(own.filter_map(|arg| in_folder(arg, folder.as_deref())).filter(|path| path.is_absolute()));
                match stdio.cwd.as_deref().map(|cwd| in_folder(cwd, folder.as_deref())) {
                    Some(Some(cwd)) => {
                        bases.push(cwd);
                        Start::Bases
                    }
                    Some(None) => Start::Anywhere,
                    None if definition.folder.is_some() => Start::Bases,
                    None => Start::Private,
                }
            }
            _ => Start::Private,
        };
        bases.sort();
        bases.dedup();
        Self { folder, bases, start, commands: &[] }
    }

    /// For an agent's own tools: a relative path starts at a folder that the agent chooses.
    pub fn of_agent(roots: &[Arc<Path>]) -> Self {
        let bases = roots.iter().map(|folder| folder.to_path_buf()).collect();
        Self { folder: roots.first().cloned(), bases, start: Start::Anywhere, commands: AgentAction::COMMANDS }
    }

    /// The same for a rule in a file of another folder, which is `${workspaceFolder}` there.
    pub fn with_folder(&self, folder: Option<&Arc<Path>>) -> Self {
        Self { folder: folder.or(self.folder.as_ref()).cloned(), ..self.clone() }
    }

    pub fn is_command(&self, argument: &str) -> bool {
        self.commands.contains(&argument)
    }

    /// The folder of an `inside` condition. `None` if it contains a variable.
    pub fn folder(&self, dir: &str) -> Option<Folder> {
        in_folder(dir, self.folder.as_deref()).map(Folder)
    }

    /// What is known about a path, if this was found for all bases.
    pub fn certain(&self, text: &str, found: Truth) -> Truth {
        let path = Path::new(text);
        match self.start {
            _ if path.is_absolute() => found,
            Start::Bases => found,
            Start::Private if found == Truth::No && !normalize(path).starts_with("..") => Truth::No,
            Start::Private | Start::Anywhere => Truth::Unknown,
        }
    }
}

/// The folder of an `inside` condition.
pub struct Folder(PathBuf);

impl Folder {
    pub fn contains(&self, text: &str, context: &PathContext) -> Truth {
        let Some(dir) = resolve(&self.0) else { return Truth::Unknown };
        // A URI in lower case without encoded characters is the same path for everyone.
        let path = text.strip_prefix("file://").filter(|path| path.starts_with('/')).unwrap_or(text);
        if !is_plain(path) {
            return Truth::Unknown;
        }
        let inside = readings(path, context).into_iter().map(|(_, real)| match real {
            Some(real) => real.starts_with(&dir).into(),
            None => Truth::Unknown,
        });
        context.certain(path, Truth::of_all(inside))
    }
}

/// Whether every program reads this text as the same path: no blanks at its ends, no quotes, variables, wildcards,
/// escapes, encoded or invisible characters, and nothing that could be a list of paths.
pub fn is_plain(text: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || "/._-+@=, ()".contains(c);
    let first = |c: char| c.is_alphanumeric() || "/._".contains(c);
    text.starts_with(first) && text.trim() == text && text.chars().all(plain) && !is_list(text)
}

/// Whether a server could read several paths: `a,b/c` and `a /b`.
fn is_list(text: &str) -> bool {
    let starts = |rest: &str| ["/", "./", "../"].iter().any(|start| rest.trim_start().starts_with(start));
    text.split(',').skip(1).any(|part| part.contains('/'))
        || text.match_indices([' ', ',', ';']).any(|(at, _)| text.get(at + 1..).is_some_and(starts))
}

/// The files that a plain path may lead to, each with the base that it is relative to: from every base, by name and by
/// the targets of links. `None` if the links cannot be resolved.
pub fn readings(text: &str, context: &PathContext) -> Vec<(PathBuf, Option<PathBuf>)> {
    let read = |base: &Path| {
        let path = base.join(text);
        let base = resolve(base).unwrap_or_else(|| base.to_path_buf());
        [resolve(&path), resolve(&normalize(&path))].map(|real| (base.clone(), real))
    };
    match context.bases.as_slice() {
        [] if Path::new(text).is_absolute() => read(Path::new("/")).into(),
        bases => bases.iter().flat_map(|base| read(base)).collect(),
    }
}

/// `a//b/../c` as `a/c`, without resolving links.
pub fn normalize(path: &Path) -> PathBuf {
    let mut normalized = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(normalized.components().next_back(), Some(Component::Normal(_))) => {
                normalized.pop();
            }
            // There is nothing above the root.
            Component::ParentDir if normalized.has_root() => {}
            part => normalized.push(part),
        }
    }
    normalized
}

/// Resolves all links in a path that may not exist yet. This includes dangling links, because writing through one
/// creates its target.
pub fn resolve(path: &Path) -> Option<PathBuf> {
    let mut ahead: Vec<OsString> = parts(path);
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
fn parts(path: &Path) -> Vec<OsString> {
    let mut parts: Vec<_> = path.components().map(|part| part.as_os_str().to_owned()).collect();
    parts.reverse();
    parts
}
