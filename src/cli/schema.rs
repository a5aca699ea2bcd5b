//! `mcp-sidecar schema`: the JSON Schema of mcp.json, for editors and other tools.

use super::Status;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {}

pub(super) fn run(_arguments: Arguments) -> anyhow::Result<Status> {
    anyhow::bail!("this build has no schema yet")
}
