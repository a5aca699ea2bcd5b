//! Turns the tree of a file into definitions and problems. Only this module knows the names of the keys.
//!
//! Each mistake is reported once, at the exact key or value. One bad server never affects the others.
//! `layers` decides which file takes precedence, and `expand` replaces `${…}`.

mod checks;
pub mod did_you_mean;
pub mod keys;
mod launch;
mod reader;
pub mod secrets;
mod sections;
mod server;
pub mod shell_split;
mod tools;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use reader::Reader;
pub use reader::{World, quoted};
pub use server::MIN_AS_MILLISECONDS;

use super::Source;
use super::problem::{Problem, Severity, Span, TextEdit};
use super::spec::{Action, FilePolicy, Input, ServerSpec};
use super::tree::{Kind, Member, Node, Step, Tree};
use crate::model::{Scope, ServerName};
use crate::settings::Limits;
use crate::text::lines::LineIndex;
use crate::text::one_line;

/// A hostile file could cause hundreds of thousands of problems.
const MAX_PROBLEMS: usize = 500;

/// The contents of one file.
#[derive(Debug, Clone, Default)]
pub struct Shaped {
    pub servers: Vec<ServerEntry>,
    /// Every name under `servers`, including those of invalid entries.
    pub names: Vec<String>,
    pub policy: Option<FilePolicy>,
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

/// This machine: its environment and its PATH. Searches for each program once.
#[derive(Debug, Default)]
pub struct Machine {
    found: RefCell<BTreeMap<(String, Option<PathBuf>), bool>>,
}

impl World for Machine {
    fn is_set(&self, variable: &str) -> bool {
        std::env::var_os(variable).is_some()
    }

