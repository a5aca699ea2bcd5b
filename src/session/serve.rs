//! The engine's side of the socket: accepts fronts, serves them, and stops some time after the last one has left.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::address::EngineAddress;
use super::handshake::{self, Front, Hello, UrlReply, Welcome};
use super::hook;
use super::listeners::{Listeners, RETRY_DELAY, leave, refuse_next};
use super::open_workspaces::{LINGER, OpenWorkspaces, WorkspaceFront};
use super::peer::{check_peer, peer_process};
use super::workspace::is_project;
use crate::agent::AgentOptions;
use crate::engine::Shared;
use crate::lsp;
use crate::server::process::{end_orphans, is_alive, is_descendant, is_mark_of_this_engine};
use crate::text::one_line;

/// How long it waits for the front that started it.
const FIRST_WAIT: Duration = Duration::from_secs(30);
/// How long a front may take to send its first line.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a session may take to end after its connection has closed.
const END_TIMEOUT: Duration = Duration::from_secs(5);
/// How many exit codes are kept that no front has asked for.
const MAX_EXIT_CODES: usize = 256;
/// The exit code of an agent's session that is to be joined again.
const REJOIN: u8 = 2;

/// Through which socket a front came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SocketKind {
    Everyone,
    Agents,
}

/// Serves fronts until the last one has been gone for a while, or a signal arrives. Then stops all servers.
pub async fn serve(shared: Shared, address: &EngineAddress, listeners: Listeners) -> io::Result<()> {
    let everyone = UnixListener::from_std(listeners.everyone)?;
    let for_agents = UnixListener::from_std(listeners.agents)?;
    let (upgrades, mut upgrade) = mpsc::channel(1);
    let workspaces = OpenWorkspaces::new(shared.clone());
    let acceptor = Acceptor {
        shared,
        workspaces: workspaces.clone(),
        agent_count: watch::Sender::new(0),
        address: Arc::new(address.clone()),
        exit_codes: Arc::default(),
        upgrades,
    };
    let front_count = watch::Sender::new(0_usize);
    let mut fronts = front_count.subscribe();
    let mut sessions = JoinSet::new();
    // Different for each engine: a front may ask a new engine about a session of the old one.
    let mut next = std::time::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_micros() as u64);
    let mut idle_wait = FIRST_WAIT;
    // Closed for a moment when there are no more descriptors, so that a front gets an answer.
    let mut reserve = File::open("/dev/null").ok();
    let stop = lsp::signal();
    tokio::pin!(stop);
    loop {
        let empty = *fronts.borrow_and_update() == 0;
        let accepted = async {
            tokio::select! {
                accepted = everyone.accept() => (accepted, SocketKind::Everyone),
                accepted = for_agents.accept() => (accepted, SocketKind::Agents),
            }
        };
        tokio::select! {
            (accepted, socket) = accepted => match accepted {
                Ok((stream, _)) => {
                    next += 1;
                    let guard = FrontGuard::new(&front_count);
                    let work = acceptor.clone().receive(stream, socket, next);
                    sessions.spawn(async move {
                        work.await;
                        drop(guard);
                    });
                    idle_wait = LINGER;
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    drop(reserve.take());
                    let listener = if socket == SocketKind::Agents { &for_agents } else { &everyone };
                    refuse_next(listener, &error).await;
                    reserve = File::open("/dev/null").ok();
                    tokio::time::sleep(RETRY_DELAY).await;
                }
            },
            Ok(()) = fronts.changed() => {}
            Some(_) = sessions.join_next() => {}
            () = tokio::time::sleep(idle_wait), if empty => if leave(address, [&everyone, &for_agents]) { break },
            // The front that asks holds the lock, and starts the next engine when this process has ended.
            Some(()) = upgrade.recv() => {
                tracing::info!("a newer version takes over");
                break;
            }
            () = &mut stop => {
                address.remove();
                break;
            }
        }
    }
    tracing::info!("engine stops");
    drop(sessions);
    workspaces.close_all().await;
    end_orphans().await;
    Ok(())
}

/// Why a front is refused.
fn refusal(hello: &Hello, socket: SocketKind, process: Option<u32>) -> Option<String> {
    if socket == SocketKind::Agents && !matches!(hello.front, Front::Agent | Front::Hook | Front::End) {
        return Some("this socket is only for agents".to_owned());
    }
    let marked = hello.mark.as_deref().is_some_and(is_mark_of_this_engine);
    if !marked && !process.is_some_and(is_descendant) {
        return None;
    }
    if process.is_some_and(|process| !is_alive(process)) {
        // Who uses the connection now is unknown.
        return Some("the process that connected has ended".to_owned());
    }
    // A server that could connect would approve its own calls, or offer the engine to itself, recursively.
    let reason = match hello.front {
        Front::Agent | Front::Url => {
            "`mcp-sidecar connect` runs as a server of the same workspace and would offer the engine to itself; remove it \
             from the servers of this workspace"
        }
        Front::Editor | Front::Hook | Front::End | Front::Upgrade => "a server of this engine cannot connect to it",
    };
    Some(reason.to_owned())
}

impl WorkspaceFront {
    fn agent_options(&self, hello: Hello, process: Option<u32>) -> AgentOptions {
        AgentOptions { folder: self.root.clone(), process, environment: hello.environment, ..hello.agent }
    }
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
    shared: Shared,
    workspaces: OpenWorkspaces,
    agent_count: watch::Sender<usize>,
    address: Arc<EngineAddress>,
    exit_codes: ExitCodes,
    /// Ends the engine for a newer version.
    upgrades: mpsc::Sender<()>,
}

