//! The engine's side of the socket: admits fronts, serves each, and leaves when the last has been gone for a while.

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

use super::hello::{self, Front, Hello, Opened, Welcome};
use super::join::{check_peer, peer_process};
use super::lock::Lock;
use super::place::Place;
use crate::agent::{AgentOptions, Endpoint};
use crate::engine::Engine;
use crate::lsp;
use crate::server::process::{is_descendant, is_mark_of_this_engine};
use crate::text::one_line;

/// How long an engine waits for somebody who may come back.
const LINGER: Duration = Duration::from_secs(2);
/// How long it waits for the one who started it.
const FIRST: Duration = Duration::from_secs(30);
/// A front says hello at once.
const HELLO: Duration = Duration::from_secs(10);
/// How long the end of a session may take to be known, once its bytes have ended.
const END: Duration = Duration::from_secs(5);
/// Ends that nobody asked about are kept for so many sessions.
const ENDS: usize = 256;
/// A machine without room for another connection gets this long to find some.
const RECOVERY: Duration = Duration::from_millis(100);

/// Opens the socket of this place. A stale one is taken over; one with an engine behind it is not.
pub fn bind(place: &Place) -> io::Result<std_net::UnixListener> {
    place.secure()?;
    if std_net::UnixStream::connect(&place.socket).is_ok() {
        return Err(io::Error::new(io::ErrorKind::AddrInUse, "an engine of this workspace runs already"));
    }
    match std::fs::remove_file(&place.socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = std_net::UnixListener::bind(&place.socket)?;
    std::fs::set_permissions(&place.socket, std::fs::Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Serves every front that comes, until the last has been gone for a while or a signal asks to leave.
pub async fn serve(engine: Engine, place: &Place, listener: std_net::UnixListener) -> io::Result<()> {
    let listener = UnixListener::from_std(listener)?;
    let agents = Endpoint::new(engine.clone());
    let reception = Reception { engine, agents, place: Arc::new(place.clone()), ends: Arc::default() };
    let present = watch::Sender::new(0_usize);
    let mut attendance = present.subscribe();
    let mut sessions = JoinSet::new();
    let mut next = 0_u64;
    let mut patience = FIRST;
    let stop = lsp::signal();
    tokio::pin!(stop);
    loop {
        let empty = *attendance.borrow_and_update() == 0;
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    next += 1;
                    let presence = Presence::new(&present);
                    let work = reception.clone().receive(stream, next);
                    sessions.spawn(async move {
                        work.await;
                        drop(presence);
                    });
                    patience = LINGER;
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot take another connection");
                    tokio::time::sleep(RECOVERY).await;
                }
            },
            Ok(()) = attendance.changed() => {}
            Some(_) = sessions.join_next() => {}
            () = tokio::time::sleep(patience), if empty => if leave(place, &listener) { break },
            () = &mut stop => {
                std::fs::remove_file(&place.socket).ok();
                break;
            }
        }
    }
    tracing::info!("engine leaves");
    Ok(())
}

/// Closes the place, unless somebody is just coming or starting.
fn leave(place: &Place, listener: &UnixListener) -> bool {
    let lock = match Lock::try_take(&place.lock) {
        Ok(Some(lock)) => lock,
        // Whoever holds the lock is about to join us.
        Ok(None) => return false,
        // The socket's folder has gone, as it does when the user logs out: nobody can find us there any more.
        Err(_) => return true,
    };
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let waits = poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0);
    if waits {
        return false;
    }
    // Whoever connects between that look and this line gets no welcome, and tries again.
    std::fs::remove_file(&place.socket).ok();
    lock.remove();
    true
}

/// Why somebody may not come in: an agent inside a server of this very engine would offer the engine to itself, and
/// everything twice, without end.
fn refusal(hello: &Hello, process: Option<u32>) -> Option<String> {
    let own = env!("CARGO_PKG_VERSION");
    if hello.version != own {
        // Versions have sockets of their own, so that this one has been led here by something else.
        let theirs = one_line(&hello.version, 40);
        return Some(format!("this is the engine of version {own}, and not of version {theirs}"));
    }
    if hello.front != Front::Agent && hello.front != Front::Url {
        return None;
    }
    let marked = hello.mark.as_deref().is_some_and(is_mark_of_this_engine);
    (marked || process.is_some_and(is_descendant)).then(|| {
        "this runs inside a server of the very engine that it would join, and would offer that engine to itself; take \
         `mcp-sidecar connect` out of the servers of this workspace"
            .to_owned()
    })
}

