//! Reads typed values from the tree and reports problems at their exact position. Each mistake is reported once: a
//! value that is missing because of an earlier mistake is not reported again.

use std::collections::BTreeMap;
use std::path::Path;

use super::did_you_mean::closest;
use super::keys::{Key, Role, Table};
use super::secrets::Variables;
use crate::config::Environment;
use crate::config::expand::{ExpandError, Piece, Reference, Values, pieces};
use crate::config::problem::{Code, Problem, Severity, Span, TextEdit};
use crate::config::tree::{Kind, Member, Node, Step, show};
use crate::model::Scope;
use crate::text::one_line;

/// The environment and the PATH of the servers of a workspace folder; a parameter, so that this module stays pure.
pub trait Machine {
    fn is_set(&self, variable: &str, folder: Option<&Path>) -> bool;
    /// Whether a program exists. A path is relative to `cwd`.
    fn finds(&self, program: &str, cwd: Option<&Path>, folder: Option<&Path>) -> bool;
    fn environment(&self, _folder: Option<&Path>) -> Environment {
        Environment::of_this_process()
    }
}

pub struct Reader<'a> {
    pub scope: Scope,
    pub folder: Option<&'a Path>,
    pub machine: &'a dyn Machine,
    /// What is known before a start, to find programs.
    pub values: Values,
    pub problems: Vec<Problem>,
    /// Each `${input:id}` and its position, to check later whether one of the files declares it.
    pub inputs: Vec<(String, Span)>,
    pub path: Vec<Step>,
    /// The variables that fixes suggest for raw secrets.
    pub variables: Variables,
    /// Whether it reads an entry that only restricts a server.
    pub restricts: bool,
    errors: usize,
}

/// The members of an object by key, aliases resolved.
pub struct Fields<'a> {
    by_name: BTreeMap<&'static str, &'a Member>,
    /// The keys that unknown keys probably stand for, and the positions of the unknown keys.
    meant: Vec<(&'static str, Span)>,
}

