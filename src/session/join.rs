//! Finds the engine of a repository, or starts it. Uses blocking calls, because a front has nothing else to do.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::address::EngineAddress;
use super::handshake::{self, Front, Hello, Welcome};
use super::lock::Lock;
use super::peer::check_blocking_peer;
use crate::paths::{Paths, own_program};
use crate::server::guardian::EngineProcess;
use crate::server::process::MARK;

/// How long an engine may take to answer.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an engine may take to start.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Why an engine cannot be joined.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// Another user could control the socket.
    #[error("the socket of the engine is not safe to use: {0}")]
    Unsafe(io::Error),
    #[error("cannot start the engine of this workspace: {0}")]
    Start(String),
    #[error("{0}")]
    Refused(String),
    #[error("cannot connect to the engine of this workspace: {0}")]
    Io(#[from] io::Error),
}

/// A connection after the handshake.
#[derive(Debug)]
pub struct Joined {
    pub stream: UnixStream,
    pub address: EngineAddress,
    pub session: u64,
    /// The version of the engine.
    version: String,
    /// `None` if it cannot be watched.
    pub engine: Option<EngineProcess>,
}

/// Joins the engine of this workspace, and starts it if necessary.
pub fn join(root: &Path, paths: &Paths, hello: &Hello) -> Result<Joined, JoinError> {
    let address = EngineAddress::of(root, paths)?;
    address.secure().map_err(JoinError::Unsafe)?;
    // An engine may shut down at this moment. The second attempt then starts a new one.
    for _ in 0..2 {
        if let Some(joined) = join_listening(root, paths, hello)? {
            return Ok(joined);
        }
        let _lock = Lock::take(&address.lock)?;
        if let Some(joined) = try_join(&address, hello)? {
            return Ok(joined);
        }
        start(&address, hello)?;
        if let Some(joined) = try_join(&address, hello)? {
            return Ok(joined);
        }
    }
    Err(JoinError::Start("it ended immediately; run `mcp-sidecar log` to see its log".to_owned()))
}

/// Joins the engine that runs for the repository of this folder, or of its nearest parent.
pub fn join_running(folder: &Path, paths: &Paths, hello: &Hello) -> Result<Option<Joined>, JoinError> {
    for folder in folder.ancestors() {
        if let Some(joined) = join_listening(folder, paths, hello)? {
            return Ok(Some(joined));
        }
    }
    Ok(None)
}

/// Joins an engine that listens for exactly this repository, or without one for this folder.
pub fn join_listening(root: &Path, paths: &Paths, hello: &Hello) -> Result<Option<Joined>, JoinError> {
    for address in EngineAddress::everywhere(root, paths, hello.front).unwrap_or_default() {
        if std::fs::symlink_metadata(address.socket_for(hello.front)).is_err() {
            continue;
        }
        let is_own = address.socket.parent() == Some(&paths.runtime_dir);
        match address.secure() {
            Ok(()) => {}
            Err(error) if is_own => return Err(JoinError::Unsafe(error)),
            Err(_) => continue,
        }
        if let Some(joined) = try_join(&address, hello)? {
            return Ok(Some(joined));
        }
    }
    Ok(None)
}

/// If the engine is older than this front, asks it to end and starts one of our version. An engine that is in use stays,
/// and serves us, too: what matters is that editors and agents share one.
pub fn upgrade(joined: Joined, hello: &Hello) -> Result<Joined, JoinError> {
    let address = joined.address.clone();
    if !handshake::is_older(&joined.version) || address.lock.as_os_str().is_empty() {
        return Ok(joined);
    }
    let _lock = Lock::take(&address.lock)?;
    drop(joined);
    if let Ok(Some((mut stream, Welcome::Leaving, _))) = shake_hands(&address.socket, &Hello::new(Front::Upgrade)) {
        // Its servers should have ended before they are started again.
        stream.set_read_timeout(Some(HANDSHAKE_TIMEOUT))?;
        io::copy(&mut stream, &mut io::sink()).ok();
        start(&address, hello)?;
    }
    let joined = try_join(&address, hello)?;
    joined.ok_or_else(|| JoinError::Start("it ended immediately; run `mcp-sidecar log` to see its log".to_owned()))
}

/// Joins the engine behind this socket for agents. Starts nothing: in a sandbox, an engine would be of no use.
pub fn join_at(agents: &Path, hello: &Hello) -> Result<Joined, JoinError> {
    let joined = try_join(&EngineAddress::at(agents), hello)?;
    joined.ok_or_else(|| {
        JoinError::Start(format!("no engine listens on {}; open the workspace in an editor first", agents.display()))
    })
}

/// Asks for the exit code of a session; `None` if the engine has ended.
pub fn ask_exit_code(address: &EngineAddress, session: u64) -> Option<u8> {
    let hello = Hello { session: Some(session), ..Hello::new(Front::End) };
    match shake_hands(&address.socket, &hello) {
        Ok(Some((_, Welcome::Code(code), _))) => Some(code),
        _ => None,
    }
}

