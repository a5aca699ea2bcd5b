//! `mcp-sidecar connect`: serves an agent. All editors and agents of a workspace share one engine.

use std::path::{Path, PathBuf};
#[cfg(unix)]
use std::time::{Duration, Instant};

use serde_json::json;

use super::context::Context;
#[cfg(unix)]
use super::engine::ENGINE_ENDED;
use super::engine::with_engine;
use super::{Status, print, print_json};
use crate::agent::{AgentOptions, Endpoint};
use crate::engine::Engine;
use crate::logging;
use crate::lsp::{signal, streams};
use crate::paths::Paths;
#[cfg(unix)]
use crate::server::guardian;
use crate::server::process::MARK;
#[cfg(unix)]
use crate::session::{Hello, JoinError, Joined, UrlReply};
use crate::settings::Settings;

/// An engine that ends sooner would only end again.
#[cfg(unix)]
const SHORT: Duration = Duration::from_secs(1);
/// Names the file with the ticket.
#[cfg(unix)]
const TICKET_FILE: &str = "MCP_SIDECAR_TICKET_FILE";
/// Longer than every ticket.
#[cfg(unix)]
const MAX_TICKET: u64 = 4 << 10;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    agent: AgentOptions,
    /// Run a separate engine in this process instead of sharing one with other editors and agents
    #[arg(long)]
    pub(super) standalone: bool,
    /// Join the engine that listens on this socket, and never start one; for an agent in a sandbox
    #[arg(long, value_name = "FILE", conflicts_with_all = ["standalone", "http"])]
    socket: Option<PathBuf>,
    /// Print the path of the socket for the agents of this workspace
    #[arg(long, conflicts_with_all = ["standalone", "http", "socket"])]
    print_socket: bool,
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
    if json {
        print_json(&json!({ "url": url, "tokenFile": token_file }))?;
    } else {
        print(&format!(
            "serving agents at {url}\nagents must send the token in {file} as `Authorization: Bearer TOKEN`\n"
        ))?;
    }
    Ok(())
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
        return shared(arguments, context, &paths, &settings);
    }
    standalone(arguments, context, paths, settings)
}

/// Joins the engine of this repository or of a parent folder, or starts one.
#[cfg(unix)]
fn shared(arguments: Arguments, context: &Context, paths: &Paths, settings: &Settings) -> anyhow::Result<Status> {
    use crate::session::{
        AgentMemory, EngineAddress, Front, Hello, ReadAhead, Stdio, bridge, exit_on_signal, join, join_at,
        join_running, upgrade,
    };

    if arguments.print_socket {
        let address = EngineAddress::of(&context.folder(settings)?, paths)?;
        print(&format!("{}\n", address.agents.display()))?;
        return Ok(Status::Ok);
    }
    let _exit_on_signal = exit_on_signal()?;
    let front = if arguments.http { Front::Url } else { Front::Agent };
    let root = context.folder(settings)?;
    let hello = Hello {
        agent: AgentOptions { ticket: ticket(), ..arguments.agent },
        port: arguments.port,
        mark: std::env::var(MARK).ok(),
        ..Hello::of(front, &root)
    };
    let here = match &context.workspace {
        Some(_) => root.to_path_buf(),
        None => std::env::current_dir()?,
    };
    let find = |hello: &Hello| match &arguments.socket {
        Some(socket) => join_at(socket, hello),
        None => match join_running(&here, paths, hello)? {
            Some(joined) => upgrade(joined, hello),
            None => join(&root, paths, hello),
        },
    };
    if front == Front::Url {
        return at_url(hello, find, arguments.json);
    }
    let code = bridge::<AgentMemory>(find(&hello)?, Stdio::take()?, ReadAhead::default(), || find(&hello))?;
    Ok(Status::from_code(code))
}

/// An editor gives it to an agent if the editor itself asks the user about each call. It is passed in a private file, which
/// is removed at once. Arguments and variables of a process can be read for as long as it runs.
#[cfg(unix)]
fn ticket() -> Option<String> {
    let path = PathBuf::from(std::env::var_os(TICKET_FILE)?);
    let ticket = read_private(&path);
    std::fs::remove_file(&path).ok();
    match ticket {
        Ok(ticket) => Some(ticket),
        // It was used before. Then the engine asks the user, too.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => {
            super::terminal::eprint(&format!("warning: ignored the ticket in {}: {error}\n", path.display())).ok();
            None
        }
    }
}

/// Reads a small file that only the user can read.
#[cfg(unix)]
fn read_private(path: &Path) -> std::io::Result<String> {
    use std::io::Read;
    use std::os::unix::fs::MetadataExt;

    use rustix::fs::{Mode, OFlags, open};

    let file = std::fs::File::from(open(path, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?);
    let found = file.metadata()?;
    let is_private = found.mode() & 0o077 == 0 && found.uid() == rustix::process::geteuid().as_raw();
    if !found.is_file() || !is_private {
        return Err(std::io::Error::other("it is not a file that only you can read"));
    }
    let mut text = String::new();
    file.take(MAX_TICKET).read_to_string(&mut text)?;
    Ok(text.trim().to_owned())
}

/// Prints the URL, and keeps it open until this process ends. If the engine ends, the next one serves the same URL with the
/// same token.
#[cfg(unix)]
fn at_url(mut hello: Hello, find: impl Fn(&Hello) -> Result<Joined, JoinError>, json: bool) -> anyhow::Result<Status> {
    let mut is_printed = false;
    loop {
        let mut joined = find(&hello)?;
        let (url, token_file) = match serde_json::from_slice(&joined.read_line()?)? {
            UrlReply::At { url, token_file } => (url, token_file),
            UrlReply::Failed(why) => anyhow::bail!(why),
        };
        if !is_printed {
            print_endpoint(json, &url, &token_file)?;
            is_printed = true;
        }
        hello.port = url::Url::parse(&url)?.port();
        hello.token = Some(std::fs::read_to_string(token_file)?);
        let since = Instant::now();
        std::io::copy(&mut joined.stream, &mut std::io::sink()).ok();
        if since.elapsed() < SHORT {
            anyhow::bail!(ENGINE_ENDED);
        }
    }
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
            let http = agents.listen(options, arguments.port.unwrap_or_default(), None, &runtime, &name).await?;
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
