//! `mcp-sidecar lsp`: serves an editor.

use std::sync::Arc;

use tokio::sync::watch;

use super::Status;
use super::context::Context;
use crate::engine::Engine;
use crate::server::{guardian, process};
use crate::settings::Settings;
use crate::{logging, lsp};

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

pub(super) fn run(_arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    let paths = context.paths()?;
    let settings = context.settings(&paths);
    let _logging = logging::start(&paths.logs_dir(), &settings.log);
    guardian::install();
    process::raise_limits();
    let runtime = context.runtime()?;
    let end = runtime.block_on(async {
        let engine = Engine::start(paths, settings);
        tokio::spawn(follow_level(engine.settings()));
        let end = lsp::stdio(engine.clone()).await;
        engine.shutdown().await;
        end
    });
    // A read of stdin may still be waiting in its thread, and nobody will answer it.
    runtime.shutdown_background();
    Ok(if end.exit_code() == 0 { Status::Ok } else { Status::Failed })
}

/// The level of the log follows the settings, which an editor may change at any time.
async fn follow_level(mut settings: watch::Receiver<Arc<Settings>>) {
    while settings.changed().await.is_ok() {
        let level = settings.borrow_and_update().log.level.clone();
        logging::set_level(&level);
    }
}
