//! `mcp-sidecar lsp`: serves an editor. All editors and agents of a workspace share one engine.

use super::Status;
use super::context::Context;
use super::engine::with_engine;
use crate::engine::Engine;
use crate::paths::Paths;
use crate::server::guardian;
use crate::settings::Settings;
use crate::{logging, lsp};

#[derive(Debug, clap::Args)]
#[group(id = "editor")]
pub(super) struct Arguments {
    /// Run a separate engine in this process instead of sharing one with other editors and agents
    #[arg(long)]
    pub(super) standalone: bool,
    /// Accepted because editors pass it; stdin and stdout are always used
    #[arg(long, hide = true)]
    stdio: bool,
    /// Accepted because editors pass it; `initialize` contains the same number
    #[arg(long = "clientProcessId", value_name = "PID", hide = true)]
    client_process_id: Option<u32>,
}

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    if arguments.standalone
        && let Some(code) = guardian::guard_this_program()
    {
        return Ok(Status::from_code(code));
    }
    let paths = context.paths()?;
    let settings = context.settings(&paths);
    #[cfg(unix)]
    if !arguments.standalone {
        return shared::run(context, paths, settings);
    }
    standalone(context, paths, settings, Vec::new())
}

/// Serves the editor in this process. `opening` is the part of its input that has already been read.
fn standalone(context: &Context, paths: Paths, settings: Settings, read_ahead: Vec<u8>) -> anyhow::Result<Status> {
    let _logging = logging::start(&paths.logs_dir(), &settings.log);
    let end = with_engine(context, paths, settings, async |engine: Engine| {
        let end = lsp::stdio(engine.clone(), read_ahead).await;
        engine.shutdown().await;
        end
    })?;
    Ok(Status::from_code(end.exit_code()))
}

#[cfg(unix)]
mod shared {
    use std::io::{self, Write};
    use std::path::PathBuf;

    use super::super::engine::forward;
    use super::{Context, Paths, Settings, Status, standalone};
    use crate::lsp::{Peek, peek_initialize};
    use crate::session::{self, EditorMemory, Front, Hello, JoinError, ReadAhead, Stdio};
    use crate::text::mask;

    /// Reads the workspace from the editor's first message and joins the engine of that workspace.
    pub fn run(context: &Context, paths: Paths, settings: Settings) -> anyhow::Result<Status> {
        let exit_on_signal = session::exit_on_signal()?;
        let mut stdio = Stdio::take()?;
        let (mut folders, mut has_plugin) = (Vec::new(), false);
        let read_ahead = ReadAhead::read(&mut stdio.input, |bytes| match peek_initialize(bytes) {
            Peek::Incomplete => false,
            Peek::Complete { folders: found, has_plugin: found_plugin } => {
                (folders, has_plugin) = (found, found_plugin);
                true
            }
        })?;
        let root = match folders.into_iter().find(|folder| folder.is_dir()) {
            Some(folder) if context.workspace.is_none() => session::root_of(&folder, &settings.files),
            _ => PathBuf::from(&*context.folder(&settings)?),
        };
        let hello = Hello::of(Front::Editor, &root);
        let join = || session::join(&root, &paths, &hello).and_then(|joined| session::upgrade(joined, &hello));
        match join() {
            Ok(joined) if has_plugin => forward(joined, stdio, read_ahead),
            Ok(joined) => {
                let code = session::bridge::<EditorMemory>(joined, stdio, read_ahead, join)?;
                Ok(Status::from_code(code))
            }
            Err(error) => {
                // From here on, a signal has to stop servers first.
                drop(exit_on_signal);
                fall_back(context, paths, settings, read_ahead, &error)
            }
        }
    }

    /// If the shared engine is not available, for example because a folder has the wrong mode, the editor gets a separate
    /// one.
    fn fall_back(
        context: &Context,
        paths: Paths,
        settings: Settings,
        read_ahead: ReadAhead,
        reason: &JoinError,
    ) -> anyhow::Result<Status> {
        let reason = mask(&reason.to_string()).into_owned();
        writeln!(io::stderr(), "warning: {reason}; starting a separate engine for this editor").ok();
        standalone(context, paths, settings, read_ahead.0)
    }
}
