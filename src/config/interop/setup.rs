//! Adds and removes the entry that makes another program start `mcp-sidecar connect`.

use std::path::Path;

use super::notes::Notes;
use super::{Dialect, file, outgoing};
use crate::config::edit::EditError;
use crate::config::spec::{Launch, ServerSpec, Stdio};

/// The name of our entry in the config of another program.
const NAME: &str = "mcp-sidecar";

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
    let entry =
        outgoing::write(dialect, &ServerSpec::new(launch), &mut Notes::default()).map_err(SetupError::Broken)?;
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
    let args = entry.get("args").and_then(|args| args.as_array()).cloned().unwrap_or_default();
    let args: Vec<String> = args.iter().filter_map(|arg| arg.as_str().map(str::to_owned)).collect();
    let command = entry.get("command").and_then(|command| command.as_str()).unwrap_or_default();
    if is_sidecar(command, &args) { Ok(true) } else { Err(SetupError::Foreign) }
}
