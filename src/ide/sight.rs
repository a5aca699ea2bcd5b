//! A config file as the live features see it: its text and tree, what all files together ask for, and what runs.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::Path;

use crate::config::tree::{Member, Node, Tree};
use crate::config::{Definition, Loaded, Span};
use crate::engine::snapshot::{ServerView, Snapshot};
use crate::text::lines::LineIndex;

#[derive(Clone, Copy)]
pub struct Sight<'a> {
    pub text: &'a str,
    pub tree: &'a Tree,
    /// The path under which the engine knows the file.
    pub path: &'a Path,
    /// All files, those that are open as they stand in the editor.
    pub loaded: &'a Loaded,
    pub snapshot: &'a Snapshot,
}

/// A server of the file.
pub struct Entry<'a> {
    pub member: &'a Member,
    /// What the text defines, if it can be used and counts.
    pub definition: Option<&'a Definition>,
    /// The definition of another file, or of the session, that hides this one.
    pub winner: Option<&'a Definition>,
    /// What was made of this very entry when it was last saved.
    pub view: Option<&'a ServerView>,
}

impl<'a> Sight<'a> {
    /// The servers of the file, in its order.
    pub fn entries(&self) -> Vec<Entry<'a>> {
        let own = |definition: &Definition| definition.file.as_deref() == Some(self.path);
        // A file that does not parse leaves the last good text in force: then the places are of another text.
        let valid = self.loaded.file(self.path).is_some_and(|file| file.valid);
        let servers = self.loaded.config.servers.values().filter(|definition| valid && own(definition));
        let defined: BTreeMap<usize, &Definition> = servers.map(|each| (each.place.start, &**each)).collect();
        // Made for the first entry that does not count; most files have none.
        let lines = OnceCell::new();
        let members = self.tree.root.iter().flat_map(sections).flat_map(|section| section.members());
        let entry = |member: &'a Member| {
            let definition = defined.get(&member.key.span.start).copied();
            let view = match definition {
                Some(definition) => self.snapshot.servers.get(&definition.name),
                // A text that does not parse defines nothing, but its servers run on.
                None => self.snapshot.servers.values().find(|view| named(&view.definition, &member.key.text)),
            };
            Entry {
                member,
                definition,
                winner: if definition.is_none() { self.winner(member, &lines) } else { None },
                view: view.map(|view| &**view).filter(|view| own(&view.definition)),
            }
        };
        members.flatten().map(entry).collect()
    }

    /// The entry that holds an offset.
    pub fn entry_at(&self, offset: usize) -> Option<Entry<'a>> {
        self.entries().into_iter().find(|entry| entry.span().start <= offset && offset <= entry.span().end)
    }

    fn winner(&self, member: &Member, lines: &OnceCell<LineIndex>) -> Option<&'a Definition> {
        let line = lines.get_or_init(|| LineIndex::new(self.text)).line(member.key.span.start);
        let hides = |definition: &Definition| {
            let this =
                |hidden: &crate::config::spec::Hidden| hidden.file.as_deref() == Some(self.path) && hidden.line == line;
            named(definition, &member.key.text) && definition.hides.iter().any(this)
        };
        self.loaded.config.servers.values().map(|each| &**each).find(|definition| hides(definition))
    }
}

impl Entry<'_> {
    /// Key and value.
    pub fn span(&self) -> Span {
        self.member.key.span.start..self.member.value.span.end.max(self.member.key.span.end)
    }

    /// Whether what runs is what the text asks for, so that what happened to it says something about the text.
    pub fn runs_as_written(&self) -> bool {
        match (self.definition, self.view) {
            (Some(definition), Some(view)) => {
                let (now, then) = (&definition.spec, &view.definition.spec);
                now.launch == then.launch && now.fallback == then.fallback && now.enabled == then.enabled
            }
            (None, Some(_)) => true,
            _ => false,
        }
    }

    /// The value of a key of the entry.
    pub fn value(&self, key: &str) -> Option<&Node> {
        self.member.value.get(key).map(|member| &member.value)
    }
}

/// The two spellings of `servers`.
fn sections(root: &Node) -> impl Iterator<Item = &Node> {
    ["servers", "mcpServers"].into_iter().filter_map(|key| root.get(key)).map(|member| &member.value)
}

/// Whether a definition is that of this key; of two folders' servers of one name, each has its folder's name before it.
fn named(definition: &Definition, key: &str) -> bool {
    let name = definition.name.as_str();
    name == key || name.strip_suffix(key).is_some_and(|folder| folder.ends_with('-'))
}
