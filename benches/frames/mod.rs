//! Reads LSP messages, for both benchmarks.

use std::io::{self, BufRead};

/// Reads the body of the next message.
pub fn read(input: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match line.trim_end().strip_prefix("Content-Length: ") {
            Some(value) => length = value.parse().map_err(io::Error::other)?,
            None if line.trim_end().is_empty() => break,
            None => (),
        }
    }
    let mut body = vec![0; length];
    input.read_exact(&mut body)?;
    Ok(body)
}
