//! The front's own process: bytes from its stdin to the engine, bytes from the engine to its stdout.
//!
//! Two threads that copy, and nothing else: whoever starts many of these pays next to nothing for each.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use super::join::{Joined, ask_end};

/// A copy loop needs little.
const STACK: usize = 128 << 10;
const PIECE: usize = 64 << 10;

/// Stdin and stdout without the buffers of the standard library.
pub struct Stdio {
    pub input: File,
    pub output: File,
}

impl Stdio {
    pub fn take() -> io::Result<Self> {
        let stdio = Self { input: own(io::stdin())?, output: own(io::stdout())? };
        // Somebody may have left them such that they do not wait; copying is nothing but waiting.
        for stream in [&stdio.input, &stdio.output] {
            rustix::io::ioctl_fionbio(stream, false).ok();
        }
        Ok(stdio)
    }
}

/// The beginning of a stream, read ahead as far as was needed to understand it.
#[derive(Debug, Default)]
pub struct Opening(pub Vec<u8>);

impl Opening {
    /// Reads until `enough` says so, or the stream ends.
    pub fn read(input: &mut impl Read, mut enough: impl FnMut(&[u8]) -> bool) -> io::Result<Self> {
        let mut bytes = Vec::new();
        let mut piece = vec![0; PIECE];
        loop {
            let length = input.read(&mut piece)?;
            bytes.extend_from_slice(piece.get(..length).unwrap_or_default());
            if length == 0 || enough(&bytes) {
                return Ok(Self(bytes));
            }
        }
    }
}

/// Passes bytes until one side has had enough. The exit code that the session came to, or nothing when the engine has
/// died under it.
pub fn forward(joined: Joined, stdio: Stdio, opening: Opening) -> io::Result<Option<u8>> {
    let Stdio { mut input, mut output } = stdio;
    let mut from_engine = joined.stream.try_clone()?;
    let mut to_engine = joined.stream;
    std::thread::Builder::new().name("input".to_owned()).stack_size(STACK).spawn(move || {
        pass_input(&opening.0, &mut input, &mut to_engine).ok();
        // The engine sees the end of the input as if it read it itself.
        to_engine.shutdown(Shutdown::Write).ok();
    })?;
    // Whether the engine has closed its side or nobody reads ours any more, the session is over.
    copy(&mut from_engine, &mut output).ok();
    from_engine.shutdown(Shutdown::Both).ok();
    Ok(ask_end(&joined.place, joined.session))
}

fn pass_input(opening: &[u8], input: &mut File, to_engine: &mut UnixStream) -> io::Result<()> {
    to_engine.write_all(opening)?;
    copy(input, to_engine)
}

/// Not `std::io::copy`: that has the kernel move the bytes, and while the kernel waits for a socket it holds the pipe
/// behind it, so that whoever reads the pipe waits for the next message to get the last one.
fn copy(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    loop {
        match from.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(length) => to.write_all(piece.get(..length).unwrap_or_default())?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn own(stream: impl AsFd) -> io::Result<File> {
    Ok(File::from(stream.as_fd().try_clone_to_owned()?))
}
