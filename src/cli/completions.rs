//! `mcp-sidecar completions`: prints the script that connects a shell with our completion.
//!
//! The script asks this program what to complete, so it also knows the servers and tools of the workspace, and does not
//! have to be written again after an update.

use clap_complete::Shell;
use clap_complete::env::Shells;

use super::{Status, print};

/// The variable with which the shell asks for completions.
pub(super) const VARIABLE: &str = "COMPLETE";

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Shell to print completions for
    shell: Shell,
}

pub(super) fn run(arguments: Arguments) -> anyhow::Result<Status> {
    let mut script = Vec::new();
    let name = arguments.shell.to_string();
    if let Some(shell) = Shells::builtins().completer(&name) {
        shell.write_registration(VARIABLE, "mcp-sidecar", "mcp-sidecar", "mcp-sidecar", &mut script)?;
    }
    print(&String::from_utf8_lossy(&script))?;
    Ok(Status::Ok)
}
