//! A server of a config file: its text, what the text means, and what runs because of it.

use std::collections::BTreeMap;

use super::page::Page;
use crate::config::tree::{Member, Node};
use crate::config::{Definition, Span};
use crate::engine::snapshot::ServerView;

pub struct Entry<'a> {
    pub member: &'a Member,
    /// What the text defines, if it can be used and counts.
    pub definition: Option<&'a Definition>,
    /// The definition of another file, or of the session, that hides this one.
    pub winner: Option<&'a Definition>,
    /// What was made of this very entry when it was last saved.
    pub view: Option<&'a ServerView>,
}

impl<'a> Page<'a> {
    /// The servers of the file, in its order.
    pub fn entries(&self) -> Vec<Entry<'a>> {
        let places = Places::of(self);
        self.servers().map(|member| self.entry(member, &places)).collect()
    }

    /// The entry that holds an offset.
    pub fn entry_at(&self, offset: usize) -> Option<Entry<'a>> {
        let member = self.servers().find(|member| whole(member).start <= offset && offset <= whole(member).end)?;
        Some(self.entry(member, &Places::of(self)))
    }

    fn entry(&self, member: &'a Member, places: &Places<'a>) -> Entry<'a> {
        let start = member.key.span.start;
        let definition = places.defined.get(&start).copied();
        let view = match definition {
            Some(definition) => self.snapshot.servers.get(&definition.name),
            // A text that does not parse defines nothing, but its servers run on.
            None => self.server(&member.key.text),
        };
        Entry {
            member,
            definition,
            winner: if definition.is_none() { places.hidden.get(&start).copied() } else { None },
            view: view.map(|view| &**view).filter(|view| self.defines(view)),
        }
    }
}

/// The definitions that stand in the file, those that count and those that are hidden, by where their keys begin.
struct Places<'a> {
    defined: BTreeMap<usize, &'a Definition>,
    /// With the definition that counts instead.
    hidden: BTreeMap<usize, &'a Definition>,
}

impl<'a> Places<'a> {
    fn of(page: &Page<'a>) -> Self {
        let mut places = Self { defined: BTreeMap::new(), hidden: BTreeMap::new() };
        // A file that does not parse leaves the last good text in force: then the places are of another text.
        if !page.loaded.file(page.path).is_some_and(|file| file.valid) {
            return places;
        }
        for definition in page.loaded.config.servers.values() {
            if definition.file.as_deref() == Some(page.path) {
                places.defined.insert(definition.key_span.start, definition);
            }
            for hidden in definition.hides.iter().filter(|hidden| hidden.file.as_deref() == Some(page.path)) {
                places.hidden.insert(hidden.key_span.start, definition);
            }
        }
        places
    }
}

impl Entry<'_> {
    /// Key and value.
    pub fn span(&self) -> Span {
        whole(self.member)
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

fn whole(member: &Member) -> Span {
    member.key.span.start..member.value.span.end.max(member.key.span.end)
}
