//! Forwards stdin to the engine, and the engine to stdout. Two threads that copy bytes, so that each front is cheap.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use super::join::{Joined, ask_exit_code};
use crate::pipes;

/// The stack size of a copying thread.
pub const STACK: usize = 128 << 10;
const BUFFER: usize = 64 << 10;

/// Stdin and stdout without the buffers of the standard library.
pub struct Stdio {
    pub input: File,
    pub output: File,
}

impl Stdio {
    pub fn take() -> io::Result<Self> {
        let stdio = Self { input: duplicate(io::stdin())?, output: duplicate(io::stdout())? };
        // They may be non-blocking, but copying needs blocking reads and writes.
        for stream in [&stdio.input, &stdio.output] {
            rustix::io::ioctl_fionbio(stream, false).ok();
        }
        pipes::enlarge(&stdio.output);
        Ok(stdio)
    }
}

/// The beginning of a stream that has already been read.
#[derive(Debug, Default)]
pub struct ReadAhead(pub Vec<u8>);

impl ReadAhead {
    /// Reads until `enough` returns true or the stream ends.
    pub fn read(input: &mut impl Read, mut enough: impl FnMut(&[u8]) -> bool) -> io::Result<Self> {
        let mut bytes = Vec::new();
        let mut buffer = vec![0; BUFFER];
        loop {
            let length = input.read(&mut buffer)?;
            bytes.extend_from_slice(buffer.get(..length).unwrap_or_default());
            if length == 0 || enough(&bytes) {
                return Ok(Self(bytes));
            }
        }
    }
}

/// Forwards bytes until one side closes. Returns the exit code of the session, or `None` if the engine has crashed.
pub fn forward(joined: Joined, stdio: Stdio, read_ahead: ReadAhead) -> io::Result<Option<u8>> {
    let Stdio { mut input, mut output } = stdio;
    let mut from_engine = joined.stream.try_clone()?;
    let mut to_engine = joined.stream;
    std::thread::Builder::new().name("input".to_owned()).stack_size(STACK).spawn(move || {
        forward_input(&read_ahead.0, &mut input, &mut to_engine).ok();
        // Tells the engine that the input has ended.
        to_engine.shutdown(Shutdown::Write).ok();
    })?;
    // The session ends if the engine closes its side or our stdout is closed.
    copy(&mut from_engine, &mut output).ok();
    from_engine.shutdown(Shutdown::Both).ok();
    let code = ask_exit_code(&joined.address, joined.session);
    if let Some(engine) = joined.engine.filter(|_| code.is_none()) {
        engine.end_leftovers();
    }
    Ok(code)
}

fn forward_input(read_ahead: &[u8], input: &mut File, to_engine: &mut UnixStream) -> io::Result<()> {
    to_engine.write_all(read_ahead)?;
    copy(input, to_engine)
}

/// Not `std::io::copy`: it lets the kernel move the bytes, and the kernel keeps the pipe locked while it waits for the
/// socket. A reader of the pipe would then get each message only after the next one.
fn copy(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(length) => to.write_all(buffer.get(..length).unwrap_or_default())?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn duplicate(stream: impl AsFd) -> io::Result<File> {
    Ok(File::from(stream.as_fd().try_clone_to_owned()?))
}
