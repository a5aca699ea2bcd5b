//! A server entry in a config file: its text, its definition, and the state of the server.

use std::collections::BTreeMap;

use super::config_view::ConfigView;
use crate::config::spec::Restriction;
use crate::config::tree::{Member, Node};
use crate::config::{Definition, Span};
use crate::engine::snapshot::ServerView;

pub struct ServerEntry<'a> {
    pub member: &'a Member,
    /// The definition in the text, if it is valid and in effect.
    pub definition: Option<&'a Definition>,
    /// The definition in another file, or in the session, that overrides this entry.
    pub overridden_by: Option<&'a Definition>,
    /// The definition in another file that this entry restricts, and its restriction.
    pub restricts: Option<(&'a Definition, &'a Restriction)>,
    /// The server of the saved version of this entry, or the server that it restricts.
    pub view: Option<&'a ServerView>,
}

impl<'a> ConfigView<'a> {
    /// The servers of the file, in file order.
    pub fn entries(&self) -> Vec<ServerEntry<'a>> {
        let index = DefinitionIndex::of(self);
        self.tree.servers().map(|member| self.entry(member, &index)).collect()
    }

    /// The entry that contains an offset.
    pub fn entry_at(&self, offset: usize) -> Option<ServerEntry<'a>> {
        let member = self.tree.servers().find(|member| whole(member).start <= offset && offset <= whole(member).end)?;
        Some(self.entry(member, &DefinitionIndex::of(self)))
    }

    /// The same, or the entry that begins or ends on the line of the offset with nothing else between.
    pub fn entry_on_line(&self, offset: usize) -> Option<ServerEntry<'a>> {
        self.entry_at(offset).or_else(|| {
            let member = self.tree.servers().find(|member| self.is_beside(offset, &whole(member)))?;
            Some(self.entry(member, &DefinitionIndex::of(self)))
        })
    }

    /// Whether an offset is on the first line of a span before it, or on its last line behind it.
    pub fn is_beside(&self, offset: usize, span: &Span) -> bool {
        let before = self.text.get(offset..span.start);
        let behind = self.text.get(span.end..offset);
        before.is_some_and(|text| text.chars().all(|c| c.is_whitespace() && c != '\n'))
            || behind.is_some_and(|text| {
                let is_comment = || self.in_comment(offset) || text.trim_start_matches([',', ' ']).starts_with("//");
                !text.contains('\n') && (!text.contains('"') || is_comment())
            })
    }

    fn entry(&self, member: &'a Member, index: &DefinitionIndex<'a>) -> ServerEntry<'a> {
        let start = member.key.span.start;
        let definition = index.defined.get(&start).copied();
        let restricts = index.restricted.get(&start).copied();
        let view = match definition.or(restricts.map(|(definition, _)| definition)) {
            Some(definition) => self.snapshot.servers.get(&definition.name),
            // A text that does not parse defines nothing, but its servers keep running.
            None => self.server(&member.key.text),
        };
        ServerEntry {
            member,
            definition,
            overridden_by: if definition.is_none() { index.overridden.get(&start).copied() } else { None },
            restricts,
            view: view.map(|view| &**view).filter(|view| restricts.is_some() || self.defines(view)),
        }
    }
}

/// The definitions in the file, by the start of their keys.
struct DefinitionIndex<'a> {
    defined: BTreeMap<usize, &'a Definition>,
    /// The definition that is in effect instead.
    overridden: BTreeMap<usize, &'a Definition>,
    /// The definition that the entry restricts.
    restricted: BTreeMap<usize, (&'a Definition, &'a Restriction)>,
}

impl<'a> DefinitionIndex<'a> {
    fn of(config: &ConfigView<'a>) -> Self {
        let mut index = Self { defined: BTreeMap::new(), overridden: BTreeMap::new(), restricted: BTreeMap::new() };
        // If the file does not parse, the last valid text is in effect, and its offsets do not apply to this text.
        if !config.file.valid {
            return index;
        }
        for definition in config.loaded.config.servers.values() {
            if definition.file.as_deref() == Some(config.path) {
                index.defined.insert(definition.key_span.start, definition);
            }
            for hidden in definition.hides.iter().filter(|hidden| hidden.file.as_deref() == Some(config.path)) {
                index.overridden.insert(hidden.key_span.start, definition);
            }
            for restriction in definition.restrictions.iter().filter(|one| one.file.as_deref() == Some(config.path)) {
                index.restricted.insert(restriction.key_span.start, (&**definition, restriction));
            }
        }
        index
    }
}

impl ServerEntry<'_> {
    /// The span of key and value.
    pub fn span(&self) -> Span {
        whole(self.member)
    }

    /// Whether the running server matches the text, so that its state applies to the text.
    pub fn runs_as_written(&self) -> bool {
        match (self.definition.or(self.restricts.map(|(definition, _)| definition)), self.view) {
            (Some(definition), Some(view)) => {
                let (now, then) = (&definition.spec, &view.definition.spec);
                now.launch == then.launch && now.fallback == then.fallback && now.enabled == then.enabled
            }
            (None, Some(_)) => true,
            _ => false,
        }
    }

    /// The value of a key in the entry.
    pub fn value(&self, key: &str) -> Option<&Node> {
        self.member.value.get(key).map(|member| &member.value)
    }
}

fn whole(member: &Member) -> Span {
    member.key.span.start..member.value.span.end.max(member.key.span.end)
}
