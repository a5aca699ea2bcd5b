//! Finds the program of a command as a start will find it: on the PATH of the child process.
//!
//! Before the user has agreed, only folders and the variables that every child gets are expanded. A program that
//! depends on an input, a secret or another variable is known only once the definition is trusted.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::contents::read_small;
use crate::config::expand::{self, Values};
use crate::config::spec::Stdio;
use crate::paths::{FoundProgram, find_program};

/// The result of the search.
#[derive(Debug, PartialEq, Eq)]
pub enum ProgramLookup {
    Found(PathBuf),
    /// Our own program, by its name alone.
    Own(PathBuf),
    NotFound,
    /// The command or the PATH needs values that cannot be requested yet.
    Deferred,
}

impl ProgramLookup {
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Found(path) | Self::Own(path) => Some(path),
            Self::NotFound | Self::Deferred => None,
        }
    }
}

/// Shown instead of a program that is not known yet.
pub const DEFERRED: &str = "(known once it is trusted)";

/// Shown instead of our own path: each editor and each version may have another one, and all of them are ourselves.
pub const OWN: &str = "(this mcp-sidecar)";

pub fn find(stdio: &Stdio, cwd: Option<&Path>, values: &Values) -> ProgramLookup {
    find_with(stdio, cwd.unwrap_or(Path::new("/")), values, &|text| expand::known_text(text, values))
}

/// The same with all variables of the environment: as a start finds it, unless it needs an input or a key.
pub fn find_expanded(stdio: &Stdio, cwd: &Path, values: &Values) -> ProgramLookup {
    find_with(stdio, cwd, values, &|text| expand::text(text, values).ok())
}

fn find_with(stdio: &Stdio, from: &Path, values: &Values, expand: Expand<'_>) -> ProgramLookup {
    let Some(command) = expand(&stdio.command) else { return ProgramLookup::Deferred };
    let path = match own_path(stdio, values, expand) {
        OwnPath::Unset => inherited_path(values),
        OwnPath::Set(path) => path,
        // A command that is a path does not depend on the PATH.
        OwnPath::Deferred if command.contains(std::path::is_separator) => None,
        OwnPath::Deferred => return ProgramLookup::Deferred,
    };
    match find_program(&command, path, from) {
        Some(FoundProgram::File(path)) => ProgramLookup::Found(path),
        Some(FoundProgram::Own(path)) => ProgramLookup::Own(path),
        None => ProgramLookup::NotFound,
    }
}

/// Whether a bare command means the program that it means to the user, by their PATH. Relative entries of a PATH depend on the
/// working directory, so they find no program that a policy can mean.
pub fn is_on_user_path(stdio: &Stdio, values: &Values) -> bool {
    let find = |path: Option<OsString>| find_program(&stdio.command, path, Path::new("/"));
    let absolute = |path: &OsString| std::env::split_paths(path).all(|entry| entry.is_absolute());
    match own_path(stdio, values, &|text| expand::text(text, values).ok()) {
        OwnPath::Unset => inherited_path(values).is_some_and(|path| absolute(&path)),
        OwnPath::Set(Some(path)) => absolute(&path) && find(Some(path)) == find(inherited_path(values)),
        OwnPath::Set(None) | OwnPath::Deferred => false,
    }
}

fn inherited_path(values: &Values) -> Option<OsString> {
    values.environment.path().map(OsString::from)
}

/// The path of `envFile`, unless it needs an input or a key.
pub fn env_file(written: &str, values: &Values) -> Option<PathBuf> {
    let path = expand::text(written, values).ok()?;
    Some(expand::resolve(&path, values.env_file_folder.as_deref(), values))
}

enum OwnPath {
    Unset,
    /// `None`: PATH is removed.
    Set(Option<OsString>),
    Deferred,
}

type Expand<'a> = &'a dyn Fn(&str) -> Option<String>;

/// `env` overrides `envFile`, as at a start.
fn own_path(stdio: &Stdio, values: &Values, expand: Expand<'_>) -> OwnPath {
    if let Some(written) = stdio.env.get("PATH") {
        return match written.as_deref().map(expand) {
            None => OwnPath::Set(None),
            Some(Some(path)) => OwnPath::Set(Some(path.into())),
            Some(None) => OwnPath::Deferred,
        };
    }
    if stdio.env_file.as_deref().is_some_and(|written| expand(written).is_none()) {
        return OwnPath::Deferred;
    }
    match env_file_entries(stdio, values).into_iter().rev().find(|(name, _)| name == "PATH") {
        Some((_, path)) => OwnPath::Set(Some(path.into())),
        None => OwnPath::Unset,
    }
}

/// The variables of `envFile`, if it can be read.
pub fn env_file_entries(stdio: &Stdio, values: &Values) -> Vec<(String, String)> {
    let file = stdio.env_file.as_deref().and_then(|written| expand::text(written, values).ok());
    let path = file.map(|file| expand::resolve(&file, values.env_file_folder.as_deref(), values));
    let text = path.and_then(|path| read_small(&path)).unwrap_or_default();
    expand::parse_env_file(&text).unwrap_or_default()
}
