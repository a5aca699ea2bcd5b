//! `mcp-sidecar start`, `stop`, `restart` and `refresh`: servers of the engine that editors and agents share.

use super::context::Context;
use super::engine_client;
use super::{Status, complete, print, print_json};
use crate::model::{Error, ServerName};
use crate::protocol::commands::{ServerRefresh, ServerRestart, ServerStart, ServerStop};
use crate::protocol::types;
use crate::text::one_line;

#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("which").required(true).args(["server", "all"]))]
pub(super) struct Arguments {
    /// Name of the server
    #[arg(add = complete::servers())]
    server: Option<ServerName>,
    /// All servers of the workspace
    #[arg(long)]
    all: bool,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct Refresh {
    /// Server to refresh; all running servers by default
    #[arg(add = complete::servers())]
    server: Option<ServerName>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Start,
    Stop,
    Restart,
    Refresh,
}

impl From<Refresh> for Arguments {
    fn from(Refresh { server, json }: Refresh) -> Self {
        Self { all: server.is_none(), server, json }
    }
}

pub(super) fn run(verb: Verb, arguments: impl Into<Arguments>, context: &Context) -> anyhow::Result<Status> {
    let Arguments { server, all, json } = arguments.into();
    let done = engine_client::run_shared(context, async |engine| {
        let answer = match verb {
            Verb::Start => engine.call(ServerStart { server, all }).await?,
            Verb::Stop => engine.call(ServerStop { server, all }).await?,
            Verb::Restart => engine.call(ServerRestart { server, all }).await?,
            Verb::Refresh => engine.call(ServerRefresh { server, all }).await?,
        };
        if json {
            print_json(&answer)?;
        }
        let is_running = |server: &types::ServerStatus| server.status == types::Status::Connected;
        let about: Vec<_> =
            answer.servers.iter().filter(|server| verb != Verb::Refresh || is_running(server)).collect();
        if !json {
            let line =
                |server: &&types::ServerStatus| format!("{}: {}\n", server.name, one_line(&server.summary.text, 400));
            print(&match about.as_slice() {
                [] => "no server is running\n".to_owned(),
                servers => servers.iter().map(line).collect(),
            })?;
        }
        let failed = matches!(verb, Verb::Start | Verb::Restart)
            && about.iter().any(|server| server.status == types::Status::Failed);
        Ok(if failed { Status::Failed } else { Status::Ok })
    })?;
    match (done, verb) {
        (Some(status), _) => Ok(status),
        (None, Verb::Start | Verb::Restart) => Err(Error::NotFound(
            "no editor or agent has this workspace open; servers run only while one does".to_owned(),
        )
        .into()),
        (None, Verb::Stop | Verb::Refresh) => {
            if json {
                return print_json(&serde_json::json!({ "servers": [] }));
            }
            print("no server is running\n")?;
            Ok(Status::Ok)
        }
    }
}
