//! Who is on the other end of a socket, as the kernel reports it.

use std::io;
use std::os::unix::net as std_net;

use tokio::net::UnixStream;

/// The process at the other end. `None` if it is outside of our process namespace, as the engine is for a sandbox.
#[cfg(target_os = "linux")]
pub fn peer_process(stream: &UnixStream) -> Option<u32> {
    let process = stream.peer_cred().ok()?.pid()?;
    u32::try_from(process).ok().filter(|process| *process != 0)
}

#[cfg(not(target_os = "linux"))]
pub fn peer_process(_stream: &UnixStream) -> Option<u32> {
    None
}

/// Checks that the process at the other end belongs to the same user.
#[cfg(target_os = "linux")]
pub fn check_peer(stream: &UnixStream) -> io::Result<()> {
    let user = stream.peer_cred()?.uid();
    if user == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    let message = format!("the process at the other end belongs to user {user}");
    Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
}

/// Other platforms rely on the permissions of folder and socket.
#[cfg(not(target_os = "linux"))]
pub fn check_peer(_stream: &UnixStream) -> io::Result<()> {
    Ok(())
}

/// The same for a front, which uses blocking calls; returns the process. rustix cannot represent a process outside of our
/// process namespace, so this borrows the functions of tokio, which need a runtime for a moment.
pub fn check_blocking_peer(stream: &std_net::UnixStream) -> io::Result<Option<u32>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let copy = stream.try_clone()?;
    copy.set_nonblocking(true)?;
    let checked = {
        let _inside = runtime.enter();
        UnixStream::from_std(copy).and_then(|copy| check_peer(&copy).map(|()| peer_process(&copy)))
    };
    runtime.shutdown_background();
    stream.set_nonblocking(false)?;
    checked
}
