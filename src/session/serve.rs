//! The engine's side of the socket: accepts fronts, serves them, and stops some time after the last one has left.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net as std_net;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::address::EngineAddress;
use super::handshake::{self, Front, Hello, UrlReply, Welcome};
use super::join::{check_peer, peer_process};
use super::lock::Lock;
use crate::agent::{AgentOptions, Endpoint};
use crate::engine::Engine;
use crate::lsp;
use crate::server::process::{is_descendant, is_mark_of_this_engine};
use crate::text::one_line;

/// How long an engine without fronts waits before it stops.
const LINGER: Duration = Duration::from_secs(2);
/// How long it waits for the front that started it.
const FIRST_WAIT: Duration = Duration::from_secs(30);
/// How long a front may take to send its first line.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a session may take to end after its connection has closed.
const END_TIMEOUT: Duration = Duration::from_secs(5);
/// How many exit codes are kept that no front has asked for.
const MAX_EXIT_CODES: usize = 256;
/// How long to wait if the system cannot accept another connection.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// Opens the socket. Replaces a stale socket, but not one that an engine listens on.
pub fn bind(address: &EngineAddress) -> io::Result<std_net::UnixListener> {
    address.secure()?;
    if std_net::UnixStream::connect(&address.socket).is_ok() {
        return Err(io::Error::new(io::ErrorKind::AddrInUse, "an engine is already running for this workspace"));
    }
    match std::fs::remove_file(&address.socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = std_net::UnixListener::bind(&address.socket)?;
    std::fs::set_permissions(&address.socket, std::fs::Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Serves fronts until the last one has been gone for a while, or a signal arrives.
pub async fn serve(engine: Engine, address: &EngineAddress, listener: std_net::UnixListener) -> io::Result<()> {
    let listener = UnixListener::from_std(listener)?;
    let agents = Endpoint::new(engine.clone());
    let acceptor = Acceptor { engine, agents, address: Arc::new(address.clone()), exit_codes: Arc::default() };
    let front_count = watch::Sender::new(0_usize);
    let mut fronts = front_count.subscribe();
    let mut sessions = JoinSet::new();
    let mut next = 0_u64;
    let mut idle_wait = FIRST_WAIT;
    let stop = lsp::signal();
    tokio::pin!(stop);
    loop {
        let empty = *fronts.borrow_and_update() == 0;
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    next += 1;
                    let guard = FrontGuard::new(&front_count);
                    let work = acceptor.clone().receive(stream, next);
                    sessions.spawn(async move {
                        work.await;
                        drop(guard);
                    });
                    idle_wait = LINGER;
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(RETRY_DELAY).await;
                }
            },
            Ok(()) = fronts.changed() => {}
            Some(_) = sessions.join_next() => {}
            () = tokio::time::sleep(idle_wait), if empty => if leave(address, &listener) { break },
            () = &mut stop => {
                std::fs::remove_file(&address.socket).ok();
                break;
            }
        }
    }
    tracing::info!("engine stops");
    Ok(())
}

/// Closes the socket, unless a front is connecting. Returns whether it is closed.
fn leave(address: &EngineAddress, listener: &UnixListener) -> bool {
    let lock = match Lock::try_take(&address.lock) {
        Ok(Some(lock)) => lock,
        // The owner of the lock is about to connect.
        Ok(None) => return false,
        // The folder of the socket was deleted, for example because the user logged out. No front can find us.
        Err(_) => return true,
    };
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let is_connecting = poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0);
    if is_connecting {
        return false;
    }
    // A front that connects right now gets no answer and tries again.
    std::fs::remove_file(&address.socket).ok();
    lock.remove();
    true
}

/// Why a front is refused. An agent that runs inside a server of this engine would offer the engine to itself,
/// recursively.
fn refusal(hello: &Hello, process: Option<u32>) -> Option<String> {
    let own = env!("CARGO_PKG_VERSION");
    if hello.version != own {
        // Each version has its own socket, so this should not happen.
        let theirs = one_line(&hello.version, 40);
        return Some(format!("the engine has version {own}, but the front has version {theirs}"));
    }
    if hello.front != Front::Agent && hello.front != Front::Url {
        return None;
    }
    let marked = hello.mark.as_deref().is_some_and(is_mark_of_this_engine);
    (marked || process.is_some_and(is_descendant)).then(|| {
        "`mcp-sidecar connect` runs as a server of the same workspace and would offer the engine to itself; remove it \
         from the servers of this workspace"
            .to_owned()
    })
}

/// Counts a connected front until it is dropped.
struct FrontGuard(watch::Sender<usize>);

impl FrontGuard {
    fn new(front_count: &watch::Sender<usize>) -> Self {
        front_count.send_modify(|count| *count += 1);
        Self(front_count.clone())
    }
}

impl Drop for FrontGuard {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count = count.saturating_sub(1));
    }
}

