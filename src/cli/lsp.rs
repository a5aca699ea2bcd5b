//! `mcp-sidecar lsp`: serves an editor.

use super::Status;
use super::context::Context;

#[derive(Debug, clap::Args)]
#[group(id = "editor")]
pub(super) struct Arguments {
    /// Accepted because editors pass it: stdin and stdout are the only way there is
    #[arg(long, hide = true)]
    stdio: bool,
    /// Accepted because editors pass it: the same number comes with `initialize`
    #[arg(long = "clientProcessId", value_name = "PID", hide = true)]
    client_process_id: Option<u32>,
}

pub(super) fn run(_arguments: Arguments, _context: &Context) -> anyhow::Result<Status> {
    anyhow::bail!("this build has no editor front yet")
}
