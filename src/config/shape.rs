//! Turns the tree of a file into definitions and problems. Only this module knows the names of the keys.
//!
//! Each mistake is reported once, at the exact key or value. One bad server never affects the others.
//! `layers` decides which file takes precedence, and `expand` replaces `${…}`.

mod agent_tools;
mod checks;
pub mod did_you_mean;
pub mod keys;
mod launch;
mod reader;
mod relative_paths;
mod sandbox;
pub mod secret_spans;
pub mod secrets;
mod sections;
mod server;
pub mod shell_split;
mod tools;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use reader::Reader;
pub use reader::{Machine, quoted};
pub use server::{MIN_AS_MILLISECONDS, is_timeout};

use super::problem::{Code, Problem, Severity, Span, TextEdit};
use super::sections::{MCP_SERVERS, SERVERS, host, is_section};
use super::spec::{Action, AgentToolRules, FilePolicy, Input, ServerSpec, ToolRule};
use super::tree::{Kind, Member, Node, Step, Tree};
use super::{Environment, Environments, Source};
use crate::model::{Scope, ServerName};
use crate::paths::find_program;
use crate::settings::Limits;
use crate::text::lines::LineIndex;
use crate::text::one_line;

/// A hostile file could cause hundreds of thousands of problems.
const MAX_PROBLEMS: usize = 500;

/// The contents of one file.
#[derive(Debug, Clone, Default)]
pub struct ParsedFile {
    pub servers: Vec<ServerEntry>,
    pub restrictions: Vec<RestrictionEntry>,
    /// Every name under `servers`, including those of invalid entries.
    pub names: Vec<String>,
    pub policy: Option<FilePolicy>,
    pub agent_tools: Vec<AgentToolRules>,
    pub inputs: Vec<Input>,
    pub actions: Vec<Action>,
    pub problems: Vec<Problem>,
    /// Each `${input:id}` and its position.
    pub used_inputs: Vec<(String, Span)>,
}

/// A valid server.
#[derive(Debug, Clone)]
pub struct ServerEntry {
    pub name: ServerName,
    /// The name as written in the file.
    pub key: ServerName,
    pub key_span: Span,
    pub line: u32,
    pub rule_lines: BTreeMap<String, u32>,
    pub spec: ServerSpec,
    pub written: Value,
}

/// A valid entry without a launch: it restricts the server of that name.
#[derive(Debug, Clone)]
pub struct RestrictionEntry {
    pub name: ServerName,
    /// The name as written in the file.
    pub key: ServerName,
    pub key_span: Span,
    pub line: u32,
    pub rule_lines: BTreeMap<String, u32>,
    pub limits: RestrictionSpec,
}

/// What an entry under `servers` is.
#[derive(Debug, Clone)]
pub enum EntrySpec {
    Server(Box<ServerSpec>),
    Restriction(RestrictionSpec),
}

/// The contents of an entry without a launch.
#[derive(Debug, Clone, Default)]
pub struct RestrictionSpec {
    pub enabled: Option<bool>,
    pub tools: Vec<ToolRule>,
}

/// A program, the folder that its path is relative to, and the workspace folder.
type SearchedProgram = (String, Option<PathBuf>, Option<PathBuf>);

/// This machine, with the environments that servers start with. Searches for each program once per folder.
#[derive(Debug, Default)]
pub struct ThisMachine {
    environments: Arc<Environments>,
    names: RefCell<BTreeMap<Option<PathBuf>, BTreeSet<String>>>,
    found: RefCell<BTreeMap<SearchedProgram, bool>>,
}

impl ThisMachine {
    pub fn new(environments: Arc<Environments>) -> Self {
        Self { environments, ..Self::default() }
    }
}

impl Machine for ThisMachine {
    fn is_set(&self, variable: &str, folder: Option<&Path>) -> bool {
        let mut names = self.names.borrow_mut();
        let names = names.entry(folder.map(Path::to_path_buf)).or_insert_with(|| self.environments.names(folder));
        names.contains(variable)
    }