    fn finds(&self, program: &str, folder: Option<&Path>) -> bool {
        // A bare name is searched on the PATH, independent of the working folder.
        let folder = folder.filter(|_| program.contains(['/', '\\']));
        let key = (program.to_owned(), folder.map(Path::to_path_buf));
        *self.found.borrow_mut().entry(key).or_insert_with(|| {
            which::which_in(program, std::env::var_os("PATH"), folder.unwrap_or(Path::new("/"))).is_ok()
        })
    }
}

/// Reads the tree of one file.
pub fn shape(tree: &Tree, source: &Source, lines: &LineIndex, limits: &Limits, world: &dyn World) -> Shaped {
    let mut reader = Reader::new(source.scope, source.folder.as_deref(), world);
    reader.variables = secrets::Variables::used_in(tree.root.as_ref());
    let mut shaped = Shaped::default();
    if let Some(root) = &tree.root {
        read_root(&mut reader, root, source, lines, limits, &mut shaped);
    }
    shaped.used_inputs = reader.inputs;
    shaped.problems = reader.problems;
    // In a file of another program, the spelling of that program is correct.
    if host(&source.path).is_some() {
        shaped.problems.retain(|problem| problem.code != "deprecated-spelling");
    }
    let more = shaped.problems.len().saturating_sub(MAX_PROBLEMS);
    if more > 0 {
        // Sort by severity, so that errors are kept.
        shaped.problems.sort_by_key(|problem| problem.severity);
        shaped.problems.truncate(MAX_PROBLEMS);
        shaped.problems.push(Problem::information("more", 0..0, format!("{more} more problems are not shown")));
    }
    shaped
}

/// Reads a single entry, such as a definition given at run time. The positions of its problems are not in any file.
pub fn entry(
    name: &str,
    value: &Value,
    scope: Scope,
    world: &dyn World,
) -> Result<(ServerName, ServerSpec), Vec<Problem>> {
    let text = value.to_string();
    let tree = super::tree::parse(&text, usize::MAX);
    let mut reader = Reader::new(scope, None, world);
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
    shaped: &mut Shaped,
) {
    if root.members().is_none() {
        if root.kind != Kind::Missing {
            reader.error("wrong-type", &root.span, format!("a config must be an object, not {}", root.noun()));
        }
        return;
    }
    let Some(members) = reader.entries(root) else { return };
    // The two spellings of `servers` are two sections. They do not replace each other as other aliases do.
    let (mut sections, rest): (Vec<&Member>, Vec<&Member>) =
        members.into_iter().partition(|member| matches!(member.key.text.as_str(), "servers" | "mcpServers"));
    sections.sort_by_key(|member| member.key.text != "servers");
    let fields = reader.fields(rest, &keys::ROOT);
    if let [only] = sections.as_slice() {
        other_spelling(reader, only, &source.path);
    }
    servers(reader, &sections, lines, limits, shaped);
    if let Some(member) = fields.get("inputs") {
        shaped.inputs = reader.in_key(member, |reader| sections::inputs(reader, &member.value));
    }
    if let Some(member) = fields.get("policy") {
        shaped.policy = reader.in_key(member, |reader| sections::policy(reader, &member.value, lines));
    }
    if let Some(member) = fields.get("actions") {
        shaped.actions = reader.in_key(member, |reader| sections::actions(reader, &member.value, lines));
    }
}

/// Reports a spelling that the program to which the file belongs would silently ignore.
fn other_spelling(reader: &mut Reader<'_>, section: &Member, path: &Path) {
    let Some((host, right)) = host(path) else { return };
    let written = section.key.text.as_str();
    if written != right {
        let message = format!("{host} does not read `{written}` in this file, only `{right}`");
        let edit = TextEdit::replace(section.key.span.clone(), quoted(right));
        let problem = Problem::hint("other-spelling", section.key.span.clone(), message);
        reader.report(problem.fix(format!("change to `{right}`"), vec![edit]));
    }
}

/// The other program that reads a file of this name, and how it spells `servers`.
fn host(path: &Path) -> Option<(&'static str, &'static str)> {
    match () {
        () if path.ends_with(".vscode/mcp.json") => Some(("VS Code", "servers")),
        () if path.ends_with(".cursor/mcp.json") => Some(("Cursor", "mcpServers")),
        () if path.ends_with(".mcp.json") => Some(("Claude Code", "mcpServers")),
        () => None,
    }
}

fn servers(reader: &mut Reader<'_>, sections: &[&Member], lines: &LineIndex, limits: &Limits, shaped: &mut Shaped) {
    let mut seen: BTreeMap<&str, &Span> = BTreeMap::new();
    let mut full = false;
    for section in sections {
        let entries = reader
            .in_key(section, |reader| reader.entries_once(&section.value, Severity::Error, "name-clash"))
            .unwrap_or_default();
        for member in entries {
            let name = member.key.text.as_str();
            if let Some(first) = seen.get(name) {
                let message = format!(
                    "`servers` and `mcpServers` both define `{}`; the one in `servers` is used",
                    one_line(name, 64)
                );
                let problem = Problem::error("name-clash", member.key.span.clone(), message);
                reader.report(problem.related(first, "this one is used"));
                continue;
            }
            seen.insert(name, &member.key.span);
            shaped.names.push(name.to_owned());
            if seen.len() > limits.servers {
                if !full {
                    let message = format!(
                        "more than {} servers (setting `limits.servers`): this server and the following ones are ignored",
                        limits.servers
                    );
                    reader.error("too-many-servers", &member.key.span, message);
                }
                full = true;
                continue;
            }
            let step = Step::Key(section.key.text.clone());
            shaped.servers.extend(reader.within(step, |reader| server_entry(reader, member, lines)));
        }
    }
}

fn server_entry(reader: &mut Reader<'_>, member: &Member, lines: &LineIndex) -> Option<ServerEntry> {
    // Check the entry even if its name is invalid.
    let name = server_name(reader, member);
    let spec = reader.in_key(member, |reader| server::server(reader, member));
    let key_span = member.key.span.clone();
    let line = lines.line(key_span.start);
    let rule_lines = tools::lines(&member.value, lines);
    let name = name?;
    Some(ServerEntry {
        key: name.clone(),
        name,
        key_span,
        line,
        rule_lines,
        spec: spec?,
        written: member.value.to_value(),
    })
}

fn server_name(reader: &mut Reader<'_>, member: &Member) -> Option<ServerName> {
    match ServerName::new(&member.key.text) {
        Ok(name) => Some(name),
        Err(error) => {
            let mut problem = Problem::error("bad-name", member.key.span.clone(), error.to_string());
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
