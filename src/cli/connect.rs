//! `mcp-sidecar connect`: serves an agent. All editors and agents of a workspace share one engine.

use std::path::Path;

use serde_json::json;

use super::context::Context;
#[cfg(unix)]
use super::engine::ENGINE_ENDED;
use super::engine::with_engine;
use super::{Status, print};
use crate::agent::{AgentOptions, Endpoint};
use crate::engine::Engine;
use crate::logging;
use crate::lsp::{signal, streams};
use crate::paths::Paths;
#[cfg(unix)]
use crate::server::process::MARK;
#[cfg(unix)]
use crate::session::{Joined, UrlReply};
use crate::settings::Settings;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    agent: AgentOptions,
    /// Run a separate engine in this process instead of sharing one with other editors and agents
    #[arg(long)]
    pub(super) standalone: bool,
    /// Serve agents at a URL on this machine instead of stdin and stdout, until the process is stopped
    #[arg(long)]
    http: bool,
    /// Port of the URL [default: any free port]
    #[arg(long, value_name = "PORT", requires = "http", value_parser = parse_port)]
    port: Option<u16>,
    /// Print the URL and the path of its token file as JSON
    #[arg(long, requires = "http")]
    json: bool,
}

fn parse_port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| "expected a port number from 0 to 65535".to_owned())
}

/// Prints where agents connect. The token itself is never printed.
fn print_endpoint(json: bool, url: &str, token_file: &Path) -> anyhow::Result<()> {
    let file = token_file.display();
    print(&match json {
        true => format!("{:#}\n", json!({ "url": url, "tokenFile": token_file })),
        false => {
            format!("serving agents at {url}\nagents must send the token in {file} as `Authorization: Bearer TOKEN`\n")
        }
    })?;
    Ok(())
}

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    let paths = context.paths()?;
    let settings = context.settings(&paths);
    #[cfg(unix)]
    if !arguments.standalone {
        return shared(arguments, context, &paths, &settings);
    }
    standalone(arguments, context, paths, settings)
}

/// Joins the engine that runs in the nearest parent folder, or starts one for this workspace.
#[cfg(unix)]
fn shared(arguments: Arguments, context: &Context, paths: &Paths, settings: &Settings) -> anyhow::Result<Status> {
    use super::engine::forward;
    use crate::session::{Front, Hello, ReadAhead, Stdio, exit_on_signal, join, join_running};

    let _exit_on_signal = exit_on_signal()?;
    let front = if arguments.http { Front::Url } else { Front::Agent };
    let hello = Hello {
        agent: AgentOptions { ticket: ticket(), ..arguments.agent },
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
        _ => forward(joined, Stdio::take()?, ReadAhead::default()),
    }
}

/// An editor gives it to an agent if the editor itself asks the user about each call. It is passed in the environment,
/// where a project's config file cannot put it and process lists do not show it.
#[cfg(unix)]
fn ticket() -> Option<String> {
    std::env::var("MCP_SIDECAR_TICKET").ok()
}

/// Prints the URL, and keeps it open until this process ends.
#[cfg(unix)]
fn at_url(mut joined: Joined, json: bool) -> anyhow::Result<Status> {
    match serde_json::from_slice(&joined.read_line()?)? {
        UrlReply::At { url, token_file } => print_endpoint(json, &url, &token_file)?,
        UrlReply::Failed(why) => anyhow::bail!(why),
    }
    std::io::copy(&mut joined.stream, &mut std::io::sink())?;
    anyhow::bail!(ENGINE_ENDED)
}

fn standalone(arguments: Arguments, context: &Context, paths: Paths, settings: Settings) -> anyhow::Result<Status> {
    let _logging = logging::start(&paths.logs_dir(), &settings.log);
    let folder = context.folder(&settings)?.to_path_buf();
    let runtime = paths.runtime_dir.clone();
    with_engine(context, paths, settings, async |engine: Engine| {
        let agents = Endpoint::new(engine.clone());
        // Without a ticket: no editor can be connected to a separate engine.
        let options = AgentOptions { folder, ..arguments.agent };
        let serving = async {
            if !arguments.http {
                agents.serve(streams::input(), streams::output(), options).await;
                return Ok(());
            }
            let name = format!("connect-{}", std::process::id());
            let http = agents.listen(options, arguments.port.unwrap_or_default(), &runtime, &name).await?;
            print_endpoint(arguments.json, &http.url(), http.token_file())?;
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
