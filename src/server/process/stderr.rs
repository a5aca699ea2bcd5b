//! Reads a server's stderr to the end, and keeps a bounded part as log lines.

use tokio::io::{AsyncRead, AsyncReadExt};

use crate::model::LogSource;
use crate::server::logs::Logs;

/// More than is ever shown, so that a secret at the cut is masked as a whole.
const MAX_LINE_BYTES: usize = 16 << 10;

pub async fn drain(mut stderr: impl AsyncRead + Unpin, logs: Logs) {
    let mut lines = Lines::default();
    let mut chunk = vec![0; 8 << 10];
    loop {
        match stderr.read(&mut chunk).await {
            Ok(0) | Err(_) => break,
            Ok(count) => lines.feed(chunk.get(..count).unwrap_or_default(), |line| emit(&logs, line)),
        }
    }
    lines.finish(|line| emit(&logs, line));
}

fn emit(logs: &Logs, line: &str) {
    logs.push(LogSource::Stderr, level(line), line);
}

/// Most servers write everything to stderr; a line without a level counts as information.
fn level(line: &str) -> &'static str {
    let head: String = line.chars().take(64).collect::<String>().to_ascii_lowercase();
    match () {
        () if head.contains("error") || head.contains("fatal") || head.starts_with("traceback") => "error",
        () if head.contains("warn") => "warning",
        () => "info",
    }
}

/// Splits a stream into lines of bounded length.
#[derive(Default)]
struct Lines {
    line: Vec<u8>,
    /// Bytes of the current line that were dropped.
    skipped: usize,
}

impl Lines {
    fn feed(&mut self, chunk: &[u8], mut emit: impl FnMut(&str)) {
        let mut pieces = chunk.split(|byte| *byte == b'\n');
        if let Some(first) = pieces.next() {
            self.extend(first, &mut emit);
        }
        for piece in pieces {
            self.end_line(&mut emit);
            self.extend(piece, &mut emit);
        }
    }

    /// A line that reaches the limit is emitted immediately, because it may never end.
    fn extend(&mut self, piece: &[u8], emit: &mut impl FnMut(&str)) {
        let room = MAX_LINE_BYTES - self.line.len();
        let (kept, rest) = piece.split_at(piece.len().min(room));
        self.line.extend_from_slice(kept);
        if !rest.is_empty() {
            if self.skipped == 0 {
                emit(&String::from_utf8_lossy(&self.line));
            }
            self.skipped += rest.len();
        }
    }

    fn end_line(&mut self, emit: &mut impl FnMut(&str)) {
        if self.skipped > 0 {
            emit(&format!("({} more bytes of this line were dropped)", self.skipped));
        } else {
            let line = String::from_utf8_lossy(&self.line);
            let line = line.trim_end();
            if !line.is_empty() {
                emit(line);
            }
        }
        self.line.clear();
        self.skipped = 0;
    }

    fn finish(mut self, mut emit: impl FnMut(&str)) {
        self.end_line(&mut emit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(chunks: &[&[u8]]) -> Vec<String> {
        let mut emitted = Vec::new();
        let mut lines = Lines::default();
        for chunk in chunks {
            lines.feed(chunk, |line| emitted.push(line.to_owned()));
        }
        lines.finish(|line| emitted.push(line.to_owned()));
        emitted
    }

    #[test]
    fn lines_are_complete_for_any_chunking() {
        assert_eq!(lines(&[b"one\r\ntw", b"o\n\nthr\xffee"]), ["one", "two", "thr\u{fffd}ee"]);
    }

    #[test]
    fn an_endless_line_is_truncated_and_counted() {
        let chunk = vec![b'x'; 8 << 10];
        let chunks: Vec<&[u8]> = std::iter::repeat_n(chunk.as_slice(), 8192).collect();
        let emitted = lines(&chunks);
        assert_eq!(emitted.len(), 2);
        assert_eq!(emitted[0].len(), MAX_LINE_BYTES);
        assert_eq!(emitted[1], "(67092480 more bytes of this line were dropped)");
    }
}
