//! Writes messages to a byte stream, in order. What the stream takes at once is written by the sender itself, because
//! waking a task costs more than most messages do. A task writes everything else.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::model::RawJson;

/// Shorter pieces are copied into one text, longer ones are written from where they are.
const COPIED: usize = 16 << 10;
/// Texts of this size are not extended.
const FULL: usize = 64 << 10;
/// How many pieces one write may contain.
const SLICES: usize = 8;

pub type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// Part of a message.
pub enum Piece {
    Text(Vec<u8>),
    Result(RawJson),
}

impl Piece {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text,
            Self::Result(raw) => raw.get().as_bytes(),
        }
    }
}

/// Who writes a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMode {
    /// The sender, as far as the stream takes it at once. For a message that nothing follows soon.
    Now,
    /// The task, together with the messages that follow soon.
    Together,
}

/// What waits to be written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unread {
    pub bytes: usize,
    pub messages: usize,
}

/// The stream is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closed;

/// Owns the task.
pub struct LineWriter {
    sender: LineSender,
    task: Option<AbortOnDropHandle<()>>,
}

/// Sends messages. Clones share the stream.
#[derive(Clone)]
pub struct LineSender(Arc<Shared>);

struct Shared {
    /// `std`, private to this file, held for a write that does not wait.
    state: Mutex<State>,
    /// Wakes the task.
    wake: Notify,
    /// Notified when something was written.
    written: Notify,
    /// Cancelled when nothing more will be written.
    ended: CancellationToken,
    /// Called with what was written.
    report: Box<dyn Fn(Unread) + Send + Sync>,
}

struct State {
    /// `None` once the stream is closed.
    write: Option<Writer>,
    queue: VecDeque<Piece>,
    /// How much of the first piece is written.
    offset: usize,
    unread: Unread,
    /// The ends of the messages, as bytes after the end before.
    ends: VecDeque<usize>,
    /// The stream is being flushed, and wakes the task when that is done.
    is_flushing: bool,
    /// No more messages are accepted.
    closed: bool,
}

enum Step {
    Wrote,
    /// Nothing is left.
    Empty,
}

impl LineWriter {
    /// Writes to `write`. If it takes no byte for `stall`, it counts as broken. Calls `report` with what was written.
    pub fn new(write: Writer, stall: Option<Duration>, report: impl Fn(Unread) + Send + Sync + 'static) -> Self {
        let (queue, ends, unread) = Default::default();
        let state = State { write: Some(write), queue, offset: 0, unread, ends, is_flushing: false, closed: false };
        let sender = LineSender(Arc::new(Shared {
            state: Mutex::new(state),
            wake: Notify::new(),
            written: Notify::new(),
            ended: CancellationToken::new(),
            report: Box::new(report),
        }));
        let task = AbortOnDropHandle::new(tokio::spawn(write_queue(sender.0.clone(), stall)));
        Self { sender, task: Some(task) }
    }

    pub fn sender(&self) -> &LineSender {
        &self.sender
    }

    /// Writes what is left, and closes the stream. Does not wait longer than `limit`.
    pub async fn close(&mut self, limit: Duration) {
        self.sender.0.lock().closed = true;
        self.sender.0.wake.notify_one();
        if let Some(task) = self.task.take() {
            tokio::time::timeout(limit, task).await.ok();
        }
        close(&self.sender.0);
    }
}

impl Drop for LineWriter {
    fn drop(&mut self) {
        // Senders may live longer, but the other side should notice.
        close(&self.sender.0);
    }
}

impl LineSender {
    /// Sends a message that consists of these pieces.
    pub fn put(&self, pieces: impl IntoIterator<Item = Piece>, mode: WriteMode) -> Result<(), Closed> {
        let mut state = self.0.lock();
        if state.closed {
            return Err(Closed);
        }
        let is_idle = state.queue.is_empty() && !state.is_flushing;
        let length = pieces.into_iter().map(|piece| state.add(piece)).sum();
        state.unread.bytes += length;
        state.unread.messages += 1;
        state.ends.push_back(length);
        if is_idle && mode == WriteMode::Now {
            // The task sets its own waker when it has to go on.
            let mut context = Context::from_waker(Waker::noop());
            let before = state.unread;
            let step = loop {
                match state.step(&mut context) {
                    Poll::Ready(Ok(Step::Wrote)) => {}
                    step => break step,
                }
            };
            let after = state.unread;
            drop(state);
            self.0.report(before, after);
            if matches!(step, Poll::Ready(Ok(Step::Empty))) {
                return Ok(());
            }
        }
        if is_idle {
            self.0.wake.notify_one();
        }
        Ok(())
    }