fn try_join(address: &EngineAddress, hello: &Hello) -> Result<Option<Joined>, JoinError> {
    match shake_hands(address.socket_for(hello.front), hello) {
        Ok(Some((stream, Welcome::Session { session, version }, engine))) => {
            let engine = engine.and_then(EngineProcess::new);
            Ok(Some(Joined { stream, address: address.clone(), session, version, engine }))
        }
        Ok(Some((_, Welcome::Refused(why), _))) => Err(JoinError::Refused(why)),
        Ok(Some((_, Welcome::Code(_) | Welcome::Leaving | Welcome::Busy, _)) | None) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(JoinError::Unsafe(error)),
        Err(error) => Err(error.into()),
    }
}

impl Joined {
    /// Sends a line and waits for the line that answers it.
    pub fn ask(&mut self, line: &[u8], limit: Duration) -> io::Result<Vec<u8>> {
        self.stream.write_all(line)?;
        self.stream.set_read_timeout(Some(limit))?;
        read_line(&mut self.stream).ok_or_else(|| io::Error::other("the engine did not answer"))
    }

    /// Reads one more line from the engine.
    pub fn read_line(&mut self) -> io::Result<Vec<u8>> {
        self.stream.set_read_timeout(Some(HANDSHAKE_TIMEOUT))?;
        let line = read_line(&mut self.stream).ok_or_else(|| io::Error::other("the engine did not answer"));
        self.stream.set_read_timeout(None)?;
        line
    }
}

/// Connects and exchanges the first lines. Returns the process of the engine as well. `None` if there is no socket, a stale one, or an engine that is shutting down.
fn shake_hands(socket: &Path, hello: &Hello) -> io::Result<Option<(UnixStream, Welcome, Option<u32>)>> {
    let Ok(mut stream) = UnixStream::connect(socket) else { return Ok(None) };
    let engine = check_blocking_peer(&stream)?;
    stream.set_read_timeout(Some(HANDSHAKE_TIMEOUT))?;
    let Some(line) = exchange(&mut stream, hello) else { return Ok(None) };
    let welcome = serde_json::from_slice(&line).map_err(|_| io::Error::other("invalid handshake"))?;
    stream.set_read_timeout(None)?;
    Ok(Some((stream, welcome, engine)))
}

fn exchange(stream: &mut UnixStream, hello: &Hello) -> Option<Vec<u8>> {
    stream.write_all(&handshake::line(hello)).ok()?;
    read_line(stream)
}

fn read_line(stream: &mut UnixStream) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    let mut byte = [0];
    // Byte by byte: the bytes after the line belong to the next protocol.
    while line.len() < handshake::MAX_LINE {
        stream.read_exact(&mut byte).ok()?;
        match byte {
            [b'\n'] => return Some(line),
            [byte] => line.push(byte),
        }
    }
    None
}

/// Starts an engine in a new process with our environment, and waits until it listens.
fn start(address: &EngineAddress, hello: &Hello) -> Result<(), JoinError> {
    let folder = hello.folder.as_ref().unwrap_or(&address.root);
    let mut command = Command::new(own_program()?);
    command.arg0("mcp-sidecar").args(["engine".as_ref(), "--workspace".as_ref(), folder.as_os_str()]);
    // Not a worktree, which may be removed while the engine runs.
    command.current_dir(&address.home);
    // Without the mark, or the guardian of another engine would kill it.
    command.env_remove(MARK).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    match first_line(&mut child) {
        Ok(line) if line == "ready" => Ok(()),
        Ok(error) => Err(JoinError::Start(match error.as_str() {
            "" => "it ended without an error message; run `mcp-sidecar log` to see its log".to_owned(),
            error => error.to_owned(),
        })),
        Err(error) => {
            // Do not leave a process behind that may never be ready.
            child.kill().ok();
            child.wait().ok();
            Err(JoinError::Start(error.to_string()))
        }
    }
}

fn first_line(child: &mut Child) -> io::Result<String> {
    let Some(mut output) = child.stdout.take() else { return Ok(String::new()) };
    let limit = Timespec { tv_sec: START_TIMEOUT.as_secs().try_into().unwrap_or(30), tv_nsec: 0 };
    if poll(&mut [PollFd::new(&output, PollFlags::IN)], Some(&limit))? == 0 {
        let message = format!("it was not ready after {} s", START_TIMEOUT.as_secs());
        return Err(io::Error::new(io::ErrorKind::TimedOut, message));
    }
    // The line arrives in one piece.
    let mut line = vec![0; handshake::MAX_LINE];
    let length = output.read(&mut line)?;
    line.truncate(length);
    Ok(String::from_utf8_lossy(&line).trim().to_owned())
}
