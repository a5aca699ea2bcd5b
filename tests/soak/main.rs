//! The soak test: ten servers, three editors and five agents do everything at random, servers and the engine are
//! killed, and a model says what must be true during the run and at the end: see [`model`] and [`checkpoint`].
//!
//! `cargo test --test soak` runs for some seconds with a fixed seed, `make soak MINUTES=60 SEED=7` for as long as it says.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test that cannot go on should say so at once"
)]

#[cfg(target_os = "linux")]
mod actor;
#[cfg(target_os = "linux")]
mod agent;
#[cfg(target_os = "linux")]
mod agent_client;
#[cfg(target_os = "linux")]
mod checkpoint;
#[cfg(target_os = "linux")]
mod director;
#[cfg(target_os = "linux")]
mod editor;
#[cfg(target_os = "linux")]
mod editor_session;
#[cfg(target_os = "linux")]
#[path = "../e2e/remote/issuer.rs"]
mod issuer;
#[cfg(target_os = "linux")]
#[path = "../e2e/remote/mock.rs"]
#[allow(dead_code, reason = "shared with the tests of remote servers")]
mod mock;
#[cfg(target_os = "linux")]
mod model;
#[cfg(target_os = "linux")]
mod remote;
#[cfg(target_os = "linux")]
mod report;
#[cfg(target_os = "linux")]
#[path = "../support/mod.rs"]
mod support;
#[cfg(target_os = "linux")]
#[path = "../faults/watcher.rs"]
#[allow(dead_code, reason = "shared with the fault suite")]
mod watcher;
#[cfg(target_os = "linux")]
mod world;

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("the soak test needs /proc and is skipped on this system");
}

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    // Editors list the tests of every target.
    if std::env::args().any(|argument| argument == "--list") {
        return std::process::ExitCode::SUCCESS;
    }
    // The engine does this for its own process; the browsers of the users are in this one.
    rustls::crypto::ring::default_provider().install_default().ok();
    let options = world::Options::from_command_line();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let outcome = runtime.block_on(director::run(&options));
    report::write(&options, &outcome);
    std::process::ExitCode::from(u8::from(!outcome.violations.is_empty()))
}
