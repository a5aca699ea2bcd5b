//! Splits a byte stream into lines in bounded memory. Pure.

use std::ops::Range;

/// How much of the start and the end of an overlong line is kept, to find the request that it answers.
const HEAD: usize = 4 << 10;
const TAIL: usize = 512;
/// The size of each read.
const READ_SIZE: usize = 16 << 10;
/// A larger buffer is freed when it is empty.
const MAX_IDLE_CAPACITY: usize = 256 << 10;

#[derive(Debug)]
pub struct Frames {
    buffer: Vec<u8>,
    /// The start of the incomplete line.
    start: usize,
    /// How far that line has been searched for its end.
    searched: usize,
    limit: usize,
    overlong: Option<OverlongLine>,
}

/// An overlong line that is skipped.
#[derive(Debug, Default)]
pub struct OverlongLine {
    pub head: Vec<u8>,
    pub tail: Vec<u8>,
}

#[derive(Debug)]
pub enum Frame {
    /// A complete line without its end. Read it with [`Frames::line`] before calling [`Frames::take`] again.
    Line(Range<usize>),
    /// A line has exceeded the limit; this is its start.
    TooLong(Vec<u8>),
    /// The overlong line has ended.
    TooLongEnded(OverlongLine),
}

impl Frames {
    pub fn new(limit: usize) -> Self {
        Self { buffer: Vec::new(), start: 0, searched: 0, limit, overlong: None }
    }

    /// The buffer to append to.
    pub fn room(&mut self) -> &mut Vec<u8> {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.searched -= self.start;
            self.start = 0;
        }
        if self.buffer.is_empty() && self.buffer.capacity() > MAX_IDLE_CAPACITY {
            self.buffer = Vec::new();
        }
        self.buffer.reserve(READ_SIZE);
        &mut self.buffer
    }

    pub fn line(&self, line: Range<usize>) -> &[u8] {
        self.buffer.get(line).unwrap_or_default()
    }

    /// The next complete frame.
    pub fn take(&mut self) -> Option<Frame> {
        let end =
            self.buffer.get(self.searched..).and_then(|rest| memchr::memchr(b'\n', rest)).map(|at| self.searched + at);
        if let Some(overlong) = &mut self.overlong {
            overlong.remember(self.buffer.get(self.start..end.unwrap_or(self.buffer.len())).unwrap_or_default());
            self.advance(end.map_or(self.buffer.len(), |end| end + 1));
            return end.and_then(|_| self.overlong.take()).map(Frame::TooLongEnded);
        }
        match end {
            Some(end) if end - self.start <= self.limit => {
                let line = self.start..end;
                self.advance(end + 1);
                Some(Frame::Line(line))
            }
            None if self.buffer.len() - self.start <= self.limit => {
                self.searched = self.buffer.len();
                None
            }
            _ => {
                let rest = self.buffer.get(self.start..end.unwrap_or(self.buffer.len())).unwrap_or_default();
                let head = rest.get(..HEAD.min(rest.len())).unwrap_or_default().to_vec();
                self.overlong = Some(OverlongLine { head: head.clone(), tail: Vec::new() });
                Some(Frame::TooLong(head))
            }
        }
    }

    /// The text after the last line end, when the stream has ended.
    pub fn rest(&mut self) -> Option<Range<usize>> {
        let line = self.start..self.buffer.len();
        self.advance(self.buffer.len());
        (!line.is_empty() && self.overlong.is_none()).then_some(line)
    }

    fn advance(&mut self, to: usize) {
        self.start = to;
        self.searched = to;
    }
}

impl OverlongLine {
    fn remember(&mut self, piece: &[u8]) {
        self.tail.extend_from_slice(piece.get(piece.len().saturating_sub(TAIL)..).unwrap_or_default());
        self.tail.drain(..self.tail.len().saturating_sub(TAIL));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds pieces and returns the frames.
    fn cut(limit: usize, pieces: &[&str]) -> Vec<String> {
        let mut frames = Frames::new(limit);
        let mut seen = Vec::new();
        for piece in pieces {
            frames.room().extend_from_slice(piece.as_bytes());
            while let Some(frame) = frames.take() {
                seen.push(match frame {
                    Frame::Line(line) => String::from_utf8_lossy(frames.line(line)).into_owned(),
                    Frame::TooLong(head) => format!("too long: {}", String::from_utf8_lossy(&head)),
                    Frame::TooLongEnded(overlong) => format!("ended: {}", String::from_utf8_lossy(&overlong.tail)),
                });
            }
        }
        if let Some(rest) = frames.rest() {
            seen.push(format!("rest: {}", String::from_utf8_lossy(frames.line(rest))));
        }
        seen
    }

    #[test]
    fn lines_are_found_for_any_split() {
        assert_eq!(cut(99, &["one\ntw", "o", "\n\nthree"]), ["one", "two", "", "rest: three"]);
    }

    #[test]
    fn an_overlong_line_is_reported_at_once_and_the_next_one_is_complete() {
        assert_eq!(cut(4, &["ab", "cdef", "gh", "ij\nnext\n"]), ["too long: abcdef", "ended: abcdefghij", "next"]);
        assert_eq!(cut(4, &["abcdef\nnext\n"]), ["too long: abcdef", "ended: abcdef", "next"]);
    }

    #[test]
    fn memory_stays_bounded_during_an_endless_line() {
        let mut frames = Frames::new(1 << 20);
        for _ in 0..400 {
            frames.room().extend_from_slice(&[b'x'; 64 << 10]);
            while frames.take().is_some() {}
        }
        assert!(frames.buffer.capacity() < 4 << 20);
    }

    proptest::proptest! {
        #[test]
        fn lines_are_the_same_however_they_are_split(text in "[ab\n]{0,60}", sizes in proptest::collection::vec(1_usize..9, 60)) {
            let mut rest = text.as_str();
            let mut pieces = Vec::new();
            for size in sizes {
                let (piece, after) = rest.split_at(size.min(rest.len()));
                pieces.push(piece);
                rest = after;
            }
            pieces.push(rest);
            proptest::prop_assert_eq!(cut(99, &pieces), cut(99, &[&text]));
            // Lines after an overlong line are complete.
            let short: Vec<String> = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')).filter(|line| line.len() <= 4).map(str::to_owned).collect();
            let kept: Vec<String> = cut(4, &pieces).into_iter().filter(|line| !line.contains(": ")).collect();
            proptest::prop_assert_eq!(kept, short);
        }
    }
}
