//! The environment without what the open folders could decide. A user's own server starts in every folder that the user
//! opens, so a PATH or a variable that leads into one, as tools such as direnv set it, must not choose its code.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Environment;
use crate::config::risky;
use crate::paths::leads_through;

/// What is not in an environment. None of it is shown except the names.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Entries of the PATH.
    path: Vec<PathBuf>,
    names: Vec<String>,
}

impl LeftOut {
    /// What a server of the user should know about: variables that it would get, and a program that is found elsewhere or
    /// not at all. `gets` says whether it gets a variable.
    pub fn describe(&self, command: &str, gets: impl Fn(&str) -> bool) -> Option<String> {
        let is_name = gets("PATH") && !command.contains(std::path::is_separator);
        let has_program = |folder: &PathBuf| is_name && folder.is_absolute() && folder.join(command).is_file();
        let path = self.path.iter().any(has_program).then(|| "folders on the PATH".to_owned());
        let names = self.names.iter().filter(|name| gets(name)).map(|name| format!("`{name}`"));
        let all: Vec<String> = path.into_iter().chain(names).collect();
        (!all.is_empty()).then(|| {
            format!(
                "left out, because they let files in an open folder decide what runs: {}; to use them, set them in `env` of the entry",
                all.join(", ")
            )
        })
    }
}

/// Leaves out entries of the PATH that lead through these folders or are relative, and variables that make programs load
/// code or trust a machine and mention one of the folders.
pub fn without(environment: &Environment, roots: &BTreeSet<PathBuf>) -> Environment {
    if roots.is_empty() {
        return environment.clone();
    }
    let mut variables = BTreeMap::clone(&environment.variables);
    let mut left_out = LeftOut::default();
    if let Some(path) = variables.remove("PATH") {
        let (kept, dropped): (Vec<PathBuf>, Vec<PathBuf>) =
            std::env::split_paths(&path).partition(|entry| entry.is_absolute() && !leads_through(entry, roots));
        left_out.path = dropped;
        let joined = std::env::join_paths(kept).ok().and_then(|path| path.into_string().ok());
        // An empty PATH means the working directory.
        if let Some(path) = joined.filter(|path| !path.is_empty()) {
            variables.insert("PATH".to_owned(), path);
        }
    }
    variables.retain(|name, value| {
        let keep = name == "PATH" || risky::effect(name).is_none() || !mentions(value, roots);
        if !keep {
            left_out.names.push(name.clone());
        }
        keep
    });
    Environment { variables: Arc::new(variables), left_out: Arc::new(left_out) }
}

/// Whether a value contains a path that leads through one of these folders: alone, in a list, or behind a flag.
pub fn mentions(value: &str, roots: &BTreeSet<PathBuf>) -> bool {
    let names_root = |root: &str| {
        value.match_indices(root).any(|(at, _)| {
            let after = value.get(at + root.len()..).and_then(|rest| rest.chars().next());
            !after.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
        })
    };
    let is_separator = |c: char| c.is_whitespace() || matches!(c, ':' | ';' | ',' | '=' | '"' | '\'');
    // In `-I/path` and `file:///path`, the path begins at a slash.
    let path = |part: &str| part.find('/').and_then(|at| part.get(at..)).map(str::to_owned);
    roots.iter().filter_map(|root| root.to_str()).any(names_root)
        || leads(value, roots)
        || value.split(is_separator).filter_map(path).any(|part| leads(&part, roots))
}

fn leads(value: &str, roots: &BTreeSet<PathBuf>) -> bool {
    let path = Path::new(value);
    path.is_absolute() && leads_through(path, roots)
}
