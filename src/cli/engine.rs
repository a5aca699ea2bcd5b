//! `mcp-sidecar engine`: the engine of one workspace, for every window and agent. Fronts start it by themselves.

use std::sync::Arc;

#[cfg(unix)]
use anyhow::Context as _;
use tokio::sync::watch;

use super::Status;
use super::context::Context;
#[cfg(unix)]
use super::print;
use crate::engine::Engine;
use crate::logging;
use crate::paths::Paths;
use crate::server::{guardian, process};
#[cfg(unix)]
use crate::session::{self, Joined, Opening, Place, Stdio};
use crate::settings::Settings;
#[cfg(unix)]
use crate::text;

#[cfg(not(unix))]
pub(super) fn run(_context: &Context) -> anyhow::Result<Status> {
    anyhow::bail!("engines are not shared on this platform; `mcp-sidecar lsp` runs its own")
}

/// Says `ready` or what went wrong in one line on stdout, to whoever started it; then it serves.
#[cfg(unix)]
pub(super) fn run(context: &Context) -> anyhow::Result<Status> {
    let outcome = serve(context);
    if let Err(error) = &outcome {
        let line = text::one_line(&text::mask(&format!("{error:#}")), 1_000);
        print(&format!("{line}\n")).ok();
    }
    outcome
}

#[cfg(unix)]
fn serve(context: &Context) -> anyhow::Result<Status> {
    // A terminal, or whoever ends the group of the front that came first, is not to end everybody's engine. It fails
    // only for the leader of a group, which is out of their reach already.
    rustix::process::setsid().ok();
    let paths = context.paths()?;
    let settings = context.settings(&paths);
    let root = context.folder(&settings)?;
    let place = Place::of(&root, &paths)?;
    let listener = session::bind(&place).context("cannot open the engine's socket")?;
    let _logging = logging::start(&paths.logs_dir(), &settings.log);
    tracing::info!(workspace = %place.root.display(), "engine started");
    let served = with_engine(context, paths, settings, async |engine: Engine| {
        print("ready\n").ok();
        let served = session::serve(engine.clone(), &place, listener).await;
        engine.shutdown().await;
        served
    })?;
    served?;
    Ok(Status::Ok)
}

/// The rest of a front's life: bytes both ways, then the exit code that its session came to.
#[cfg(unix)]
pub(super) fn pass(joined: Joined, stdio: Stdio, opening: Opening) -> anyhow::Result<Status> {
    let code = session::forward(joined, stdio, opening)?;
    let code = code.context("the engine of this workspace has ended unexpectedly; `mcp-sidecar log` may tell why")?;
    Ok(Status::from_code(code))
}

/// Runs an engine in this process for as long as `work` takes.
pub(super) fn with_engine<T>(
    context: &Context,
    paths: Paths,
    settings: Settings,
    work: impl AsyncFnOnce(Engine) -> T,
) -> anyhow::Result<T> {
    guardian::install();
    process::raise_limits();
    let runtime = context.runtime()?;
    let outcome = runtime.block_on(async {
        let engine = Engine::start(paths, settings);
        tokio::spawn(follow_level(engine.settings()));
        work(engine).await
    });
    // A read of stdin may still be waiting in its thread, and nobody will answer it.
    runtime.shutdown_background();
    Ok(outcome)
}

/// The level of the log follows the settings, which an editor may change at any time.
async fn follow_level(mut settings: watch::Receiver<Arc<Settings>>) {
    while settings.changed().await.is_ok() {
        let level = settings.borrow_and_update().log.level.clone();
        logging::set_level(&level);
    }
}
