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

use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::Status;
use super::context::Context;
use super::server::is_starting;
use crate::engine::Engine;
use crate::engine::editors::Attachment;
use crate::logging;
use crate::lsp_client::CommandError;
#[cfg(unix)]
use crate::lsp_client::LspClient;
use crate::model::ServerName;
use crate::paths::Paths;
use crate::protocol;
use crate::protocol::actions::Remedy;
use crate::protocol::commands::{
    AnyCommand, Command, ServerAuth, ServerEnable, ServerTimeout, ServerTrust, Servers, Tools,
};
use crate::protocol::events::ApprovalsChanged;
use crate::protocol::types::ServerStatus;
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
    Shared(LspClient),
}

/// All pending questions. `closed` has the latest that have ended.
pub(super) type Questions = Arc<ApprovalsChanged>;

/// Signals that the state of a server changed.
pub(super) struct Changes(watch::Receiver<u64>);

/// The user pressed Ctrl-C.
#[derive(Debug, thiserror::Error)]
#[error("cancelled")]
pub(super) struct Cancelled;

/// What to say if [`run_shared`] finds no engine.
pub(super) const NO_ENGINE: &str = "No editor or agent has this workspace open, so there are no questions.";

/// Runs `work` with an engine, and always shuts down or disconnects cleanly. Ctrl-C cancels the work.
pub(super) fn run(
    context: &Context,
    autostart: Autostart,
    work: impl AsyncFnOnce(&EngineClient) -> anyhow::Result<Status>,
) -> anyhow::Result<Status> {
    block_on(context, async |folder, paths, settings| {
        EngineClient::find(folder, paths, settings, autostart).await.finish(work).await
    })
}

/// Like [`run`], but only with the engine that already runs for this workspace. `None` if there is none.
pub(super) fn run_shared(
    context: &Context,
    work: impl AsyncFnOnce(&EngineClient) -> anyhow::Result<Status>,
) -> anyhow::Result<Option<Status>> {
    block_on(context, async |folder, paths, _| match EngineClient::join(&folder, &paths).await {
        Some(engine) => engine.finish(work).await.map(Some),
        None => Ok(None),
    })
}

fn block_on<T>(
    context: &Context,
    work: impl AsyncFnOnce(Arc<Path>, Paths, Settings) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let paths = context.paths()?;
    let settings = context.settings(&paths);
    let folder = context.folder(&settings)?;
    let _logging = logging::start(&paths.logs_dir(), &settings.log);
    guardian::install();
    process::raise_limits();
    let runtime = context.runtime()?;
    let result = runtime.block_on(work(folder, paths, settings));
    // A blocking read of the terminal may still be running in its thread and would never return.
    runtime.shutdown_background();
    result
}

