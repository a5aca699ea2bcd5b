//! `mcp-sidecar lsp`: serves an editor, through the engine that all windows and agents of its workspace share.

use super::Status;
use super::context::Context;
use super::engine::with_engine;
use crate::engine::Engine;
use crate::paths::Paths;
use crate::settings::Settings;
use crate::{logging, lsp};

#[derive(Debug, clap::Args)]
#[group(id = "editor")]
pub(super) struct Arguments {
    /// Run an engine of its own in this process, in place of the one that others share
    #[arg(long)]
    pub(super) standalone: bool,
    /// Accepted because editors pass it: stdin and stdout are the only way there is
    #[arg(long, hide = true)]
    stdio: bool,
    /// Accepted because editors pass it: the same number comes with `initialize`
    #[arg(long = "clientProcessId", value_name = "PID", hide = true)]
    client_process_id: Option<u32>,
}

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    let paths = context.paths()?;
    let settings = context.settings(&paths);
    #[cfg(unix)]
    if !arguments.standalone {
        return shared::run(context, paths, settings);
    }
    standalone(context, paths, settings, Vec::new())
}

/// Serves the editor in this very process. `opening` is what has been read of its words already.
fn standalone(context: &Context, paths: Paths, settings: Settings, opening: Vec<u8>) -> anyhow::Result<Status> {
    let _logging = logging::start(&paths.logs_dir(), &settings.log);
    let end = with_engine(context, paths, settings, async |engine: Engine| {
        let end = lsp::stdio(engine.clone(), opening).await;
        engine.shutdown().await;
        end
    })?;
    Ok(Status::from_code(end.exit_code()))
}

#[cfg(unix)]
mod shared {
    use std::io::{self, Write};
    use std::path::PathBuf;

    use super::super::engine::pass;
    use super::{Context, Paths, Settings, Status, standalone};
    use crate::lsp::{Peek, peek_initialize};
    use crate::session::{self, Front, Hello, JoinError, Opening, Stdio};
    use crate::text::mask;

    /// Finds out from the editor's first message which workspace it is about, and joins the engine of that.
    pub fn run(context: &Context, paths: Paths, settings: Settings) -> anyhow::Result<Status> {
        let leaving = session::leave_on_signal()?;
        let mut stdio = Stdio::take()?;
        let mut folders = Vec::new();
        let opening = Opening::read(&mut stdio.input, |bytes| match peek_initialize(bytes) {
            Peek::Incomplete => false,
            Peek::Folders(found) => {
                folders = found;
                true
            }
        })?;
        let root = match folders.into_iter().find(|folder| folder.is_dir()) {
            Some(folder) if context.workspace.is_none() => session::root_of(&folder, &settings.files),
            _ => PathBuf::from(&*context.folder(&settings)?),
        };
        match session::join(&root, &paths, &Hello::new(Front::Editor)) {
            Ok(joined) => pass(joined, stdio, opening),
            Err(error) => {
                // From here on there are servers to end first.
                drop(leaving);
                alone(context, paths, settings, opening, &error)
            }
        }
    }

    /// An editor is not left without service because a folder has the wrong mode: it gets an engine of its own.
    fn alone(
        context: &Context,
        paths: Paths,
        settings: Settings,
        opening: Opening,
        reason: &JoinError,
    ) -> anyhow::Result<Status> {
        let reason = mask(&reason.to_string()).into_owned();
        writeln!(io::stderr(), "warning: {reason}; this editor gets an engine of its own").ok();
        standalone(context, paths, settings, opening.0)
    }
}