    pub fn unread(&self) -> Unread {
        self.0.lock().unread
    }

    /// Waits until what is left to be written `fits`.
    pub async fn until(&self, fits: impl Fn(Unread) -> bool) {
        loop {
            if fits(self.unread()) {
                return;
            }
            let written = self.0.written.notified();
            tokio::pin!(written);
            // Before the second look, so that nothing is missed in between.
            written.as_mut().enable();
            if fits(self.unread()) {
                return;
            }
            written.await;
        }
    }

    /// Waits until nothing more will be written.
    pub async fn ended(&self) {
        self.0.ended.cancelled().await;
    }

    pub fn has_ended(&self) -> bool {
        self.0.ended.is_cancelled()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn report(&self, before: Unread, after: Unread) {
        let written = Unread { bytes: before.bytes - after.bytes, messages: before.messages - after.messages };
        if written.bytes > 0 {
            (self.report)(written);
            self.written.notify_waiters();
        }
    }

    fn poll_step(&self, context: &mut Context<'_>) -> Poll<io::Result<Step>> {
        let mut state = self.lock();
        let before = state.unread;
        let step = state.step(context);
        let after = state.unread;
        drop(state);
        self.report(before, after);
        step
    }
}

impl State {
    /// Queues a piece, and returns its length.
    fn add(&mut self, piece: Piece) -> usize {
        let length = piece.bytes().len();
        match (self.queue.back_mut(), piece) {
            (Some(Piece::Text(text)), piece) if length <= COPIED && text.len() < FULL => {
                text.extend_from_slice(piece.bytes());
            }
            (_, Piece::Result(raw)) if length <= COPIED => {
                self.queue.push_back(Piece::Text(raw.get().as_bytes().to_vec()));
            }
            (_, piece) => self.queue.push_back(piece),
        }
        length
    }

