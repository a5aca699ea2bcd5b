//! Whether a user's server depends on the open workspace: runs in it, runs a program from it, or gets its path. Such a
//! server could run code from a repository.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::program;
use crate::config::Environment;
use crate::config::environments::mentions;
use crate::config::expand::{self, Reference, Values};
use crate::config::risky;
use crate::config::spec::{Definition, Launch, Sandbox, Stdio};
use crate::model::Scope;
use crate::paths::{canonical, code_roots, leads_through, repository};

/// Whether a definition touches one of these folders. If that is unknown, it does.
pub fn touches(definition: &Definition, folders: &[Arc<Path>], environment: &Environment) -> bool {
    let values = Values::of(definition, environment, None, None);
    let launches = [Some(&definition.spec.launch), definition.spec.fallback.as_ref()];
    let mut launches = launches.into_iter().flatten();
    launches.any(|launch| match launch {
        Launch::Stdio(stdio) => program_touches(&values, stdio, launch, folders),
        // We do not start what already runs elsewhere.
        Launch::Tcp { .. } | Launch::Http(_) | Launch::Sse(_) | Launch::Sdk { .. } | Launch::ClaudeAiProxy { .. } => {
            false
        }
    }) || runs_inside(definition, folders, environment).is_some()
}

/// Whether a definition is one of the user's, and the same in every workspace. If that is unknown, it is not.
pub fn is_independent(definition: &Definition, folders: &[Arc<Path>], environment: &Environment) -> bool {
    let launches = [Some(&definition.spec.launch), definition.spec.fallback.as_ref()];
    let references = launches.into_iter().flatten().flat_map(expand::references);
    let is_own = matches!(definition.scope, Scope::User | Scope::Managed) && definition.folder.is_none();
    let names_it = references.into_iter().any(|reference| names_workspace(&reference));
    is_own && !names_it && !touches(definition, folders, environment)
}

fn names_workspace(reference: &Reference) -> bool {
    matches!(reference, Reference::WorkspaceFolder | Reference::WorkspaceFolderBasename)
}

/// The open folder whose code a server of the user would run: its working directory, its program, or what its own
/// variables make programs load is in the same repository. Arguments do not count: they are data of the server.
pub fn runs_inside(definition: &Definition, folders: &[Arc<Path>], environment: &Environment) -> Option<PathBuf> {
    let values = Values::of(definition, environment, folders.first().map(|folder| &**folder), None);
    let launches = [Some(&definition.spec.launch), definition.spec.fallback.as_ref()];
    let launches: Vec<&Stdio> = launches.into_iter().flatten().filter_map(Launch::stdio).collect();
    let inside = |folder: &&Arc<Path>| {
        let mut roots = code_roots(folder);
        // The folder may contain the home folder.
        roots.insert(repository(folder));
        launches.iter().any(|stdio| runs_in(stdio, &roots, &values))
    };
    folders.iter().find(inside).map(|folder| canonical(folder))
}

fn runs_in(stdio: &Stdio, roots: &BTreeSet<PathBuf>, values: &Values) -> bool {
    let written = stdio.cwd.as_deref().and_then(|written| expand::text(written, values).ok());
    // A relative one starts at the private folder.
    let cwd = written.map(|cwd| expand::resolve(&cwd, Some(Path::new("")), values)).filter(|cwd| cwd.is_absolute());
    let program = program::find_expanded(stdio, cwd.as_deref().unwrap_or(Path::new("/")), values);
    if cwd.iter().map(PathBuf::as_path).chain(program.path()).any(|path| leads_through(path, roots)) {
        return true;
    }
    let decides = |name: &str| risky::effect(name).is_some();
    let own = stdio.env.iter().filter(|(name, _)| decides(name)).filter_map(|(_, written)| written.as_deref());
    if own.map(|written| expand::partly(written, values)).any(|value| mentions(&value, roots)) {
        return true;
    }
    // A file of the repository decides by any value: `--import=data:…` needs no path.
    let file = stdio.env_file.as_deref().and_then(|written| program::env_file(written, values));
    let is_theirs = file.is_some_and(|file| leads_through(&file, roots));
    let mut entries = program::env_file_entries(stdio, values).into_iter().filter(|(name, _)| decides(name));
    entries.any(|(_, value)| is_theirs || mentions(&value, roots))
}

fn program_touches(values: &Values, stdio: &Stdio, launch: &Launch, folders: &[Arc<Path>]) -> bool {
    if expand::references(launch).iter().any(names_workspace) {
        return true;
    }
    let folders: Vec<PathBuf> = folders.iter().flat_map(|folder| [folder.to_path_buf(), canonical(folder)]).collect();
    let inside = |path: &Path| {
        let real = canonical(path);
        folders.iter().any(|folder| path.starts_with(folder) || real.starts_with(folder))
    };
    // A value that is known only at the start (an input, a key) is not expected to be a path in this workspace.
    let expanded = |written: &str| expand::text(written, values).unwrap_or_else(|_| written.to_owned());
    let mentions = |written: &str| {
        let text = expanded(written);
        inside(Path::new(&text)) || folders.iter().any(|folder| folder.to_str().is_some_and(|path| text.contains(path)))
    };
    let Stdio { command, args, env, env_file, cwd, inherit_env: _, sandbox } = stdio;
    let opened = sandbox.iter().flat_map(Sandbox::paths);
    let texts = args.iter().chain(env.values().flatten()).chain(cwd).chain(env_file).chain(opened);
    texts.chain([command]).any(|text| mentions(text)) || program::find(stdio, None, values).path().is_some_and(inside)
}
