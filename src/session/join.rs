//! Finds the engine of a workspace, or starts it. Plain blocking calls: a front has nothing else to do meanwhile.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::hello::{self, Front, Hello, Welcome};
use super::lock::Lock;
use super::place::Place;
use crate::paths::Paths;
use crate::server::process::MARK;

/// How long an engine may take to answer a hello. It answers at once unless the machine stands still.
const WELCOME: Duration = Duration::from_secs(10);
/// How long it may take to start.
const START: Duration = Duration::from_secs(30);

/// Why there is no engine.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// Somebody else could be at the other end.
    #[error("the engine's socket cannot be used safely: {0}")]
    Unsafe(io::Error),
    #[error("the engine of this workspace did not start: {0}")]
    Start(String),
    #[error("{0}")]
    Refused(String),
    #[error("the engine of this workspace cannot be reached: {0}")]
    Io(#[from] io::Error),
}

/// A connection on which the front's own protocol begins.
#[derive(Debug)]
pub struct Joined {
    pub stream: UnixStream,
    pub place: Place,
    pub session: u64,
}

/// Joins the engine of this workspace, and starts it when there is none.
pub fn join(root: &Path, paths: &Paths, hello: &Hello) -> Result<Joined, JoinError> {
    let place = Place::of(root, paths)?;
    place.secure().map_err(JoinError::Unsafe)?;
    // An engine that leaves in the very moment lets us down once, and then its place is free.
    for _ in 0..2 {
        if let Some(joined) = try_join(&place, hello)? {
            return Ok(joined);
        }
        let _lock = Lock::take(&place.lock)?;
        if let Some(joined) = try_join(&place, hello)? {
            return Ok(joined);
        }
        start(&place)?;
        if let Some(joined) = try_join(&place, hello)? {
            return Ok(joined);
        }
    }
    Err(JoinError::Start("it left at once; `mcp-sidecar log` may tell why".to_owned()))
}

/// Joins the engine that runs nearest to this folder, upwards.
pub fn join_running(folder: &Path, paths: &Paths, hello: &Hello) -> Result<Option<Joined>, JoinError> {
    for folder in folder.ancestors() {
        let Ok(place) = Place::of(folder, paths) else { continue };
        if std::fs::symlink_metadata(&place.socket).is_err() {
            continue;
        }
        place.secure().map_err(JoinError::Unsafe)?;
        if let Some(joined) = try_join(&place, hello)? {
            return Ok(Some(joined));
        }
    }
    Ok(None)
}

/// Asks how a session ended; `None` when the engine is not there to tell.
pub fn ask_end(place: &Place, session: u64) -> Option<u8> {
    let hello = Hello { session: Some(session), ..Hello::new(Front::End) };
    match greet(&place.socket, &hello) {
        Ok(Some((_, Welcome::Code(code)))) => Some(code),
        _ => None,
    }
}

fn try_join(place: &Place, hello: &Hello) -> Result<Option<Joined>, JoinError> {
    match greet(&place.socket, hello) {
        Ok(Some((stream, Welcome::Session(session)))) => Ok(Some(Joined { stream, place: place.clone(), session })),
        Ok(Some((_, Welcome::Refused(why)))) => Err(JoinError::Refused(why)),
        Ok(Some((_, Welcome::Code(_))) | None) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(JoinError::Unsafe(error)),
        Err(error) => Err(error.into()),
    }
}

impl Joined {
    /// One more line that the engine says, before bytes pass.
    pub fn line(&mut self) -> io::Result<Vec<u8>> {
        self.stream.set_read_timeout(Some(WELCOME))?;
        let line = read_line(&mut self.stream).ok_or_else(|| io::Error::other("it said nothing"));
        self.stream.set_read_timeout(None)?;
        line
    }
}

