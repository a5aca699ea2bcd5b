//! Loads `mcp.json` files into definitions and problems.
//!
//! Loading never fails. A syntax error or an invalid server is a [`Problem`] with a position, and everything else stays
//! usable.

pub(crate) mod address;
pub(crate) mod edit;
pub mod environments;
pub mod expand;
pub mod interop;
pub(crate) mod layers;
pub(crate) mod problem;
pub(crate) mod risky;
pub(crate) mod schema;
pub(crate) mod sections;
pub(crate) mod shape;
pub mod spec;
pub(crate) mod templates;
pub(crate) mod tree;
pub(crate) mod watch;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use environments::{Environment, Environments};
pub use layers::{redacted, session_entry};
pub use problem::{Code, Problem, Severity, Span};
pub use shape::{EntrySpec, is_timeout};
pub use spec::{Config, Definition, Launch, ServerSpec};

use crate::model::Scope;

/// A config file, which need not exist: its path and its scope.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    pub path: Arc<Path>,
    pub scope: Scope,
    /// The workspace folder it belongs to, for project and local files.
    pub folder: Option<Arc<Path>>,
}

impl Source {
    /// The repository that the file must be in, for project and local files.
    pub fn repository(&self) -> Option<PathBuf> {
        self.folder.as_deref().map(crate::paths::repository)
    }

    /// Whether the file is elsewhere: it, or a folder below the workspace folder, is a link.
    pub fn is_link(&self) -> bool {
        let base = self.folder.as_deref().or_else(|| self.path.parent()).unwrap_or(Path::new("/"));
        let plain = base.canonicalize().ok().zip(self.path.strip_prefix(base).ok()).map(|(base, rest)| base.join(rest));
        self.path.canonicalize().ok() != plain
    }
}

/// The content of a source when it was last read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    Absent,
    /// The whole workspace folder is missing: moved, deleted or not mounted.
    Gone,
    Text(Arc<str>),
    /// The file exists but cannot be used: too large, not UTF-8, a FIFO, no permission.
    Unreadable(String),
}

/// One file after loading.
#[derive(Debug, Clone)]
pub struct File {
    pub source: Source,
    pub exists: bool,
    /// Whether the text can be parsed and its sections can be read. Invalid servers do not make a file invalid.
    pub valid: bool,
    /// The names of its servers, including those that other files override.
    pub servers: Vec<String>,
    pub problems: Vec<Problem>,
    pub text: Arc<str>,
    /// The tree of `text`; empty if the file is too large.
    pub tree: Arc<tree::Tree>,
}

/// The result of loading: the merged config, and every file with its problems.
#[derive(Debug, Clone, Default)]
pub struct Loaded {
    pub config: Config,
    /// In order of precedence.
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

/// The config files for these workspace folders, in order of precedence. They need not exist.
pub fn sources(folders: &[Arc<Path>], files: &crate::settings::Files, paths: &crate::paths::Paths) -> Vec<Source> {
    layers::sources(folders, files, paths)
}

/// Loads and merges all files. `session` contains the definitions given at run time.
pub fn load(
    contents: &[(Source, Content)],
    session: &BTreeMap<String, serde_json::Value>,
    limits: &crate::settings::Limits,
) -> Loaded {
    layers::load(contents, session, limits)
}