/// A front that is here.
struct Presence(watch::Sender<usize>);

impl Presence {
    fn new(present: &watch::Sender<usize>) -> Self {
        present.send_modify(|count| *count += 1);
        Self(present.clone())
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count = count.saturating_sub(1));
    }
}

/// Session → exit code, once it has one. Behind a lock that is held for a look-up.
type Ends = Arc<Mutex<BTreeMap<u64, watch::Receiver<Option<u8>>>>>;

#[derive(Clone)]
struct Reception {
    engine: Engine,
    agents: Endpoint,
    place: Arc<Place>,
    ends: Ends,
}

impl Reception {
    async fn receive(self, stream: UnixStream, session: u64) {
        if let Err(error) = check_peer(&stream) {
            tracing::warn!(%error, "refused a connection");
            return;
        }
        let process = peer_process(&stream);
        let (read, mut write) = stream.into_split();
        let mut read = BufReader::new(read);
        let mut line = Vec::new();
        let mut bounded = (&mut read).take(hello::LONGEST as u64);
        let said = tokio::time::timeout(HELLO, bounded.read_until(b'\n', &mut line)).await;
        let Some(hello) = said.ok().and_then(|_| serde_json::from_slice::<Hello>(&line).ok()) else {
            tracing::warn!("a connection without a hello");
            return;
        };
        if hello.front == Front::End {
            let code = self.end_of(hello.session.unwrap_or_default()).await;
            write.write_all(&hello::line(&Welcome::Code(code))).await.ok();
            return;
        }
        if let Some(why) = refusal(&hello, process) {
            tracing::warn!(pid = hello.pid, "refused an agent inside one of our own servers");
            write.write_all(&hello::line(&Welcome::Refused(why))).await.ok();
            return;
        }
        let (end, known) = watch::channel(None);
        self.remember(session, known);
        if write.write_all(&hello::line(&Welcome::Session(session))).await.is_err() {
            return;
        }
        tracing::info!(front = ?hello.front, pid = hello.pid, session, "front attached");
        let code = self.run(hello, read, write).await;
        end.send_replace(Some(code));
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
        AgentOptions { folder: self.place.root.clone(), ..hello.agent }
    }

    /// Serves agents at a URL for as long as whoever asked for it is there.
    async fn listen(&self, hello: Hello, mut read: BufReader<OwnedReadHalf>, mut write: OwnedWriteHalf) -> u8 {
        let folder = self.place.socket.parent().unwrap_or(Path::new("/"));
        let name = self.place.socket.file_stem().unwrap_or_default().to_string_lossy();
        let port = hello.port.unwrap_or_default();
        let http = match self.agents.listen(self.agent_options(hello), port, folder, &name).await {
            Ok(http) => http,
            Err(error) => {
                let why = format!("cannot listen on port {port} of this machine: {error}");
                write.write_all(&hello::line(&Opened::Failed(why))).await.ok();
                return 1;
            }
        };
        tracing::info!(url = http.url(), "agents are served at a URL");
        let opened = Opened::At { url: http.url(), token_file: http.token_file().to_owned() };
        if write.write_all(&hello::line(&opened)).await.is_err() {
            return 1;
        }
        let mut nothing = tokio::io::sink();
        tokio::select! {
            served = http.serve() => u8::from(served.is_err()),
            // It says nothing more, so that this is its end.
            _ = tokio::io::copy(&mut read, &mut nothing) => 0,
        }
    }

    fn remember(&self, session: u64, end: watch::Receiver<Option<u8>>) {
        let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        // The oldest that have ended go; those that run stay.
        while ends.len() >= ENDS {
            let Some(over) = ends.iter().find(|(_, end)| end.borrow().is_some()).map(|(session, _)| *session) else {
                break;
            };
            ends.remove(&over);
        }
        ends.insert(session, end);
    }

    /// The exit code of a session: its bytes may end a moment before it does.
    async fn end_of(&self, session: u64) -> u8 {
        let end = self.ends.lock().unwrap_or_else(PoisonError::into_inner).remove(&session);
        let Some(mut end) = end else { return 1 };
        match tokio::time::timeout(END, end.wait_for(Option::is_some)).await {
            Ok(Ok(code)) => code.unwrap_or(1),
            _ => 1,
        }
    }
}