    fn finds(&self, program: &str, cwd: Option<&Path>, folder: Option<&Path>) -> bool {
        // A bare name is searched on the PATH, independent of the working folder.
        let cwd = cwd.filter(|_| program.contains(['/', '\\']));
        let key = (program.to_owned(), cwd.map(Path::to_path_buf), folder.map(Path::to_path_buf));
        *self.found.borrow_mut().entry(key).or_insert_with(|| {
            let path = self.environments.in_folder(folder).path();
            find_program(program, path, cwd.unwrap_or(Path::new("/"))).is_some()
        })
    }

    fn environment(&self, folder: Option<&Path>) -> Environment {
        self.environments.in_folder(folder).clone()
    }
}

/// Reads the tree of one file.
pub fn shape(tree: &Tree, source: &Source, lines: &LineIndex, limits: &Limits, machine: &dyn Machine) -> ParsedFile {
    let mut reader = Reader::new(source.scope, source.folder.as_deref(), machine);
    reader.variables = secrets::Variables::used_in(tree.root.as_ref());
    let mut parsed = ParsedFile::default();
    if let Some(root) = &tree.root {
        read_root(&mut reader, root, source, lines, limits, &mut parsed);
    }
    parsed.used_inputs = reader.inputs;
    parsed.problems = reader.problems;
    // In a file of another program, the spelling of that program is correct.
    if host(&source.path).is_some() {
        parsed.problems.retain(|problem| problem.code != Code::DeprecatedSpelling);
    }
    let more = parsed.problems.len().saturating_sub(MAX_PROBLEMS);
    if more > 0 {
        // Sort by severity, so that errors are kept.
        parsed.problems.sort_by_key(|problem| problem.severity);
        parsed.problems.truncate(MAX_PROBLEMS);
        parsed.problems.push(Problem::new(Code::More, 0..0, format!("{more} more problems are not shown")));
    }
    parsed
}

/// Reads a single entry, such as a definition given at run time. The positions of its problems are not in any file.
pub fn entry(
    name: &str,
    value: &Value,
    scope: Scope,
    machine: &dyn Machine,
) -> Result<(ServerName, EntrySpec), Vec<Problem>> {
    let text = value.to_string();
    let tree = super::tree::parse(&text, usize::MAX);
    let mut reader = Reader::new(scope, None, machine);
    let Some(node) = tree.root.filter(|_| tree.problems.is_empty()) else { return Err(tree.problems) };
    let member = Member { key: super::tree::Key { span: 0..0, text: name.to_owned() }, value: node };
    let named = server_name(&mut reader, &member);
    let spec = reader.in_key(&member, |reader| server::server(reader, &member));
    match (named, spec) {
        (Some(name), Some(spec)) => Ok((name, spec)),
        _ => {
            let mut problems = reader.problems;
            // Report warnings only if there are no errors: a misspelled key may be the reason for the rejection.
            if problems.iter().any(|problem| problem.severity == Severity::Error) {
                problems.retain(|problem| problem.severity == Severity::Error);
            }
            Err(problems)
        }
    }
}

fn read_root(
    reader: &mut Reader<'_>,
    root: &Node,
    source: &Source,
    lines: &LineIndex,
    limits: &Limits,
    parsed: &mut ParsedFile,
) {
    if root.members().is_none() {
        if root.kind != Kind::Missing {
            reader.problem(Code::WrongType, &root.span, format!("a config must be an object, not {}", root.noun()));
        }
        return;
    }
    let Some(members) = reader.entries(root) else { return };
    // The two spellings of `servers` are two sections. They do not replace each other as other aliases do.
    let (mut sections, rest): (Vec<&Member>, Vec<&Member>) =
        members.into_iter().partition(|member| is_section(&member.key.text));
    sections.sort_by_key(|member| member.key.text != SERVERS);
    let fields = reader.fields(rest, &keys::ROOT);
    if let [only] = sections.as_slice() {
        other_spelling(reader, only, &source.path);
    }
    servers(reader, &sections, lines, limits, parsed);
    if let Some(member) = fields.get("inputs") {
        parsed.inputs = reader.in_key(member, |reader| sections::inputs(reader, &member.value));
    }
    if let Some(member) = fields.get("policy") {
        parsed.policy = Some(reader.in_key(member, |reader| sections::policy(reader, &member.value, lines)));
    }
    if let Some(member) = fields.get("agentTools") {
        parsed.agent_tools = reader.in_key(member, |reader| agent_tools::agent_tools(reader, &member.value, lines));
    }
    if let Some(member) = fields.get("actions") {
        parsed.actions = reader.in_key(member, |reader| sections::actions(reader, &member.value, lines));
    }
}

