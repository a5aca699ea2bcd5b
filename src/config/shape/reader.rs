//! Reads typed values out of the tree and complains at the exact place. Each mistake is told once: a value that is
//! not there because of a mistake already told gives nothing and says nothing.

use std::collections::BTreeMap;

use super::did_you_mean::closest;
use super::keys::{Key, Role, Table};
use super::secrets::Variables;
use crate::config::expand::{Piece, Reference, pieces};
use crate::config::problem::{Problem, Severity, Span, TextEdit};
use crate::config::tree::{Kind, Member, Node, Step, show};
use crate::model::Scope;
use crate::text::one_line;

/// What a program's environment and PATH hold; a parameter, so that shaping stays pure.
pub trait World {
    fn is_set(&self, variable: &str) -> bool;
    /// Whether a program can be found, seen from `folder` when it is a path.
    fn finds(&self, program: &str, folder: Option<&std::path::Path>) -> bool;
}

pub struct Reader<'a> {
    pub scope: Scope,
    pub folder: Option<&'a std::path::Path>,
    pub world: &'a dyn World,
    pub problems: Vec<Problem>,
    /// `${input:id}` and where it stands: whether it is declared is known when all files have been read.
    pub inputs: Vec<(String, Span)>,
    pub path: Vec<Step>,
    /// Those that raw secrets of the file would go into.
    pub variables: Variables,
    errors: usize,
}

/// The members of an object by key, aliases resolved.
pub struct Fields<'a> {
    by_name: BTreeMap<&'static str, &'a Member>,
    /// Own keys that an unknown key was probably meant to be, and where that key stands.
    meant: Vec<(&'static str, Span)>,
}

impl<'a> Fields<'a> {
    pub fn get(&self, name: &str) -> Option<&'a Member> {
        self.by_name.get(name).copied()
    }

    pub fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// Where a misspelled key stands for this one: then it is not missing, and that has been told.
    pub fn misspelled(&self, name: &str) -> Option<&Span> {
        self.meant.iter().find(|(meant, _)| *meant == name).map(|(_, span)| span)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &'a Member)> {
        self.by_name.iter().map(|(name, member)| (*name, *member))
    }

    pub fn remove(&mut self, name: &str) {
        self.by_name.remove(name);
    }

    pub fn insert(&mut self, name: &'static str, member: &'a Member) {
        self.by_name.insert(name, member);
    }
}

impl<'a> Reader<'a> {
    pub fn new(scope: Scope, folder: Option<&'a std::path::Path>, world: &'a dyn World) -> Self {
        Self {
            scope,
            folder,
            world,
            problems: Vec::new(),
            inputs: Vec::new(),
            path: Vec::new(),
            variables: Variables::default(),
            errors: 0,
        }
    }

    pub fn report(&mut self, problem: Problem) {
        if problem.severity == Severity::Error {
            self.errors += 1;
        }
        self.problems.push(problem);
    }

    pub fn error(&mut self, code: &'static str, span: &Span, message: impl Into<String>) {
        self.report(Problem::error(code, span.clone(), message));
    }

    pub fn warning(&mut self, code: &'static str, span: &Span, message: impl Into<String>) {
        self.report(Problem::warning(code, span.clone(), message));
    }

    /// Whether a misspelled key stands for one of these, which the entry cannot be without: the warning about it becomes
    /// an error, and nothing else needs to be said.
    pub fn misspelled(&mut self, fields: &Fields<'_>, names: &[&str]) -> bool {
        let Some(span) = names.iter().find_map(|name| fields.misspelled(name)) else { return false };
        if let Some(problem) = self.problems.iter_mut().rev().find(|problem| problem.span == *span) {
            problem.severity = Severity::Error;
            self.errors += 1;
        }
        true
    }

    /// How many errors so far: one more than before means that what was read is not usable.
    pub fn errors(&self) -> usize {
        self.errors
    }

    pub fn within<T>(&mut self, step: Step, read: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(step);
        let result = read(self);
        self.path.pop();
        result
    }

    pub fn in_key<T>(&mut self, member: &Member, read: impl FnOnce(&mut Self) -> T) -> T {
        self.within(Step::Key(member.key.text.clone()), read)
    }

    /// Where the reader is, as messages name it.
    pub fn here(&self) -> String {
        show(&self.path)
    }

    /// Says that the value here is of the wrong kind. Something missing has been told already.
    pub fn wrong_type(&mut self, node: &Node, expected: &str) {
        if node.kind != Kind::Missing {
            let message = format!("`{}` must be {expected}, not {}", self.here(), node.noun());
            self.error("wrong-type", &node.span, message);
        } else {
            self.errors += 1;
        }
    }

