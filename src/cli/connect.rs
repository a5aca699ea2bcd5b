//! `mcp-sidecar connect`: serves an agent, through the engine that all windows and agents of its workspace share.

use std::path::Path;

use serde_json::json;

use super::context::Context;
use super::engine::with_engine;
use super::{Status, print};
use crate::agent::{Endpoint, Guest};
use crate::engine::Engine;
use crate::logging;
use crate::lsp::{signal, streams};
use crate::paths::Paths;
#[cfg(unix)]
use crate::server::process::MARK;
#[cfg(unix)]
use crate::session::{Joined, Opened};
use crate::settings::Settings;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// What approvals and records call this agent, in place of what it calls itself
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Offer `find_tools` and `call_tool` in place of every tool, for an agent that would drown in the list
    #[arg(long)]
    search: bool,
    /// Leave out a server that the agent has from elsewhere (again for each)
    #[arg(long, value_name = "SERVER")]
    without: Vec<String>,
    /// Run an engine of its own in this process, in place of the one that others share
    #[arg(long = "standalone")]
    pub(super) alone: bool,
    /// Serve agents at a URL on this machine in place of stdin and stdout, until it is ended
    #[arg(long)]
    http: bool,
    /// The port of the URL; without it, one that is free
    #[arg(long, value_name = "PORT", requires = "http")]
    port: Option<u16>,
    /// For programs: the URL and the file that holds its token, as JSON
    #[arg(long, requires = "http")]
    json: bool,
}

/// Where agents find it, and how they are let in. The token itself is shown to nobody.
fn tell(json: bool, url: &str, token_file: &Path) -> anyhow::Result<()> {
    let file = token_file.display();
    print(&match json {
        true => format!("{:#}\n", json!({ "url": url, "tokenFile": token_file })),
        false => {
            format!("agents are served at {url}\nthe token that they send (Authorization: Bearer TOKEN) is in {file}\n")
        }
    })?;
    Ok(())
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
    let front = if arguments.http { Front::Url } else { Front::Agent };
    let hello = Hello {
        label: arguments.name,
        search: arguments.search,
        without: arguments.without,
        ticket: ticket(),
        port: arguments.port,
        mark: std::env::var(MARK).ok(),
        ..Hello::new(front)
    };
    let here = match &context.workspace {
        Some(_) => context.folder(settings)?.to_path_buf(),
        None => std::env::current_dir()?,
    };
    let joined = match join_running(&here, paths, &hello)? {
        Some(joined) => joined,
        None => join(&context.folder(settings)?, paths, &hello)?,
    };
    match front {
        Front::Url => at_url(joined, arguments.json),
        _ => pass(joined, Stdio::take()?, Opening::default()),
    }
}

/// What an editor gives to an agent whose calls it asks about itself. It comes by the environment, where no config file
/// of a project can put it and no list of processes shows it.
#[cfg(unix)]
fn ticket() -> Option<String> {
    std::env::var("MCP_SIDECAR_TICKET").ok()
}

/// Tells where agents are served now, and keeps them served by being there.
#[cfg(unix)]
fn at_url(mut joined: Joined, json: bool) -> anyhow::Result<Status> {
    match serde_json::from_slice(&joined.line()?)? {
        Opened::At { url, token_file } => tell(json, &url, &token_file)?,
        Opened::Failed(why) => anyhow::bail!(why),
    }
    std::io::copy(&mut joined.stream, &mut std::io::sink())?;
    anyhow::bail!("the engine of this workspace has ended unexpectedly; `mcp-sidecar log` may tell why")
}

fn standalone(arguments: Arguments, context: &Context, paths: Paths, settings: Settings) -> anyhow::Result<Status> {
    let _logging = logging::start(&paths.logs_dir(), &settings.log);
    let folder = context.folder(&settings)?.to_path_buf();
    let runtime = paths.runtime_dir.clone();
    with_engine(context, paths, settings, async |engine: Engine| {
        let agents = Endpoint::new(engine.clone());
        // No editor can be at an engine of its own, so a ticket would be none.
        let Arguments { name: label, search, without, .. } = arguments;
        let guest = Guest { folder, label, search, without, ticket: None };
        let serving = async {
            if !arguments.http {
                agents.serve(streams::input(), streams::output(), guest).await;
                return Ok(());
            }
            let name = format!("connect-{}", std::process::id());
            let http = agents.listen(guest, arguments.port.unwrap_or_default(), &runtime, &name).await?;
            tell(arguments.json, &http.url(), http.token_file())?;
            http.serve().await.map_err(anyhow::Error::from)
        };
        let served = tokio::select! {
            served = serving => served,
            () = signal() => Ok(()),
        };
        engine.shutdown().await;
        served
    })??;
    Ok(Status::Ok)
}