    /// Writes once.
    fn step(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Step>> {
        let Some(write) = &mut self.write else { return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())) };
        if self.queue.is_empty() {
            let flushed = Pin::new(write).poll_flush(context);
            self.is_flushing = flushed.is_pending();
            return flushed.map_ok(|()| Step::Empty);
        }
        self.is_flushing = false;
        let mut slices = [IoSlice::new(&[]); SLICES];
        let mut skipped = self.offset;
        for (slice, piece) in slices.iter_mut().zip(&self.queue) {
            *slice = IoSlice::new(piece.bytes().get(skipped..).unwrap_or_default());
            skipped = 0;
        }
        let count = self.queue.len().min(SLICES);
        let slices = slices.get(..count).unwrap_or_default();
        match Pin::new(write).poll_write_vectored(context, slices) {
            Poll::Ready(Ok(0)) => Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
            Poll::Ready(Ok(length)) => {
                self.advance(length);
                Poll::Ready(Ok(Step::Wrote))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Removes what was written.
    fn advance(&mut self, length: usize) {
        self.unread.bytes -= length;
        self.offset += length;
        while let Some(first) =
            self.queue.front().map(|piece| piece.bytes().len()).filter(|first| *first <= self.offset)
        {
            self.offset -= first;
            self.queue.pop_front();
        }
        let mut left = length;
        while let Some(end) = self.ends.front_mut() {
            if *end > left {
                *end -= left;
                break;
            }
            left -= *end;
            self.ends.pop_front();
            self.unread.messages -= 1;
        }
    }
}

/// Writes what waits whenever there is something, until the writer is closed or the stream breaks.
async fn write_queue(shared: Arc<Shared>, stall: Option<Duration>) {
    let _ended = shared.ended.clone().drop_guard();
    loop {
        shared.wake.notified().await;
        // The tasks that are ready now may have messages, too. Each write wakes the reader, which costs more than they do.
        tokio::task::yield_now().await;
        loop {
            let step = std::future::poll_fn(|context| shared.poll_step(context));
            let step = match stall {
                Some(stall) => match tokio::time::timeout(stall, step).await {
                    Ok(step) => step,
                    Err(_) => {
                        tracing::warn!("closed a stream that took nothing for {stall:?}");
                        return close(&shared);
                    }
                },
                None => step.await,
            };
            match step {
                Ok(Step::Wrote) => {}
                Ok(Step::Empty) => break,
                Err(_) => return close(&shared),
            }
        }
        if shared.lock().closed {
            let write = shared.lock().write.take();
            if let Some(mut write) = write {
                write.shutdown().await.ok();
            }
            return;
        }
    }
}

/// Nothing more can be written.
fn close(shared: &Shared) {
    let mut state = shared.lock();
    state.closed = true;
    state.queue.clear();
    state.write = None;
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde_json::value::RawValue;
    use tokio::io::{AsyncReadExt, duplex};

    use super::*;

    fn text(text: &str) -> Piece {
        Piece::Text(text.as_bytes().to_vec())
    }

    fn result(length: usize) -> RawJson {
        RawJson::from(RawValue::from_string(format!("\"{}\"", "x".repeat(length))).unwrap())
    }

    #[tokio::test]
    async fn what_the_stream_takes_is_written_at_once() {
        let (stream, mut other) = duplex(64);
        let writer = LineWriter::new(Box::new(stream), None, |_| {});
        writer.sender().put([text("one"), Piece::Result(result(3)), text("\n")], WriteMode::Now).unwrap();
        assert_eq!(writer.sender().unread(), Unread::default(), "without a change of task");
        let mut read = [0; 9];
        other.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"one\"xxx\"\n");
    }

    #[tokio::test]
    async fn messages_stay_in_order_and_complete_no_matter_who_writes_them() {
        let (stream, mut other) = duplex(7);
        let written = Arc::new(AtomicUsize::new(0));
        let count = written.clone();
        let report = move |unread: Unread| {
            count.fetch_add(unread.messages, Ordering::Relaxed);
        };
        let mut writer = LineWriter::new(Box::new(stream), None, report);
        let mut expected = String::new();
        for number in 0..200_usize {
            let mode = if number.is_multiple_of(3) { WriteMode::Together } else { WriteMode::Now };
            // Some are copied, others are written from where they are.
            let raw = result(if number.is_multiple_of(50) { COPIED + number } else { number });
            expected.push_str(&format!("{number}:{}\n", raw.get()));
            writer.sender().put([text(&format!("{number}:")), Piece::Result(raw), text("\n")], mode).unwrap();
        }
        assert_eq!(writer.sender().unread().messages, 200 - written.load(Ordering::Relaxed));
        let read = tokio::spawn(async move {
            let mut read = String::new();
            other.read_to_string(&mut read).await.unwrap();
            read
        });
        writer.sender().until(|unread| unread.messages == 0).await;
        assert_eq!(written.load(Ordering::Relaxed), 200);
        writer.close(Duration::from_secs(20)).await;
        assert!(read.await.unwrap() == expected);
        assert_eq!(writer.sender().put([text("late\n")], WriteMode::Now), Err(Closed));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_takes_nothing_is_closed() {
        let (stream, other) = duplex(4);
        let writer = LineWriter::new(Box::new(stream), Some(Duration::from_secs(10)), |_| {});
        writer.sender().put([text("too much\n")], WriteMode::Now).unwrap();
        writer.sender().ended().await;
        assert!(writer.sender().has_ended());
        assert_eq!(writer.sender().put([text("more\n")], WriteMode::Now), Err(Closed));
        drop(other);
    }

    #[tokio::test]
    async fn dropping_the_writer_closes_the_stream_although_senders_live() {
        let (stream, mut other) = duplex(64);
        let writer = LineWriter::new(Box::new(stream), None, |_| {});
        let sender = writer.sender().clone();
        drop(writer);
        assert_eq!(other.read(&mut [0; 8]).await.unwrap(), 0);
        assert_eq!(sender.put([text("late\n")], WriteMode::Together), Err(Closed));
    }
}
