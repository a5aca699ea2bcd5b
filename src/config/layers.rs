//! Merges the definitions of all files.
//!
//! `managed` > `session` > `local` > `project` > `user`. A definition is replaced as a whole. Within a scope, the earlier
//! file takes precedence. If two workspace folders use the same name, both names get the folder's name as a prefix. A
//! server of a project is ignored if there are too many, or if its name is too similar to one of the user's. An entry
//! without a launch restricts the server of that name (`restrict`).

mod admission;
mod folders;
mod redact;
mod restrict;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

pub use redact::{launch_line, redacted};

use super::problem::{Code, Problem, Related};
use super::sections::is_section;
use super::shape::{self, EntrySpec, Machine, ParsedFile, ServerEntry, ThisMachine};
use super::spec::{Config, Definition, FilePolicy, Hidden};
use super::{Content, Environments, File, Loaded, Source, expand, tree};
use crate::model::{Scope, ServerName};
use crate::paths::Paths;
use crate::settings::{Files, Limits};
use crate::text::lines::LineIndex;

/// The config files in order of precedence, without duplicates: opening the user's config folder as a workspace does not
/// turn the user's file into a project file.
pub fn sources(folders: &[Arc<Path>], files: &Files, paths: &Paths) -> Vec<Source> {
    let plain = |path: &Path, scope| Source { path: path.into(), scope, folder: None };
    let managed = plain(&paths.managed_config, Scope::Managed);
    let user = plain(&paths.config_dir.join("mcp.json"), Scope::User);
    let mut seen: BTreeSet<Arc<Path>> = [managed.path.clone(), user.path.clone()].into();
    let mut sources = vec![managed];
    for (names, scope) in [(&files.local, Scope::Local), (&files.project, Scope::Project)] {
        for folder in folders {
            for name in names {
                let path: Arc<Path> = folder.join(name).into();
                if seen.insert(path.clone()) {
                    sources.push(Source { path, scope, folder: Some(folder.clone()) });
                }
            }
        }
    }
    sources.push(user);
    sources
}

pub fn load(contents: &[(Source, Content)], session: &BTreeMap<String, Value>, limits: &Limits) -> Loaded {
    load_in(contents, session, limits, &ThisMachine::default())
}

/// The same with the environments that the servers start with.
pub fn load_with(
    contents: &[(Source, Content)],
    session: &BTreeMap<String, Value>,
    limits: &Limits,
    environments: &Arc<Environments>,
) -> Loaded {
    load_in(contents, session, limits, &ThisMachine::new(environments.clone()))
}

/// The same on a given machine.
pub fn load_in(
    contents: &[(Source, Content)],
    session: &BTreeMap<String, Value>,
    limits: &Limits,
    machine: &dyn Machine,
) -> Loaded {
    let mut files: Vec<(File, ParsedFile)> =
        contents.iter().map(|(source, content)| read(source, content, limits, machine)).collect();
    // Sort by precedence. Files of the same scope stay in order.
    files.sort_by_key(|(file, _)| std::cmp::Reverse(file.source.scope));
    let names = folders::names(&files);
    let mut config = Config::default();
    for (file, parsed) in &mut files {
        folders::rename(&names, file, parsed);
        let path = Some(file.source.path.clone());
        for problem in &mut file.problems {
            problem.related.iter_mut().filter(|related| related.file.as_os_str().is_empty()).for_each(|related| {
                related.file = file.source.path.to_path_buf();
            });
        }
        config.policies.extend(parsed.policy.take().map(|policy| FilePolicy { file: path.clone(), ..policy }));
        let folder = &file.source.folder;
        config.agent_tools.extend(parsed.agent_tools.drain(..).map(|rules| super::spec::AgentToolRules {
            file: path.clone(),
            folder: folder.clone(),
            ..rules
        }));
        config.inputs.extend(parsed.inputs.drain(..).map(|input| super::spec::Input { file: path.clone(), ..input }));
        config
            .actions
            .extend(parsed.actions.drain(..).map(|action| super::spec::Action { file: path.clone(), ..action }));
    }
    check_inputs(&mut files, &config);
    config.servers = merge(&mut files, session, limits, machine);
    for definition in config.servers.values() {
        [Some(&definition.spec.launch), definition.spec.fallback.as_ref()]
            .into_iter()
            .flatten()
            .for_each(expand::register_literals);
    }
    Loaded { config, files: files.into_iter().map(|(file, _)| file).collect() }
}

