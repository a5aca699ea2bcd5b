//! What may stand at a path of a config file, read from the table of keys. `shape` complains about what is there;
//! this tells what could be.

use crate::config::shape::keys::{self, Key, Of, Role, Table};
use crate::config::tree::Step;

#[derive(Debug, Clone, Copy)]
pub enum Expected {
    /// An object with these keys.
    Table(&'static Table),
    /// An object with free keys and such an object for each.
    Map(&'static Table),
    /// A list of such objects.
    List(&'static Table),
    /// Tool name or glob → rule.
    Tools,
    /// A level, or a list of cases that ends in one.
    Rule,
    /// Argument → condition.
    Conditions,
    /// A glob, or an object with one of the conditions.
    Condition,
    /// The value of a key.
    Plain(&'static Key, &'static Table),
    /// An element of the list, or an entry of the map, that is the value of a key.
    Inside(&'static Key, &'static Table),
}

/// What is expected at a path. `None` where the file is free, or already off the known ways.
pub fn expected(path: &[Step]) -> Option<Expected> {
    path.iter().try_fold(Expected::Table(&keys::ROOT), |at, step| at.at(step))
}

/// The server whose entry a path leads into.
pub fn server_of(path: &[Step]) -> Option<&str> {
    match path {
        [Step::Key(section), Step::Key(name), ..] if matches!(section.as_str(), "servers" | "mcpServers") => Some(name),
        _ => None,
    }
}

impl Expected {
    fn at(self, step: &Step) -> Option<Self> {
        match (self, step) {
            (Self::Table(table), Step::Key(name)) => value_of(table, name),
            (Self::Map(table), Step::Key(_)) | (Self::List(table), Step::Index(_)) => Some(Self::Table(table)),
            (Self::Tools, Step::Key(_)) | (Self::Rule, Step::Index(_)) => Some(Self::Rule),
            (Self::Rule, Step::Key(name)) => value_of(&keys::CASE, name),
            (Self::Conditions, Step::Key(_)) => Some(Self::Condition),
            (Self::Condition, Step::Key(name)) => value_of(&keys::CONDITION, name),
            (Self::Plain(key, table), _) => Some(Self::Inside(key, table)),
            _ => None,
        }
    }

    /// The table whose keys an object at this place takes.
    pub fn table(self) -> Option<&'static Table> {
        match self {
            Self::Table(table) => Some(table),
            Self::Rule => Some(&keys::CASE),
            Self::Condition => Some(&keys::CONDITION),
            _ => None,
        }
    }
}

fn value_of(table: &'static Table, name: &str) -> Option<Expected> {
    let written = table.key(name)?;
    let key = match (written.role, written.of) {
        (Role::Alias(target), Of::Any) => table.key(target)?,
        _ => written,
    };
    Some(match key.of {
        Of::Object(table) => Expected::Table(table),
        Of::Map(table) => Expected::Map(table),
        Of::List(table) => Expected::List(table),
        Of::Tools => Expected::Tools,
        Of::Conditions => Expected::Conditions,
        _ => Expected::Plain(key, table),
    })
}
