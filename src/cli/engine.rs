//! `mcp-sidecar engine`: the engine that all editors and agents of a repository share. The fronts start it.

use std::sync::Arc;

#[cfg(unix)]
use anyhow::Context as _;
use tokio::sync::watch;

use super::Status;
use super::context::Context;
#[cfg(unix)]
use super::print;
use crate::engine::{Engine, Shared};
use crate::logging;
use crate::paths::Paths;
use crate::server::{guardian, process};
#[cfg(unix)]
use crate::session::{self, EngineAddress, Joined, ReadAhead, Stdio};
use crate::settings::Settings;
#[cfg(unix)]
use crate::text;

#[cfg(unix)]
pub(super) const ENGINE_ENDED: &str =
    "the engine of this workspace ended unexpectedly; run `mcp-sidecar log` to see its log";

#[cfg(not(unix))]
pub(super) fn run(_context: &Context) -> anyhow::Result<Status> {
    anyhow::bail!("engines cannot be shared on this platform; `mcp-sidecar lsp` runs its own engine")
}

/// Prints one line to the front that started it, `ready` or an error, and then serves.
#[cfg(unix)]
pub(super) fn run(context: &Context) -> anyhow::Result<Status> {
    // A terminal or a killed process group of the first front must not end the engine that others use, nor its guardians.
    rustix::process::setsid().ok();
    if let Some(code) = guardian::guard_this_program() {
        return Ok(Status::from_code(code));
    }
    let outcome = serve(context);
    if let Err(error) = &outcome {
        let line = text::one_line(&text::mask(&format!("{error:#}")), 1_000);
        print(&format!("{line}\n")).ok();
    }
    outcome
}

#[cfg(unix)]
fn serve(context: &Context) -> anyhow::Result<Status> {
    // Not in the session of a guardian: what its servers start is told apart by the session.
    rustix::process::setsid().ok();
    let paths = context.paths()?;
    let settings = context.settings(&paths);
    let root = context.folder(&settings)?;
    let address = EngineAddress::of(&root, &paths)?;
    let listener = session::bind(&address).context("cannot open the engine's socket")?;
    let _logging = logging::start(&paths.logs_dir(), &settings.log);
    tracing::info!(repository = %address.home.display(), "engine started");
    let served = with_shared(context, paths, settings, async |shared: Shared| {
        print("ready\n").ok();
        session::serve(shared, &address, listener).await
    })?;
    served?;
    Ok(Status::Ok)
}

/// Forwards bytes both ways until the session ends, then returns the session's exit code.
#[cfg(unix)]
pub(super) fn forward(joined: Joined, stdio: Stdio, read_ahead: ReadAhead) -> anyhow::Result<Status> {
    let code = session::forward(joined, stdio, read_ahead)?;
    let code = code.context(ENGINE_ENDED)?;
    Ok(Status::from_code(code))
}

/// Runs an engine in this process until `work` is done.
pub(super) fn with_engine<T>(
    context: &Context,
    paths: Paths,
    settings: Settings,
    work: impl AsyncFnOnce(Engine) -> T,
) -> anyhow::Result<T> {
    with_shared(context, paths, settings, async |shared: Shared| work(shared.open()).await)
}

/// The same for the engines of several workspaces, which `work` opens.
fn with_shared<T>(
    context: &Context,
    paths: Paths,
    settings: Settings,
    work: impl AsyncFnOnce(Shared) -> T,
) -> anyhow::Result<T> {
    guardian::mark_this_engine(&paths.runtime_dir);
    guardian::install();
    process::raise_limits();
    let runtime = context.runtime()?;
    let outcome = runtime.block_on(async {
        let shared = Shared::new(paths, settings);
        tokio::spawn(follow_log_level(shared.settings()));
        tokio::spawn(shared.trim_after_starts());
        work(shared).await
    });
    // A blocking read of stdin may still be running in its thread and would never return.
    runtime.shutdown_background();
    Ok(outcome)
}

/// Applies changes of the log level, which an editor may make at any time.
async fn follow_log_level(mut settings: watch::Receiver<Arc<Settings>>) {
    while settings.changed().await.is_ok() {
        let level = settings.borrow_and_update().log.level.clone();
        logging::set_level(&level);
    }
}
