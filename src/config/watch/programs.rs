//! The programs of the configured servers, and whether they are installed. This can change while the config does not.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::super::shape::{Machine, World};
use super::super::{Config, Launch, Source};
use crate::model::Scope;

/// The maximum number of programs to watch.
const MOST: usize = 64;

/// Each program as written in the config, and whether it was found.
#[derive(Default)]
pub(super) struct Programs(BTreeMap<String, bool>);

impl Programs {
    /// Replaces the programs by those of this config. Returns whether they differ.
    pub fn set_config(&mut self, config: &Config) -> bool {
        let launches = config
            .servers
            .values()
            .map(|server| &server.spec)
            .flat_map(|spec| [Some(&spec.launch), spec.fallback.as_ref()]);
        // Variables and relative paths are only resolved when the server starts.
        let known = |program: &str| !program.contains(['/', '\\', '$']) || Path::new(program).is_absolute();
        let written = launches.flatten().filter_map(|launch| match launch {
            Launch::Stdio(stdio) if known(&stdio.command) => Some(stdio.command.clone()),
            _ => None,
        });
        let names: BTreeSet<String> = written.collect::<BTreeSet<_>>().into_iter().take(MOST).collect();
        if names.iter().eq(self.0.keys()) {
            return false;
        }
        self.0 = found(names);
        true
    }

    /// Searches for all programs again. Returns whether any was installed or removed.
    pub fn refresh(&mut self) -> bool {
        let now = found(self.0.keys().cloned());
        let other = now != self.0;
        self.0 = now;
        other
    }

    pub fn missing(&self) -> BTreeSet<String> {
        self.0.iter().filter(|(_, found)| !**found).map(|(name, _)| name.clone()).collect()
    }

    /// Every path at which one of the programs could be.
    pub fn candidates(&self) -> Vec<Source> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders: Vec<_> = std::env::split_paths(&path).filter(|folder| folder.is_absolute()).take(MOST).collect();
        let source = |path: PathBuf| {
            let folder = path.parent().map(Into::into);
            Source { path: path.into(), scope: Scope::User, folder }
        };
        let paths = |program: &String| -> Vec<PathBuf> {
            match Path::new(program) {
                path if path.is_absolute() => vec![path.to_owned()],
                name => folders.iter().map(|folder| folder.join(name)).collect(),
            }
        };
        self.0.keys().flat_map(paths).map(source).collect()
    }
}

fn found(names: impl IntoIterator<Item = String>) -> BTreeMap<String, bool> {
    let machine = Machine::default();
    let check = |name: String| {
        let found = machine.finds(&name, None);
        (name, found)
    };
    names.into_iter().map(check).collect()
}