/// Connects and exchanges the first lines. Nothing, a stale socket and an engine that is leaving are all `None`.
fn greet(socket: &Path, hello: &Hello) -> io::Result<Option<(UnixStream, Welcome)>> {
    let Ok(mut stream) = UnixStream::connect(socket) else { return Ok(None) };
    check_peer(&stream)?;
    stream.set_read_timeout(Some(WELCOME))?;
    let Some(line) = exchange(&mut stream, hello) else { return Ok(None) };
    let welcome = serde_json::from_slice(&line).map_err(|_| io::Error::other("its answer makes no sense"))?;
    stream.set_read_timeout(None)?;
    Ok(Some((stream, welcome)))
}

fn exchange(stream: &mut UnixStream, hello: &Hello) -> Option<Vec<u8>> {
    stream.write_all(&hello::line(hello)).ok()?;
    read_line(stream)
}

fn read_line(stream: &mut UnixStream) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    let mut byte = [0];
    // One by one: what stands behind the line belongs to somebody else.
    while line.len() < hello::LONGEST {
        stream.read_exact(&mut byte).ok()?;
        match byte {
            [b'\n'] => return Some(line),
            [byte] => line.push(byte),
        }
    }
    None
}

/// The process at the other end, where the kernel tells.
#[cfg(target_os = "linux")]
pub fn peer_process(stream: &impl std::os::fd::AsFd) -> Option<u32> {
    let peer = rustix::net::sockopt::socket_peercred(stream).ok()?;
    u32::try_from(peer.pid.as_raw_pid()).ok()
}

#[cfg(not(target_os = "linux"))]
pub fn peer_process(_stream: &impl std::os::fd::AsFd) -> Option<u32> {
    None
}

/// The same user has to be at the other end, whatever the file system says.
#[cfg(target_os = "linux")]
pub fn check_peer(stream: &impl std::os::fd::AsFd) -> io::Result<()> {
    let peer = rustix::net::sockopt::socket_peercred(stream)?;
    if peer.uid == rustix::process::geteuid() {
        return Ok(());
    }
    let message = format!("the other end belongs to user {}", peer.uid.as_raw());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
}

/// Elsewhere the modes of folder and socket are what there is.
#[cfg(not(target_os = "linux"))]
pub fn check_peer(_stream: &impl std::os::fd::AsFd) -> io::Result<()> {
    Ok(())
}

/// Starts an engine in a process of its own, with our environment, and waits until it listens.
fn start(place: &Place) -> Result<(), JoinError> {
    let mut command = Command::new(own_program()?);
    command.arg0("mcp-sidecar").args(["engine", "--workspace"]).arg(&place.root).current_dir(&place.root);
    // A new engine is nobody's child, or the guardian of another would end it.
    command.env_remove(MARK).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    match first_line(&mut child) {
        Ok(line) if line == "ready" => Ok(()),
        Ok(complaint) => Err(JoinError::Start(match complaint.as_str() {
            "" => "it ended without a word; `mcp-sidecar log` may tell why".to_owned(),
            complaint => complaint.to_owned(),
        })),
        Err(error) => {
            // Half an engine is worse than none.
            child.kill().ok();
            child.wait().ok();
            Err(JoinError::Start(error.to_string()))
        }
    }
}

fn first_line(child: &mut Child) -> io::Result<String> {
    let Some(mut output) = child.stdout.take() else { return Ok(String::new()) };
    let limit = Timespec { tv_sec: START.as_secs().try_into().unwrap_or(30), tv_nsec: 0 };
    if poll(&mut [PollFd::new(&output, PollFlags::IN)], Some(&limit))? == 0 {
        let message = format!("not ready within {} s", START.as_secs());
        return Err(io::Error::new(io::ErrorKind::TimedOut, message));
    }
    // It says its line in one go.
    let mut line = vec![0; hello::LONGEST];
    let length = output.read(&mut line)?;
    line.truncate(length);
    Ok(String::from_utf8_lossy(&line).trim().to_owned())
}

/// The very binary that runs, even when another has been put in its place meanwhile.
fn own_program() -> io::Result<PathBuf> {
    if cfg!(target_os = "linux") { Ok(PathBuf::from("/proc/self/exe")) } else { std::env::current_exe() }
}
