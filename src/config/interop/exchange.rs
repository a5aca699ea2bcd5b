//! Import and export, including the files to read and write.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::format::Syntax;
use super::import::{Destination, Import};
use super::{Dialect, Homes, export, file, import, import_files, project_files};
use crate::config::edit::{self, UpdateError};
use crate::config::{Content, Definition, Loaded, tree, watch};
use crate::model::{Error, Result, Scope, ServerName};
use crate::paths::{canonical, repository};
use crate::text::one_line;

/// Larger than any settings file of another program.
const MAX_BYTES: usize = 32 << 20;

/// What to import, and where to.
#[derive(Debug, Clone)]
pub struct ImportRequest {
    pub from: Dialect,
    /// Read this file instead of the usual ones.
    pub path: Option<PathBuf>,
    pub scope: Scope,
    /// Only the servers that the user has for this project alone, not those for all projects or in files of the project.
    pub project_only: bool,
    /// Only report what would happen.
    pub dry_run: bool,
}

/// The result of an import.
#[derive(Debug, Clone, Default)]
pub struct Imported {
    pub imported: Vec<String>,
    pub skipped: BTreeMap<String, String>,
    /// Server → notes for the user.
    pub notes: BTreeMap<String, Vec<String>>,
    /// The file that was, or would be, written.
    pub path: PathBuf,
}

/// The result of an export.
#[derive(Debug, Clone)]
pub struct Exported {
    /// A complete file with these servers.
    pub text: String,
    pub syntax: Syntax,
    /// The file that was written.
    pub path: Option<PathBuf>,
    pub notes: BTreeMap<String, Vec<String>>,
}

/// Reads the files of another program and writes their servers to the file of a scope.
pub fn import_from(request: &ImportRequest, loaded: &Loaded, homes: Option<&Homes>) -> Result<Imported> {
    let target = target(request.scope, loaded)?;
    let folders = folders(loaded);
    let mut skipped = BTreeMap::new();
    let mut withheld = Vec::new();
    let files = match &request.path {
        Some(path) => vec![named(request.from, &absolute(path, &folders, homes))?],
        None => {
            let project = folders.iter().flat_map(|folder| project_files(request.from, folder));
            let project = existing(project.filter(|_| !request.project_only), &mut skipped);
            let user = homes.map(|homes| import_files(request.from, homes)).unwrap_or_default();
            let user = existing(user.into_iter(), &mut skipped);
            if project.is_empty() && user.is_empty() && skipped.is_empty() {
                return Err(nothing_found(request.from, &folders, homes));
            }
            // User servers need no trust, so project files are only imported there if the user specifies them.
            if request.scope == Scope::User {
                withheld = project;
                user
            } else {
                project.into_iter().chain(user).collect()
            }
        }
    };
    let read: Vec<PathBuf> = files.iter().map(|(path, _)| canonical(path)).collect();
    if read.contains(&canonical(&target)) {
        return Err(Error::InvalidParams(format!("cannot import {} into itself", target.display())));
    }
    let present = servers_in(&target)?;
    let taken = |name: &ServerName| {
        let elsewhere = loaded.files.iter().find(|file| {
            let other = file.source.scope == request.scope && *file.source.path != *target;
            other
                && !read.contains(&canonical(&file.source.path))
                && file.servers.iter().any(|known| known == name.as_str())
        });
        let path = if present.iter().any(|known| known == name.as_str()) {
            Some(&*target)
        } else {
            elsewhere.map(|file| &*file.source.path)
        };
        path.map(|path| format!("{} already defines a server with this name", path.display()))
    };
    let own: Vec<PathBuf> = folders.iter().flat_map(|folder| [folder.to_path_buf(), canonical(folder)]).collect();
    let mut import = import(
        request.from,
        &files,
        Destination { scope: request.scope, folders: &own, project_only: request.project_only },
        &taken,
    );
    import.skipped.extend(skipped);
    skip_withheld(request.from, &withheld, &mut import);
    if !request.dry_run && !import.servers.is_empty() {
        let repository = loaded.file(&target).and_then(|file| file.source.repository());
        write(&target, repository.as_deref(), &import)?;
    }
    Ok(Imported {
        imported: import.servers.iter().map(|(name, _)| name.to_string()).collect(),
        skipped: import.skipped,
        notes: import.notes,
        path: target,
    })
}

/// Converts servers to the format of another program, and writes them to a file if `path` is given.
pub fn export_to(
    to: Dialect,
    servers: Option<&[ServerName]>,
    path: Option<&Path>,
    loaded: &Loaded,
    homes: Option<&Homes>,
) -> Result<Exported> {
    let all = &loaded.config.servers;
    let chosen: Vec<&Arc<Definition>> = match servers {
        None => all.values().collect(),
        Some(names) => {
            let find = |name: &ServerName| all.get(name).ok_or_else(|| Error::NoServer(name.to_string()));
            names.iter().map(find).collect::<Result<_>>()?
        }
    };
    let export = export(to, chosen.into_iter().map(|definition| &**definition), &loaded.config);
    let text = export.text().map_err(|error| Error::Io(error.to_string()))?;
    let path = path.map(|path| absolute(path, &folders(loaded), homes));
    if let Some(path) = &path {
        // Our own file would lose everything that other programs do not support, such as levels.
        if loaded.files.iter().any(|file| file.exists && canonical(&file.source.path) == canonical(path)) {
            let message =
                format!("cannot export to {}: mcp-sidecar reads this file; choose another one", path.display());
            return Err(Error::Conflict(message));
        }
        let folder = folders(loaded).into_iter().find(|folder| path.starts_with(folder));
        let repository = folder.as_deref().map(repository);
        edit::update(path, repository.as_deref(), |before| export.merged(before))
            .map_err(|error| broken(path, error))?;
    }
    Ok(Exported { text, syntax: to.format().syntax, path, notes: export.notes })
}

