//! Splits a stream of LSP messages into bodies by their `Content-Length` headers, with limits on all sizes.
//!
//! A message that cannot be read is refused with a reason, and reading continues at the next header. One broken message
//! does not end the session.

use std::io;

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio_util::bytes::{Buf, Bytes, BytesMut};
use tokio_util::codec::Decoder;

/// The maximum size of all header lines of a message.
pub const HEADER_LIMIT: usize = 8 << 10;
/// The maximum size of a body. It is large because editors send whole buffers.
pub const BODY_LIMIT: usize = 64 << 20;

pub const LENGTH: &[u8] = b"Content-Length:";

#[derive(Debug, PartialEq, Eq)]
pub enum Frame {
    Body(Bytes),
    /// The message cannot be read, for this reason.
    Refused(String),
}

/// Decodes a stream of bytes into frames.
#[derive(Debug, Default)]
pub struct Frames {
    state: State,
}

#[derive(Debug, Default, Clone, Copy)]
enum State {
    #[default]
    Header,
    Body(usize),
    /// After a bad header: everything up to the next `Content-Length:` is skipped.
    Resync,
}

impl Decoder for Frames {
    type Item = Frame;
    type Error = io::Error;

    fn decode(&mut self, source: &mut BytesMut) -> io::Result<Option<Frame>> {
        loop {
            match self.state {
                State::Header => match header(source) {
                    Header::Unfinished => return Ok(None),
                    Header::Length(length) => self.state = State::Body(length),
                    Header::Bad(reason) => {
                        self.state = State::Resync;
                        return Ok(Some(Frame::Refused(reason)));
                    }
                },
                State::Body(length) if source.len() < length => {
                    // The length may be wrong, so memory is reserved step by step.
                    source.reserve((length - source.len()).min(1 << 20));
                    return Ok(None);
                }
                State::Body(length) => {
                    self.state = State::Header;
                    return Ok(Some(Frame::Body(source.split_to(length).freeze())));
                }
                State::Resync if skip_to_header(source) => self.state = State::Header,
                State::Resync => return Ok(None),
            }
        }
    }

    /// Drops an incomplete message at the end of the stream.
    fn decode_eof(&mut self, source: &mut BytesMut) -> io::Result<Option<Frame>> {
        let frame = self.decode(source)?;
        if frame.is_none() {
            source.clear();
        }
        Ok(frame)
    }
}

/// Writes one body with its header. The caller must flush.
pub async fn write<W: AsyncWrite + Unpin>(output: &mut W, body: &[u8]) -> io::Result<()> {
    output.write_all(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes()).await?;
    output.write_all(body).await
}

enum Header {
    Unfinished,
    Length(usize),
    Bad(String),
}

/// Consumes the header lines at the start of `source`. If a line is bad, only the lines up to it are consumed, so that a
/// valid header right after it is still found.
fn header(source: &mut BytesMut) -> Header {
    let mut length = None;
    let mut at = 0;
    let outcome = loop {
        let rest = source.get(at..).unwrap_or_default();
        let Some(end) = rest.iter().position(|&byte| byte == b'\n') else {
            if source.len() > HEADER_LIMIT {
                break Header::Bad(format!("header longer than {HEADER_LIMIT} bytes"));
            }
            return Header::Unfinished;
        };
        let line = rest.get(..end).unwrap_or_default().trim_ascii();
        let first = at == 0;
        at += end + 1;
        if at > HEADER_LIMIT {
            break Header::Bad(format!("header longer than {HEADER_LIMIT} bytes"));
        }
        if line.is_empty() {
            match length {
                Some(length) => break Header::Length(length),
                // Some editors add a line break after the body.
                None if first => {
                    source.advance(at);
                    at = 0;
                }
                None => break Header::Bad("header without Content-Length".to_owned()),
            }
            continue;
        }
        match field(line) {
            Ok(Some(value)) => length = Some(value),
            Ok(None) => {}
            Err(reason) => break Header::Bad(reason),
        }
    };
    source.advance(at.min(source.len()));
    outcome
}

/// The length in a header line; `None` if it is another header.
fn field(line: &[u8]) -> Result<Option<usize>, String> {
    let text = std::str::from_utf8(line).map_err(|_| "header line that is not text".to_owned())?;
    let (name, value) = text.split_once(':').ok_or_else(|| "header line without a colon".to_owned())?;
    if !name.trim().eq_ignore_ascii_case("Content-Length") {
        return Ok(None);
    }
    let length: usize = value.trim().parse().map_err(|_| "Content-Length is not a number".to_owned())?;
    if length > BODY_LIMIT {
        return Err(format!("message of {length} bytes; the limit is {BODY_LIMIT}"));
    }
    Ok(Some(length))
}

