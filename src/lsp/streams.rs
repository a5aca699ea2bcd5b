//! Standard input and output without a thread between us and the editor.
//!
//! tokio's own hand every read to a thread that blocks: two switches more for each message, and a read that nothing can
//! end. Editors give us pipes or sockets, which can be waited for; anything else is read tokio's way.

use std::io;

use tokio::io::{AsyncRead, AsyncWrite};

pub type Input = Box<dyn AsyncRead + Send + Unpin>;
pub type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// Standard input. Call it once, inside a runtime.
pub fn input() -> Input {
    #[cfg(unix)]
    match waitable::input() {
        Ok(Some(input)) => return input,
        Ok(None) => {}
        Err(error) => tracing::debug!(%error, "standard input is read by a thread"),
    }
    Box::new(tokio::io::stdin())
}

/// Standard output. Call it once, inside a runtime.
pub fn output() -> Output {
    #[cfg(unix)]
    match waitable::output() {
        Ok(Some(output)) => return output,
        Ok(None) => {}
        Err(error) => tracing::debug!(%error, "standard output is written by a thread"),
    }
    Box::new(tokio::io::stdout())
}

#[cfg(unix)]
mod waitable {
    use std::fs::File;
    use std::os::fd::{AsFd, OwnedFd};
    use std::os::unix::net;

    use rustix::fs::{FileType, Stat, fstat};
    use tokio::net::UnixStream;
    use tokio::net::unix::pipe;

    use super::{Input, Output, io};

    pub fn input() -> io::Result<Option<Input>> {
        let stdin = io::stdin();
        Ok(match kind(&fstat(&stdin)?) {
            FileType::Fifo => Some(Box::new(pipe::Receiver::from_file(File::from(copy(stdin)?))?)),
            FileType::Socket => Some(Box::new(socket(stdin)?)),
            _ => None,
        })
    }

    pub fn output() -> io::Result<Option<Output>> {
        let stdout = io::stdout();
        let place = fstat(&stdout)?;
        // Waiting without blocking is a property of the pipe, not of our end of it: whoever writes to standard error
        // must not be surprised by it.
        if fstat(io::stderr()).is_ok_and(|other| (other.st_dev, other.st_ino) == (place.st_dev, place.st_ino)) {
            return Ok(None);
        }
        Ok(match kind(&place) {
            FileType::Fifo => Some(Box::new(pipe::Sender::from_file(File::from(copy(stdout)?))?)),
            FileType::Socket => Some(Box::new(socket(stdout)?)),
            _ => None,
        })
    }

    fn kind(place: &Stat) -> FileType {
        FileType::from_raw_mode(place.st_mode)
    }

    fn copy(stream: impl AsFd) -> io::Result<OwnedFd> {
        stream.as_fd().try_clone_to_owned()
    }

    fn socket(stream: impl AsFd) -> io::Result<UnixStream> {
        let socket = net::UnixStream::from(copy(stream)?);
        socket.set_nonblocking(true)?;
        UnixStream::from_std(socket)
    }
}
