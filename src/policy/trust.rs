//! The proof that a definition may start, and what the user must see before it may.
//!
//! Project files arrive with `git clone`. A definition in one of them starts only if the user trusts it exactly as it
//! is: the [`Fingerprint`] covers everything that decides what runs and what it may do. A check reads files (it
//! resolves the program and hashes scripts in the project), so run it on a blocking thread. The store keeps the
//! answers.

mod argument_words;
mod contents;
mod files;
mod fingerprint;
mod modules;
mod own_launch;
mod program;
mod runners;
mod summary;
mod workspace;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::lookalike;
use crate::config::expand::Values;
use crate::config::spec::Stdio;
use crate::config::{Config, Definition, Environment};
use crate::model::ServerName;
use crate::paths::canonical;
use crate::text::{MASK, exact};
pub use fingerprint::Fingerprint;
pub use own_launch::{changed_launches, own_launch, own_launches};
pub use summary::Summary;
pub use workspace::{is_independent, runs_inside, touches};

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
        let fingerprint = Fingerprint::of(&definition, &Config::default(), &Environment::of_this_process());
        let fingerprint = Arc::new(fingerprint);
        Self { definition, fingerprint }
    }
}

/// The key of a trust decision. A project is identified by its canonical path only, so no file in it, such as `.git`,
/// can make it look like another project. Each worktree has its own decisions, because its definitions may differ.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TrustKey {
    pub project: PathBuf,
    pub server: ServerName,
}

impl TrustKey {
    /// `None` for definitions that need no trust.
    pub fn of(definition: &Definition) -> Option<Self> {
        definition.scope.needs_trust().then(|| {
            let folder = definition.folder.as_deref().or_else(|| definition.file.as_deref()?.parent());
            Self { project: canonical(folder.unwrap_or(Path::new("/"))), server: definition.key.clone() }
        })
    }
}

/// The server of decisions about a folder as a whole.
const FOLDER: &str = "-";

impl TrustKey {
    /// The key of the decision whether the user's own servers may run in a folder.
    pub fn of_folder(folder: &Path) -> Option<Self> {
        Some(Self { project: folder.to_path_buf(), server: ServerName::new(FOLDER).ok()? })
    }
}

/// The user's decisions about one server of one project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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
    /// The user has denied exactly this launch of their own before, and is asked again.
    pub was_denied: bool,
    pub summary: Summary,
}

impl Question {
    /// The question whether servers of the user may run in this folder.
    pub fn about_folder(
        key: TrustKey,
        fingerprint: Arc<Fingerprint>,
        definition: &Definition,
        environment: &Environment,
    ) -> Self {
        let own = Fingerprint::of(definition, &Config::default(), environment);
        Self {
            key,
            fingerprint,
            difference: None,
            same_launch: false,
            was_denied: false,
            summary: Summary::of(definition, &own, environment),
        }
    }

    pub fn is_about_folder(&self) -> bool {
        self.key.server.as_str() == FOLDER && self.fingerprint.is_of_folder()
    }
}

/// Checks whether a definition may start with this environment. `record` looks up an earlier decision, and `elsewhere` says
/// whether the user has trusted a definition with this fingerprint in another worktree. The fingerprint names the
/// repository, so it cannot be that of another one.
pub fn check(
    definition: &Arc<Definition>,
    config: &Config,
    environment: &Environment,
    record: impl FnOnce(&TrustKey) -> Option<TrustRecord>,
    elsewhere: impl FnOnce(&TrustKey, &Fingerprint) -> bool,
) -> Verdict {
    let fingerprint = Arc::new(Fingerprint::of(definition, config, environment));
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
        _ if elsewhere(&key, &fingerprint) => Verdict::Trusted(Trusted { definition: definition.clone(), fingerprint }),
        trusted => {
            let mut summary = Summary::of(definition, &fingerprint, environment);
            summary.imitates = lookalike::imitated(definition, config).map(ToString::to_string);
            Verdict::Ask(Box::new(Question {
                difference: trusted.as_ref().map(|old| old.difference(&fingerprint)),
                same_launch: trusted.is_some_and(|old| old.launch == fingerprint.launch),
                was_denied: false,
                summary,
                key,
                fingerprint,
            }))
        }
    }
}

/// The program of a launch, if it is known before the definition is trusted.
pub fn program(stdio: &Stdio, values: &Values) -> Option<PathBuf> {
    let cwd = fingerprint::cwd(stdio, values);
    program::find(stdio, cwd.as_deref(), values).path().map(Path::to_path_buf)
}

/// Whether a bare command means the program that the PATH of the user finds, whatever PATH the entry sets.
pub fn is_on_user_path(stdio: &Stdio, values: &Values) -> bool {
    program::is_on_user_path(stdio, values)
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
                let key = exact(key);
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

/// The value of a line without the tags of masked values.
fn shown(value: &str) -> String {
    let mut parts = value.split(MASK);
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let tag = part
            .strip_prefix('#')
            .and_then(|rest| rest.get(..4))
            .filter(|tag| tag.chars().all(|c| c.is_ascii_hexdigit()));
        shown.push_str(MASK);
        shown.push_str(part.get(tag.map_or(0, |tag| tag.len() + 1)..).unwrap_or_default());
    }
    exact(&shown)
}

#[cfg(test)]
mod tests;