impl EngineClient {
    async fn find(folder: Arc<Path>, paths: Paths, mut settings: Settings, autostart: Autostart) -> Self {
        if let Some(joined) = Self::join(&folder, &paths).await {
            return joined;
        }
        let (changed, changes) = watch::channel(0);
        let (asked, questions) = watch::channel(Questions::default());
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

    /// The engine that already runs for this workspace.
    #[cfg(unix)]
    async fn join(folder: &Arc<Path>, paths: &Paths) -> Option<Self> {
        let (changed, changes) = watch::channel(0);
        let (asked, questions) = watch::channel(Questions::default());
        let client = shared::join(folder, paths, changed, asked).await?;
        Some(Self { backend: Backend::Shared(client), folder: folder.clone(), changes, questions })
    }

    #[cfg(not(unix))]
    async fn join(_folder: &Arc<Path>, _paths: &Paths) -> Option<Self> {
        None
    }

    async fn finish(self, work: impl AsyncFnOnce(&Self) -> anyhow::Result<Status>) -> anyhow::Result<Status> {
        let result = tokio::select! {
            result = work(&self) => result,
            _ = tokio::signal::ctrl_c() => Err(Cancelled.into()),
        };
        match self.backend {
            Backend::InProcess(engine) => engine.shutdown().await,
            #[cfg(unix)]
            Backend::Shared(client) => drop(client.shut_down().await),
        }
        result
    }

    /// Whether other fronts use this engine, too. Then a subcommand should not start or stop servers on its own.
    pub fn is_shared(&self) -> bool {
        !matches!(self.backend, Backend::InProcess(_))
    }

    /// Runs a command of the protocol. Errors are worded for the shell.
    pub async fn call<C: Command>(&self, command: C) -> Result<C::Answer, CommandError> {
        self.call_with(command, None).await
    }

    /// Like [`Self::call`], and reports progress.
    pub async fn call_with<C: Command>(
        &self,
        command: C,
        progress: Option<mpsc::Sender<Progress>>,
    ) -> Result<C::Answer, CommandError> {
        let answer = match &self.backend {
            Backend::InProcess(engine) => {
                let answer = protocol::run::call(engine, &in_process::shell(), command, progress).await;
                answer.map_err(|error| CommandError::from(&error))
            }
            #[cfg(unix)]
            Backend::Shared(client) => client.start(command, progress).await,
        };
        answer.map_err(worded)
    }

    /// All servers, or only the named one.
    pub async fn servers(&self, name: Option<&ServerName>) -> Result<Vec<ServerStatus>, CommandError> {
        Ok(self.call(Servers { server: name.cloned() }).await?.servers)
    }

    pub fn changes(&self) -> Changes {
        Changes(self.changes.clone())
    }

    /// Waits until no server is starting, up to `wait`.
    pub async fn settle(&self, wait: Duration) {
        let mut changes = self.changes();
        let deadline = Instant::now() + wait;
        while self.servers(None).await.is_ok_and(|servers| servers.iter().any(is_starting)) {
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

/// Words an error for the shell.
fn worded(mut error: CommandError) -> CommandError {
    let Some(data) = &error.data else { return error };
    if let Some(violations) = &data.detail {
        let tool = data.tool.as_deref().unwrap_or_default();
        let lines = violations.iter().map(|violation| match violation.path.as_str() {
            "" => format!("\n  {}", violation.message),
            path => format!("\n  {path}: {}", violation.message),
        });
        error.message = format!("the arguments of `{tool}` do not match its schema:{}", lines.collect::<String>());
    }
    error.message.push_str(&in_shell(data.remedy.as_ref()));
    error
}

/// A remedy as a command of this shell, to append to a message. Empty if the shell has no such command.
pub(super) fn in_shell(remedy: Option<&Remedy>) -> String {
    let parse = |remedy: &Remedy| AnyCommand::parse(&remedy.command, vec![remedy.arguments.clone().into()]).ok();
    let command = match remedy.and_then(parse) {
        Some(AnyCommand::Servers(_)) => "list".to_owned(),
        Some(AnyCommand::Grants(_)) => "grants".to_owned(),
        Some(AnyCommand::Tools(Tools { server: Some(server), .. })) => format!("inspect {server}"),
        Some(AnyCommand::ServerTrust(ServerTrust { server, trusted: None | Some(true), .. })) => {
            format!("trust {server}")
        }
        Some(AnyCommand::ServerTrust(ServerTrust { server, trusted: Some(false), .. })) => {
            format!("trust {server} --revoke")
        }
        Some(AnyCommand::ServerAuth(ServerAuth { server, sign_out: false })) => format!("auth {server}"),
        Some(AnyCommand::ServerEnable(ServerEnable { server, enabled: true, .. })) => format!("enable {server}"),
        Some(AnyCommand::ServerTimeout(ServerTimeout { server, timeout })) => format!("timeout {server} {timeout}"),
        _ => return String::new(),
    };
    format!(" (run `mcp-sidecar {command}`)")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::model::{Error, ServerName};
    use crate::protocol::errors::ErrorKind;

    #[test]
    fn messages_name_shell_commands() {
        let failure = worded(CommandError::from(&Error::NoServer("dmeo".to_owned())));
        assert_eq!(failure.to_string(), "no server named `dmeo`; check the list of servers (run `mcp-sidecar list`)");
        assert_eq!(failure.kind(), Some(ErrorKind::NotFound));
        let late = |setting| {
            let (server, limit) = (ServerName::new("slow").unwrap(), Duration::from_secs(30));
            worded(CommandError::from(&Error::Timeout { server, what: "`work`".to_owned(), limit, setting }))
                .to_string()
        };
        assert!(late("timeout").ends_with("(run `mcp-sidecar timeout slow 60`)"), "{}", late("timeout"));
        assert!(late("servers.max-timeout").ends_with("(`servers.max-timeout` sets this limit)"));
    }
}
