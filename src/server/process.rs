//! The only place that starts child processes. A server runs without a shell, in its own process group, with the
//! engine's mark in its environment. Its stderr is always read, its exit is always awaited, and its descendants end
//! with it.
//!
//! The connection handles stdin and stdout. The guardian handles the death of the engine.

mod ancestors;
mod descendants;
mod exit;
mod lookup;
mod once;
mod proc_table;
mod reaper;
pub mod sandbox;
mod secret_command;
mod stderr;
mod version;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

pub use ancestors::{ancestors, is_alive, is_own_program, program, started_by};
pub(super) use descendants::{Descendants, Signal};
pub use exit::Exit;
pub use lookup::find;
use proc_table::ProcTable;
#[cfg(target_os = "linux")]
pub(super) use proc_table::{living_children_of, process, processes, start_time};
pub(super) use reaper::{forget, spawn_for_thread};
pub use secret_command::run as run_secret_command;
pub use version::version;

use super::guardian;
use super::logs::Logs;
use crate::config::expand::Program;
use crate::pipes;
use crate::settings;
use crate::text::{Secret, mask};

/// The variable that marks every descendant of this engine.
pub(crate) const MARK: &str = "MCP_SIDECAR_ENGINE";

/// How long a server may take to exit after its stdin is closed, and after SIGTERM. Short, so that users do not notice
/// a server that refuses to exit.
const AFTER_END_OF_INPUT: Duration = Duration::from_millis(500);
const AFTER_TERM: Duration = Duration::from_secs(1);
/// Nothing survives SIGKILL for longer, except a process that hangs in the kernel.
const AFTER_KILL: Duration = Duration::from_secs(2);
/// How long the last lines on stderr may take to arrive after the exit.
const STDERR_GRACE: Duration = Duration::from_millis(100);

/// Linux limits a single argument or variable to 128 KiB. The same limit applies to all arguments together, so that our
/// own error names the cause.
const MAX_ARGUMENT_BYTES: usize = 128 << 10;
const MAX_ENVIRONMENT_BYTES: usize = 1 << 20;

/// A running server process. Dropping it ends the process and its descendants in the background; `end` also waits for
/// them.
#[derive(Debug)]
pub struct Process {
    pid: u32,
    exit: watch::Receiver<Option<Exit>>,
    stop: CancellationToken,
    _stop_when_dropped: DropGuard,
    /// The temporary folder of a server in a sandbox.
    _temp: Option<tempfile::TempDir>,
}

/// Why a program did not start, as text for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct StartError {
    pub message: String,
    /// The system lacks a resource at the moment; the same start may work later.
    pub transient: bool,
}

impl From<String> for StartError {
    fn from(message: String) -> Self {
        Self { message, transient: false }
    }
}

/// The pipes that carry MCP.
#[derive(Debug)]
pub struct Pipes {
    pub stdin: ChildStdin,
    pub stdout: ChildStdout,
    /// What the sandbox cannot do on this machine.
    pub warnings: Vec<String>,
}

impl Pipes {
    /// Resolves when the process closes its stdin. Keeps the pipe open, so it has to be dropped before the end.
    pub fn stdin_closed(&self) -> Option<BoxFuture<'static, ()>> {
        #[cfg(target_os = "linux")]
        {
            use std::os::fd::AsFd;
            use tokio::io::Interest;
            use tokio::net::unix::pipe::Sender;

            let pipe = Sender::from_owned_fd(self.stdin.as_fd().try_clone_to_owned().ok()?).ok()?;
            Some(Box::pin(async move { drop(pipe.ready(Interest::ERROR).await) }))
        }
        #[cfg(not(target_os = "linux"))]
        None
    }
}

