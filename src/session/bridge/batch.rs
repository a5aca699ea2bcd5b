//! Messages of a program that are written to the engine together.

use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// Those that were read together, because a wait for the next one writes them.
#[derive(Default)]
pub struct Batch {
    pub stream: Option<Arc<UnixStream>>,
    pub bytes: Vec<u8>,
    pub calls: Vec<Call>,
}

/// A request in a batch that must not be carried out twice.
pub struct Call {
    pub id: String,
    pub place: Range<usize>,
}

impl Batch {
    pub fn add(&mut self, stream: Arc<UnixStream>, message: &[u8], call: Option<String>) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(message);
        self.calls.extend(call.map(|id| Call { id, place: start..self.bytes.len() }));
        self.stream = Some(stream);
    }
}

/// Writes until it fails. Returns how many bytes were written.
pub fn write_counted(mut stream: &UnixStream, bytes: &[u8]) -> usize {
    let mut length = 0;
    while let Some(rest) = bytes.get(length..).filter(|rest| !rest.is_empty()) {
        match stream.write(rest) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    length
}
