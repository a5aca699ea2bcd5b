//! The proof that a definition may start, and what the user must see before it may.
//!
//! Project files arrive with `git clone`. A definition in one of them starts only if the user trusts it exactly as it
//! is: the [`Fingerprint`] covers everything that decides what runs and what it may do. A check reads files (it
//! resolves the program and hashes scripts in the project), so run it on a blocking thread. The store keeps the
//! answers.

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

/// A definition that may start: one of the user's own, or one that the user trusts exactly as it is. Only this module
/// creates one, and `Server::spawn` accepts nothing else.
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

    /// For tests of functions that take one.
    #[cfg(test)]
    pub(crate) fn for_test(definition: Arc<Definition>) -> Self {
        let fingerprint = Arc::new(Fingerprint::of(&definition, &Config::default()));
        Self { definition, fingerprint }
    }
}

/// The key of a trust decision. A project is identified by its canonical path only, so no file in it, such as `.git`,
/// can make it look like another project.
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

/// The user's decisions about one server of one project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustRecord {
    pub trusted: Option<Arc<Fingerprint>>,
    /// Digest of the definition that the user denied last.
    pub denied: Option<String>,
}

#[derive(Debug)]
pub enum Verdict {
    Trusted(Trusted),
    Ask(Box<Question>),
    /// The user denied exactly this definition.
    Refused(Arc<Fingerprint>),
}

/// What to ask the user before a definition may start.
#[derive(Debug)]
pub struct Question {
    pub key: TrustKey,
    pub fingerprint: Arc<Fingerprint>,
    /// The difference to the trusted definition. `None` the first time.
    pub difference: Option<Vec<String>>,
    /// Only the levels changed: a running server may continue without the new levels.
    pub same_launch: bool,
    pub summary: Summary,
}

/// Checks whether a definition may start. `record` looks up an earlier decision.
pub fn check(
    definition: &Arc<Definition>,
    config: &Config,
    record: impl FnOnce(&TrustKey) -> Option<TrustRecord>,
) -> Verdict {
    let fingerprint = Arc::new(Fingerprint::of(definition, config));
    let Some(key) = TrustKey::of(definition) else {
        return Verdict::Trusted(Trusted { definition: definition.clone(), fingerprint });
    };
    let record = record(&key).unwrap_or_default();
    if record.denied.as_deref() == Some(&*fingerprint.digest) {
        return Verdict::Refused(fingerprint);
    }
    match record.trusted {
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

/// The program of a launch, if it is known before the definition is trusted.
pub fn program(stdio: &Stdio, folder: Option<&Path>) -> Option<PathBuf> {
    let cwd = fingerprint::cwd(stdio, folder);
    program::find(stdio, cwd.as_deref(), folder).path().map(Path::to_path_buf)
}

/// The changed lines: `- args.1: …` was removed, `+ args.1: …` was added. Masked values stay masked.
fn difference(old: &BTreeMap<String, String>, new: &BTreeMap<String, String>) -> Vec<String> {
    let mut lines = Vec::new();
    let keys: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for key in keys {
        match (old.get(key), new.get(key)) {
            (Some(before), Some(now)) if before == now => {}
            (before, now) => {
                let same_look = before.map(|value| shown(value)) == now.map(|value| shown(value));
                lines.extend(before.map(|value| format!("- {key}: {}", shown(value))));
                let note = if same_look { " (value changed)" } else { "" };
                lines.extend(now.map(|value| format!("+ {key}: {}{note}", shown(value))));
            }
        }
    }
    lines
}

impl Fingerprint {
    /// The difference between a trusted definition and the current one.
    pub fn difference(&self, now: &Self) -> Vec<String> {
        let all = |fingerprint: &Self| {
            fingerprint.lines.iter().chain(&fingerprint.exceptions).map(|(k, v)| (k.clone(), v.clone())).collect()
        };
        difference(&all(self), &all(now))
    }
}

/// The value of a line without the tag of a masked value.
fn shown(value: &str) -> String {
    match value.find(MASK).map(|at| value.split_at(at + MASK.len())) {
        Some((masked, tag)) if tag.starts_with('#') => masked.to_owned(),
        _ => value.to_owned(),
    }
}

/// The canonical path, or the path itself if it cannot be resolved.
pub fn real(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf())
}

#[cfg(test)]
mod tests;