impl Acceptor {
    async fn receive(self, stream: UnixStream, socket: SocketKind, session: u64) {
        if let Err(error) = check_peer(&stream) {
            tracing::warn!(%error, "refused a connection");
            return;
        }
        let process = peer_process(&stream);
        let (read, mut write) = stream.into_split();
        let mut read = BufReader::new(read);
        let mut line = Vec::new();
        let mut bounded = (&mut read).take(handshake::MAX_HELLO as u64);
        let read_line = tokio::time::timeout(HELLO_TIMEOUT, bounded.read_until(b'\n', &mut line)).await;
        let Some(hello) = read_line.ok().and_then(|_| serde_json::from_slice::<Hello>(&line).ok()) else {
            tracing::warn!("a connection without a valid first line");
            return;
        };
        if let Some(why) = refusal(&hello, socket, process) {
            tracing::warn!(pid = hello.pid, "refused a front");
            write.write_all(&handshake::line(&Welcome::Refused(why))).await.ok();
            return;
        }
        if hello.front == Front::End {
            let code = self.exit_code_of(hello.session.unwrap_or_default()).await;
            write.write_all(&handshake::line(&Welcome::Code(code))).await.ok();
            return;
        }
        if hello.front == Front::Upgrade {
            return self.upgrade(&hello, write).await;
        }
        let is_agent = matches!(hello.front, Front::Agent | Front::Hook | Front::Url);
        let most = self.shared.settings().borrow().limits.agents;
        if is_agent && *self.agent_count.borrow() >= most {
            let why = format!("too many agents: {most} are already connected (the limit is `limits.agents`)");
            write.write_all(&handshake::line(&Welcome::Refused(why))).await.ok();
            return;
        }
        let root = self.workspace_of(&hello);
        if hello.only_open && !self.workspaces.is_open(&root) {
            let why = "no other front has this workspace open".to_owned();
            write.write_all(&handshake::line(&Welcome::Refused(why))).await.ok();
            return;
        }
        let _agent = is_agent.then(|| FrontGuard::new(&self.agent_count));
        let (exit_code, receiver) = watch::channel(None);
        self.remember(session, receiver);
        if write
            .write_all(&handshake::line(&Welcome::Session { session, version: handshake::version() }))
            .await
            .is_err()
        {
            return;
        }
        if hello.front == Front::Hook {
            return hook::answer(&self.shared, &self.workspaces, root, process, read, write).await;
        }
        tracing::info!(front = ?hello.front, pid = hello.pid, session, workspace = %root.display(), "front attached");
        if !hello.left_out.is_empty() {
            let variables = one_line(&hello.left_out.join(" "), 400);
            tracing::warn!(variables, "the environment of a front is larger than 1 MiB; these variables are left out");
        }
        let workspace = self.workspaces.join(root).await;
        let code = self.run(&workspace, hello, process, read, write).await;
        exit_code.send_replace(Some(code));
    }

    /// The workspace that a front has stated. A front of an older version states none, and one in a sandbox perhaps a folder
    /// that exists only there. A folder that is not a project belongs to the open workspace above it.
    fn workspace_of(&self, hello: &Hello) -> PathBuf {
        let stated = hello.folder.as_deref().and_then(|folder| folder.canonicalize().ok());
        let stated = stated.filter(|folder| self.address.covers(folder));
        let stated = stated.unwrap_or_else(|| self.address.root.clone());
        let open = stated.ancestors().find(|folder| self.workspaces.is_open(folder));
        match open.filter(|_| !is_project(&stated, &self.shared.settings().borrow().files)) {
            Some(open) => open.to_path_buf(),
            None => stated,
        }
    }

    async fn run(
        &self,
        workspace: &WorkspaceFront,
        hello: Hello,
        process: Option<u32>,
        read: BufReader<OwnedReadHalf>,
        write: OwnedWriteHalf,
    ) -> u8 {
        match hello.front {
            Front::Editor => {
                let peer = lsp::Peer { process, environment: hello.environment };
                lsp::serve(read, write, workspace.engine.clone(), peer).await.exit_code()
            }
            Front::Agent => {
                let is_newer = handshake::is_newer(&hello.version);
                let serving = workspace.agents.serve(read, write, workspace.agent_options(hello, process));
                tokio::select! {
                    () = serving => 0,
                    // It comes back, and then asks us to end.
                    () = self.shared.until_idle(), if is_newer => REJOIN,
                }
            }
            Front::Url => self.listen(workspace, hello, read, write).await,
            Front::Hook | Front::End | Front::Upgrade => 0,
        }
    }

    /// A newer version asks us to end. We do if nothing would be lost.
    async fn upgrade(&self, hello: &Hello, mut write: OwnedWriteHalf) {
        let is_newer = handshake::is_newer(&hello.version);
        if is_newer && self.shared.is_idle() {
            self.address.remove();
            write.write_all(&handshake::line(&Welcome::Leaving)).await.ok();
            // Stays open until this process ends, so that the front knows when.
            std::mem::forget(write);
            self.upgrades.send(()).await.ok();
            return;
        }
        if is_newer {
            self.shared.note_newer_version(&one_line(&hello.version, 40));
        }
        write.write_all(&handshake::line(&Welcome::Busy)).await.ok();
    }

    /// Serves agents at a URL until the front that requested it disconnects.
    async fn listen(
        &self,
        workspace: &WorkspaceFront,
        hello: Hello,
        mut read: BufReader<OwnedReadHalf>,
        mut write: OwnedWriteHalf,
    ) -> u8 {
        let folder = self.address.socket.parent().unwrap_or(Path::new("/"));
        let name = self.address.socket.file_stem().unwrap_or_default().to_string_lossy();
        let (port, token) = (hello.port.unwrap_or_default(), hello.token.clone());
        // The agents are other processes.
        let options = workspace.agent_options(hello, None);
        let http = match workspace.agents.listen(options, port, token, folder, &name).await {
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
