//! What is valid at a path of a config file, from the tables of keys. `shape` checks what is there; this describes what
//! could be there.

use crate::config::sections::is_section;
use crate::config::shape::keys::{self, Key, Role, Table, ValueType};
use crate::config::tree::Step;

#[derive(Debug, Clone, Copy)]
pub enum Expected {
    /// An object with these keys.
    Table(&'static Table),
    /// An object with arbitrary keys and such objects as values.
    Map(&'static Table),
    /// A list of such objects.
    List(&'static Table),
    /// Tool name or glob → rule.
    Tools,
    /// A level, or a list of cases that ends with one.
    Rule,
    /// Argument → condition.
    Conditions,
    /// A glob, or an object with one of the conditions.
    Condition,
    /// The value of a key.
    Value(&'static Key, &'static Table),
    /// An element of the list or map that is the value of a key.
    Element(&'static Key, &'static Table),
}

/// What is expected at a path; `None` if anything is valid or the path is unknown.
pub fn expected(path: &[Step]) -> Option<Expected> {
    path.iter().try_fold(Expected::Table(&keys::ROOT), |at, step| at.at(step))
}

/// The server whose entry contains a path.
pub fn server_of(path: &[Step]) -> Option<&str> {
    match path {
        [Step::Key(section), Step::Key(name), ..] if is_section(section) => Some(name),
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
            (Self::Value(key, table), _) => Some(Self::Element(key, table)),
            _ => None,
        }
    }

    /// The keys of an object at this path.
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
        (Role::Alias(target), ValueType::Any) => table.key(target)?,
        _ => written,
    };
    Some(match key.of {
        ValueType::Object(table) => Expected::Table(table),
        ValueType::Map(table) => Expected::Map(table),
        ValueType::List(table) => Expected::List(table),
        ValueType::Tools => Expected::Tools,
        ValueType::Conditions => Expected::Conditions,
        _ => Expected::Value(key, table),
    })
}
