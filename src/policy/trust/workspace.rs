//! Whether a user's server depends on the open workspace: runs in it, runs a program from it, or gets its path. Such a
//! server could run code from a repository.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{program, real};
use crate::config::expand::{self, Reference, Values};
use crate::config::spec::{Definition, Launch, Stdio};

/// Whether a definition touches one of these folders. If that is unknown, it does.
pub fn touches(definition: &Definition, folders: &[Arc<Path>]) -> bool {
    let launches = [Some(&definition.spec.launch), definition.spec.fallback.as_ref()];
    launches.into_iter().flatten().any(|launch| match launch {
        Launch::Stdio(stdio) => program_touches(definition, stdio, launch, folders),
        // We do not start what already runs elsewhere.
        Launch::Tcp { .. } | Launch::Http(_) | Launch::Sse(_) | Launch::Sdk { .. } | Launch::ClaudeAiProxy { .. } => {
            false
        }
    })
}

fn program_touches(definition: &Definition, stdio: &Stdio, launch: &Launch, folders: &[Arc<Path>]) -> bool {
    let names_it =
        |reference: &Reference| matches!(reference, Reference::WorkspaceFolder | Reference::WorkspaceFolderBasename);
    if expand::references(launch).iter().any(names_it) {
        return true;
    }
    let folders: Vec<PathBuf> = folders.iter().flat_map(|folder| [folder.to_path_buf(), real(folder)]).collect();
    let inside = |path: &Path| {
        let real = real(path);
        folders.iter().any(|folder| path.starts_with(folder) || real.starts_with(folder))
    };
    let values = Values::of(definition, None, None);
    // A value that is known only at the start (an input, a key) is not expected to be a path in this workspace.
    let expanded = |written: &str| expand::text(written, &values).unwrap_or_else(|_| written.to_owned());
    let mentions = |written: &str| {
        let text = expanded(written);
        inside(Path::new(&text)) || folders.iter().any(|folder| folder.to_str().is_some_and(|path| text.contains(path)))
    };
    let texts = stdio.args.iter().chain(stdio.env.values().flatten()).chain(&stdio.cwd).chain(&stdio.env_file);
    texts.chain([&stdio.command]).any(|text| mentions(text))
        || program::find(stdio, None, None).path().is_some_and(inside)
}
