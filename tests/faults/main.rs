//! The fault suite: each case of `cases/*.yaml` provokes a fault several times in a row, says what has to come of it, and
//! is watched for memory, descriptors, threads, processes and secrets.
//!
//! `cargo test --test faults` runs the quick cases twice each, `make faults` all cases ten times. Words on the command
//! line pick the cases whose id or fault contains them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test that cannot go on should say so at once"
)]

#[path = "../support/mod.rs"]
mod support;

#[cfg(target_os = "linux")]
mod case;
#[cfg(target_os = "linux")]
mod existing_test;
#[cfg(target_os = "linux")]
mod listener;
#[cfg(target_os = "linux")]
mod pattern;
#[cfg(target_os = "linux")]
mod report;
#[cfg(target_os = "linux")]
mod run;
#[cfg(target_os = "linux")]
mod stage;
#[cfg(target_os = "linux")]
mod steps;
#[cfg(target_os = "linux")]
mod watcher;

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("the fault suite needs /proc and is skipped on this system");
}

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    // Editors list the tests of every target.
    if std::env::args().any(|argument| argument == "--list") {
        return std::process::ExitCode::SUCCESS;
    }
    let options = run::Options::from_command_line();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let results = runtime.block_on(run::run_all(&options));
    report::write(&options, &results);
    let failed = results.iter().filter(|result| result.outcome.is_err()).count();
    println!("\nfault suite: {} cases, {failed} failed", results.len());
    std::process::ExitCode::from(u8::from(failed > 0))
}
