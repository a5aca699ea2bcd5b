//! Adds and removes the entry that makes another program start `mcp-sidecar connect`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::dialects::{claude, codex};
use super::notes::Notes;
use super::{Dialect, file, incoming, outgoing};
use crate::config::edit::EditError;
use crate::config::spec::{Launch, ServerSpec, Stdio};

/// The name of our entry in the config of another program.
const NAME: &str = "mcp-sidecar";

/// How long a program waits for a call. A call may wait for the user first.
const TIMEOUT: Duration = Duration::from_secs(60 * 60);

#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error("{0}")]
    Edit(#[from] EditError),
    #[error("the file cannot be parsed ({0}); fix it first, so that nothing is lost")]
    Broken(String),
    #[error(
        "the file has a server named `{NAME}` that does not start `mcp-sidecar connect`; rename or remove it first"
    )]
    Foreign,
}

/// Whether this command starts `mcp-sidecar connect`, which must not become its own server.
pub fn is_sidecar(command: &str, args: &[String]) -> bool {
    // Accept the path separators of all systems.
    let program = command.rsplit(['/', '\\']).next().unwrap_or(command);
    let program = Path::new(program).file_stem().and_then(|stem| stem.to_str());
    program == Some(NAME) && args.iter().any(|arg| arg == "connect")
}

/// Adds our entry to the text.
pub fn add_sidecar(dialect: Dialect, text: &str, command: &str, args: &[String]) -> Result<String, SetupError> {
    has_own_entry(dialect, text)?;
    let launch = Launch::Stdio(Stdio { command: command.to_owned(), args: args.to_vec(), ..Stdio::default() });
    let timeout = dialect.format().export.timeout.map(|_| TIMEOUT);
    let spec = ServerSpec { timeout, ..ServerSpec::new(launch) };
    let mut entry = outgoing::write(dialect, NAME, &spec, &mut Notes::default()).map_err(SetupError::Broken)?;
    (dialect.format().setup.entry)(&mut entry);
    Ok(file::put(dialect, text, NAME, &entry, &[])?)
}

/// Removes our entry from the text, if there is one.
pub fn remove_sidecar(dialect: Dialect, text: &str) -> Result<String, SetupError> {
    if !has_own_entry(dialect, text)? {
        return Ok(text.to_owned());
    }
    Ok(file::remove(dialect, text, NAME)?)
}

/// Whether the text contains our entry. Returns an error if another server has our name.
fn has_own_entry(dialect: Dialect, text: &str) -> Result<bool, SetupError> {
    let Some(entry) = file::entry(dialect, text, NAME).map_err(SetupError::Broken)? else { return Ok(false) };
    let entry = entry.as_object().ok_or(SetupError::Foreign)?;
    match incoming::read(dialect, entry, &mut Notes::default()).map(|spec| spec.launch) {
        Ok(Launch::Stdio(Stdio { command, args, .. })) if is_sidecar(&command, &args) => Ok(true),
        _ => Err(SetupError::Foreign),
    }
}

/// The project's file for our entry. In a folder of config files, we have our own.
pub fn project_target(dialect: Dialect, folder: &Path) -> Option<PathBuf> {
    let files = super::project_files(dialect, folder);
    let file = files.iter().find(|file| file.exists()).or(files.first())?;
    Some(if file.extension().is_none() { file.join(format!("{NAME}.yaml")) } else { file.clone() })
}

/// The user's files for our entry.
pub fn user_targets(dialect: Dialect, homes: &super::Homes) -> Vec<PathBuf> {
    let files = super::user_files(dialect, homes);
    let found: Vec<PathBuf> = if dialect.format().setup.every_user_file {
        // A program that has been started has a folder for its data.
        files.iter().filter(|file| file.ancestors().nth(2).is_some_and(Path::exists)).cloned().collect()
    } else {
        files.iter().find(|file| file.exists()).or(files.first()).into_iter().cloned().collect()
    };
    if found.is_empty() { files } else { found }
}

/// Whether only some programs of the family read the file of a project.
pub fn prefers_user(dialect: Dialect) -> bool {
    dialect.format().setup.prefers_user
}

/// What else the user has to know about the program.
pub fn note(dialect: Dialect) -> Option<&'static str> {
    dialect.format().setup.note
}

/// The project files that the program itself loads, relative to the folder.
pub fn loaded_files(dialect: Dialect) -> impl Iterator<Item = &'static str> {
    let format = dialect.format();
    format.project_files.iter().copied().chain(format.loads_mcp_json.then_some(".mcp.json"))
}

/// The names of the servers in a file, without our own entry.
pub fn servers_in(dialect: Dialect, text: &str) -> Vec<String> {
    let servers = file::read(dialect, text).unwrap_or_default().servers;
    servers.into_iter().map(|(name, _)| name).filter(|name| name != NAME).collect()
}

/// The settings in which a program disables servers of a project's file, relative to the folder.
pub fn settings_file(dialect: Dialect) -> Option<&'static str> {
    (dialect == Dialect::Claude).then_some(claude::LOCAL_SETTINGS)
}

/// Disables these servers in the settings, or enables them again. Returns the text and the servers that changed.
pub fn switch(text: &str, names: &[String], off: bool) -> Result<(String, Vec<String>), SetupError> {
    let settings = if text.trim().is_empty() { "{}" } else { text };
    let mut listed = claude::rejected(&file::value(Dialect::Claude, settings).map_err(SetupError::Broken)?);
    let changed: Vec<String> = names.iter().filter(|name| listed.contains(name) != off).cloned().collect();
    if changed.is_empty() {
        return Ok((text.to_owned(), changed));
    }
    if off {
        listed.extend(changed.clone());
    } else {
        listed.retain(|name| !changed.contains(name));
    }
    Ok((claude::reject(text, &listed)?, changed))
}

/// Whether the program ignores the file of a project until the user trusts the project. `config` is the user's file.
pub fn needs_trust(dialect: Dialect, config: &str, folder: &Path) -> bool {
    let config = file::value(dialect, config).unwrap_or_default();
    dialect == Dialect::Codex && !folder.to_str().is_some_and(|folder| codex::trusts(&config, folder))
}