/// The file to write a scope's servers to: the first one, which is never in the format of another program.
fn target(scope: Scope, loaded: &Loaded) -> Result<PathBuf> {
    if matches!(scope, Scope::Managed | Scope::Session) {
        let message = format!("cannot import into scope `{scope}`; use `user`, `project` or `local`");
        return Err(Error::InvalidParams(message));
    }
    let file = loaded.files.iter().find(|file| file.source.scope == scope);
    let file = file.ok_or_else(|| Error::InvalidParams(format!("scope `{scope}` needs an open workspace folder")))?;
    Ok(file.source.path.to_path_buf())
}

fn folders(loaded: &Loaded) -> Vec<Arc<Path>> {
    let mut folders: Vec<Arc<Path>> = Vec::new();
    for folder in loaded.files.iter().filter_map(|file| file.source.folder.clone()) {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders
}

/// Reads a file that the user specified. It must exist and have the given format.
fn named(from: Dialect, path: &Path) -> Result<(PathBuf, Arc<str>)> {
    match watch::read(path, MAX_BYTES) {
        Content::Text(text) => match file::read(from, &text) {
            Ok(_) => Ok((path.to_path_buf(), text)),
            Err(reason) => {
                let (path, title, reason) = (path.display(), from.title(), one_line(&reason, 200));
                Err(Error::Io(format!("cannot parse {path} as a config file of {title}: {reason}")))
            }
        },
        Content::Absent | Content::Gone => Err(Error::NotFound(format!("{} does not exist", path.display()))),
        Content::Unreadable(reason) => Err(Error::Io(format!("cannot use {}: {reason}", path.display()))),
    }
}

/// Reads the files that exist, and those of the folders that exist.
fn existing(paths: impl Iterator<Item = PathBuf>, skipped: &mut BTreeMap<String, String>) -> Vec<(PathBuf, Arc<str>)> {
    let mut files = Vec::new();
    for path in paths.flat_map(|path| if path.is_dir() { files_in(&path) } else { vec![path] }) {
        match watch::read(&path, MAX_BYTES) {
            Content::Text(text) => files.push((path, text)),
            Content::Absent | Content::Gone => {}
            Content::Unreadable(reason) => {
                skipped.insert(path.display().to_string(), format!("cannot use the file: {reason}"));
            }
        }
    }
    files
}

/// The config files in a folder.
fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let is_config = |path: &PathBuf| {
        path.extension().is_some_and(|ending| ["yaml", "yml", "json"].iter().any(|known| ending == *known))
    };
    let mut files: Vec<PathBuf> = entries.filter(is_config).collect();
    files.sort();
    files
}

fn nothing_found(from: Dialect, folders: &[Arc<Path>], homes: Option<&Homes>) -> Error {
    let project = folders.iter().flat_map(|folder| project_files(from, folder));
    let user = homes.map(|homes| import_files(from, homes)).unwrap_or_default();
    let searched: Vec<String> = project.chain(user).map(|path| path.display().to_string()).collect();
    let title = from.title();
    Error::NotFound(format!(
        "no config file of {title} found at {}; name another file with `path` (in a shell, `--path FILE`)",
        searched.join(", ")
    ))
}

fn skip_withheld(from: Dialect, withheld: &[(PathBuf, Arc<str>)], import: &mut Import) {
    for (path, text) in withheld {
        for (name, _) in file::read(from, text).unwrap_or_default().servers {
            let known = import.servers.iter().any(|(known, _)| known.as_str() == name);
            if !known && !import.skipped.contains_key(&name) {
                let reason = format!(
                    "it is part of the project ({}); import it into scope `project` or `local`, or use `path` to specify the file",
                    path.display()
                );
                import.skipped.insert(one_line(&name, 80), reason);
            }
        }
    }
}

fn servers_in(path: &Path) -> Result<Vec<String>> {
    let text = match watch::read(path, MAX_BYTES) {
        Content::Absent | Content::Gone => return Ok(Vec::new()),
        Content::Text(text) => text,
        Content::Unreadable(reason) => {
            return Err(Error::Io(format!("cannot use {}: {reason}", path.display())));
        }
    };
    let tree = tree::parse(&text, usize::MAX);
    Ok(tree.servers().map(|member| member.key.text.clone()).collect())
}

fn write(target: &Path, repository: Option<&Path>, import: &Import) -> Result<()> {
    let change = |before: &str| {
        let mut text = before.to_owned();
        for (name, value) in &import.servers {
            text = edit::set_server(&text, target, name.as_str(), value.clone())?;
        }
        if import.inputs.is_empty() { Ok(text) } else { edit::add_inputs(&text, &import.inputs) }
    };
    edit::update(target, repository, change).map_err(|error| broken(target, error))
}

fn broken(path: &Path, error: UpdateError) -> Error {
    match error {
        UpdateError::Edit(error) => Error::Conflict(format!("{}: {error}", path.display())),
        other => Error::Io(other.to_string()),
    }
}

/// Resolves `~/` against the home folder, and relative paths against the first workspace folder.
fn absolute(path: &Path, folders: &[Arc<Path>], homes: Option<&Homes>) -> PathBuf {
    match (path.strip_prefix("~"), homes, folders.first()) {
        (Ok(rest), Some(homes), _) => homes.home.join(rest),
        (_, _, Some(folder)) => folder.join(path),
        _ => std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf()),
    }
}
