//! Converts foreign files to entries of our own files. Reads and writes no files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use super::file::ForeignFile;
use super::incoming::Permissions;
use super::literals::Literals;
use super::notes::Notes;
use super::{Dialect, file, incoming, is_sidecar, native_entry};
use crate::config::expand::{Reference, references};
use crate::config::shape::{self, Machine};
use crate::config::spec::{Launch, ServerSpec};
use crate::model::{Scope, ServerName};
use crate::text::one_line;

/// The result of a conversion.
#[derive(Debug, Default)]
pub struct Import {
    /// In the order of the files.
    pub servers: Vec<(ServerName, Value)>,
    /// Entries for `inputs` that those servers need.
    pub inputs: Vec<Value>,
    /// Name → why it is not imported. The key of an unreadable file is its path.
    pub skipped: BTreeMap<String, String>,
    pub notes: BTreeMap<String, Vec<String>>,
}

/// Returns the reason why a name must not be used, if there is one.
pub type NameCheck<'a> = &'a dyn Fn(&ServerName) -> Option<String>;

/// Where the servers go to.
#[derive(Debug, Clone, Copy)]
pub struct Destination<'a> {
    pub scope: Scope,
    /// The folders of the workspace.
    pub folders: &'a [PathBuf],
    /// Leaves out the servers for all projects.
    pub project_only: bool,
}

impl Destination<'_> {
    /// Why the servers that the user has only in the project of this folder do not belong here.
    fn refuses(&self, folder: &Path) -> Option<String> {
        let shown = folder.display();
        if !self.folders.iter().any(|known| known == folder) {
            return Some(format!("it is only for the project {shown}; import it there, into scope `local`"));
        }
        (self.scope == Scope::User)
            .then(|| format!("it is only for the project {shown}; import it into scope `local` or `project`"))
    }
}

/// Converts all servers of these files. If two have the same name, the first one is used, as in the program itself.
pub fn import(
    dialect: Dialect,
    files: &[(PathBuf, Arc<str>)],
    destination: Destination<'_>,
    taken: NameCheck<'_>,
) -> Import {
    let mut import = Import::default();
    let mut variables = Literals::default();
    let mut inputs: Vec<Value> = Vec::new();
    let mut wanted: Vec<String> = Vec::new();
    let mut sources: BTreeMap<String, &Path> = BTreeMap::new();
    let mut permissions = Permissions::default();
    let mut read: Vec<(&PathBuf, ForeignFile)> = Vec::new();
    for (path, text) in files {
        match file::read(dialect, text) {
            Ok(mut found) => {
                // A file may contain permissions for a server in another file.
                permissions.merge(std::mem::take(&mut found.permissions));
                read.push((path, found));
            }
            Err(reason) => {
                let reason = format!("cannot parse the file: {}", one_line(&reason, 200));
                import.skipped.insert(path.display().to_string(), reason);
            }
        }
    }
    for (path, found) in read {
        inputs.extend(found.inputs);
        for (name, reason) in found.unreachable {
            import.skipped.insert(shown(&name), reason.to_owned());
        }
        // The servers for one project take precedence over those for all projects.
        let mut servers = Vec::new();
        for (folder, own) in found.projects {
            match destination.refuses(&folder) {
                None => servers.extend(own),
                Some(reason) => import.skipped.extend(
                    own.into_iter()
                        .map(|(name, _)| (format!("{} in {}", shown(&name), folder.display()), reason.clone())),
                ),
            }
        }
        if !destination.project_only {
            servers.extend(found.servers);
        }
        for (written, entry) in servers {
            if let Some(first) = sources.get(&written) {
                if *first != path.as_path() {
                    let note = format!("{} also defines it; that definition is ignored", path.display());
                    import.notes.entry(shown(&written)).or_default().push(note);
                }
                continue;
            }
            sources.insert(written.clone(), path);
            let mut notes = Notes::default();
            match one(dialect, &written, &entry, taken, &permissions, &mut variables, &mut notes) {
                Ok((name, _, _)) if import.servers.iter().any(|(known, _)| *known == name) => {
                    import
                        .skipped
                        .insert(shown(&written), format!("another imported server is already named `{name}`"));
                }
                Ok((name, spec, value)) => {
                    wanted.extend(inputs_of(&spec.launch));
                    let notes = notes.into_list();
                    if !notes.is_empty() {
                        import.notes.entry(name.to_string()).or_default().extend(notes);
                    }
                    import.servers.push((name, value));
                }
                Err(reason) => {
                    import.skipped.insert(shown(&written), reason);
                }
            }
        }
    }
    import.inputs = declared(&wanted, &inputs);
    import
}

