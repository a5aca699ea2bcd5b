//! One attempt to connect a server: expand variables, open the transport, perform the handshake, list everything. A
//! failure includes what was waited for, how the process ended, and the last lines of stderr.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::failure::{Failure, Kind, Next};
use crate::config::expand::{self, Expanded, Values};
use crate::config::{Definition, Environment, Launch};
use crate::model::{LogSource, Timestamp};
use crate::paths;
use crate::server::Context;
use crate::server::connection::{Connection, ConnectionOptions, Lists};
use crate::server::connector::ConnectRequest;
use crate::server::logs::Logs;
use crate::server::oauth::ServerAuth;
use crate::server::process::{Exit, Process};
use crate::server::transport::{Era, OpenError, ServerNotice};
use crate::settings::Settings;
use crate::text::io_reason;

/// How long to wait for the exit of a process after its pipes broke.
const EXIT_WAIT: Duration = Duration::from_millis(300);
const MAX_ENV_FILE_BYTES: usize = 1 << 20;
/// Notices that may wait before the connection is up.
const NOTICE_QUEUE: usize = 256;

pub struct Attempt {
    pub definition: Arc<Definition>,
    /// Trust is checked with the environment that the server starts with, even if another one arrives in between.
    pub environment: Environment,
    pub context: Context,
    pub auth: ServerAuth,
    pub settings: Arc<Settings>,
    pub logs: Logs,
    pub tracker: TaskTracker,
    pub updates: mpsc::Sender<AttemptUpdate>,
    pub era: Option<Era>,
    /// Cancelled when the user or a call waits for the server.
    pub requested: CancellationToken,
}

/// What the actor publishes during an attempt.
#[derive(Debug)]
pub enum AttemptUpdate {
    /// The user is being asked for an input.
    Asking,
    /// The user has answered.
    Starting,
    /// The process, and when it was started.
    Running(u32, Timestamp),
}

/// A connected server.
pub struct Connected {
    pub connection: Connection,
    pub process: Option<Process>,
    pub notices: mpsc::Receiver<ServerNotice>,
    pub lists: Lists,
    pub warnings: Vec<String>,
    pub since: Timestamp,
    pub start_time: Duration,
    pub discover_time: Duration,
}

struct StartAttempt {
    started: Instant,
    since: Timestamp,
    limit: Duration,
}

impl Attempt {
    /// Tries the launch, then the fallback if there is one.
    pub async fn run(self) -> Result<Connected, Failure> {
        self.check_trust().await?;
        let spec = &self.definition.spec;
        let first = match self.launch(&spec.launch).await {
            Err(first) if first.next != Next::SignIn => first,
            done => return done,
        };
        let Some(fallback) = &spec.fallback else { return Err(first) };
        let transport = fallback.transport();
        self.logs.push(LogSource::Sidecar, "warning", &format!("{}; trying the fallback ({transport})", first.message));
        match self.launch(fallback).await {
            Ok(mut connected) => {
                let warning = format!("connected through the fallback ({transport}) because of: {}", first.message);
                connected.warnings.insert(0, warning);
                Ok(connected)
            }
            Err(second) => Err(Failure {
                message: format!("{}; the fallback ({transport}) failed, too: {}", first.message, second.message),
                stderr: if second.stderr.is_empty() { first.stderr } else { second.stderr },
                // Retry as long as one of the two may work next time.
                next: if second.next == Next::GiveUp { first.next } else { second.next },
                kind: first.kind,
            }),
        }
    }

    async fn check_trust(&self) -> Result<(), Failure> {
        match self.context.host.may_start(self.definition.clone(), self.environment.clone()).await {
            true => Ok(()),
            false => Err(Failure::permanent(
                "its program or a script has changed since you trusted it; review the change and trust it again",
            )),
        }
    }

    async fn launch(&self, launch: &Launch) -> Result<Connected, Failure> {
        let values = self.resolve_values(launch).await?;
        let limit = self.definition.spec.startup_timeout.unwrap_or(self.settings.servers.startup_timeout);
        let expanded = self.expand(launch, &values, limit).await?;
        // The startup timeout begins with the turn.
        let _turn = match &expanded {
            Expanded::Stdio(_) => Some(self.context.start_queue.turn(&self.requested).await),
            _ => None,
        };
        let attempt = StartAttempt { started: Instant::now(), since: Timestamp::now(), limit };
        let mut era = self.era;
        // A server that closes the connection because of the wrong era is connected again with the other one.
        for _ in 0..2 {
            match self.connect(&attempt, &expanded, &values, era).await {
                Err(ConnectError::OtherEra(other)) if era != Some(other) => era = Some(other),
                Err(ConnectError::OtherEra(_)) => break,
                Err(ConnectError::Failed(failure)) => return Err(failure),
                Ok(connected) => return Ok(connected),
            }
        }
        Err(Failure::retry(
            Kind::Protocol,
            "this is not an MCP server: it refused both `initialize` and `server/discover`",
        ))
    }

