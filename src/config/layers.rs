//! Merges the definitions of all files.
//!
//! `managed` > `session` > `local` > `project` > `user`. A definition is replaced as a whole. Within a scope, the earlier
//! file takes precedence. If two workspace folders use the same name, both names get the folder's name as a prefix. A
//! server of a project is ignored if there are too many, or if its name is too similar to one of the user's.

mod admission;
mod folders;
mod redact;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

pub use redact::redacted;

use super::problem::{Problem, Related};
use super::shape::{self, Machine, ServerEntry, Shaped, World};
use super::spec::{Config, Definition, Hidden, ServerSpec};
use super::{Content, File, Loaded, Source, tree};
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
    load_in(contents, session, limits, &Machine::default())
}

/// The same on a given machine.
pub fn load_in(
    contents: &[(Source, Content)],
    session: &BTreeMap<String, Value>,
    limits: &Limits,
    world: &dyn World,
) -> Loaded {
    let mut files: Vec<(File, Shaped)> =
        contents.iter().map(|(source, content)| read(source, content, limits, world)).collect();
    // Sort by precedence. Files of the same scope stay in order.
    files.sort_by_key(|(file, _)| std::cmp::Reverse(file.source.scope));
    let names = folders::names(&files);
    let mut config = Config::default();
    for (file, shaped) in &mut files {
        folders::rename(&names, file, shaped);
        let path = Some(file.source.path.clone());
        for problem in &mut file.problems {
            problem.related.iter_mut().filter(|related| related.file.as_os_str().is_empty()).for_each(|related| {
                related.file = file.source.path.to_path_buf();
            });
        }
        config
            .policies
            .extend(shaped.policy.take().map(|policy| super::spec::FilePolicy { file: path.clone(), ..policy }));
        config.inputs.extend(shaped.inputs.drain(..).map(|input| super::spec::Input { file: path.clone(), ..input }));
        config
            .actions
            .extend(shaped.actions.drain(..).map(|action| super::spec::Action { file: path.clone(), ..action }));
    }
    check_inputs(&mut files, &config);
    config.servers = merge(&mut files, session, limits, world);
    Loaded { config, files: files.into_iter().map(|(file, _)| file).collect() }
}

/// Checks a definition given at run time like one in a file.
pub fn session_entry(name: &str, value: &Value) -> Result<(ServerName, ServerSpec), Vec<Problem>> {
    shape::entry(name, value, Scope::Session, &Machine::default())
}

/// Reads a single file.
fn read(source: &Source, content: &Content, limits: &Limits, world: &dyn World) -> (File, Shaped) {
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
        Content::Absent | Content::Gone => return (file, Shaped::default()),
        Content::Unreadable(reason) => {
            file.valid = false;
            file.problems.push(Problem::error("unreadable", 0..0, reason.clone()));
            return (file, Shaped::default());
        }
        Content::Text(text) => text.clone(),
    };
    file.text = text.clone();
    if text.len() > limits.config_bytes {
        file.valid = false;
        let message = format!("the file is larger than {} (setting `limits.config-bytes`)", size(limits.config_bytes));
        file.problems.push(Problem::error("unreadable", 0..0, message));
        return (file, Shaped::default());
    }
    let tree = Arc::new(tree::parse(&text, limits.config_depth));
    file.tree = tree.clone();
    let lines = LineIndex::new(text);
    let mut shaped = shape::shape(&tree, source, &lines, limits, world);
    file.valid = tree.valid() && tree.root.as_ref().is_some_and(|root| root.members().is_some());
    file.servers = shaped.names.clone();
    file.problems = tree.problems.clone();
    // Without recovery from a syntax error, all other problems would be guesses.
    if tree.whole {
        file.problems.append(&mut shaped.problems);
    }
    file.problems.sort_by_key(|problem| (problem.span.start, problem.span.end));
    if !file.valid {
        shaped = Shaped { names: shaped.names, ..Shaped::default() };
    }
    (file, shaped)
}

fn size(bytes: usize) -> String {
    match bytes {
        bytes if bytes >= 1 << 20 && bytes % (1 << 20) == 0 => format!("{} MiB", bytes >> 20),
        bytes if bytes >= 1 << 10 && bytes % (1 << 10) == 0 => format!("{} KiB", bytes >> 10),
        bytes => format!("{bytes} bytes"),
    }
}

/// `${input:id}` may be declared in another file.
fn check_inputs(files: &mut [(File, Shaped)], config: &Config) {
    for (file, shaped) in files {
        for (id, span) in &shaped.used_inputs {
            if !config.inputs.iter().any(|input| input.id == *id) {
                let message = format!("the input `{}` is not declared in `inputs`", crate::text::one_line(id, 40));
                file.problems.push(Problem::warning("unknown-input", span.clone(), message));
            }
        }
    }
}

/// Merges all files. A definition that is overridden by a file of the same scope is reported. One that is overridden by
/// a higher scope is not, because that is intended.
fn merge(
    files: &mut [(File, Shaped)],
    session: &BTreeMap<String, Value>,
    limits: &Limits,
    world: &dyn World,
) -> BTreeMap<ServerName, Arc<Definition>> {
    let mut admission = admission::Admission::new(files, session, limits);
    let mut servers: BTreeMap<ServerName, Definition> = BTreeMap::new();
    let mut session = Some(session);
    for (file, shaped) in files {
        if file.source.scope < Scope::Session
            && let Some(session) = session.take()
        {
            add_session(&mut servers, session, &admission, world);
        }
        admission.next_file();
        for entry in std::mem::take(&mut shaped.servers) {
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
        add_session(&mut servers, session, &admission, world);
    }
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
    }
}

/// Adds the definitions given at run time. Invalid ones were rejected when they were set, and are skipped here.
fn add_session(
    servers: &mut BTreeMap<ServerName, Definition>,
    session: &BTreeMap<String, Value>,
    admission: &admission::Admission,
    world: &dyn World,
) {
    for (name, value) in session {
        let Ok((name, spec)) = shape::entry(name, value, Scope::Session, world) else { continue };
        if !admission.has_reserved(&name) {
            continue;
        }
        if let Some(winner) = servers.get_mut(&name) {
            winner.hides.push(Hidden { scope: Scope::Session, file: None, key_span: 0..0, line: 0 });
            continue;
        }
        let written = Arc::new(value.clone());
        servers.insert(
            name.clone(),
            Definition {
                key: name.clone(),
                name,
                scope: Scope::Session,
                file: None,
                folder: None,
                key_span: 0..0,
                line: 0,
                rule_lines: BTreeMap::new(),
                spec,
                written,
                hides: Vec::new(),
            },
        );
    }
}

fn overridden(entry: &ServerEntry, winner: &Definition) -> Problem {
    let file = winner.file.as_deref().unwrap_or(Path::new(""));
    let shown = file.file_name().map_or_else(String::new, |name| {
        let parent = file.parent().and_then(Path::file_name).filter(|parent| parent.to_string_lossy().starts_with('.'));
        parent.map_or_else(String::new, |parent| format!("{}/", parent.to_string_lossy())) + &name.to_string_lossy()
    });
    let message = format!("`{}` has no effect: `{shown}` also defines it and takes precedence", entry.name);
    let mut problem = Problem::information("hidden", entry.key_span.clone(), message).unnecessary();
    problem.related.push(Related {
        file: file.to_path_buf(),
        span: winner.key_span.clone(),
        message: "this definition is used".to_owned(),
    });
    problem
}

#[cfg(test)]
mod tests;
