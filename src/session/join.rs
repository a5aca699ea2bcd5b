//! Finds the engine of a workspace, or starts it. Uses blocking calls, because a front has nothing else to do.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::address::EngineAddress;
use super::handshake::{self, Front, Hello, Welcome};
use super::lock::Lock;
use crate::paths::Paths;
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
}

/// Joins the engine of this workspace, and starts it if necessary.
pub fn join(root: &Path, paths: &Paths, hello: &Hello) -> Result<Joined, JoinError> {
    let address = EngineAddress::of(root, paths)?;
    address.secure().map_err(JoinError::Unsafe)?;
    // An engine may shut down at this moment. The second attempt then starts a new one.
    for _ in 0..2 {
        if let Some(joined) = try_join(&address, hello)? {
            return Ok(joined);
        }
        let _lock = Lock::take(&address.lock)?;
        if let Some(joined) = try_join(&address, hello)? {
            return Ok(joined);
        }
        start(&address)?;
        if let Some(joined) = try_join(&address, hello)? {
            return Ok(joined);
        }
    }
    Err(JoinError::Start("it ended immediately; run `mcp-sidecar log` to see its log".to_owned()))
}

/// Joins the engine that runs for this folder or for its nearest parent.
pub fn join_running(folder: &Path, paths: &Paths, hello: &Hello) -> Result<Option<Joined>, JoinError> {
    for folder in folder.ancestors() {
        let Ok(address) = EngineAddress::of(folder, paths) else { continue };
        if std::fs::symlink_metadata(&address.socket).is_err() {
            continue;
        }
        address.secure().map_err(JoinError::Unsafe)?;
        if let Some(joined) = try_join(&address, hello)? {
            return Ok(Some(joined));
        }
    }
    Ok(None)
}

/// Asks for the exit code of a session; `None` if the engine has ended.
pub fn ask_exit_code(address: &EngineAddress, session: u64) -> Option<u8> {
    let hello = Hello { session: Some(session), ..Hello::new(Front::End) };
    match shake_hands(&address.socket, &hello) {
        Ok(Some((_, Welcome::Code(code)))) => Some(code),
        _ => None,
    }
}

fn try_join(address: &EngineAddress, hello: &Hello) -> Result<Option<Joined>, JoinError> {
    match shake_hands(&address.socket, hello) {
        Ok(Some((stream, Welcome::Session(session)))) => Ok(Some(Joined { stream, address: address.clone(), session })),
        Ok(Some((_, Welcome::Refused(why)))) => Err(JoinError::Refused(why)),
        Ok(Some((_, Welcome::Code(_))) | None) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(JoinError::Unsafe(error)),
        Err(error) => Err(error.into()),
    }
}

impl Joined {
    /// Reads one more line from the engine.
    pub fn read_line(&mut self) -> io::Result<Vec<u8>> {
        self.stream.set_read_timeout(Some(HANDSHAKE_TIMEOUT))?;
        let line = read_line(&mut self.stream).ok_or_else(|| io::Error::other("the engine did not answer"));
        self.stream.set_read_timeout(None)?;
        line
    }
}

/// Connects and exchanges the first lines. `None` if there is no socket, a stale one, or an engine that is shutting down.
fn shake_hands(socket: &Path, hello: &Hello) -> io::Result<Option<(UnixStream, Welcome)>> {
    let Ok(mut stream) = UnixStream::connect(socket) else { return Ok(None) };
    check_peer(&stream)?;
    stream.set_read_timeout(Some(HANDSHAKE_TIMEOUT))?;
    let Some(line) = exchange(&mut stream, hello) else { return Ok(None) };
    let welcome = serde_json::from_slice(&line).map_err(|_| io::Error::other("invalid handshake"))?;
    stream.set_read_timeout(None)?;
    Ok(Some((stream, welcome)))
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

/// The process at the other end, if the kernel knows it.
#[cfg(target_os = "linux")]
pub fn peer_process(stream: &impl std::os::fd::AsFd) -> Option<u32> {
    let peer = rustix::net::sockopt::socket_peercred(stream).ok()?;
    u32::try_from(peer.pid.as_raw_pid()).ok()
}

#[cfg(not(target_os = "linux"))]
pub fn peer_process(_stream: &impl std::os::fd::AsFd) -> Option<u32> {
    None
}

/// Checks that the process at the other end belongs to the same user.
#[cfg(target_os = "linux")]
pub fn check_peer(stream: &impl std::os::fd::AsFd) -> io::Result<()> {
    let peer = rustix::net::sockopt::socket_peercred(stream)?;
    if peer.uid == rustix::process::geteuid() {
        return Ok(());
    }
    let message = format!("the process at the other end belongs to user {}", peer.uid.as_raw());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
}

/// Other platforms rely on the permissions of folder and socket.
#[cfg(not(target_os = "linux"))]
pub fn check_peer(_stream: &impl std::os::fd::AsFd) -> io::Result<()> {
    Ok(())
}

/// Starts an engine in a new process with our environment, and waits until it listens.
fn start(address: &EngineAddress) -> Result<(), JoinError> {
    let mut command = Command::new(own_program()?);
    command.arg0("mcp-sidecar").args(["engine", "--workspace"]).arg(&address.root).current_dir(&address.root);
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

/// The binary that is running, even if the file has been replaced by an update.
fn own_program() -> io::Result<PathBuf> {
    if cfg!(target_os = "linux") { Ok(PathBuf::from("/proc/self/exe")) } else { std::env::current_exe() }
}
