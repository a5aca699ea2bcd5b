//! The proof that a definition may start, and what the user must see before it may.
//!
//! Project files arrive with `git clone`. A definition from one of them starts only when the user has trusted it
//! exactly as it stands: the [`Fingerprint`] covers all that decides what will run and what it may do. Judging reads
//! files (it resolves the program and digests scripts that lie in the project), so it belongs on a blocking thread.
//! Keeping the answers is left to the store.

mod contents;
mod fingerprint;
mod program;
mod summary;
mod workspace;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::config::spec::Stdio;
use crate::config::{Config, Definition};
use crate::model::ServerName;
use crate::text::MASK;
pub use fingerprint::Fingerprint;
pub use summary::Summary;
pub use workspace::touches;

/// A definition that may be started: of the user's own scope, or trusted by the user exactly as it is. Only this
/// module makes one, and `Server::spawn` takes nothing else.
#[derive(Debug, Clone)]
pub struct Trusted {
    definition: Arc<Definition>,
    fingerprint: Arc<Fingerprint>,
}

impl Trusted {
    pub fn definition(&self) -> &Arc<Definition> {
        &self.definition
    }

    pub fn fingerprint(&self) -> &Arc<Fingerprint> {
        &self.fingerprint
    }

    /// For the tests of those who take one.
    #[cfg(test)]
    pub(crate) fn for_test(definition: Arc<Definition>) -> Self {
        let fingerprint = Arc::new(Fingerprint::of(&definition, &Config::default()));
        Self { definition, fingerprint }
    }
}

/// What an answer about trust is kept under. The project is its real path and nothing else: no file inside of it,
/// such as `.git`, can make it another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TrustKey {
    pub project: PathBuf,
    pub server: ServerName,
}

impl TrustKey {
    /// `None` for definitions that need no trust.
    pub fn of(definition: &Definition) -> Option<Self> {
        definition.scope.needs_trust().then(|| {
            let folder = definition.folder.as_deref().or_else(|| definition.file.as_deref()?.parent());
            Self { project: real(folder.unwrap_or(Path::new("/"))), server: definition.key.clone() }
        })
    }
}

/// The user's earlier answers about one server of one project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remembered {
    pub trusted: Option<Arc<Fingerprint>>,
    /// Digest of the definition that the user refused last.
    pub denied: Option<String>,
}

#[derive(Debug)]
pub enum Verdict {
    Trusted(Trusted),
    Ask(Box<Question>),
    /// The user said no to exactly this before.
    Refused(Arc<Fingerprint>),
}

/// What the user has to be asked before a definition may start.
#[derive(Debug)]
pub struct Question {
    pub key: TrustKey,
    pub fingerprint: Arc<Fingerprint>,
    /// Against what was trusted before; absent the first time.
    pub difference: Option<Vec<String>>,
    /// Only the levels changed, not what runs: a server that is running may go on, without the new levels.
    pub same_launch: bool,
    pub summary: Summary,
}

/// Says whether a definition may start. `remembered` looks an earlier answer up.
pub fn judge(
    definition: &Arc<Definition>,
    config: &Config,
    remembered: impl FnOnce(&TrustKey) -> Option<Remembered>,
) -> Verdict {
    let fingerprint = Arc::new(Fingerprint::of(definition, config));
    let Some(key) = TrustKey::of(definition) else {
        return Verdict::Trusted(Trusted { definition: definition.clone(), fingerprint });
    };
    let remembered = remembered(&key).unwrap_or_default();
    if remembered.denied.as_deref() == Some(&*fingerprint.digest) {
        return Verdict::Refused(fingerprint);
    }
    match remembered.trusted {
        Some(trusted) if trusted.covers(&fingerprint) => {
            Verdict::Trusted(Trusted { definition: definition.clone(), fingerprint })
        }
        trusted => Verdict::Ask(Box::new(Question {
            difference: trusted.as_ref().map(|old| old.difference(&fingerprint)),
            same_launch: trusted.is_some_and(|old| old.launch == fingerprint.launch),
            summary: Summary::of(definition, &fingerprint),
            key,
            fingerprint,
        })),
    }
}

/// The program that a launch would run, where that can be told before it is trusted.
pub fn program(stdio: &Stdio, folder: Option<&Path>) -> Option<PathBuf> {
    let cwd = fingerprint::cwd(stdio, folder);
    program::find(stdio, cwd.as_deref(), folder).path().map(Path::to_path_buf)
}

/// What changed, line by line: `- args.1: …` went, `+ args.1: …` came. Masked values stay masked.
fn difference(old: &BTreeMap<String, String>, new: &BTreeMap<String, String>) -> Vec<String> {
    let mut lines = Vec::new();
    let keys: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for key in keys {
        match (old.get(key), new.get(key)) {
            (Some(before), Some(now)) if before == now => {}
            (before, now) => {
                let same_look = before.map(|value| shown(value)) == now.map(|value| shown(value));
                lines.extend(before.map(|value| format!("- {key}: {}", shown(value))));
                let note = if same_look { " (another value)" } else { "" };
                lines.extend(now.map(|value| format!("+ {key}: {}{note}", shown(value))));
            }
        }
    }
    lines
}

impl Fingerprint {
    /// From what was trusted to what is there now.
    pub fn difference(&self, now: &Self) -> Vec<String> {
        let all = |fingerprint: &Self| {
            fingerprint.lines.iter().chain(&fingerprint.exceptions).map(|(k, v)| (k.clone(), v.clone())).collect()
        };
        difference(&all(self), &all(now))
    }
}

/// A line's value without the tag that tells masked values apart.
fn shown(value: &str) -> String {
    match value.find(MASK).map(|at| value.split_at(at + MASK.len())) {
        Some((masked, tag)) if tag.starts_with('#') => masked.to_owned(),
        _ => value.to_owned(),
    }
}

/// The real path of a folder; its own where it cannot be resolved.
pub fn real(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf())
}

#[cfg(test)]
mod tests;