fn one(
    dialect: Dialect,
    written: &str,
    entry: &Value,
    taken: NameCheck<'_>,
    permissions: &Permissions,
    variables: &mut Literals,
    notes: &mut Notes,
) -> Result<(ServerName, ServerSpec, Value), String> {
    let entry = entry.as_object().ok_or("its entry is not an object")?;
    let name = match ServerName::new(written) {
        Ok(name) => name,
        Err(reason) => {
            let near = shape::valid_name(written).ok_or_else(|| reason.to_string())?;
            notes.add(format!("its name in {} is `{}`", dialect.title(), one_line(written, 80)));
            near
        }
    };
    if let Some(reason) = taken(&name) {
        return Err(reason);
    }
    let mut spec = incoming::read(dialect, entry, notes)?;
    permissions.apply(written, &mut spec, notes);
    if let Launch::Stdio(stdio) = &spec.launch
        && is_sidecar(&stdio.command, &stdio.args)
    {
        return Err("it is mcp-sidecar itself, which cannot be its own server".to_owned());
    }
    variables.hide(&mut spec.launch, name.as_str(), notes);
    let value = native_entry::entry(&spec);
    // Check the entry like one in a file, but assume that all programs and variables exist: they may be added later.
    match shape::entry(name.as_str(), &value, Scope::User, &EverythingExists) {
        Ok(_) => Ok((name, spec, value)),
        Err(problems) => {
            let messages: Vec<String> = problems.into_iter().map(|problem| problem.message).collect();
            Err(one_line(&messages.join("; "), 300))
        }
    }
}

/// A machine where every program and variable exists.
struct EverythingExists;

impl Machine for EverythingExists {
    fn is_set(&self, _variable: &str, _folder: Option<&Path>) -> bool {
        true
    }

    fn finds(&self, _program: &str, _cwd: Option<&Path>, _folder: Option<&Path>) -> bool {
        true
    }
}

fn inputs_of(launch: &Launch) -> impl Iterator<Item = String> {
    references(launch).into_iter().filter_map(|reference| match reference {
        Reference::Input(id) => Some(id),
        _ => None,
    })
}

/// The entries of `inputs` for these ids: as declared, or as a password prompt.
fn declared(wanted: &[String], inputs: &[Value]) -> Vec<Value> {
    let mut entries: Vec<Value> = Vec::new();
    let id = |entry: &Value| entry.get("id").and_then(Value::as_str).map(str::to_owned);
    for wanted in wanted {
        if entries.iter().any(|entry| id(entry).as_ref() == Some(wanted)) {
            continue;
        }
        let entry = inputs.iter().find(|entry| id(entry).as_ref() == Some(wanted));
        let kind = entry.and_then(|entry| entry.get("type")).and_then(Value::as_str);
        let ours = entry.filter(|_| kind.is_some_and(|kind| shape::keys::INPUT_TYPES.contains(&kind)));
        let asked = || json!({ "id": wanted, "type": "promptString", "description": wanted, "password": true });
        entries.push(ours.cloned().unwrap_or_else(asked));
    }
    entries
}

fn shown(name: &str) -> String {
    one_line(name, 80)
}