/// Checks an entry given at run time like one in a file.
pub fn session_entry(name: &str, value: &Value) -> Result<(ServerName, EntrySpec), Vec<Problem>> {
    shape::entry(name, value, Scope::Session, &ThisMachine::default())
}

/// Reads a single file.
fn read(source: &Source, content: &Content, limits: &Limits, machine: &dyn Machine) -> (File, ParsedFile) {
    let mut file = File {
        source: source.clone(),
        exists: !matches!(content, Content::Absent | Content::Gone),
        valid: true,
        servers: Vec::new(),
        problems: Vec::new(),
        text: Arc::from(""),
        tree: Arc::default(),
    };
    let text = match content {
        Content::Absent | Content::Gone => return (file, ParsedFile::default()),
        Content::Unreadable(reason) => {
            file.valid = false;
            file.problems.push(Problem::new(Code::Unreadable, 0..0, reason.clone()));
            return (file, unusable(source));
        }
        Content::Text(text) => text.clone(),
    };
    file.text = text.clone();
    if text.len() > limits.config_bytes {
        file.valid = false;
        let message = format!("the file is larger than {} (setting `limits.config-bytes`)", size(limits.config_bytes));
        file.problems.push(Problem::new(Code::Unreadable, 0..0, message));
        return (file, unusable(source));
    }
    let tree = Arc::new(tree::parse(&text, limits.config_depth));
    file.tree = tree.clone();
    // A new file is often saved before anything is written. An administrator's file is not written that way.
    let is_blank = text.trim().is_empty() && source.scope != Scope::Managed;
    let lines = LineIndex::new(text);
    let mut parsed = shape::shape(&tree, source, &lines, limits, machine);
    let is_config = tree.valid() && tree.root.as_ref().is_some_and(|root| root.members().is_some());
    file.valid = is_config && tree.root.as_ref().is_some_and(has_usable_sections);
    file.servers = parsed.names.clone();
    file.problems = tree.problems.clone();
    // Without recovery from a syntax error, all other problems would be guesses.
    if tree.whole {
        file.problems.append(&mut parsed.problems);
    }
    file.problems.sort_by_key(|problem| (problem.span.start, problem.span.end));
    if !is_config {
        let nothing = if is_blank { ParsedFile::default() } else { unusable(source) };
        parsed = ParsedFile { names: parsed.names, ..nothing };
    }
    (file, parsed)
}

/// What a file contains that cannot be read or parsed. The rules of the user or the administrator are not known then, so
/// nothing is allowed without a question. A project file can only restrict, and does nothing.
fn unusable(source: &Source) -> ParsedFile {
    let policy = matches!(source.scope, Scope::User | Scope::Managed).then(|| FilePolicy::unreadable(source.scope, 0));
    ParsedFile { policy, ..ParsedFile::default() }
}

/// Whether each section with servers is an object and appears once. Otherwise, it is not known which servers are meant, and
/// those of the last valid text continue to run.
fn has_usable_sections(root: &tree::Node) -> bool {
    let mut seen = BTreeSet::new();
    let sections = root.members().unwrap_or_default().iter().filter(|member| is_section(&member.key.text));
    sections.into_iter().all(|section| section.value.members().is_some() && seen.insert(&section.key.text))
}

fn size(bytes: usize) -> String {
    match bytes {
        bytes if bytes >= 1 << 20 && bytes % (1 << 20) == 0 => format!("{} MiB", bytes >> 20),
        bytes if bytes >= 1 << 10 && bytes % (1 << 10) == 0 => format!("{} KiB", bytes >> 10),
        bytes => format!("{bytes} bytes"),
    }
}

/// `${input:id}` may be declared in another file.
fn check_inputs(files: &mut [(File, ParsedFile)], config: &Config) {
    for (file, parsed) in files {
        for (id, span) in &parsed.used_inputs {
            if !config.inputs.iter().any(|input| input.id == *id) {
                let message = format!("the input `{}` is not declared in `inputs`", crate::text::one_line(id, 40));
                file.problems.push(Problem::new(Code::UnknownInput, span.clone(), message));
            }
        }
    }
}

