//! Gives subcommands access to an engine, through the same commands that editors use.
//!
//! If an engine already runs for this workspace, the subcommand uses it, so that editors and the shell show the same
//! state. Otherwise the subcommand runs its own engine in this process.

mod in_process;
#[cfg(unix)]
mod shared;

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

/// Which servers start automatically if the engine runs in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Autostart {
    All,
    /// Only those that are used.
    OnDemand,
}

/// Access to the engine of the workspace.
pub(super) struct EngineClient {
    backend: Backend,
    pub folder: Arc<Path>,
    changes: watch::Receiver<u64>,
    questions: watch::Receiver<Questions>,
}

enum Backend {
    InProcess(Engine),
    #[cfg(unix)]
    Shared(shared::Connection),
}

/// Why a command failed, worded for the shell.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(super) struct CommandError {
    /// The `kind` of the error in the protocol.
    pub kind: String,
    pub message: String,
}

/// A pending question, as returned by `mcp.approvals`.
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

/// All pending questions.
pub(super) type Questions = Arc<Vec<Question>>;

/// Signals that the state of a server changed.
pub(super) struct Changes(watch::Receiver<u64>);

/// Runs `work` with an engine, and always shuts down or disconnects cleanly. Ctrl-C cancels the work.
pub(super) fn run(
    context: &Context,
    autostart: Autostart,
    work: impl AsyncFnOnce(&EngineClient) -> anyhow::Result<Status>,
) -> anyhow::Result<Status> {
    let paths = context.paths()?;
    let settings = context.settings(&paths);
    let folder = context.folder(&settings)?;
    let _logging = logging::start(&paths.logs_dir(), &settings.log);
    guardian::install();
    process::raise_limits();
    let runtime = context.runtime()?;
    let result = runtime.block_on(async {
        let engine = EngineClient::find(folder, paths, settings, autostart).await;
        let result = tokio::select! {
            result = work(&engine) => result,
            _ = tokio::signal::ctrl_c() => Err(anyhow::anyhow!("cancelled")),
        };
        match engine.backend {
            Backend::InProcess(engine) => engine.shutdown().await,
            #[cfg(unix)]
            Backend::Shared(connection) => connection.leave().await,
        }
        result
    });
    // A blocking read of the terminal may still be running in its thread and would never return.
    runtime.shutdown_background();
    result
}

impl EngineClient {
    async fn find(folder: Arc<Path>, paths: Paths, mut settings: Settings, autostart: Autostart) -> Self {
        let (changed, changes) = watch::channel(0);
        let (asked, questions) = watch::channel(Questions::default());
        #[cfg(unix)]
        {
            let (changed, asked) = (changed.clone(), asked.clone());
            let joined = shared::join(&folder, &paths, terminal::is_interactive(), changed, asked).await;
            if let Some(connection) = joined {
                return Self { backend: Backend::Shared(connection), folder, changes, questions };
            }
        }
        // The user is waiting: report the first failure instead of retrying.
        settings.servers.attempts = 1;
        let engine = match autostart {
            Autostart::All => Engine::start(paths, settings),
            Autostart::OnDemand => Engine::start_on_demand(paths, settings),
        };
        in_process::follow(&engine, changed, asked);
        engine.set_folders(vec![folder.to_path_buf()]).await;
        Self { backend: Backend::InProcess(engine), folder, changes, questions }
    }

    /// Whether other fronts use this engine, too. Then a subcommand should not start or stop servers on its own.
    pub fn is_shared(&self) -> bool {
        !matches!(self.backend, Backend::InProcess(_))
    }

    /// Runs a command of the protocol.
    pub async fn run(&self, name: &str, params: Value) -> Result<Value, CommandError> {
        self.run_with(name, params, None).await
    }

    /// Like [`Self::run`], and reports progress.
    pub async fn run_with(
        &self,
        name: &str,
        params: Value,
        progress: Option<mpsc::Sender<Progress>>,
    ) -> Result<Value, CommandError> {
        match &self.backend {
            Backend::InProcess(engine) => in_process::run(engine, name, params, progress).await,
            #[cfg(unix)]
            Backend::Shared(connection) => connection.run(name, params, progress).await,
        }
    }

    /// All servers, or only the named one.
    pub async fn servers(&self, name: Option<&str>) -> anyhow::Result<Vec<Server>> {
        let answer = self.run("mcp.servers", json!({ "server": name })).await?;
        server::read(&answer)
    }

    pub fn changes(&self) -> Changes {
        Changes(self.changes.clone())
    }

    /// Waits until no server is starting, up to `wait`.
    pub async fn settle(&self, wait: Duration) {
        let mut changes = self.changes();
        let deadline = Instant::now() + wait;
        while self.servers(None).await.is_ok_and(|servers| servers.iter().any(Server::is_starting)) {
            if tokio::time::timeout_at(deadline, changes.next()).await.is_err() {
                break;
            }
        }
    }

    /// The pending questions.
    pub fn questions(&self) -> watch::Receiver<Questions> {
        self.questions.clone()
    }

    /// Lets the user answer questions until the result is dropped. A shared engine asks its fronts already.
    pub fn attach_terminal(&self) -> Option<Attachment> {
        match &self.backend {
            Backend::InProcess(engine) => Some(in_process::attach_terminal(engine)),
            #[cfg(unix)]
            Backend::Shared(_) => None,
        }
    }
}

impl Changes {
    /// Waits for the next change. Never returns if the engine has ended.
    pub async fn next(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Question {
    /// Parses the list in a response to `mcp.approvals`.
    fn parse_list(list: Value) -> Questions {
        Vec::deserialize(list).map(Arc::new).unwrap_or_default()
    }
}

/// Phrases in error messages, and their equivalents in a shell.
const SHELL_TERMS: [(&str, &str); 7] = [
    ("check the list of servers", "run `mcp-sidecar list` to see the servers"),
    ("check the list of its tools", "run `mcp-sidecar inspect` to see its tools"),
    ("`mcp.grants` lists", "`mcp-sidecar grants` shows"),
    ("`mcp.server.trust`", "`mcp-sidecar trust`"),
    ("`mcp.server.enable`", "`mcp-sidecar enable`"),
    ("`mcp.server.toggle`", "`mcp-sidecar enable`"),
    ("`mcp.server.start`", "`mcp-sidecar test`"),
];

impl CommandError {
    /// From the message and the `data` of a protocol error.
    fn from_wire(message: &str, data: &Value) -> Self {
        let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let kind = match text(data, "kind") {
            none if none.is_empty() => "io".to_owned(),
            kind => kind,
        };
        let message = match kind.as_str() {
            "needs-trust" => {
                let server = text(data, "server");
                format!("server `{server}` is not trusted; run `mcp-sidecar trust {server}` to review and trust it")
            }
            "invalid-arguments" => {
                let head = format!("the arguments of `{}` do not match its schema:", text(data, "tool"));
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

/// Replaces protocol commands in a message with shell commands.
pub(super) fn in_shell_terms(text: &str) -> String {
    SHELL_TERMS.iter().fold(text.to_owned(), |text, (wire, shell)| text.replace(wire, shell))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Error;

    #[test]
    fn messages_name_shell_commands() {
        let failure = CommandError::from(Error::NoServer("dmeo".to_owned()));
        assert_eq!(failure.to_string(), "no server named `dmeo`; run `mcp-sidecar list` to see the servers");
        assert_eq!(failure.kind, "not-found");
    }
}
