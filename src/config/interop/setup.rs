//! The few lines that point another program at `mcp-sidecar connect`.

use std::path::Path;

use super::notes::Notes;
use super::{Dialect, file, outgoing};
use crate::config::edit::EditError;
use crate::config::spec::{Launch, ServerSpec, Stdio};

/// The name that we have among the servers of another program.
const NAME: &str = "mcp-sidecar";

#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error("{0}")]
    Edit(#[from] EditError),
    #[error("the file does not parse ({0}); mend it first, so that nothing of it is lost")]
    Broken(String),
    #[error(
        "the file has a server named `{NAME}` that does not start `mcp-sidecar connect`; rename or remove it first"
    )]
    Foreign,
}

/// Whether starting this program is starting ourselves: that would be a server of its own server.
pub fn is_sidecar(command: &str, args: &[String]) -> bool {
    // A path of any system, whichever this one is.
    let program = command.rsplit(['/', '\\']).next().unwrap_or(command);
    let program = Path::new(program).file_stem().and_then(|stem| stem.to_str());
    program == Some(NAME) && args.iter().any(|arg| arg == "connect")
}

/// The text with our entry in it.
pub fn add_sidecar(dialect: Dialect, text: &str, command: &str, args: &[String]) -> Result<String, SetupError> {
    ours(dialect, text)?;
    let launch = Launch::Stdio(Stdio { command: command.to_owned(), args: args.to_vec(), ..Stdio::default() });
    let entry =
        outgoing::write(dialect, &ServerSpec::new(launch), &mut Notes::default()).map_err(SetupError::Broken)?;
    Ok(file::put(dialect, text, NAME, &entry, &[])?)
}

/// The text without our entry; one that has none stays as it is.
pub fn remove_sidecar(dialect: Dialect, text: &str) -> Result<String, SetupError> {
    if !ours(dialect, text)? {
        return Ok(text.to_owned());
    }
    Ok(file::remove(dialect, text, NAME)?)
}

/// Whether our entry is there. One of our name that is somebody else's is an error.
fn ours(dialect: Dialect, text: &str) -> Result<bool, SetupError> {
    let Some(entry) = file::entry(dialect, text, NAME).map_err(SetupError::Broken)? else { return Ok(false) };
    let args = entry.get("args").and_then(|args| args.as_array()).cloned().unwrap_or_default();
    let args: Vec<String> = args.iter().filter_map(|arg| arg.as_str().map(str::to_owned)).collect();
    let command = entry.get("command").and_then(|command| command.as_str()).unwrap_or_default();
    if is_sidecar(command, &args) { Ok(true) } else { Err(SetupError::Foreign) }
}
