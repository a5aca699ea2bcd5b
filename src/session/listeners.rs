//! The sockets of an engine: opens them, and closes them unless a front is connecting.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net as std_net;
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixListener;

use super::address::EngineAddress;
use super::handshake::{self, Welcome};
use super::lock::Lock;
use crate::paths::make_private_folder;
use crate::text::io_reason;

/// How long to wait if the system cannot accept another connection.
pub const RETRY_DELAY: Duration = Duration::from_millis(100);

/// The open sockets of an engine.
pub struct Listeners {
    pub everyone: std_net::UnixListener,
    pub agents: std_net::UnixListener,
}

/// Opens the sockets. Replaces stale ones, but not those that an engine listens on.
pub fn bind(address: &EngineAddress) -> io::Result<Listeners> {
    address.secure()?;
    if std_net::UnixStream::connect(&address.socket).is_ok() {
        return Err(io::Error::new(io::ErrorKind::AddrInUse, "an engine is already running for this workspace"));
    }
    if let Some(folder) = address.agents.parent() {
        make_private_folder(folder)?;
    }
    // The other one last: fronts wait for it.
    let agents = listen(&address.agents)?;
    Ok(Listeners { everyone: listen(&address.socket)?, agents })
}

fn listen(socket: &Path) -> io::Result<std_net::UnixListener> {
    match std::fs::remove_file(socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = std_net::UnixListener::bind(socket)?;
    std::fs::set_permissions(socket, std::fs::Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Tells the front that could not be accepted why. Frees a descriptor first.
pub async fn refuse_next(listener: &UnixListener, error: &io::Error) {
    let reason = format!("the engine cannot accept another connection: {}", io_reason(error));
    let refused = async {
        let (stream, _) = listener.accept().await?;
        let (read, mut write) = stream.into_split();
        let mut line = Vec::new();
        BufReader::new(read).take(handshake::MAX_HELLO as u64).read_until(b'\n', &mut line).await?;
        write.write_all(&handshake::line(&Welcome::Refused(reason))).await
    };
    tokio::time::timeout(RETRY_DELAY, refused).await.ok();
}

/// Closes the sockets, unless a front is connecting. Returns whether they are closed.
pub fn leave(address: &EngineAddress, listeners: [&UnixListener; 2]) -> bool {
    let lock = match Lock::try_take(&address.lock) {
        Ok(Some(lock)) => lock,
        // The owner of the lock is about to connect.
        Ok(None) => return false,
        // The folder of the socket was deleted, for example because the user logged out. No front can find us.
        Err(_) => return true,
    };
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut connecting = listeners.map(|listener| PollFd::new(listener, PollFlags::IN));
    let is_connecting = poll(&mut connecting, Some(&now)).is_ok_and(|ready| ready > 0);
    if is_connecting {
        return false;
    }
    // A front that connects right now gets no answer and tries again.
    address.remove();
    lock.remove();
    true
}