impl<'a> Fields<'a> {
    pub fn get(&self, name: &str) -> Option<&'a Member> {
        self.by_name.get(name).copied()
    }

    pub fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// The position of a misspelling of this key, which has been reported already.
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
    pub fn new(scope: Scope, folder: Option<&'a Path>, machine: &'a dyn Machine) -> Self {
        Self {
            scope,
            folder,
            machine,
            values: Values::in_folder(folder, &machine.environment(folder)),
            problems: Vec::new(),
            inputs: Vec::new(),
            path: Vec::new(),
            variables: Variables::default(),
            restricts: false,
            errors: 0,
        }
    }

    pub fn report(&mut self, problem: Problem) {
        if problem.severity == Severity::Error {
            self.errors += 1;
        }
        self.problems.push(problem);
    }

    pub fn problem(&mut self, code: Code, span: &Span, message: impl Into<String>) {
        self.report(Problem::new(code, span.clone(), message));
    }

    /// Whether one of these required keys is misspelled. If so, the warning about it becomes an error, and the missing
    /// key must not be reported.
    pub fn misspelled(&mut self, fields: &Fields<'_>, names: &[&str]) -> bool {
        let Some(span) = names.iter().find_map(|name| fields.misspelled(name)) else { return false };
        if let Some(problem) = self.problems.iter_mut().rev().find(|problem| problem.span == *span) {
            problem.severity = Severity::Error;
            self.errors += 1;
        }
        true
    }

    /// The number of errors so far. If it has grown, what was read in between is not usable.
    pub fn errors(&self) -> usize {
        self.errors
    }

    pub fn within<T>(&mut self, step: Step, read: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(step);
        let result = read(self);
        self.path.pop();
        result
    }

    /// Reads the levels of an entry that only restricts a server.
    pub fn in_restriction<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        self.restricts = true;
        let result = read(self);
        self.restricts = false;
        result
    }

    pub fn in_key<T>(&mut self, member: &Member, read: impl FnOnce(&mut Self) -> T) -> T {
        self.within(Step::Key(member.key.text.clone()), read)
    }

    /// The current path, for messages.
    pub fn here(&self) -> String {
        show(&self.path)
    }

    /// Reports a value of the wrong type. A missing value has been reported already.
    pub fn wrong_type(&mut self, node: &Node, expected: &str) {
        if node.kind != Kind::Missing {
            let message = format!("`{}` must be {expected}, not {}", self.here(), node.noun());
            self.problem(Code::WrongType, &node.span, message);
        } else {
            self.errors += 1;
        }
    }

    /// The same for a string, with a fix that quotes a number or a boolean.
    pub fn wrong_string(&mut self, node: &Node) {
        if !matches!(node.kind, Kind::Number(_) | Kind::Bool(_)) {
            return self.wrong_type(node, "a string");
        }
        let message = format!("`{}` must be a string, not {}", self.here(), node.noun());
        let quote = |at: usize| TextEdit::replace(at..at, "\"");
        let edits = vec![quote(node.span.start), quote(node.span.end)];
        self.report(Problem::new(Code::WrongType, node.span.clone(), message).fix("put it in quotes", edits));
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
                    Problem::new(Code::WrongType, node.span.clone(), message).fix("remove the quotes", vec![edit]),
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

    /// One of a few words; a typo gets a fix.
    pub fn choice(&mut self, node: &Node, code: Code, choices: &[&'static str]) -> Option<&'static str> {
        let text = self.text(node)?;
        let found = choices.iter().find(|choice| **choice == text).copied();
        if found.is_none() {
            let message = format!("`{}` is not one of {}", one_line(text, 40), choices.join(", "));
            self.report(suggest(Problem::new(code, node.span.clone(), message), text, &node.span, choices));
        }
        found
    }

    /// The members of an object with known keys. Reports unknown and repeated keys and resolves aliases.
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
                // `$comment`, `_note` and `//` are comments.
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
                    let message = format!("`{}` and `{target}` are the same key; remove one of them", key.name);
                    self.problem(Code::SameKey, &member.key.span, message);
                } else if key.name != "transport" {
                    self.old_spelling(key.name, target, &member.key.span);
                }
            }
            Role::Foreign => {}
            Role::Ignored => {
                let severity = if key.name == "headersHelper" { Severity::Warning } else { Severity::Information };
                let message = format!("`{}` has no effect here: {}", key.name, key.docs);
                self.report(
                    Problem::new(Code::IgnoredKey, member.key.span.clone(), message).severity(severity).unnecessary(),
                );
            }
        }
    }

    /// Reports the spelling of another program, which is accepted.
    pub fn old_spelling(&mut self, written: &str, better: &str, span: &Span) {
        let message = format!("`{written}` is another spelling of `{better}`");
        let edit = TextEdit::replace(span.clone(), quoted(better));
        let problem = Problem::new(Code::DeprecatedSpelling, span.clone(), message).deprecated();
        self.report(problem.fix(format!("change to `{better}`"), vec![edit]));
    }

    fn unknown(&mut self, member: &Member, beside: &[&Member], table: &'static Table, fields: &mut Fields<'_>) {
        let name = member.key.text.as_str();
        let names: Vec<&'static str> = table.keys.iter().map(|key| key.name).collect();
        let meant = table.synonym(name).or_else(|| closest(name, &names));
        let message = format!("unknown key `{}` in `{}`", one_line(name, 40), self.container(table));
        let span = member.key.span.clone();
        let mut problem = Problem::new(Code::UnknownKey, span.clone(), message);
        if let Some(meant) = meant {
            problem = match beside.iter().any(|other| other.key.text == meant) {
                // The suggested key is already there, so there is no safe fix.
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

    /// The members of an object with arbitrary keys; of repeated keys the last one.
    pub fn entries<'n>(&mut self, node: &'n Node) -> Option<Vec<&'n Member>> {
        self.entries_once(node, Code::DuplicateKey)
    }

    /// The same with a given code for repeated keys.
    pub fn entries_once<'n>(&mut self, node: &'n Node, code: Code) -> Option<Vec<&'n Member>> {
        let Some(members) = node.members() else {
            self.wrong_type(node, "an object");
            return None;
        };
        let mut last: BTreeMap<&str, usize> = BTreeMap::new();
        for (index, member) in members.iter().enumerate() {
            if let Some(earlier) = last.insert(&member.key.text, index).and_then(|earlier| members.get(earlier)) {
                let name = one_line(&member.key.text, 40);
                let place = if self.path.is_empty() { String::new() } else { format!(" in `{}`", self.here()) };
                let message = format!("`{name}` is defined twice{place}; only the last one is used");
                let problem = Problem::new(code, member.key.span.clone(), message);
                self.report(problem.related(&earlier.key.span, "the first one"));
            }
        }
        let counts = |(index, member): (usize, &'n Member)| {
            (last.get(member.key.text.as_str()) == Some(&index)).then_some(member)
        };
        Some(members.iter().enumerate().filter_map(counts).collect())
    }

    /// Checks that every `${…}` in a value is known and set.
    pub fn references(&mut self, text: &str, span: &Span) {
        for piece in pieces(text) {
            let Piece::Reference { reference, .. } = piece else { continue };
            match reference {
                Reference::Unknown(written) => {
                    let message = format!("unknown expansion `{}`", one_line(&written, 60));
                    let help = "expected ${NAME}, ${env:NAME}, ${NAME:-default}, ${workspaceFolder}, ${userHome}, ${input:id} or ${keyring:name}; commands are never run";
                    self.report(Problem::new(Code::UnknownExpansion, span.clone(), message).help(help));
                }
                Reference::TooDeep(_) => {
                    let message = ExpandError::Deep.to_string();
                    self.report(Problem::new(Code::UnknownExpansion, span.clone(), message));
                }
                Reference::Variable { default: Some(default), .. } => self.references(&default, span),
                Reference::Variable { name, default: None } if !self.machine.is_set(&name, self.folder) => {
                    let help = format!("set it before you start the editor, or write `${{{name}:-default}}`");
                    let message = format!("the variable `{name}` is not set");
                    self.report(Problem::new(Code::UnsetVariable, span.clone(), message).help(help));
                }
                Reference::Input(id) => self.inputs.push((id, span.clone())),
                _ => {}
            }
        }
    }
}

/// Adds “did you mean” to a problem.
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

/// The text as a JSON string.
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
