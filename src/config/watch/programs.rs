//! The programs that servers are started with, and whether they are there: that can change while no config does.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::super::shape::{Machine, World};
use super::super::{Config, Launch, Source};
use crate::model::Scope;

/// More programs than this are not followed.
const MOST: usize = 64;

/// Each program as it is written, and whether it was there when last looked for.
#[derive(Default)]
pub(super) struct Programs(BTreeMap<String, bool>);

impl Programs {
    /// Looks for those of another config; tells whether there are others now.
    pub fn learn(&mut self, config: &Config) -> bool {
        let launches = config
            .servers
            .values()
            .map(|server| &server.spec)
            .flat_map(|spec| [Some(&spec.launch), spec.fallback.as_ref()]);
        // What a variable stands for, and where a relative path begins, is known when the server starts.
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

    /// Looks for all of them again; tells whether any has come or gone.
    pub fn look(&mut self) -> bool {
        let now = found(self.0.keys().cloned());
        let other = now != self.0;
        self.0 = now;
        other
    }

    pub fn missing(&self) -> BTreeSet<String> {
        self.0.iter().filter(|(_, found)| !**found).map(|(name, _)| name.clone()).collect()
    }

    /// Every place where one of them would be found.
    pub fn places(&self) -> Vec<Source> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders: Vec<_> = std::env::split_paths(&path).filter(|folder| folder.is_absolute()).take(MOST).collect();
        let source = |path: PathBuf| {
            let folder = path.parent().map(Into::into);
            Source { path: path.into(), scope: Scope::User, folder }
        };
        let places = |program: &String| -> Vec<PathBuf> {
            match Path::new(program) {
                path if path.is_absolute() => vec![path.to_owned()],
                name => folders.iter().map(|folder| folder.join(name)).collect(),
            }
        };
        self.0.keys().flat_map(places).map(source).collect()
    }
}

fn found(names: impl IntoIterator<Item = String>) -> BTreeMap<String, bool> {
    let machine = Machine::default();
    let look = |name: String| {
        let found = machine.finds(&name, None);
        (name, found)
    };
    names.into_iter().map(look).collect()
}
