//! What language features read: a config file, all other config files, and the state of the servers.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use crate::config::problem::Code;
use crate::config::tree::Tree;
use crate::config::{File, Loaded, Span};
use crate::engine::snapshot::{ServerView, Snapshot};
use crate::model::ServerName;

#[derive(Clone, Copy)]
pub struct ConfigView<'a> {
    pub file: &'a File,
    pub text: &'a str,
    pub tree: &'a Tree,
    /// The path under which the engine knows the file.
    pub path: &'a Path,
    /// All files; the text in the editor replaces the text on disk.
    pub loaded: &'a Loaded,
    pub snapshot: &'a Snapshot,
    /// The names of the environment variables. Language features never see their values.
    pub variables: &'a BTreeSet<String>,
}

impl<'a> ConfigView<'a> {
    /// The view of one of the loaded files.
    pub fn of(file: &'a File, loaded: &'a Loaded, snapshot: &'a Snapshot, variables: &'a BTreeSet<String>) -> Self {
        Self { file, text: &file.text, tree: &file.tree, path: &file.source.path, loaded, snapshot, variables }
    }

    /// The running server that a name in this file refers to. If two workspace folders use the name, it is prefixed in
    /// both; then it refers to the server that this file defines.
    pub fn server(&self, name: &str) -> Option<&'a Arc<ServerView>> {
        let exact = self.snapshot.servers.get(name);
        exact.filter(|view| self.defines(view)).or_else(|| self.prefixed(name)).or(exact)
    }

    fn prefixed(&self, name: &str) -> Option<&'a Arc<ServerView>> {
        self.snapshot.servers.values().find(|view| view.definition.key.as_str() == name && self.defines(view))
    }

    /// Every running server that this file can refer to, by its name in this file. A server of the same workspace folder
    /// has its unprefixed name, which stays valid when other folders are added or removed.
    pub fn visible_servers(&self) -> impl Iterator<Item = (&'a ServerName, &'a Arc<ServerView>)> {
        let own = self.file.source.folder.as_deref();
        self.snapshot.servers.values().filter_map(move |view| {
            let definition = &view.definition;
            match (own, definition.folder.as_deref()) {
                (Some(own), Some(folder)) if own == folder => Some((&definition.key, view)),
                // It is prefixed because this folder has a server with the same name.
                (Some(_), Some(_)) if definition.key != definition.name => None,
                _ => Some((&definition.name, view)),
            }
        })
    }

    /// Whether the file is outside of all workspace folders, so that nothing in it is in effect.
    pub fn is_outside(&self) -> bool {
        self.file.problems.iter().any(|problem| problem.code == Code::OutsideWorkspace)
    }

    /// Whether this file contains the definition that is in effect.
    pub fn defines(&self, view: &ServerView) -> bool {
        view.definition.file.as_deref() == Some(self.path)
    }

    /// Whether names refer to the same servers in both files. They do not if the files are in different workspace folders.
    pub fn shares_names_with(&self, other: &File) -> bool {
        let (own, other) = (&self.file.source.folder, &other.source.folder);
        other.is_none() || own.is_none() || other == own
    }

    /// Whether an offset is inside a comment.
    pub fn in_comment(&self, offset: usize) -> bool {
        self.tree.comments.iter().any(|comment| {
            let line = self.text.get(comment.clone()).is_some_and(|text| text.starts_with("//"));
            comment.start < offset && (offset < comment.end || (line && offset == comment.end))
        })
    }

    /// The span of a key or string without its quotes.
    pub fn inner(&self, span: &Span) -> Span {
        inner(self.text, span)
    }
}

/// The span of a key or string without its quotes. The closing quote may be missing.
pub fn inner(text: &str, span: &Span) -> Span {
    let raw = text.get(span.clone()).unwrap_or_default();
    let Some(quote) = raw.chars().next().filter(|c| matches!(c, '"' | '\'')) else { return span.clone() };
    let start = span.start + 1;
    let closed = raw.len() > 1 && raw.ends_with(quote);
    start..if closed { span.end - 1 } else { span.end }
}