    async fn connect(
        &self,
        attempt: &StartAttempt,
        expanded: &Expanded,
        values: &Values,
        era: Option<Era>,
    ) -> Result<Connected, ConnectError> {
        let deadline = attempt.started + attempt.limit;
        let request = ConnectRequest {
            name: self.definition.name.clone(),
            expanded: expanded.clone(),
            environment: values.environment.clone(),
            limit: deadline.saturating_duration_since(Instant::now()),
            settings: self.settings.clone(),
            context: self.context.clone(),
            auth: self.auth.clone(),
            logs: self.logs.clone(),
            tracker: self.tracker.clone(),
        };
        let is_process = matches!(expanded, Expanded::Stdio(_));
        if is_process {
            // Once more, right before the process starts: files may have changed while an input was asked for.
            self.check_trust().await?;
        }
        let opened = match timeout_at(deadline, self.context.connector.open(request)).await {
            Ok(Ok(opened)) => opened,
            Ok(Err(error)) => return Err(Failure::from_open(&error, is_process).into()),
            Err(_) => return Err(attempt.timed_out("the connection").into()),
        };
        let process = opened.process;
        if let Some(process) = &process {
            self.updates.try_send(AttemptUpdate::Running(process.pid(), attempt.since)).ok();
        }

        let (notice_sender, notices) = mpsc::channel(NOTICE_QUEUE);
        let options = ConnectionOptions {
            name: self.definition.name.clone(),
            limits: Arc::new(self.settings.limits.clone()),
            host: self.context.host.clone(),
            era,
            startup_timeout: deadline.saturating_duration_since(Instant::now()),
            timeout: self.definition.spec.timeout.unwrap_or(self.settings.servers.timeout),
            log_level: self.settings.servers.log_level.clone(),
            notices: notice_sender,
        };
        let handshake = tokio::select! {
            handshake = timeout_at(deadline, Connection::open(opened.wire, options)) => handshake,
            exit = exit_of(process.as_ref()) => return Err(self.exited(attempt, exit, "it answered `initialize`").into()),
        };
        let connection = match handshake {
            Ok(Ok(connection)) => connection,
            Ok(Err(OpenError::OtherEra { era, .. })) => return Err(ConnectError::OtherEra(era)),
            Ok(Err(OpenError::Timeout { what, hint, .. })) => {
                let mut failure = attempt.timed_out(&format!("`{what}`"));
                failure.message.push_str(&hint);
                return Err(failure.with_stderr(&self.logs, attempt.since).into());
            }
            Ok(Err(error)) => {
                // A broken pipe usually follows an exit, which is the better reason. After any other error we closed
                // the pipe ourselves, and the exit is only the consequence.
                if matches!(error, OpenError::Closed { .. } | OpenError::Io { .. })
                    && let Ok(exit) = timeout(EXIT_WAIT, exit_of(process.as_ref())).await
                {
                    return Err(self.exited(attempt, exit, "it answered `initialize`").into());
                }
                let failure = Failure::from_open(&error, is_process);
                return Err(failure.with_stderr(&self.logs, attempt.since).into());
            }
            Err(_) => return Err(attempt.timed_out("`initialize`").with_stderr(&self.logs, attempt.since).into()),
        };
        let start_time = attempt.started.elapsed();

        let listing = Instant::now();
        let listed = tokio::select! {
            listed = connection.lists(deadline) => listed,
            exit = exit_of(process.as_ref()) => return Err(self.exited(attempt, exit, "it listed its tools").into()),
        };
        let lists = match listed {
            Ok(lists) => lists,
            Err(error) => {
                if let Ok(exit) = timeout(EXIT_WAIT, exit_of(process.as_ref())).await {
                    return Err(self.exited(attempt, exit, "it listed its tools").into());
                }
                return Err(Failure::from_call(error).with_stderr(&self.logs, attempt.since).into());
            }
        };
        Ok(Connected {
            connection,
            process,
            notices,
            lists,
            warnings: opened.warnings,
            since: attempt.since,
            start_time,
            discover_time: listing.elapsed(),
        })
    }

