//! `mcp.json` understood: files in, what they ask for and what is wrong with them out.
//!
//! Loading never fails. A file that does not parse, a server that makes no sense: each is a [`Problem`] at its place,
//! and everything else stays usable.

pub mod edit;
pub mod expand;
pub mod interop;
pub mod layers;
pub mod problem;
pub mod schema;
pub mod shape;
pub mod spec;
pub mod templates;
pub mod tree;
pub mod watch;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use layers::{redacted, session_entry};
pub use problem::{Problem, Severity, Span};
pub use spec::{Config, Definition, Launch, ServerSpec};

use crate::model::Scope;

/// A config file that may exist: where it is and what its words count.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    pub path: Arc<Path>,
    pub scope: Scope,
    /// The workspace folder it belongs to, for project and local files.
    pub folder: Option<Arc<Path>>,
}

/// What a source held when it was last looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    Absent,
    /// Absent with its whole workspace folder: moved away, deleted, not mounted.
    Gone,
    Text(Arc<str>),
    /// There, but cannot be used: too large, not UTF-8, a FIFO, no permission.
    Unreadable(String),
}

/// One file after loading.
#[derive(Debug, Clone)]
pub struct File {
    pub source: Source,
    pub exists: bool,
    /// Whether its text parses and could be taken over; problems of single servers do not make it invalid.
    pub valid: bool,
    /// Names of the servers it defines, those that lost against another file included.
    pub servers: Vec<String>,
    pub problems: Vec<Problem>,
    pub text: Arc<str>,
    /// Of `text`, so that nobody has to parse it again; empty when it was too large to be looked at.
    pub tree: Arc<tree::Tree>,
}

/// What loading gives: what is usable, and every file with its problems.
#[derive(Debug, Clone, Default)]
pub struct Loaded {
    pub config: Config,
    /// In order of strength, strongest first.
    pub files: Vec<File>,
}

impl Loaded {
    pub fn file(&self, path: &Path) -> Option<&File> {
        self.files.iter().find(|file| &*file.source.path == path)
    }

    pub fn problems(&self) -> BTreeMap<PathBuf, Vec<Problem>> {
        self.files.iter().map(|file| (file.source.path.to_path_buf(), file.problems.clone())).collect()
    }
}

/// The files that count for these workspace folders, strongest first. They need not exist.
pub fn sources(folders: &[Arc<Path>], files: &crate::settings::Files, paths: &crate::paths::Paths) -> Vec<Source> {
    layers::sources(folders, files, paths)
}

/// Understands all files together. `session` holds the definitions set at run time.
pub fn load(
    contents: &[(Source, Content)],
    session: &BTreeMap<String, serde_json::Value>,
    limits: &crate::settings::Limits,
) -> Loaded {
    layers::load(contents, session, limits)
}
