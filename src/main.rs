use std::process::ExitCode;

use mcp_sidecar::server::guardian;

fn main() -> ExitCode {
    // Before anything else: the guardian lives as long as the engine and should hold next to nothing.
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some(guardian::SUBCOMMAND) {
        return guardian::run_guardian(&arguments.next().unwrap_or_default());
    }
    ExitCode::SUCCESS
}
