//! The file that a command stands for, looked up as it will be at the start: in the PATH that the child gets.
//!
//! Only what says where things are is put in before the user has agreed: folders, and the variables that every child
//! gets. What needs an input, a secret or any other variable is known once it is trusted.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::contents::read_small;
use crate::config::expand::{self, Reference, Values};
use crate::config::spec::Stdio;

/// What became of the search.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    At(PathBuf),
    Nowhere,
    /// The name or the PATH needs values that nobody may ask for yet.
    Later,
}

impl Found {
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::At(path) => Some(path),
            Self::Nowhere | Self::Later => None,
        }
    }
}

/// Shown in place of a program that is not known yet.
pub const LATER: &str = "(known once it is trusted)";

pub fn find(stdio: &Stdio, cwd: Option<&Path>, folder: Option<&Path>) -> Found {
    let values = values(folder);
    let Some(command) = known(&stdio.command, &values) else { return Found::Later };
    let path = match own_path(stdio, &values) {
        Own::Not => std::env::var_os("PATH"),
        Own::Is(path) => path,
        // A command that is a path is no matter of the PATH.
        Own::Later if command.contains(std::path::is_separator) => None,
        Own::Later => return Found::Later,
    };
    let from = cwd.unwrap_or(Path::new("/"));
    match which::which_in(command, path, from) {
        // Of a relative entry in the PATH: seen from where the child runs.
        Ok(found) => Found::At(from.join(found)),
        Err(_) => Found::Nowhere,
    }
}

/// The file of `envFile`, where its name can be told.
pub fn env_file(written: &str, folder: Option<&Path>) -> Option<PathBuf> {
    let values = values(folder);
    let path = known(written, &values)?;
    Some(expand::resolve(&path, values.env_file_folder.as_deref(), &values))
}

/// Whether an entry says itself where its programs are looked for.
pub fn has_own_path(stdio: &Stdio, folder: Option<&Path>) -> bool {
    !matches!(own_path(stdio, &values(folder)), Own::Not)
}

enum Own {
    Not,
    /// `None`: it takes the PATH away.
    Is(Option<OsString>),
    Later,
}

/// `env` comes after `envFile`, as at the start.
fn own_path(stdio: &Stdio, values: &Values) -> Own {
    if let Some(written) = stdio.env.get("PATH") {
        return match written.as_deref().map(|written| known(written, values)) {
            None => Own::Is(None),
            Some(Some(path)) => Own::Is(Some(path.into())),
            Some(None) => Own::Later,
        };
    }
    let Some(written) = &stdio.env_file else { return Own::Not };
    let Some(file) = known(written, values) else { return Own::Later };
    let text = read_small(&expand::resolve(&file, values.env_file_folder.as_deref(), values)).unwrap_or_default();
    let entries = expand::parse_env_file(&text).unwrap_or_default();
    match entries.into_iter().rev().find(|(name, _)| name == "PATH") {
        Some((_, path)) => Own::Is(Some(path.into())),
        None => Own::Not,
    }
}

fn known(written: &str, values: &Values) -> Option<String> {
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
