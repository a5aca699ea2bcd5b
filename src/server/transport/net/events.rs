//! Server-sent events from a byte stream, in chunks of any size and with invalid events.

use std::collections::VecDeque;

use super::RemoteError;

/// One event with its data.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Event {
    pub name: String,
    pub data: String,
}

/// Reads the events of a response.
pub struct Events {
    answer: reqwest::Response,
    parser: Parser,
}

impl Events {
    /// `limit` is the maximum size of one event.
    pub fn new(answer: reqwest::Response, limit: usize) -> Self {
        Self { answer, parser: Parser::new(limit) }
    }

    /// Continues a broken stream: its last event id and retry delay apply until this one sets others.
    pub fn resuming(mut self, last_id: &str, retry: Option<u64>) -> Self {
        self.parser.last_id = Some(last_id.to_owned());
        self.parser.retry = retry;
        self
    }

    /// The next event; `None` when the stream has ended. Cancel-safe.
    pub async fn next(&mut self) -> Result<Option<Event>, RemoteError> {
        loop {
            if let Some(event) = self.parser.ready.pop_front() {
                return Ok(Some(event));
            }
            match self.answer.chunk().await {
                Ok(Some(bytes)) => self.parser.feed(&bytes)?,
                Ok(None) => return Ok(None),
                Err(error) => {
                    tracing::debug!(error = %error.without_url(), "the event stream ended early");
                    return Ok(None);
                }
            }
        }
    }

    /// The last event id, from which a stream can be resumed.
    pub fn last_id(&self) -> Option<&str> {
        self.parser.last_id.as_deref()
    }

    /// The delay that the server sets before the stream is reopened, in milliseconds.
    pub fn retry(&self) -> Option<u64> {
        self.parser.retry
    }
}

struct Parser {
    limit: usize,
    line: Vec<u8>,
    /// The last byte was a CR, so a following LF belongs to the same line end.
    after_cr: bool,
    at_start: bool,
    name: String,
    data: String,
    has_data: bool,
    /// The event contains invalid UTF-8 and is dropped.
    broken: bool,
    last_id: Option<String>,
    retry: Option<u64>,
    ready: VecDeque<Event>,
}

impl Parser {
    fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            after_cr: false,
            at_start: true,
            name: String::new(),
            data: String::new(),
            has_data: false,
            broken: false,
            last_id: None,
            retry: None,
            ready: VecDeque::new(),
        }
    }

    fn feed(&mut self, mut bytes: &[u8]) -> Result<(), RemoteError> {
        if std::mem::take(&mut self.after_cr)
            && let Some(rest) = bytes.strip_prefix(b"\n")
        {
            bytes = rest;
        }
        while let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\r' | b'\n')) {
            let (head, tail) = bytes.split_at(end);
            self.hold(head)?;
            let line = std::mem::take(&mut self.line);
            self.take(&line);
            bytes = match tail {
                [b'\r', b'\n', rest @ ..] | [b'\n', rest @ ..] => rest,
                [b'\r'] => {
                    self.after_cr = true;
                    &[]
                }
                [_, rest @ ..] => rest,
                [] => &[],
            };
        }
        self.hold(bytes)
    }

    fn hold(&mut self, bytes: &[u8]) -> Result<(), RemoteError> {
        if self.data.len() + self.line.len() + bytes.len() > self.limit {
            return Err(RemoteError::TooLarge(self.limit));
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    /// Parses one line without its end.
    fn take(&mut self, line: &[u8]) {
        let line = match std::mem::take(&mut self.at_start) {
            true => line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line),
            false => line,
        };
        if line.is_empty() {
            return self.dispatch();
        }
        let Ok(line) = std::str::from_utf8(line) else {
            self.broken = true;
            return;
        };
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "data" => {
                if self.has_data {
                    self.data.push('\n');
                }
                self.data.push_str(value);
                self.has_data = true;
            }
            "id" if !value.contains('\0') => self.last_id = (!value.is_empty()).then(|| value.to_owned()),
            "retry" if value.bytes().all(|byte| byte.is_ascii_digit()) => {
                self.retry = value.parse().ok().or(self.retry)
            }
            _ => {}
        }
    }

    fn dispatch(&mut self) {
        let event = Event { name: std::mem::take(&mut self.name), data: std::mem::take(&mut self.data) };
        let has_data = std::mem::take(&mut self.has_data);
        if std::mem::take(&mut self.broken) {
            tracing::debug!("skipped an event that is not valid UTF-8");
        } else if has_data {
            self.ready.push_back(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(chunks: &[&[u8]]) -> Parser {
        let mut parser = Parser::new(64);
        for chunk in chunks {
            parser.feed(chunk).unwrap();
        }
        parser
    }

    fn data(parser: &Parser) -> Vec<&str> {
        parser.ready.iter().map(|event| event.data.as_str()).collect()
    }

    #[test]
    fn events_are_the_same_for_any_chunking() {
        let stream = "\u{feff}id: 7\r\nevent: message\r\ndata: one\r\ndata:two\r\n\r\n: a comment\n\ndata: three\r\rretry: 500\n\n".as_bytes();
        let whole = read(&[stream]);
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        let split = read(&bytes);
        assert_eq!(data(&whole), ["one\ntwo", "three"]);
        assert_eq!(whole.ready, split.ready);
        assert_eq!((whole.last_id.as_deref(), whole.retry), (Some("7"), Some(500)));
        assert_eq!((split.last_id.as_deref(), split.retry), (Some("7"), Some(500)));
    }

    #[test]
    fn an_event_that_is_not_utf8_is_skipped_and_the_next_one_read() {
        let parser = read(&[b"data: a\xff\xfe\n\ndata: b\n\n"]);
        assert_eq!(data(&parser), ["b"]);
    }

    #[test]
    fn an_event_without_data_only_moves_the_id() {
        let parser = read(&[b"id: primed\nretry: abc\n\n"]);
        assert!(parser.ready.is_empty());
        assert_eq!((parser.last_id.as_deref(), parser.retry), (Some("primed"), None));
    }

    #[test]
    fn an_event_over_the_limit_ends_the_stream() {
        let mut parser = Parser::new(16);
        assert_eq!(parser.feed(b"data: 0123456789abcdef"), Err(RemoteError::TooLarge(16)));
        let mut parser = Parser::new(16);
        assert_eq!(parser.feed(b"data: 0123\ndata: 4567\ndata: 89ab\n"), Err(RemoteError::TooLarge(16)));
    }
}
