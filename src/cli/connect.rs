//! `mcp-sidecar connect`: serves an agent, through the engine that all windows and agents of its workspace share.

use super::Status;
use super::context::Context;
use super::engine::with_engine;
use crate::agent::{Endpoint, Guest};
use crate::engine::Engine;
use crate::logging;
use crate::lsp::{signal, streams};
use crate::paths::Paths;
use crate::settings::Settings;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// What approvals and records call this agent, in place of what it calls itself
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Offer `find_tools` and `call_tool` in place of every tool, for an agent that would drown in the list
    #[arg(long)]
    search: bool,
    /// Run an engine of its own in this process, in place of the one that others share
    #[arg(long = "standalone")]
    alone: bool,
}

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    let paths = context.paths()?;
    let settings = context.settings(&paths);
    #[cfg(unix)]
    if !arguments.alone {
        return shared(arguments, context, &paths, &settings);
    }
    standalone(arguments, context, paths, settings)
}

/// The engine that runs nearest, upwards; else a new one for this workspace.
#[cfg(unix)]
fn shared(arguments: Arguments, context: &Context, paths: &Paths, settings: &Settings) -> anyhow::Result<Status> {
    use super::engine::pass;
    use crate::session::{Front, Hello, Opening, Stdio, join, join_running, leave_on_signal};

    let _leaving = leave_on_signal()?;
    let hello = Hello { label: arguments.name, search: arguments.search, ..Hello::new(Front::Agent) };
    let here = match &context.workspace {
        Some(_) => context.folder(settings)?.to_path_buf(),
        None => std::env::current_dir()?,
    };
    let joined = match join_running(&here, paths, &hello)? {
        Some(joined) => joined,
        None => join(&context.folder(settings)?, paths, &hello)?,
    };
    pass(joined, Stdio::take()?, Opening::default())
}

fn standalone(arguments: Arguments, context: &Context, paths: Paths, settings: Settings) -> anyhow::Result<Status> {
    let _logging = logging::start(&paths.logs_dir(), &settings.log);
    let folder = context.folder(&settings)?.to_path_buf();
    with_engine(context, paths, settings, async |engine: Engine| {
        let agents = Endpoint::new(engine.clone());
        let guest = Guest { folder, label: arguments.name, search: arguments.search };
        tokio::select! {
            () = agents.serve(streams::input(), streams::output(), guest) => {}
            () = signal() => {}
        }
        engine.shutdown().await;
    })?;
    Ok(Status::Ok)
}
