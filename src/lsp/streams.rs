//! Standard input and output without a thread in between.
//!
//! tokio passes every read to a blocking thread. This costs two context switches per message, and the read cannot be
//! cancelled. Editors use pipes or sockets, which support async I/O; everything else uses tokio's streams.

use std::io;

use tokio::io::{AsyncRead, AsyncWrite};

pub type Input = Box<dyn AsyncRead + Send + Unpin>;
pub type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// Standard input. Call this only once, inside a runtime.
pub fn input() -> Input {
    #[cfg(unix)]
    match nonblocking::input() {
        Ok(Some(input)) => return input,
        Ok(None) => {}
        Err(error) => tracing::debug!(%error, "reading standard input on a thread"),
    }
    Box::new(tokio::io::stdin())
}

/// Standard output. Call this only once, inside a runtime.
pub fn output() -> Output {
    #[cfg(unix)]
    match nonblocking::output() {
        Ok(Some(output)) => return output,
        Ok(None) => {}
        Err(error) => tracing::debug!(%error, "writing standard output on a thread"),
    }
    Box::new(tokio::io::stdout())
}

#[cfg(unix)]
mod nonblocking {
    use std::fs::File;
    use std::os::fd::{AsFd, OwnedFd};
    use std::os::unix::net;

    use rustix::fs::{FileType, Stat, fstat};
    use tokio::net::UnixStream;
    use tokio::net::unix::pipe;

    use super::{Input, Output, io};
    use crate::pipes;

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
        let stat = fstat(&stdout)?;
        // Non-blocking mode applies to the whole pipe, not only to our end. If standard error is the same pipe, writes to
        // it would fail unexpectedly.
        if fstat(io::stderr()).is_ok_and(|other| (other.st_dev, other.st_ino) == (stat.st_dev, stat.st_ino)) {
            return Ok(None);
        }
        Ok(match kind(&stat) {
            FileType::Fifo => {
                pipes::enlarge(&stdout);
                Some(Box::new(pipe::Sender::from_file(File::from(copy(stdout)?))?))
            }
            FileType::Socket => Some(Box::new(socket(stdout)?)),
            _ => None,
        })
    }

    fn kind(stat: &Stat) -> FileType {
        FileType::from_raw_mode(stat.st_mode)
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
