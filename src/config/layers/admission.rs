//! Who may have a place among the servers: a project's file pushes out nothing that the user or the administrator has.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use super::super::File;
use super::super::problem::{Problem, Related};
use super::super::shape::{ServerEntry, Shaped};
use super::super::spec::Definition;
use crate::model::{Scope, ServerName};
use crate::settings::Limits;

/// The names that have their place whatever project files say, and the room that is left for those.
pub struct Admission {
    reserved: BTreeSet<ServerName>,
    room: usize,
    limit: usize,
    /// Whether the file at hand has heard that other are too many.
    reported: bool,
}

impl Admission {
    pub fn new(files: &[(File, Shaped)], session: &BTreeMap<String, Value>, limits: &Limits) -> Self {
        let names = |scope: Scope| {
            let files = files.iter().filter(move |(file, _)| file.source.scope == scope);
            files.flat_map(|(_, shaped)| shaped.servers.iter().map(|entry| entry.name.clone()))
        };
        let session = session.keys().filter_map(|name| ServerName::new(name).ok());
        let mut reserved = BTreeSet::new();
        for name in names(Scope::Managed).chain(session).chain(names(Scope::User)) {
            if reserved.len() < limits.servers && !name.twin().is_some_and(|twin| reserved.contains(&twin)) {
                reserved.insert(name);
            }
        }
        Self { room: limits.servers.saturating_sub(reserved.len()), reserved, limit: limits.servers, reported: false }
    }

    pub fn next_file(&mut self) {
        self.reported = false;
    }

    /// Whether a session's server may come in; nothing of the user's is ever refused for want of room.
    pub fn has_reserved(&self, name: &ServerName) -> bool {
        self.reserved.contains(name)
    }

    /// Gives an entry that nobody has defined before its place, or says why it has none: `Err(None)` where that has been
    /// said already.
    pub fn admit(
        &mut self,
        entry: &ServerEntry,
        scope: Scope,
        servers: &BTreeMap<ServerName, Definition>,
    ) -> Result<(), Option<Box<Problem>>> {
        if self.reserved.contains(&entry.name) {
            return Ok(());
        }
        if let Some(twin) = entry.name.twin()
            && (self.reserved.contains(&twin) || servers.contains_key(&twin))
        {
            return Err(Some(Box::new(ambiguous(entry, &twin, servers.get(&twin)))));
        }
        if scope.needs_trust() && self.room > 0 {
            self.room -= 1;
            return Ok(());
        }
        if std::mem::replace(&mut self.reported, true) {
            return Err(None);
        }
        let message = format!(
            "more than {} servers in all files together (setting limits.servers): this one is not used",
            self.limit
        );
        Err(Some(Box::new(Problem::error("too-many-servers", entry.key_span.clone(), message))))
    }
}

/// `a_` with a tool `echo` and `a` with a tool `_echo` would both be `mcp__a___echo`.
fn ambiguous(entry: &ServerEntry, twin: &ServerName, other: Option<&Definition>) -> Problem {
    let message = format!(
        "`{}` and `{twin}` cannot be reported apart in the names of their tools: this one is not used; rename it",
        entry.name
    );
    let mut problem = Problem::error("name-clash", entry.key_span.clone(), message);
    if let Some(other) = other {
        let file = other.file.as_deref().unwrap_or(Path::new("")).to_path_buf();
        problem.related.push(Related { file, span: other.key_span.clone(), message: "this one counts".to_owned() });
    }
    problem
}
