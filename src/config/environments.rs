//! Which environment a server starts with: that of the editor of its folder, or otherwise that of this process.
//!
//! Without an editor, agents and shell commands supply variables that the definition refers to, and nothing that decides
//! what runs. A server of the user gets nothing that leads into an open folder. Everything that depends on the environment asks here, so that a diagnostic, the question about trust and the
//! start cannot disagree. The values are secret: they are kept in memory only, and `Debug` shows none of them.

mod changes;
mod outside;
mod supplied;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Definition;
use crate::paths::code_roots;
pub use changes::changes;
pub use outside::{LeftOut, mentions};

/// How many editors that have left are remembered, each for other folders.
const MAX_LEFT: usize = 16;

/// The variables of a front or of this process. Cheap to clone.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Environment {
    variables: Arc<BTreeMap<String, String>>,
    /// What the open folders would decide.
    #[serde(skip)]
    left_out: Arc<LeftOut>,
}

impl Environment {
    /// Of this process, without values that are not valid UTF-8.
    pub fn of_this_process() -> Self {
        let valid =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        valid.collect::<BTreeMap<_, _>>().into()
    }

    /// Leaves out variables, the largest first, until the rest is at most `bytes` long as JSON. Returns the names of those
    /// that are left out.
    #[must_use]
    pub fn limited(&self, bytes: usize) -> (Self, Vec<String>) {
        let length = |text: &str| serde_json::to_string(text).map_or(usize::MAX, |text| text.len());
        let size = |(name, value): (&String, &String)| length(name).saturating_add(length(value)).saturating_add(2);
        let mut total = self.variables.iter().map(size).fold(2, usize::saturating_add);
        let mut by_size: Vec<(usize, &String)> = self.variables.iter().map(|entry| (size(entry), entry.0)).collect();
        by_size.sort_unstable();
        let mut left_out = Vec::new();
        while total > bytes {
            let Some((size, name)) = by_size.pop() else { break };
            total = total.saturating_sub(size);
            left_out.push(name.clone());
        }
        let mut kept = BTreeMap::clone(&self.variables);
        kept.retain(|name, _| !left_out.contains(name));
        (kept.into(), left_out)
    }

    pub fn is_empty(&self) -> bool {
        self.variables.is_empty()
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// Where programs are searched.
    pub fn path(&self) -> Option<&str> {
        self.get("PATH")
    }

    pub fn left_out(&self) -> &LeftOut {
        &self.left_out
    }

    pub fn iter(&self) -> impl Iterator<Item = (&String, &String)> {
        self.variables.iter()
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Environment({} variables)", self.variables.len())
    }
}

impl From<BTreeMap<String, String>> for Environment {
    fn from(variables: BTreeMap<String, String>) -> Self {
        Self { variables: Arc::new(variables), left_out: Arc::default() }
    }
}

/// What a front may supply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Supplies {
    /// The whole environment: an editor of the user.
    Everything,
    /// Only what a definition refers to: an agent or a shell command.
    Referred,
}

/// The environments of all fronts and of this process.
#[derive(Debug, Clone)]
pub struct Environments {
    own: ForScopes,
    /// Oldest first.
    sent: Vec<Sent>,
    open: OpenFolders,
}

/// The folders that were open at some time: their code must not run because a front was started in one of them.
#[derive(Debug, Clone, Default)]
struct OpenFolders {
    /// As fronts name them.
    all: BTreeSet<PathBuf>,
    /// Their repositories by canonical path, and the folders as fronts name them.
    roots: BTreeSet<PathBuf>,
}

/// One environment, for the servers of projects and for those of the user.
#[derive(Debug, Clone)]
struct ForScopes {
    whole: Environment,
    outside: Environment,
}

impl ForScopes {
    fn new(whole: Environment, open: &OpenFolders) -> Self {
        Self { outside: outside::without(&whole, &open.roots), whole }
    }

    fn of(&self, is_project: bool) -> &Environment {
        if is_project { &self.whole } else { &self.outside }
    }
}

/// The environment of a front.
#[derive(Debug, Clone)]
struct Sent {
    id: u64,
    supplies: Supplies,
    /// Its workspace folders, as it names them and by canonical path.
    folders: Vec<PathBuf>,
    environment: ForScopes,
    /// An editor that has left counts until another one has its folder open: its servers keep running, and must not start
    /// again with something else.
    is_attached: bool,
}

impl Default for Environments {
    /// Only the environment of this process.
    fn default() -> Self {
        Environment::of_this_process().into()
    }
}

impl From<Environment> for Environments {
    fn from(own: Environment) -> Self {
        Self { own: ForScopes::new(own, &OpenFolders::default()), sent: Vec::new(), open: OpenFolders::default() }
    }
}

