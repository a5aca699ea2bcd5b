//! How a subcommand gets at servers: an engine for its workspace, and the commands that editors use, too.
//!
//! Every live subcommand comes through [`run`]. The engine is one of its own, in this process; whether it could be one
//! that runs already is decided here and nowhere else.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::Status;
use super::context::Context;
use super::server::{self, Server};
use crate::engine::Engine;
use crate::engine::approvals::Approval;
use crate::engine::edit::OnDisk;
use crate::engine::editors::{Abilities, Attachment, Editor};
use crate::engine::snapshot::Snapshot;
use crate::model::{Error, Result, ServerName};
use crate::protocol::commands::Command;
use crate::server::connection::Progress;
use crate::server::{guardian, process};
use crate::{logging, protocol};

/// Which servers start by themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wake {
    All,
    /// Only those that somebody uses.
    OnDemand,
}

/// The engine of the workspace, as long as a subcommand needs it.
pub(super) struct Live {
    engine: Engine,
    pub folder: Arc<Path>,
}

/// Why a command was not carried out, in the words of the shell.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(super) struct Failure {
    pub kind: &'static str,
    pub message: String,
}

/// What changed since it was last asked.
pub(super) struct Changes(watch::Receiver<Arc<Snapshot>>);

/// Runs `work` with an engine, and ends the engine cleanly however that went. Ctrl-C ends the work.
pub(super) fn run(
    context: &Context,
    wake: Wake,
    work: impl AsyncFnOnce(&Live) -> anyhow::Result<Status>,
) -> anyhow::Result<Status> {
    let paths = context.paths()?;
    let mut settings = context.settings(&paths);
    let folder = context.folder(&settings)?;
    // Somebody waits in front of the terminal: the first failure is the answer, and trying again is theirs to decide.
    settings.servers.attempts = 1;
    let _logging = logging::start(&paths.logs_dir(), &settings.log);
    guardian::install();
    process::raise_limits();
    let runtime = context.runtime()?;
    let result = runtime.block_on(async {
        let engine = match wake {
            Wake::All => Engine::start(paths, settings),
            Wake::OnDemand => Engine::start_on_demand(paths, settings),
        };
        let live = Live { engine, folder };
        let work = async {
            live.engine.set_folders(vec![live.folder.to_path_buf()]).await;
            work(&live).await
        };
        let result = tokio::select! {
            result = work => result,
            _ = tokio::signal::ctrl_c() => Err(anyhow::anyhow!("cancelled")),
        };
        live.engine.shutdown().await;
        result
    });
    // A read of the terminal may still wait in its thread, and nobody will answer it.
    runtime.shutdown_background();
    result
}

impl Live {
    /// Carries out a command of the protocol.
    pub async fn run(&self, name: &str, params: Value) -> Result<Value, Failure> {
        self.run_with(name, params, None).await
    }

    /// The same, with a place for what a running tool reports.
    pub async fn run_with(
        &self,
        name: &str,
        params: Value,
        progress: Option<mpsc::Sender<Progress>>,
    ) -> Result<Value, Failure> {
        let command = Command::parse(name, vec![params]).map_err(Failure::from)?;
        protocol::run::run(&self.engine, &OnDisk, command, progress).await.map_err(Failure::from)
    }

    /// Every server, or the one that was named.
    pub async fn servers(&self, name: Option<&str>) -> anyhow::Result<Vec<Server>> {
        let answer = self.run("mcp.servers", serde_json::json!({ "server": name })).await?;
        server::read(&answer)
    }

    pub fn changes(&self) -> Changes {
        Changes(self.engine.snapshot())
    }

    /// Waits until no server is starting any more, but not longer than this.
    pub async fn settled(&self, wait: Duration) {
        let mut changes = self.changes();
        let deadline = Instant::now() + wait;
        while self.servers(None).await.is_ok_and(|servers| servers.iter().any(Server::is_starting)) {
            if tokio::time::timeout_at(deadline, changes.next()).await.is_err() {
                break;
            }
        }
    }

    /// The questions that wait for an answer.
    pub fn questions(&self) -> watch::Receiver<Arc<Vec<Approval>>> {
        self.engine.approvals().subscribe()
    }

    /// From now on, until this is dropped, questions of servers and of the policy are put to the terminal.
    pub fn attend(&self) -> Attachment {
        let abilities = Abilities { plugin: true, approvals: true, elicitation: true, ..Abilities::default() };
        self.engine.editors().attach(Arc::new(Person { abilities }))
    }
}

impl Changes {
    /// The next change; never, when the engine has gone.
    pub async fn next(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// A person at a terminal, who can answer questions and open pages.
struct Person {
    abilities: Abilities,
}

impl Editor for Person {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    fn sample(&self, _server: ServerName, _params: Value) -> BoxFuture<'static, Result<Value>> {
        let none = Error::NotFound("there is no model at a terminal".to_owned());
        std::future::ready(Err(none)).boxed()
    }

    fn open_url(&self, url: String) -> BoxFuture<'static, bool> {
        std::future::ready(super::terminal::say(&format!("open this page: {url}\n")).is_ok()).boxed()
    }

    fn to_sdk(&self, _server: String, _message: Value) -> BoxFuture<'static, bool> {
        std::future::ready(false).boxed()
    }
}

/// Words of the protocol, and what says the same in a shell.
const WORDS: [(&str, &str); 7] = [
    ("`mcp.servers` lists", "`mcp-sidecar list` shows"),
    ("`mcp.tools` lists", "`mcp-sidecar inspect` shows"),
    ("`mcp.grants` lists", "`mcp-sidecar grants` shows"),
    ("`mcp.server.trust`", "`mcp-sidecar trust`"),
    ("`mcp.server.enable`", "`mcp-sidecar enable`"),
    ("`mcp.server.toggle`", "`mcp-sidecar enable`"),
    ("`mcp.server.start`", "`mcp-sidecar test`"),
];

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let message = match &error {
            Error::NeedsTrust(server) => format!(
                "server `{server}` is not trusted yet; `mcp-sidecar trust {server}` shows its definition and asks you"
            ),
            Error::InvalidArguments { violations, .. } => {
                let lines = violations.iter().map(|violation| match violation.path.as_str() {
                    "" => format!("\n  {}", violation.message),
                    path => format!("\n  {path}: {}", violation.message),
                });
                let head = format!("the arguments of `{}` do not fit its schema:", error.tool().unwrap_or_default());
                std::iter::once(head).chain(lines).collect()
            }
            error => shell_words(&error.to_string()),
        };
        Self { kind: error.kind(), message }
    }
}

/// Advice that names a command of the protocol, for somebody who has a shell.
pub(super) fn shell_words(text: &str) -> String {
    WORDS.iter().fold(text.to_owned(), |text, (wire, shell)| text.replace(wire, shell))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_names_what_a_shell_can_do() {
        let failure = Failure::from(Error::NoServer("dmeo".to_owned()));
        assert_eq!(failure.to_string(), "no server named `dmeo`; `mcp-sidecar list` shows those there are");
        assert_eq!(failure.kind, "not-found");
    }
}
