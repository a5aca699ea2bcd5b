//! Decides which servers are admitted: a project file cannot displace servers of the user or the administrator.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use super::super::File;
use super::super::problem::{Code, Problem, Related};
use super::super::shape::{ParsedFile, ServerEntry};
use super::super::spec::Definition;
use crate::model::{Scope, ServerName};
use crate::settings::Limits;

/// The reserved names, and the room for servers of project files.
pub struct Admission {
    reserved: BTreeSet<ServerName>,
    room: usize,
    limit: usize,
    /// Whether the limit has been reported for the current file.
    reported: bool,
}

impl Admission {
    pub fn new(files: &[(File, ParsedFile)], session: &BTreeMap<String, Value>, limits: &Limits) -> Self {
        let names = |scope: Scope| {
            let files = files.iter().filter(move |(file, _)| file.source.scope == scope);
            files.flat_map(|(_, parsed)| parsed.servers.iter().map(|entry| entry.name.clone()))
        };
        let session = session.keys().filter_map(|name| ServerName::new(name).ok());
        let mut reserved = BTreeSet::new();
        for name in names(Scope::Managed).chain(session).chain(names(Scope::User)) {
            if reserved.len() < limits.servers && !name.colliding_name().is_some_and(|other| reserved.contains(&other))
            {
                reserved.insert(name);
            }
        }
        Self { room: limits.servers.saturating_sub(reserved.len()), reserved, limit: limits.servers, reported: false }
    }

    pub fn next_file(&mut self) {
        self.reported = false;
    }

    /// Whether the name is reserved: servers of the user are never rejected for lack of room.
    pub fn has_reserved(&self, name: &ServerName) -> bool {
        self.reserved.contains(name)
    }

    /// Admits an entry with a new name, or returns the problem: `Err(None)` if it has been reported already.
    pub fn admit(
        &mut self,
        entry: &ServerEntry,
        scope: Scope,
        servers: &BTreeMap<ServerName, Definition>,
    ) -> Result<(), Option<Box<Problem>>> {
        if self.reserved.contains(&entry.name) {
            return Ok(());
        }
        if let Some(other) = entry.name.colliding_name()
            && (self.reserved.contains(&other) || servers.contains_key(&other))
        {
            return Err(Some(Box::new(ambiguous(entry, &other, servers.get(&other)))));
        }
        if scope.needs_trust() && self.room > 0 {
            self.room -= 1;
            return Ok(());
        }
        if std::mem::replace(&mut self.reported, true) {
            return Err(None);
        }
        let message =
            format!("more than {} servers in total (setting `limits.servers`): this server is ignored", self.limit);
        Err(Some(Box::new(Problem::new(Code::TooManyServers, entry.key_span.clone(), message))))
    }
}

/// `a_` with a tool `echo` and `a` with a tool `_echo` would both be `mcp__a___echo`.
fn ambiguous(entry: &ServerEntry, other: &ServerName, definition: Option<&Definition>) -> Problem {
    let message =
        format!("`{}` and `{other}` can have the same tool names, so this server is ignored; rename it", entry.name);
    let mut problem = Problem::new(Code::NameClash, entry.key_span.clone(), message);
    if let Some(definition) = definition {
        let file = definition.file.as_deref().unwrap_or(Path::new("")).to_path_buf();
        problem.related.push(Related {
            file,
            span: definition.key_span.clone(),
            message: "this definition is used".to_owned(),
        });
    }
    problem
}