    /// The same for a text: a number or a flag only lacks its quotes.
    pub fn wrong_string(&mut self, node: &Node) {
        if !matches!(node.kind, Kind::Number(_) | Kind::Bool(_)) {
            return self.wrong_type(node, "a string");
        }
        let message = format!("`{}` must be a string, not {}", self.here(), node.noun());
        let quote = |at: usize| TextEdit::replace(at..at, "\"");
        let edits = vec![quote(node.span.start), quote(node.span.end)];
        self.report(Problem::error("wrong-type", node.span.clone(), message).fix("put it in quotes", edits));
    }

    pub fn text<'n>(&mut self, node: &'n Node) -> Option<&'n str> {
        let text = node.text();
        if text.is_none() {
            self.wrong_type(node, "a string");
        }
        text
    }

    pub fn flag(&mut self, node: &Node) -> Option<bool> {
        match &node.kind {
            Kind::Bool(flag) => Some(*flag),
            Kind::Text(text) if matches!(text.as_str(), "true" | "false") => {
                let message = format!("`{}` must be a boolean, not a string", self.here());
                let edit = TextEdit::replace(node.span.clone(), text.clone());
                self.report(
                    Problem::error("wrong-type", node.span.clone(), message).fix("remove the quotes", vec![edit]),
                );
                None
            }
            _ => {
                self.wrong_type(node, "true or false");
                None
            }
        }
    }

    pub fn texts(&mut self, node: &Node) -> Option<Vec<String>> {
        let Some(items) = node.items() else {
            self.wrong_type(node, "a list of strings");
            return None;
        };
        let read = |(index, item): (usize, &Node)| {
            self.within(Step::Index(index), |reader| reader.text(item).map(str::to_owned))
        };
        let texts: Vec<Option<String>> = items.iter().enumerate().map(read).collect();
        texts.into_iter().collect()
    }

    /// A string, or a list of strings.
    pub fn text_or_texts(&mut self, node: &Node) -> Option<Vec<String>> {
        match &node.kind {
            Kind::Text(text) => Some(vec![text.clone()]),
            Kind::List(_) => self.texts(node),
            _ => {
                self.wrong_type(node, "a string or a list of strings");
                None
            }
        }
    }

    /// One of a few words; a near miss gets a fix.
    pub fn choice(&mut self, node: &Node, code: &'static str, choices: &[&'static str]) -> Option<&'static str> {
        let text = self.text(node)?;
        let found = choices.iter().find(|choice| **choice == text).copied();
        if found.is_none() {
            let message = format!("`{}` is none of {}", one_line(text, 40), choices.join(", "));
            self.report(suggest(Problem::error(code, node.span.clone(), message), text, &node.span, choices));
        }
        found
    }

    /// The members of an object with known keys: unknown and repeated ones are told, aliases resolved.
    pub fn object<'n>(&mut self, node: &'n Node, table: &'static Table) -> Option<Fields<'n>> {
        let members = self.entries(node)?;
        Some(self.fields(members, table))
    }

    pub fn fields<'n>(&mut self, members: Vec<&'n Member>, table: &'static Table) -> Fields<'n> {
        let mut fields = Fields { by_name: BTreeMap::new(), meant: Vec::new() };
        for member in &members {
            let name = member.key.text.as_str();
            match table.key(name) {
                Some(key) => self.known(key, member, &mut fields),
                // `$comment`, `_note`, `//`: words for people.
                None if name.starts_with(['$', '_', '/']) => {}
                None => self.unknown(member, &members, table, &mut fields),
            }
        }
        fields
    }

    fn known<'n>(&mut self, key: &'static Key, member: &'n Member, fields: &mut Fields<'n>) {
        match key.role {
            Role::Own => {
                fields.by_name.insert(key.name, member);
            }
            Role::Alias(target) => {
                if fields.by_name.insert(target, member).is_some_and(|other| other.key.text != member.key.text) {
                    let message = format!("`{}` and `{target}` are the same key; one is enough", key.name);
                    self.warning("same-key", &member.key.span, message);
                } else if key.name != "transport" {
                    self.old_spelling(key.name, target, &member.key.span);
                }
            }
            Role::Foreign => {}
            Role::Ignored => {
                let severity = if key.name == "headersHelper" { Severity::Warning } else { Severity::Information };
                let message = format!("`{}` has no effect here: {}", key.name, key.docs);
                self.report(Problem::new(severity, "ignored-key", member.key.span.clone(), message).unnecessary());
            }
        }
    }

    /// Another host's word for one of ours: read, and never wrong.
    pub fn old_spelling(&mut self, written: &str, better: &str, span: &Span) {
        let message = format!("`{written}` is another spelling of `{better}`");
        let edit = TextEdit::replace(span.clone(), quoted(better));
        let problem = Problem::hint("deprecated-spelling", span.clone(), message).deprecated();
        self.report(problem.fix(format!("change to `{better}`"), vec![edit]));
    }

    fn unknown(&mut self, member: &Member, beside: &[&Member], table: &'static Table, fields: &mut Fields<'_>) {
        let name = member.key.text.as_str();
        let names: Vec<&'static str> = table.keys.iter().map(|key| key.name).collect();
        let meant = table.synonym(name).or_else(|| closest(name, &names));
        let message = format!("unknown key `{}` in `{}`", one_line(name, 40), self.container(table));
        let span = member.key.span.clone();
        let mut problem = Problem::warning("unknown-key", span.clone(), message);
        if let Some(meant) = meant {
            problem = match beside.iter().any(|other| other.key.text == meant) {
                // It is there already: then one of the two is too many, and which one is not known.
                true => did_you_mean(problem, meant),
                false => suggestion(problem, &span, meant),
            };
            let target = table.key(meant).map_or(meant, |key| match key.role {
                Role::Alias(target) => target,
                _ => meant,
            });
            fields.meant.push((target, span));
        }
        self.report(problem);
    }

    fn container(&self, table: &Table) -> String {
        if self.path.is_empty() { table.noun.to_owned() } else { self.here() }
    }

    /// The members of an object with free keys, of repeated ones the last.
    pub fn entries<'n>(&mut self, node: &'n Node) -> Option<Vec<&'n Member>> {
        self.entries_once(node, Severity::Warning, "duplicate-key")
    }

    /// The same, with a say in how bad a repeated key is.
    pub fn entries_once<'n>(
        &mut self,
        node: &'n Node,
        severity: Severity,
        code: &'static str,
    ) -> Option<Vec<&'n Member>> {
        let Some(members) = node.members() else {
            self.wrong_type(node, "an object");
            return None;
        };
        let mut last: BTreeMap<&str, usize> = BTreeMap::new();
        for (index, member) in members.iter().enumerate() {
            if let Some(earlier) = last.insert(&member.key.text, index).and_then(|earlier| members.get(earlier)) {
                let name = one_line(&member.key.text, 40);
                let place = if self.path.is_empty() { String::new() } else { format!(" in `{}`", self.here()) };
                let message = format!("`{name}` stands twice{place}; only this last one counts");
                let problem = Problem::new(severity, code, member.key.span.clone(), message);
                self.report(problem.related(&earlier.key.span, "the first one"));
            }
        }
        let counts = |(index, member): (usize, &'n Member)| {
            (last.get(member.key.text.as_str()) == Some(&index)).then_some(member)
        };
        Some(members.iter().enumerate().filter_map(counts).collect())
    }

    /// Checks the `${…}` of a value: known, and set.
    pub fn references(&mut self, text: &str, span: &Span) {
        for piece in pieces(text) {
            let Piece::Reference { reference, .. } = piece else { continue };
            match reference {
                Reference::Unknown(written) => {
                    let message = format!("unknown expansion `{}`", one_line(&written, 60));
                    let help = "known are ${NAME}, ${env:NAME}, ${NAME:-default}, ${workspaceFolder}, ${userHome}, ${input:id}, ${keyring:name}; no command is ever run";
                    self.report(Problem::error("unknown-expansion", span.clone(), message).help(help));
                }
                Reference::Variable { default: Some(default), .. } => self.references(&default, span),
                Reference::Variable { name, default: None } if !self.world.is_set(&name) => {
                    let help = format!("set it before the editor starts, or write `${{{name}:-default}}`");
                    let message = format!("the variable `{name}` is not set");
                    self.report(Problem::warning("unset-variable", span.clone(), message).help(help));
                }
                Reference::Input(id) => self.inputs.push((id, span.clone())),
                _ => {}
            }
        }
    }
}

/// Adds “did you mean” to a problem about a word.
pub fn suggest(problem: Problem, word: &str, span: &Span, choices: &[&'static str]) -> Problem {
    match closest(word, choices) {
        Some(meant) => suggestion(problem, span, meant),
        None => problem,
    }
}

fn did_you_mean(mut problem: Problem, meant: &str) -> Problem {
    problem.message.push_str(&format!("; did you mean `{meant}`?"));
    problem
}

fn suggestion(problem: Problem, span: &Span, meant: &str) -> Problem {
    did_you_mean(problem, meant)
        .fix(format!("change to `{meant}`"), vec![TextEdit::replace(span.clone(), quoted(meant))])
}

/// As it stands in a file.
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
