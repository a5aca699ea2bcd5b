//! Finds the program of a command as a start will find it: on the PATH of the child process.
//!
//! Before the user has agreed, only folders and the variables that every child gets are expanded. A program that
//! depends on an input, a secret or another variable is known only once the definition is trusted.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::contents::read_small;
use crate::config::expand::{self, Reference, Values};
use crate::config::spec::Stdio;

/// The result of the search.
#[derive(Debug, PartialEq, Eq)]
pub enum ProgramLookup {
    Found(PathBuf),
    NotFound,
    /// The command or the PATH needs values that cannot be requested yet.
    Deferred,
}

impl ProgramLookup {
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Found(path) => Some(path),
            Self::NotFound | Self::Deferred => None,
        }
    }
}

/// Shown instead of a program that is not known yet.
pub const DEFERRED: &str = "(known once it is trusted)";

pub fn find(stdio: &Stdio, cwd: Option<&Path>, folder: Option<&Path>) -> ProgramLookup {
    let values = values(folder);
    let Some(command) = expand_known(&stdio.command, &values) else { return ProgramLookup::Deferred };
    let path = match own_path(stdio, &values) {
        OwnPath::Unset => std::env::var_os("PATH"),
        OwnPath::Set(path) => path,
        // A command that is a path does not depend on the PATH.
        OwnPath::Deferred if command.contains(std::path::is_separator) => None,
        OwnPath::Deferred => return ProgramLookup::Deferred,
    };
    let from = cwd.unwrap_or(Path::new("/"));
    match which::which_in(command, path, from) {
        // The PATH may contain relative entries, which start at the child's working folder.
        Ok(found) => ProgramLookup::Found(from.join(found)),
        Err(_) => ProgramLookup::NotFound,
    }
}

/// The path of `envFile`, if it is known.
pub fn env_file(written: &str, folder: Option<&Path>) -> Option<PathBuf> {
    let values = values(folder);
    let path = expand_known(written, &values)?;
    Some(expand::resolve(&path, values.env_file_folder.as_deref(), &values))
}

/// Whether a definition sets its own PATH.
pub fn has_own_path(stdio: &Stdio, folder: Option<&Path>) -> bool {
    !matches!(own_path(stdio, &values(folder)), OwnPath::Unset)
}

enum OwnPath {
    Unset,
    /// `None`: PATH is removed.
    Set(Option<OsString>),
    Deferred,
}

/// `env` overrides `envFile`, as at a start.
fn own_path(stdio: &Stdio, values: &Values) -> OwnPath {
    if let Some(written) = stdio.env.get("PATH") {
        return match written.as_deref().map(|written| expand_known(written, values)) {
            None => OwnPath::Set(None),
            Some(Some(path)) => OwnPath::Set(Some(path.into())),
            Some(None) => OwnPath::Deferred,
        };
    }
    let Some(written) = &stdio.env_file else { return OwnPath::Unset };
    let Some(file) = expand_known(written, values) else { return OwnPath::Deferred };
    let text = read_small(&expand::resolve(&file, values.env_file_folder.as_deref(), values)).unwrap_or_default();
    let entries = expand::parse_env_file(&text).unwrap_or_default();
    match entries.into_iter().rev().find(|(name, _)| name == "PATH") {
        Some((_, path)) => OwnPath::Set(Some(path.into())),
        None => OwnPath::Unset,
    }
}

fn expand_known(written: &str, values: &Values) -> Option<String> {
    let open = |reference: &Reference| match reference {
        Reference::Variable { name, .. } => expand::is_passed_on(name),
        Reference::WorkspaceFolder
        | Reference::WorkspaceFolderBasename
        | Reference::UserHome
        | Reference::PathSeparator
        | Reference::Cwd => true,
        Reference::Input(_) | Reference::Keyring(_) | Reference::Unknown(_) => false,
    };
    if !expand::references_in(written).iter().all(open) {
        return None;
    }
    expand::text(written, values).ok()
}

fn values(folder: Option<&Path>) -> Values {
    let environment = expand::snapshot();
    let home = environment.get("HOME").or_else(|| environment.get("USERPROFILE")).map(Into::into);
    let folder = folder.map(Path::to_path_buf);
    Values {
        environment,
        workspace_folder: folder.clone(),
        run_folder: folder.clone(),
        env_file_folder: folder,
        user_home: home,
        ..Values::default()
    }
}