/// Reports a spelling that the program to which the file belongs would silently ignore.
fn other_spelling(reader: &mut Reader<'_>, section: &Member, path: &Path) {
    let Some((host, right)) = host(path) else { return };
    let written = section.key.text.as_str();
    if written != right {
        let message = format!("{host} does not read `{written}` in this file, only `{right}`");
        let edit = TextEdit::replace(section.key.span.clone(), quoted(right));
        let problem = Problem::new(Code::OtherSpelling, section.key.span.clone(), message);
        reader.report(problem.fix(format!("change to `{right}`"), vec![edit]));
    }
}

fn servers(reader: &mut Reader<'_>, sections: &[&Member], lines: &LineIndex, limits: &Limits, parsed: &mut ParsedFile) {
    let mut seen: BTreeMap<&str, &Span> = BTreeMap::new();
    let mut full = false;
    for section in sections {
        let entries =
            reader.in_key(section, |reader| reader.entries_once(&section.value, Code::NameClash)).unwrap_or_default();
        for member in entries {
            let name = member.key.text.as_str();
            if let Some(first) = seen.get(name) {
                let message = format!(
                    "`{SERVERS}` and `{MCP_SERVERS}` both define `{}`; the one in `{SERVERS}` is used",
                    one_line(name, 64)
                );
                let problem = Problem::new(Code::NameClash, member.key.span.clone(), message);
                reader.report(problem.related(first, "this one is used"));
                continue;
            }
            seen.insert(name, &member.key.span);
            parsed.names.push(name.to_owned());
            if seen.len() > limits.servers {
                if !full {
                    let message = format!(
                        "more than {} servers (setting `limits.servers`): this server and the following ones are ignored",
                        limits.servers
                    );
                    reader.problem(Code::TooManyServers, &member.key.span, message);
                }
                full = true;
                continue;
            }
            let step = Step::Key(section.key.text.clone());
            reader.within(step, |reader| server_entry(reader, member, lines, parsed));
        }
    }
}

fn server_entry(reader: &mut Reader<'_>, member: &Member, lines: &LineIndex, parsed: &mut ParsedFile) {
    // Check the entry even if its name is invalid.
    let name = server_name(reader, member);
    let spec = reader.in_key(member, |reader| server::server(reader, member));
    let (Some(name), Some(spec)) = (name, spec) else { return };
    let key_span = member.key.span.clone();
    let line = lines.line(key_span.start);
    let rule_lines = tools::lines(&member.value, lines);
    let key = name.clone();
    match spec {
        EntrySpec::Server(spec) => {
            let (spec, written) = (*spec, member.value.to_value());
            parsed.servers.push(ServerEntry { name, key, key_span, line, rule_lines, spec, written });
        }
        EntrySpec::Restriction(limits) => {
            parsed.restrictions.push(RestrictionEntry { name, key, key_span, line, rule_lines, limits });
        }
    }
}

fn server_name(reader: &mut Reader<'_>, member: &Member) -> Option<ServerName> {
    match ServerName::new(&member.key.text) {
        Ok(name) => Some(name),
        Err(error) => {
            let mut problem = Problem::new(Code::BadName, member.key.span.clone(), error.to_string());
            let better = valid_name(&member.key.text);
            if let Some(better) = better {
                let edit = TextEdit::replace(member.key.span.clone(), quoted(better.as_str()));
                problem = problem.fix(format!("rename to `{better}`"), vec![edit]);
            }
            reader.report(problem);
            None
        }
    }
}

/// Converts a text to a similar valid name.
pub fn valid_name(text: &str) -> Option<ServerName> {
    let mut name = String::new();
    for c in text.chars().take(64) {
        let c = if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
        if !(matches!(c, '-' | '_') && name.ends_with(['-', '_'])) {
            name.push(c);
        }
    }
    ServerName::new(name.trim_matches(['-', '_'])).ok()
}

#[cfg(test)]
mod tests;
