//! `mcp-sidecar completions`: prints a completion script for a shell.

use clap::CommandFactory;

use super::{Status, print};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Shell to print completions for
    shell: clap_complete::Shell,
}

pub(super) fn run(arguments: Arguments) -> anyhow::Result<Status> {
    // Into memory first: the generator panics when its writer fails.
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut super::Arguments::command(), "mcp-sidecar", &mut text);
    print(&String::from_utf8_lossy(&text))?;
    Ok(Status::Ok)
}