/// Merges all files. A definition that is overridden by a file of the same scope is reported. One that is overridden by
/// a higher scope is not, because that is intended.
fn merge(
    files: &mut [(File, ParsedFile)],
    session: &BTreeMap<String, Value>,
    limits: &Limits,
    machine: &dyn Machine,
) -> BTreeMap<ServerName, Arc<Definition>> {
    let mut admission = admission::Admission::new(files, session, limits);
    let mut servers: BTreeMap<ServerName, Definition> = BTreeMap::new();
    let (all_session, mut session) = (session, Some(session));
    for (file, parsed) in files.iter_mut() {
        if file.source.scope < Scope::Session
            && let Some(session) = session.take()
        {
            add_session(&mut servers, session, &admission, machine);
        }
        admission.next_file();
        for entry in std::mem::take(&mut parsed.servers) {
            if let Some(winner) = servers.get_mut(&entry.name) {
                if winner.scope == file.source.scope {
                    file.problems.push(overridden(&entry, winner));
                }
                let path = Some(file.source.path.clone());
                winner.hides.push(Hidden {
                    scope: file.source.scope,
                    file: path,
                    key_span: entry.key_span,
                    line: entry.line,
                    tools: entry.spec.tools,
                });
                continue;
            }
            match admission.admit(&entry, file.source.scope, &servers) {
                Ok(()) => {
                    servers.insert(entry.name.clone(), definition(entry, &file.source));
                }
                Err(problem) => file.problems.extend(problem.map(|problem| *problem)),
            }
        }
        file.problems.sort_by_key(|problem| (problem.span.start, problem.span.end));
    }
    if let Some(session) = session {
        add_session(&mut servers, session, &admission, machine);
    }
    restrict::restrict(&mut servers, files, all_session, machine);
    servers.into_iter().map(|(name, definition)| (name, Arc::new(definition))).collect()
}

fn definition(entry: ServerEntry, source: &Source) -> Definition {
    Definition {
        name: entry.name,
        key: entry.key,
        scope: source.scope,
        file: Some(source.path.clone()),
        folder: source.folder.clone(),
        key_span: entry.key_span,
        line: entry.line,
        rule_lines: entry.rule_lines,
        spec: entry.spec,
        written: Arc::new(entry.written),
        hides: Vec::new(),
        restrictions: Vec::new(),
    }
}

/// Adds the definitions given at run time. Invalid ones were rejected when they were set, and are skipped here.
fn add_session(
    servers: &mut BTreeMap<ServerName, Definition>,
    session: &BTreeMap<String, Value>,
    admission: &admission::Admission,
    machine: &dyn Machine,
) {
    for (name, value) in session {
        let Ok((name, EntrySpec::Server(spec))) = shape::entry(name, value, Scope::Session, machine) else { continue };
        if !admission.has_reserved(&name) {
            continue;
        }
        if let Some(winner) = servers.get_mut(&name) {
            winner.hides.push(Hidden { scope: Scope::Session, file: None, key_span: 0..0, line: 0, tools: spec.tools });
            continue;
        }
        servers.insert(name.clone(), Definition::of_session(name, *spec, value.clone()));
    }
}

fn overridden(entry: &ServerEntry, winner: &Definition) -> Problem {
    let file = winner.file.as_deref().unwrap_or(Path::new(""));
    let shown = file.file_name().map_or_else(String::new, |name| {
        let parent = file.parent().and_then(Path::file_name).filter(|parent| parent.to_string_lossy().starts_with('.'));
        parent.map_or_else(String::new, |parent| format!("{}/", parent.to_string_lossy())) + &name.to_string_lossy()
    });
    let message = format!("`{}` has no effect: `{shown}` also defines it and takes precedence", entry.name);
    let mut problem = Problem::new(Code::Hidden, entry.key_span.clone(), message).unnecessary();
    problem.related.push(Related {
        file: file.to_path_buf(),
        span: winner.key_span.clone(),
        message: "this definition is used".to_owned(),
    });
    problem
}

#[cfg(test)]
mod tests;
