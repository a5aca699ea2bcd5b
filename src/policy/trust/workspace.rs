//! Whether a server of the user has to do with the open workspace: runs in it, runs a program of it, or is given its
//! path. Such a server may run what a repository brought along.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{program, real};
use crate::config::expand::{self, Reference, Values};
use crate::config::spec::{Definition, Launch, Stdio};

/// Whether a definition touches one of these folders. What cannot be told counts as a yes.
pub fn touches(definition: &Definition, folders: &[Arc<Path>]) -> bool {
    let launches = [Some(&definition.spec.launch), definition.spec.fallback.as_ref()];
    launches.into_iter().flatten().any(|launch| match launch {
        Launch::Stdio(stdio) => program_touches(definition, stdio, launch, folders),
        // What runs elsewhere already is not started by us.
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
    // A value that is only known at the start (an input, a key) is not a path of this workspace by intent.
    let expanded = |written: &str| expand::text(written, &values).unwrap_or_else(|_| written.to_owned());
    let mentions = |written: &str| {
        let text = expanded(written);
        inside(Path::new(&text)) || folders.iter().any(|folder| folder.to_str().is_some_and(|path| text.contains(path)))
    };
    let texts = stdio.args.iter().chain(stdio.env.values().flatten()).chain(&stdio.cwd).chain(&stdio.env_file);
    texts.chain([&stdio.command]).any(|text| mentions(text))
        || program::find(stdio, None, None).path().is_some_and(inside)
}