/// Session → exit code, once it has ended. The lock is held for a lookup.
type ExitCodes = Arc<Mutex<BTreeMap<u64, watch::Receiver<Option<u8>>>>>;

#[derive(Clone)]
struct Acceptor {
    engine: Engine,
    agents: Endpoint,
    address: Arc<EngineAddress>,
    exit_codes: ExitCodes,
}

impl Acceptor {
    async fn receive(self, stream: UnixStream, session: u64) {
        if let Err(error) = check_peer(&stream) {
            tracing::warn!(%error, "refused a connection");
            return;
        }
        let process = peer_process(&stream);
        let (read, mut write) = stream.into_split();
        let mut read = BufReader::new(read);
        let mut line = Vec::new();
        let mut bounded = (&mut read).take(handshake::MAX_LINE as u64);
        let read_line = tokio::time::timeout(HELLO_TIMEOUT, bounded.read_until(b'\n', &mut line)).await;
        let Some(hello) = read_line.ok().and_then(|_| serde_json::from_slice::<Hello>(&line).ok()) else {
            tracing::warn!("a connection without a valid first line");
            return;
        };
        if hello.front == Front::End {
            let code = self.exit_code_of(hello.session.unwrap_or_default()).await;
            write.write_all(&handshake::line(&Welcome::Code(code))).await.ok();
            return;
        }
        if let Some(why) = refusal(&hello, process) {
            tracing::warn!(pid = hello.pid, "refused a front");
            write.write_all(&handshake::line(&Welcome::Refused(why))).await.ok();
            return;
        }
        let (exit_code, receiver) = watch::channel(None);
        self.remember(session, receiver);
        if write.write_all(&handshake::line(&Welcome::Session(session))).await.is_err() {
            return;
        }
        tracing::info!(front = ?hello.front, pid = hello.pid, session, "front attached");
        let code = self.run(hello, read, write).await;
        exit_code.send_replace(Some(code));
    }

    async fn run(&self, hello: Hello, read: BufReader<OwnedReadHalf>, write: OwnedWriteHalf) -> u8 {
        match hello.front {
            Front::Editor => lsp::serve(read, write, self.engine.clone()).await.exit_code(),
            Front::Agent => {
                self.agents.serve(read, write, self.agent_options(hello)).await;
                0
            }
            Front::Url => self.listen(hello, read, write).await,
            Front::End => 0,
        }
    }

    fn agent_options(&self, hello: Hello) -> AgentOptions {
        AgentOptions { folder: self.address.root.clone(), ..hello.agent }
    }

    /// Serves agents at a URL until the front that requested it disconnects.
    async fn listen(&self, hello: Hello, mut read: BufReader<OwnedReadHalf>, mut write: OwnedWriteHalf) -> u8 {
        let folder = self.address.socket.parent().unwrap_or(Path::new("/"));
        let name = self.address.socket.file_stem().unwrap_or_default().to_string_lossy();
        let port = hello.port.unwrap_or_default();
        let http = match self.agents.listen(self.agent_options(hello), port, folder, &name).await {
            Ok(http) => http,
            Err(error) => {
                let why = format!("cannot listen on port {port} of this machine: {error}");
                write.write_all(&handshake::line(&UrlReply::Failed(why))).await.ok();
                return 1;
            }
        };
        tracing::info!(url = http.url(), "serving agents at a URL");
        let opened = UrlReply::At { url: http.url(), token_file: http.token_file().to_owned() };
        if write.write_all(&handshake::line(&opened)).await.is_err() {
            return 1;
        }
        let mut nothing = tokio::io::sink();
        tokio::select! {
            served = http.serve() => u8::from(served.is_err()),
            // Returns when the front disconnects.
            _ = tokio::io::copy(&mut read, &mut nothing) => 0,
        }
    }

    fn remember(&self, session: u64, code: watch::Receiver<Option<u8>>) {
        let mut codes = self.exit_codes.lock().unwrap_or_else(PoisonError::into_inner);
        // Remove the oldest sessions that have ended.
        while codes.len() >= MAX_EXIT_CODES {
            let Some(ended) = codes.iter().find(|(_, code)| code.borrow().is_some()).map(|(session, _)| *session)
            else {
                break;
            };
            codes.remove(&ended);
        }
        codes.insert(session, code);
    }

    /// Waits for the exit code of a session, which may end shortly after its connection has closed.
    async fn exit_code_of(&self, session: u64) -> u8 {
        let code = self.exit_codes.lock().unwrap_or_else(PoisonError::into_inner).remove(&session);
        let Some(mut code) = code else { return 1 };
        match tokio::time::timeout(END_TIMEOUT, code.wait_for(Option::is_some)).await {
            Ok(Ok(code)) => code.unwrap_or(1),
            _ => 1,
        }
    }
}
