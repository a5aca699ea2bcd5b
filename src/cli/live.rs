//! How a subcommand gets at servers: an engine for its workspace, and the commands that editors use, too.
//!
//! Every live subcommand comes through [`run`]. The engine is the one that runs for this workspace already, so that
//! what an editor shows and what a shell shows is the same; without one, the subcommand runs its own in this process.

#[cfg(unix)]
mod joined;
mod own;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::context::Context;
use super::server::{self, Server};
use super::{Status, terminal};
use crate::engine::Engine;
use crate::engine::editors::Attachment;
use crate::logging;
use crate::paths::Paths;
use crate::server::connection::Progress;
use crate::server::{guardian, process};
use crate::settings::Settings;

/// Which servers start by themselves, where the engine is one of our own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wake {
    All,
    /// Only those that somebody uses.
    OnDemand,
}

/// The engine of the workspace, as long as a subcommand needs it.
pub(super) struct Live {
    way: Way,
    pub folder: Arc<Path>,
    changes: watch::Receiver<u64>,
    questions: watch::Receiver<News>,
}

enum Way {
    Own(Engine),
    #[cfg(unix)]
    Joined(joined::Connection),
}

/// Why a command was not carried out, in the words of the shell.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(super) struct Failure {
    /// The wire's `kind`.
    pub kind: String,
    pub message: String,
}

/// A question that waits for an answer, as `mcp.approvals` tells it.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Question {
    pub id: String,
    /// `tool`, `trust`, `elicitation` or `input`.
    pub kind: String,
    pub server: String,
    pub tool: Option<String>,
    pub arguments: Option<Value>,
    pub title: String,
    pub detail: String,
    pub annotations: Option<Value>,
    pub diff: Option<String>,
    pub schema: Option<Value>,
    pub url: Option<String>,
}

/// All questions that wait now.
pub(super) type News = Arc<Vec<Question>>;

/// What changed since it was last asked.
pub(super) struct Changes(watch::Receiver<u64>);

/// Runs `work` with an engine, and lets go of the engine cleanly however that went. Ctrl-C ends the work.
pub(super) fn run(
    context: &Context,
    wake: Wake,
    work: impl AsyncFnOnce(&Live) -> anyhow::Result<Status>,
) -> anyhow::Result<Status> {
    let paths = context.paths()?;
    let settings = context.settings(&paths);
    let folder = context.folder(&settings)?;
    let _logging = logging::start(&paths.logs_dir(), &settings.log);
    guardian::install();
    process::raise_limits();
    let runtime = context.runtime()?;
    let result = runtime.block_on(async {
        let live = Live::find(folder, paths, settings, wake).await;
        let result = tokio::select! {
            result = work(&live) => result,
            _ = tokio::signal::ctrl_c() => Err(anyhow::anyhow!("cancelled")),
        };
        match live.way {
            Way::Own(engine) => engine.shutdown().await,
            #[cfg(unix)]
            Way::Joined(connection) => connection.leave().await,
        }
        result
    });
    // A read of the terminal may still wait in its thread, and nobody will answer it.
    runtime.shutdown_background();
    result
}

impl Live {
    async fn find(folder: Arc<Path>, paths: Paths, mut settings: Settings, wake: Wake) -> Self {
        let (changed, changes) = watch::channel(0);
        let (asked, questions) = watch::channel(News::default());
        #[cfg(unix)]
        {
            let (changed, asked) = (changed.clone(), asked.clone());
            let joined = joined::join(&folder, &paths, terminal::is_attended(), changed, asked).await;
            if let Some(connection) = joined {
                return Self { way: Way::Joined(connection), folder, changes, questions };
            }
        }
        // Somebody waits in front of the terminal: the first failure is the answer, and trying again is theirs to decide.
        settings.servers.attempts = 1;
        let engine = match wake {
            Wake::All => Engine::start(paths, settings),
            Wake::OnDemand => Engine::start_on_demand(paths, settings),
        };
        own::follow(&engine, changed, asked);
        engine.set_folders(vec![folder.to_path_buf()]).await;
        Self { way: Way::Own(engine), folder, changes, questions }
    }

    /// Whether others use this engine, too, and have their own mind about what should run.
    pub fn is_shared(&self) -> bool {
        !matches!(self.way, Way::Own(_))
    }

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
        match &self.way {
            Way::Own(engine) => own::run(engine, name, params, progress).await,
            #[cfg(unix)]
            Way::Joined(connection) => connection.run(name, params, progress).await,
        }
    }

    /// Every server, or the one that was named.
    pub async fn servers(&self, name: Option<&str>) -> anyhow::Result<Vec<Server>> {
        let answer = self.run("mcp.servers", json!({ "server": name })).await?;
        server::read(&answer)
    }

    pub fn changes(&self) -> Changes {
        Changes(self.changes.clone())
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
    pub fn questions(&self) -> watch::Receiver<News> {
        self.questions.clone()
    }

    /// From now on, until this is dropped, there is somebody who answers questions. A shared engine knows already.
    pub fn attend(&self) -> Option<Attachment> {
        match &self.way {
            Way::Own(engine) => Some(own::attend(engine)),
            #[cfg(unix)]
            Way::Joined(_) => None,
        }
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

impl Question {
    /// The list as it stands in the answer of `mcp.approvals`.
    fn read(list: Value) -> News {
        Vec::deserialize(list).map(Arc::new).unwrap_or_default()
    }
}

/// Words of the protocol, and what says the same in a shell.
const WORDS: [(&str, &str); 7] = [
    ("check the list of servers", "run `mcp-sidecar list` to see the servers"),
    ("check the list of its tools", "run `mcp-sidecar inspect` to see its tools"),
    ("`mcp.grants` lists", "`mcp-sidecar grants` shows"),
    ("`mcp.server.trust`", "`mcp-sidecar trust`"),
    ("`mcp.server.enable`", "`mcp-sidecar enable`"),
    ("`mcp.server.toggle`", "`mcp-sidecar enable`"),
    ("`mcp.server.start`", "`mcp-sidecar test`"),
];

impl Failure {
    /// From an error as it is on the wire: its message, and the `data` beside it.
    fn told(message: &str, data: &Value) -> Self {
        let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let kind = match text(data, "kind") {
            none if none.is_empty() => "io".to_owned(),
            kind => kind,
        };
        let message = match kind.as_str() {
            "needs-trust" => {
                let server = text(data, "server");
                format!(
                    "server `{server}` is not trusted yet; `mcp-sidecar trust {server}` shows its definition and asks you"
                )
            }
            "invalid-arguments" => {
                let head = format!("the arguments of `{}` do not fit its schema:", text(data, "tool"));
                let violations = data.get("detail").and_then(Value::as_array).into_iter().flatten();
                let lines = violations.map(|violation| match text(violation, "path") {
                    whole if whole.is_empty() => format!("\n  {}", text(violation, "message")),
                    path => format!("\n  {path}: {}", text(violation, "message")),
                });
                std::iter::once(head).chain(lines).collect()
            }
            _ => message.to_owned(),
        };
        Self { kind, message }
    }
}

/// Advice that names a command of the protocol, for somebody who has a shell.
pub(super) fn shell_words(text: &str) -> String {
    WORDS.iter().fold(text.to_owned(), |text, (wire, shell)| text.replace(wire, shell))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Error;

    #[test]
    fn advice_names_what_a_shell_can_do() {
        let failure = Failure::from(Error::NoServer("dmeo".to_owned()));
        assert_eq!(failure.to_string(), "no server named `dmeo`; run `mcp-sidecar list` to see the servers");
        assert_eq!(failure.kind, "not-found");
    }
}
