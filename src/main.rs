//! The program: arguments in, a front, an exit code out.

fn main() -> std::process::ExitCode {
    mcp_sidecar::cli::main()
}