/// Drops everything before the next header. Returns false if there is none yet; then only a possible start of it is kept.
fn skip_to_header(source: &mut BytesMut) -> bool {
    let found = source.windows(LENGTH.len()).position(|window| window.eq_ignore_ascii_case(LENGTH));
    let drop = found.unwrap_or_else(|| source.len().saturating_sub(LENGTH.len() - 1));
    source.advance(drop);
    found.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds the text in chunks of `step` bytes and returns the frames, separated by spaces.
    fn frames(text: &str, step: usize) -> String {
        let mut frames = Frames::default();
        let mut source = BytesMut::new();
        let mut decoded = Vec::new();
        for piece in text.as_bytes().chunks(step) {
            source.extend_from_slice(piece);
            while let Some(frame) = frames.decode(&mut source).unwrap() {
                decoded.push(frame);
            }
        }
        while let Some(frame) = frames.decode_eof(&mut source).unwrap() {
            decoded.push(frame);
        }
        let show = |frame| match frame {
            Frame::Body(body) => String::from_utf8(body.to_vec()).unwrap(),
            Frame::Refused(reason) => format!("({reason})"),
        };
        decoded.into_iter().map(show).collect::<Vec<_>>().join(" ")
    }

    fn read(text: &str) -> String {
        let whole = frames(text, text.len().max(1));
        assert_eq!(whole, frames(text, 1), "the size of the chunks must not matter");
        whole
    }

    #[test]
    fn bodies_are_read_with_every_form_of_header() {
        assert_eq!(read("Content-Length: 2\r\n\r\nabContent-Length: 1\r\n\r\nc"), "ab c");
        assert_eq!(read("content-length:2\n\nab"), "ab");
        assert_eq!(read("Content-Type: text/plain\r\nContent-Length: 2\r\n\r\nab"), "ab");
        assert_eq!(read("Content-Length: 2\r\n\r\nab\r\nContent-Length: 1\r\n\r\nc"), "ab c");
        assert_eq!(read("Content-Length: 0\r\n\r\nContent-Length: 1\r\n\r\nc"), " c");
    }

    #[test]
    fn a_bad_header_is_refused_and_the_next_message_is_read() {
        assert_eq!(
            read("Content-Length: many\r\n\r\n{}Content-Length: 2\r\n\r\nab"),
            "(Content-Length is not a number) ab"
        );
        assert_eq!(read("hello\r\nContent-Length: 2\r\n\r\nab"), "(header line without a colon) ab");
        assert_eq!(read("X: y\r\n\r\n{}Content-Length: 2\r\n\r\nab"), "(header without Content-Length) ab");
        assert_eq!(
            read("Content-Length: -1\r\n\r\nContent-Length: 2\r\n\r\nab"),
            "(Content-Length is not a number) ab"
        );
    }

    #[test]
    fn a_message_above_the_limit_is_refused_without_being_read_into_memory() {
        assert_eq!(
            read("Content-Length: 999999999999\r\n\r\n{}Content-Length: 2\r\n\r\nab"),
            "(message of 999999999999 bytes; the limit is 67108864) ab"
        );
    }

    #[test]
    fn an_endless_header_is_refused_at_the_limit() {
        let endless = format!("X-Filler: {}", "x".repeat(100_000));
        let mut source = BytesMut::from(endless.as_bytes());
        let mut frames = Frames::default();
        assert!(matches!(frames.decode(&mut source), Ok(Some(Frame::Refused(_)))));
        assert!(matches!(frames.decode(&mut source), Ok(None)));
        assert!(source.len() < LENGTH.len(), "skipped bytes must not be kept");
        source.extend_from_slice(b"\r\n\r\nContent-Length: 2\r\n\r\nab");
        assert_eq!(frames.decode(&mut source).unwrap(), Some(Frame::Body(Bytes::from_static(b"ab"))));
    }

    #[test]
    fn an_incomplete_message_at_the_end_is_dropped() {
        assert_eq!(read("Content-Length: 9\r\n\r\nab"), "");
        assert_eq!(read("Content-Len"), "");
        assert_eq!(read(""), "");
    }
}
