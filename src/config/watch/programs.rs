//! The programs of the configured servers, and whether they are installed. This can change while the config does not.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::shape::{Machine, ThisMachine};
use super::super::spec::MissingProgram;
use super::super::{Config, Environments, Launch, Source};
use crate::model::Scope;

/// The maximum number of programs to watch.
const MOST: usize = 64;

/// Each program as written in the config, the folder of its definition, and whether it was found.
#[derive(Default)]
pub(super) struct Programs(BTreeMap<MissingProgram, bool>);

impl Programs {
    /// Replaces the programs by those of this config. Returns whether they differ.
    pub fn set_config(&mut self, config: &Config, environments: &Arc<Environments>) -> bool {
        let launches = config.servers.values().flat_map(|server| {
            let launches = [Some(&server.spec.launch), server.spec.fallback.as_ref()];
            launches.into_iter().flatten().map(|launch| (launch, server.folder.clone()))
        });
        // Variables and relative paths are only resolved when the server starts.
        let known = |program: &str| !program.contains(['/', '\\', '$']) || Path::new(program).is_absolute();
        let written = launches.filter_map(|(launch, folder)| match launch {
            Launch::Stdio(stdio) if known(&stdio.command) => Some((stdio.command.clone(), folder)),
            _ => None,
        });
        let names: BTreeSet<MissingProgram> = written.collect::<BTreeSet<_>>().into_iter().take(MOST).collect();
        if names.iter().eq(self.0.keys()) {
            return false;
        }
        self.0 = found(names, environments);
        true
    }

    /// Searches for all programs again. Returns whether any was installed or removed.
    pub fn refresh(&mut self, environments: &Arc<Environments>) -> bool {
        let now = found(self.0.keys().cloned(), environments);
        let other = now != self.0;
        self.0 = now;
        other
    }

    pub fn missing(&self) -> BTreeSet<MissingProgram> {
        self.0.iter().filter(|(_, found)| !**found).map(|(program, _)| program.clone()).collect()
    }

    /// Every path at which one of the programs could be.
    pub fn candidates(&self, environments: &Environments) -> Vec<Source> {
        let source = |path: PathBuf| {
            let folder = path.parent().map(Into::into);
            Source { path: path.into(), scope: Scope::User, folder }
        };
        let paths = |(program, folder): &MissingProgram| -> Vec<PathBuf> {
            match Path::new(program) {
                path if path.is_absolute() => vec![path.to_owned()],
                name => {
                    let path = environments.in_folder(folder.as_deref()).path().unwrap_or_default();
                    let searched = std::env::split_paths(path).filter(|folder| folder.is_absolute()).take(MOST);
                    searched.map(|folder| folder.join(name)).collect()
                }
            }
        };
        let all: BTreeSet<PathBuf> = self.0.keys().flat_map(paths).collect();
        all.into_iter().map(source).collect()
    }
}

fn found(
    programs: impl IntoIterator<Item = MissingProgram>,
    environments: &Arc<Environments>,
) -> BTreeMap<MissingProgram, bool> {
    let machine = ThisMachine::new(environments.clone());
    let check = |(program, folder): MissingProgram| {
        let found = machine.finds(&program, None, folder.as_deref());
        ((program, folder), found)
    };
    programs.into_iter().map(check).collect()
}
