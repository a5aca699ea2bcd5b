//! `mcp-sidecar man`: writes the man pages, for packages.

use std::path::PathBuf;

use clap::CommandFactory;

use super::Status;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Folder to write to
    folder: PathBuf,
}

pub(super) fn run(arguments: Arguments) -> anyhow::Result<Status> {
    std::fs::create_dir_all(&arguments.folder)?;
    clap_mangen::generate_to(super::Arguments::command(), &arguments.folder)?;
    Ok(Status::Ok)
}