impl Process {
    /// Starts a program with exactly this environment. `tracker` tracks the process until it and its descendants have
    /// ended.
    pub fn start(
        program: &Program,
        environment: &BTreeMap<String, Secret>,
        settings: &settings::Sandbox,
        logs: Logs,
        tracker: &TaskTracker,
    ) -> Result<(Self, Pipes), StartError> {
        check_arguments(program)?;
        check_environment(environment)?;
        let cwd = program.cwd.as_deref().unwrap_or(Path::new("/"));
        let path = lookup::find(&program.command, environment.get("PATH").map(Secret::reveal), cwd)?;
        let Launcher { path, args, temp, warnings } = Launcher::of(program, path, cwd, settings)?;
        guardian::ensure_running();
        let number = next_number();
        let mark = format!("{}{number}.", mark_of_this_engine());
        let mut command = Command::new(&path);
        command
            .args(args)
            .args(program.args.iter().map(Secret::reveal))
            .env_clear()
            .envs(environment.iter().map(|(name, value)| (name, value.reveal())))
            .env(MARK, &mark)
            .envs(temp.iter().map(|folder| ("TMPDIR", folder.path())))
            .current_dir(cwd)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        let mut child = reaper::spawn(&mut command).map_err(|cause| explain(&path, &cause))?;
        let pid = child.id().unwrap_or_default();
        let mut descendants = Descendants::new(mark);
        let started = proc_table::start_time(pid);
        descendants.add(pid, started);
        guardian::protect(pid, started);
        let (Some(stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err("cannot open the pipes of the new process".to_owned().into());
        };
        pipes::enlarge(&stdout);
        let stderr_task = tracker.spawn(stderr::drain(stderr, logs));
        let (exit, exited) = watch::channel(None);
        let stop = CancellationToken::new();
        tracker.spawn(supervise(child, descendants, stderr_task, stop.clone(), exit));
        let process = Self { pid, exit: exited, _stop_when_dropped: stop.clone().drop_guard(), stop, _temp: temp };
        Ok((process, Pipes { stdin, stdout, warnings }))
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits for the exit. The last lines on stderr are in the log by then.
    pub async fn exited(&self) -> Exit {
        let mut exit = self.exit.clone();
        match exit.wait_for(Option::is_some).await {
            Ok(exit) => exit.unwrap_or(Exit::Unknown),
            Err(_) => Exit::Unknown,
        }
    }

    /// Ends the process, whose stdin must be closed already. Returns when it and its descendants have ended.
    pub async fn end(self) {
        self.stop.cancel();
        let mut exit = self.exit.clone();
        // The sender is dropped last, after the sweep.
        while exit.changed().await.is_ok() {}
    }
}

/// What is started instead of the program itself.
struct Launcher {
    path: PathBuf,
    /// Before the arguments of the program.
    args: Vec<OsString>,
    temp: Option<tempfile::TempDir>,
    warnings: Vec<String>,
}

impl Launcher {
    /// The sandbox, if the definition has one. A definition that requires it does not start without it.
    fn of(program: &Program, path: PathBuf, cwd: &Path, settings: &settings::Sandbox) -> Result<Self, String> {
        let plain = |path, warnings| Self { path, args: Vec::new(), temp: None, warnings };
        let Some(sandbox) = &program.sandbox else { return Ok(plain(path, Vec::new())) };
        match sandbox::wrap(&path, cwd, sandbox, settings) {
            Ok(sandbox::SandboxedProgram { program, args, temp, warnings }) => {
                Ok(Self { path: program, args, temp: Some(temp), warnings })
            }
            Err(why) if sandbox.required => Err(format!(
                "cannot start it in its sandbox: {why}; or set `\"required\": false` in `sandbox` to run it without one"
            )),
            Err(why) => Ok(plain(path, vec![format!("{}: {why}", sandbox::NOT_ENFORCED)])),
        }
    }
}

/// Ends unmarked daemons of servers, once no server is left. Only in a dedicated engine process: in another process an
/// orphan may be unrelated.
pub async fn end_orphans() {
    if !guardian::is_installed() {
        return;
    }
    let orphans = reaper::orphans();
    if !orphans.is_empty() {
        let mut descendants = Descendants::new(mark_of_this_engine().to_owned());
        for orphan in orphans {
            descendants.adopt(orphan.pid, orphan.started);
        }
        sweep(&mut descendants).await;
        tokio::task::spawn_blocking(reaper::kill_orphans).await.ok();
    }
    tokio::task::spawn_blocking(guardian::kill_rest_without_guardian).await.ok();
    guardian::forget_this_engine();
}

/// Makes room for the descriptors of many servers. In a process with several threads, Linux takes about ten milliseconds to
/// grow the descriptor table, so it grows before the first thread starts. Called first, by `main`.
pub fn reserve_descriptors() {
    #[cfg(target_os = "linux")]
    rustix::io::fcntl_dupfd_cloexec(std::io::stderr(), 1_023).ok();
}

/// Raises the soft limit of open files to the hard limit. Called once, by `main`.
pub fn raise_limits() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, getrlimit, setrlimit};
        let mut limit = getrlimit(Resource::Nofile);
        limit.current = limit.maximum;
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            tracing::warn!(%error, "cannot raise the limit of open files");
        }
    }
}

/// The prefix of every mark of this engine: random, so that it never matches the children of another engine.
pub(super) fn mark_of_this_engine() -> &'static str {
    static ENGINE: OnceLock<String> = OnceLock::new();
    ENGINE.get_or_init(|| {
        let mut bytes = [0; 16];
        if getrandom::fill(&mut bytes).is_err() {
            fastrand::fill(&mut bytes);
        }
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{hex}.")
    })
}

/// Whether a process with this mark is a descendant of this engine.
pub fn is_mark_of_this_engine(mark: &str) -> bool {
    mark.starts_with(mark_of_this_engine())
}

/// Whether this process descends from this engine, by its mark or by its ancestors: a process that cleared its
/// environment still has those. One that has ended may have.
pub fn is_descendant(pid: u32) -> bool {
    if !is_alive(pid) {
        return true;
    }
    let ours = std::process::id();
    proc_table::has_variable(pid, MARK, mark_of_this_engine()) || ancestors(pid).any(|ancestor| ancestor == ours)
}

fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Waits for the exit of one process, or ends it on request, and then ends its descendants.
async fn supervise(
    mut child: Child,
    mut descendants: Descendants,
    mut stderr_task: tokio::task::JoinHandle<()>,
    stop: CancellationToken,
    exit: watch::Sender<Option<Exit>>,
) {
    let pid = child.id().unwrap_or_default();
    let status = tokio::select! {
        status = child.wait() => status,
        () = stop.cancelled() => terminate(&mut child, &mut descendants).await,
    };
    // A descendant may keep stderr open; the server's own output has arrived by now or will soon.
    let drained = tokio::time::timeout(STDERR_GRACE, &mut stderr_task).await.is_ok();
    exit.send_replace(Some(status.map_or(Exit::Unknown, Exit::from)));
    reaper::forget(pid);
    sweep(&mut descendants).await;
    if !drained && tokio::time::timeout(STDERR_GRACE, &mut stderr_task).await.is_err() {
        stderr_task.abort();
    }
    guardian::release(pid);
}

/// Escalates: stdin is closed already, so wait; then SIGTERM; then SIGKILL.
async fn terminate(child: &mut Child, descendants: &mut Descendants) -> std::io::Result<std::process::ExitStatus> {
    if let Ok(status) = tokio::time::timeout(AFTER_END_OF_INPUT, child.wait()).await {
        return status;
    }
    descendants.signal(Signal::Term);
    if let Ok(status) = tokio::time::timeout(AFTER_TERM, child.wait()).await {
        return status;
    }
    descendants.signal(Signal::Kill);
    child.start_kill().ok();
    match tokio::time::timeout(AFTER_KILL, child.wait()).await {
        Ok(status) => status,
        Err(_) => Err(std::io::ErrorKind::TimedOut.into()),
    }
}

/// Ends the processes that outlived the leader: members of its group, and marked processes that left the group.
async fn sweep(descendants: &mut Descendants) {
    let Some(table) = ProcTable::shared().await else { return };
    if descendants.have_ended(&table) {
        reaper::reap_in(&table.entries);
        return;
    }
    drop(table);
    for (signal, limit) in [(Signal::Term, AFTER_TERM), (Signal::Kill, AFTER_KILL)] {
        if descendants.signal(signal) == 0 {
            reaper::reap();
            return;
        }
        let until = tokio::time::Instant::now() + limit;
        let mut pause = Duration::from_millis(4);
        while tokio::time::Instant::now() < until {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(50));
            reaper::reap();
            // Children that started in the meantime are signalled, too.
            let left = match signal {
                Signal::Term => descendants.living().len(),
                Signal::Kill => descendants.signal(Signal::Kill),
            };
            if left == 0 {
                return;
            }
        }
    }
    tracing::warn!(left = descendants.living().len(), "some processes survived SIGKILL");
}

fn check_arguments(program: &Program) -> Result<(), String> {
    let parts = || std::iter::once(program.command.as_str()).chain(program.args.iter().map(Secret::reveal));
    if parts().any(|part| part.contains('\0')) {
        return Err("`command` or `args` contains a NUL character; remove it".to_owned());
    }
    if parts().map(|part| part.len() + 1).sum::<usize>() > MAX_ARGUMENT_BYTES {
        return Err("`command` and `args` are larger than 128 KiB; move long values to a file".to_owned());
    }
    Ok(())
}

fn check_environment(environment: &BTreeMap<String, Secret>) -> Result<(), String> {
    let mut total = 0;
    for (name, value) in environment {
        if name.is_empty() || name.contains(['=', '\0']) || value.reveal().contains('\0') {
            return Err(format!("cannot set the environment variable {name:?}: it is empty or contains `=` or NUL"));
        }
        let size = name.len() + value.reveal().len() + 2;
        if size >= MAX_ARGUMENT_BYTES {
            return Err(format!("the environment variable `{name}` is larger than 128 KiB; move its value to a file"));
        }
        total += size;
    }
    if total > MAX_ENVIRONMENT_BYTES {
        return Err("the environment is larger than 1 MiB; remove variables from `env`".to_owned());
    }
    Ok(())
}

/// Why an existing program could not be started.
fn explain(path: &Path, cause: &std::io::Error) -> StartError {
    let shown = mask(&path.display().to_string()).into_owned();
    // These error numbers are the same on every Unix: exec format, open files, memory or processes.
    let (transient, why) = match (cause.kind(), cause.raw_os_error()) {
        (std::io::ErrorKind::NotFound, _) => {
            (false, "the interpreter in its first line was not found; install it or fix that line".to_owned())
        }
        (std::io::ErrorKind::PermissionDenied, _) => {
            (false, "permission denied; check the permissions of the file and its folder".to_owned())
        }
        (_, Some(8)) => (false, "this system cannot run this file format; a script needs a `#!` line".to_owned()),
        (_, Some(23 | 24)) => (true, "too many open files; raise the limit with `ulimit -n`".to_owned()),
        (_, Some(11 | 12 | 35)) => (true, format!("the system cannot create another process ({cause})")),
        _ => (false, cause.to_string()),
    };
    StartError { message: format!("cannot start `{shown}`: {why}"), transient }
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
