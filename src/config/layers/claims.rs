//! Who may have a place among the servers: a project's file pushes out nothing that the user or the administrator has.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use super::super::File;
use super::super::problem::{Problem, Related};
use super::super::shape::{Entry, Shaped};
use super::super::spec::Definition;
use crate::model::{Scope, ServerName};
use crate::settings::Limits;

/// The names that have their place whatever project files say, and the room that is left for those.
pub struct Claims {
    own: BTreeSet<ServerName>,
    room: usize,
    most: usize,
    /// Whether the file at hand has heard that there are too many.
    told: bool,
}

impl Claims {
    pub fn new(files: &[(File, Shaped)], session: &BTreeMap<String, Value>, limits: &Limits) -> Self {
        let names = |scope: Scope| {
            let files = files.iter().filter(move |(file, _)| file.source.scope == scope);
            files.flat_map(|(_, shaped)| shaped.servers.iter().map(|entry| entry.name.clone()))
        };
        let session = session.keys().filter_map(|name| ServerName::new(name).ok());
        let mut own = BTreeSet::new();
        for name in names(Scope::Managed).chain(session).chain(names(Scope::User)) {
            if own.len() < limits.servers && !name.twin().is_some_and(|twin| own.contains(&twin)) {
                own.insert(name);
            }
        }
        Self { room: limits.servers.saturating_sub(own.len()), own, most: limits.servers, told: false }
    }

    pub fn next_file(&mut self) {
        self.told = false;
    }

    /// Whether a session's server may come in; nothing of the user's is ever refused for want of room.
    pub fn has(&self, name: &ServerName) -> bool {
        self.own.contains(name)
    }

    /// Gives an entry that nobody has defined before its place, or says why it has none: `Err(None)` where that has been
    /// said already.
    pub fn admit(
        &mut self,
        entry: &Entry,
        scope: Scope,
        servers: &BTreeMap<ServerName, Definition>,
    ) -> Result<(), Option<Box<Problem>>> {
        if self.own.contains(&entry.name) {
            return Ok(());
        }
        if let Some(twin) = entry.name.twin()
            && (self.own.contains(&twin) || servers.contains_key(&twin))
        {
            return Err(Some(Box::new(alike(entry, &twin, servers.get(&twin)))));
        }
        if scope.needs_trust() && self.room > 0 {
            self.room -= 1;
            return Ok(());
        }
        if std::mem::replace(&mut self.told, true) {
            return Err(None);
        }
        let message = format!(
            "more than {} servers in all files together (setting limits.servers): this one is not used",
            self.most
        );
        Err(Some(Box::new(Problem::error("too-many-servers", entry.place.clone(), message))))
    }
}

/// `a_` with a tool `echo` and `a` with a tool `_echo` would both be `mcp__a___echo`.
fn alike(entry: &Entry, twin: &ServerName, there: Option<&Definition>) -> Problem {
    let message = format!(
        "`{}` and `{twin}` cannot be told apart in the names of their tools: this one is not used; rename it",
        entry.name
    );
    let mut problem = Problem::error("name-clash", entry.place.clone(), message);
    if let Some(there) = there {
        let file = there.file.as_deref().unwrap_or(Path::new("")).to_path_buf();
        problem.related.push(Related { file, span: there.place.clone(), message: "this one counts".to_owned() });
    }
    problem
}