impl Environments {
    /// The environment that a definition starts with.
    pub fn of(&self, definition: &Definition) -> Environment {
        let folder = definition.folder.as_deref();
        let editor = self.editor(folder);
        let base = editor.map_or(&self.own, |editor| &editor.environment).of(definition.scope.needs_trust());
        if editor.is_some_and(|editor| editor.is_attached) {
            return base.clone();
        }
        let mut added = BTreeMap::new();
        for name in supplied::names(definition) {
            // An editor that has left belongs to the user, so no agent replaces its values. Without one, the process was
            // started by an agent or a shell command itself.
            if editor.is_some() && base.get(&name).is_some() {
                continue;
            }
            let value = self.others(folder).find_map(|sent| sent.environment.whole.get(&name));
            if let Some(value) = value.filter(|value| base.get(&name) != Some(value)) {
                added.insert(name, value.to_owned());
            }
        }
        if added.is_empty() {
            return base.clone();
        }
        let mut variables = BTreeMap::clone(&base.variables);
        variables.extend(added);
        Environment { variables: Arc::new(variables), left_out: base.left_out.clone() }
    }

    /// The environment of all definitions of a folder, or of the user, without what agents supply.
    pub fn in_folder(&self, folder: Option<&Path>) -> &Environment {
        self.editor(folder).map_or(&self.own, |editor| &editor.environment).of(folder.is_some())
    }

    /// Servers of the user get nothing from now on that leads into these folders. Returns whether one is new.
    pub fn open(&mut self, folders: &[PathBuf]) -> bool {
        let count = self.open.all.len();
        for folder in folders {
            if self.open.all.insert(folder.clone()) {
                self.open.roots.extend(code_roots(folder));
            }
        }
        if self.open.all.len() == count {
            return false;
        }
        let all = std::iter::once(&mut self.own).chain(self.sent.iter_mut().map(|sent| &mut sent.environment));
        for environment in all {
            *environment = ForScopes::new(environment.whole.clone(), &self.open);
        }
        true
    }

    /// The names of the variables that a definition of this folder can refer to.
    pub fn names(&self, folder: Option<&Path>) -> BTreeSet<String> {
        let names = |environment: &Environment| environment.variables.keys().cloned().collect::<Vec<_>>();
        let mut all: BTreeSet<String> = names(self.in_folder(folder)).into_iter().collect();
        if !self.has_editor(folder) {
            let others = self.others(folder).flat_map(|sent| names(&sent.environment.whole));
            all.extend(others.filter(|name| supplied::is_harmless(name)));
        }
        all
    }

    /// Whether the user has this folder open in an editor. Servers of the user belong to every folder.
    pub fn has_editor(&self, folder: Option<&Path>) -> bool {
        self.editor(folder).is_some_and(|editor| editor.is_attached)
    }

    /// Sets the folders of a front, and its environment if it is new.
    pub fn set(&mut self, id: u64, supplies: Supplies, environment: &Environment, folders: &[PathBuf]) {
        self.open(folders);
        let canonical = folders.iter().filter_map(|folder| folder.canonicalize().ok());
        let folders: Vec<PathBuf> = folders.iter().cloned().chain(canonical).collect();
        if supplies == Supplies::Everything {
            self.forget_left(&folders);
        }
        match self.sent.iter_mut().find(|sent| sent.id == id) {
            Some(sent) => sent.folders = folders,
            None => {
                let environment = ForScopes::new(environment.clone(), &self.open);
                self.sent.push(Sent { id, supplies, folders, environment, is_attached: true });
            }
        }
    }

    /// A front has left.
    pub fn leave(&mut self, id: u64) {
        let Some(at) = self.sent.iter().position(|sent| sent.id == id) else { return };
        let mut left = self.sent.remove(at);
        if left.supplies == Supplies::Everything {
            self.forget_left(&left.folders);
            left.is_attached = false;
            self.sent.push(left);
        }
        let count = self.sent.iter().filter(|sent| !sent.is_attached).count();
        if let Some(oldest) = self.sent.iter().position(|sent| !sent.is_attached).filter(|_| count > MAX_LEFT) {
            self.sent.remove(oldest);
        }
    }

    /// Forgets editors that have left, if they had one of these folders open, or none like the new one.
    fn forget_left(&mut self, folders: &[PathBuf]) {
        let shares = |sent: &Sent| match (sent.folders.is_empty(), folders.is_empty()) {
            (false, false) => sent.folders.iter().any(|folder| folders.contains(folder)),
            (none, also_none) => none && also_none,
        };
        self.sent.retain(|sent| sent.is_attached || !shares(sent));
    }

    /// The newest editor with this folder, or otherwise the one that disconnected last.
    fn editor(&self, folder: Option<&Path>) -> Option<&Sent> {
        let editors =
            || self.sent.iter().rev().filter(|sent| sent.supplies == Supplies::Everything && sent.has(folder));
        editors().find(|editor| editor.is_attached).or_else(|| editors().next())
    }

    /// The agents and shell commands of this folder, newest first.
    fn others(&self, folder: Option<&Path>) -> impl Iterator<Item = &Sent> {
        self.sent.iter().rev().filter(move |sent| sent.supplies == Supplies::Referred && sent.has(folder))
    }
}

impl Sent {
    fn has(&self, folder: Option<&Path>) -> bool {
        let is_open = |folder: &Path| self.folders.iter().any(|own| own == folder);
        folder.is_none_or(|folder| is_open(folder) || folder.canonicalize().is_ok_and(|folder| is_open(&folder)))
    }
}

#[cfg(test)]
mod tests;