    fn exited(&self, attempt: &StartAttempt, exit: Exit, before: &str) -> Failure {
        Failure::retry(Kind::Process, format!("the server {exit} before {before}"))
            .with_stderr(&self.logs, attempt.since)
    }

    /// Resolves everything that the launch refers to. The user is asked here, before the startup timeout starts.
    async fn resolve_values(&self, launch: &Launch) -> Result<Values, Failure> {
        let run_folder = match (launch, &self.definition.folder) {
            (Launch::Stdio(_), None) => Some(self.private_folder().await?),
            _ => None,
        };
        let asking = |open| {
            self.updates.try_send(if open { AttemptUpdate::Asking } else { AttemptUpdate::Starting }).ok();
        };
        let resolver = self.context.resolver(&self.definition, self.environment.clone());
        resolver.values(expand::references(launch), run_folder, asking).await.map_err(Failure::permanent)
    }

    /// The working directory of a user's server. Not the workspace: `npx`, `python3 -m` and others would run the code
    /// of any repository that the user opens. Not the home folder: a server that is given `.` would serve all of it.
    async fn private_folder(&self) -> Result<PathBuf, Failure> {
        let folder = self.context.host.private_folder(&self.definition.name);
        let made = folder.clone();
        let made = tokio::task::spawn_blocking(move || paths::make_private_folder(&made)).await;
        let failed = |reason: String| {
            Failure::permanent(format!("cannot create the working directory `{}`: {reason}", folder.display()))
        };
        made.map_err(|error| failed(error.to_string()))?.map_err(|error| failed(io_reason(&error)))?;
        Ok(folder)
    }

    async fn expand(&self, launch: &Launch, values: &Values, limit: Duration) -> Result<Expanded, Failure> {
        let stay = |error: expand::ExpandError| Failure::permanent(error.to_string());
        let text = match expand::env_file(launch, values).map_err(stay)? {
            Some(path) => Some(read_env_file(path, limit).await?),
            None => None,
        };
        expand::expand(launch, values, text.as_deref()).map_err(stay)
    }
}

/// Why `connect` failed.
enum ConnectError {
    OtherEra(Era),
    Failed(Failure),
}

impl From<Failure> for ConnectError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl StartAttempt {
    fn timed_out(&self, what: &str) -> Failure {
        let limit = self.limit.as_secs_f64();
        Failure::retry(
            Kind::Connection,
            format!("the server did not answer {what} within {limit} s (`startupTimeout` sets this limit)"),
        )
    }
}

/// Waits for the exit; never returns if there is no process.
pub async fn exit_of(process: Option<&Process>) -> Exit {
    match process {
        Some(process) => process.exited().await,
        None => std::future::pending().await,
    }
}

/// The file may be on a file system that does not answer.
async fn read_env_file(path: PathBuf, limit: Duration) -> Result<String, Failure> {
    let shown = crate::text::mask(&path.display().to_string()).into_owned();
    let failed = |reason: &str| Failure::permanent(format!("cannot read the env file `{shown}`: {reason}"));
    let read = timeout(limit, tokio::task::spawn_blocking(move || paths::read_file(&path, MAX_ENV_FILE_BYTES))).await;
    let read = read.map_err(|_| {
        let limit = limit.as_secs_f64();
        failed(&format!("it could not be read within {limit} s (`startupTimeout` sets this limit)"))
    })?;
    let bytes = read.map_err(|error| failed(&error.to_string()))?.map_err(|error| failed(&error.to_string()))?;
    let bytes = bytes.ok_or_else(|| failed("it does not exist"))?;
    String::from_utf8(bytes).map_err(|_| failed("it is not UTF-8"))
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_env_file_that_cannot_be_read_fails_the_start_without_blocking_it() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let text = folder.path().join(".env");
        std::fs::write(&text, "A=1").unwrap();
        let read = |path: PathBuf| async move {
            let read = read_env_file(path, Duration::from_secs(60)).await;
            read.map_err(|failure| failure.message.rsplit(": ").next().unwrap_or_default().to_owned())
        };
        assert_eq!(read(text).await, Ok("A=1".to_owned()));
        assert_eq!(read(fifo).await, Err("not a regular file".to_owned()));
        assert_eq!(read("/dev/zero".into()).await, Err("not a regular file".to_owned()));
        assert_eq!(read(folder.path().join("none")).await, Err("it does not exist".to_owned()));
        // The log of the kernel never ends; not every user may open it.
        assert!(read("/proc/kmsg".into()).await.is_err());
    }
}
