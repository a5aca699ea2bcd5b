//! A config file in the editor, with everything that a language feature may want to know: its text and tree, what all
//! files together say, what the servers are doing.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use crate::config::tree::{Member, Node, Tree};
use crate::config::{File, Loaded, Span};
use crate::engine::snapshot::{ServerView, Snapshot};
use crate::model::ServerName;

#[derive(Clone, Copy)]
pub struct Page<'a> {
    pub text: &'a str,
    pub tree: &'a Tree,
    /// The path under which the engine knows the file.
    pub path: &'a Path,
    /// All files, those that are open as they stand in the editor.
    pub loaded: &'a Loaded,
    pub snapshot: &'a Snapshot,
    /// The names of the variables that are set. Their values are nobody's business here.
    pub variables: &'a BTreeSet<String>,
}

impl<'a> Page<'a> {
    /// The page of one of these files.
    pub fn of(file: &'a File, loaded: &'a Loaded, snapshot: &'a Snapshot, variables: &'a BTreeSet<String>) -> Self {
        Self { text: &file.text, tree: &file.tree, path: &file.source.path, loaded, snapshot, variables }
    }

    /// The members of all `servers` sections, in the order of the file.
    pub fn servers(&self) -> impl Iterator<Item = &'a Member> {
        let root = self.tree.root.as_ref().and_then(Node::members).unwrap_or_default();
        let sections = root.iter().filter(|member| matches!(member.key.text.as_str(), "servers" | "mcpServers"));
        sections.flat_map(|section| section.value.members().unwrap_or_default())
    }

    /// The live server that a name in this file means. Where two folders use the name, it is prefixed in both: then
    /// the one that comes from here.
    pub fn server(&self, name: &str) -> Option<&'a Arc<ServerView>> {
        let exact = self.snapshot.servers.get(name);
        exact.filter(|view| self.defines(view)).or_else(|| self.prefixed(name)).or(exact)
    }

    fn prefixed(&self, name: &str) -> Option<&'a Arc<ServerView>> {
        self.snapshot.servers.values().find(|view| view.definition.key.as_str() == name && self.defines(view))
    }

    /// The workspace folder that the file belongs to.
    fn folder(&self) -> Option<&'a Path> {
        self.loaded.file(self.path).and_then(|file| file.source.folder.as_deref())
    }

    /// Every live server that this file can speak of, by the name that it has here. One of its own workspace folder has
    /// its plain name, which goes on to mean it when other folders come and go.
    pub fn spoken_of(&self) -> impl Iterator<Item = (&'a ServerName, &'a Arc<ServerView>)> {
        let own = self.folder();
        self.snapshot.servers.values().filter_map(move |view| {
            let definition = &view.definition;
            match (own, definition.folder.as_deref()) {
                (Some(own), Some(folder)) if own == folder => Some((&definition.key, view)),
                // Its name has that folder's before it because this one has a server of the same name.
                (Some(_), Some(_)) if definition.key != definition.name => None,
                _ => Some((&definition.name, view)),
            }
        })
    }

    /// Whether the definition that counts stands in this file.
    pub fn defines(&self, view: &ServerView) -> bool {
        view.definition.file.as_deref() == Some(self.path)
    }

    /// Whether names mean the same in both files: not in two workspace folders, each of which has servers of its own.
    pub fn speaks_with(&self, other: &File) -> bool {
        let own = self.folder();
        other.source.folder.is_none() || own.is_none() || other.source.folder.as_deref() == own
    }

    /// Whether an offset is inside a comment, where nothing has a meaning.
    pub fn in_comment(&self, offset: usize) -> bool {
        self.tree.comments.iter().any(|comment| {
            let line = self.text.get(comment.clone()).is_some_and(|text| text.starts_with("//"));
            comment.start < offset && (offset < comment.end || (line && offset == comment.end))
        })
    }

    /// A key or string without its quotes; the closing one may be missing.
    pub fn inner(&self, span: &Span) -> Span {
        inner(self.text, span)
    }
}

/// A key or string without its quotes; the closing one may be missing.
pub fn inner(text: &str, span: &Span) -> Span {
    let raw = text.get(span.clone()).unwrap_or_default();
    let Some(quote) = raw.chars().next().filter(|c| matches!(c, '"' | '\'')) else { return span.clone() };
    let start = span.start + 1;
    let closed = raw.len() > 1 && raw.ends_with(quote);
    start..if closed { span.end - 1 } else { span.end }
}
