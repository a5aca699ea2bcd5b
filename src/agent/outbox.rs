//! The messages that wait for an agent to read them, and the task that writes them.
//!
//! An agent may be slow: as long as it takes a byte now and then, it stays connected, and only its own requests wait. One
//! that takes nothing for a while is disconnected.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::server::transport::ledger::size;

/// How many messages may wait before the agent's requests wait, too.
const MAX_UNREAD: usize = 4_096;
/// How long an agent may take no byte of what waits for it.
const STALL_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the remaining messages may take when the connection closes.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(500);
/// Small messages are combined into writes of about this size. Large ones are written in pieces of this size.
const WRITE_SIZE: usize = 64 << 10;

pub type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// The agent has disconnected, or we have disconnected it.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the agent has disconnected")]
pub struct Disconnected;

/// A message to deliver: its text, or the beginning of it and the result that follows.
type Outgoing = (Vec<u8>, Option<Arc<RawValue>>);

/// The channel is unbounded because a transport must not wait when it sends; `unread` limits the queue instead.
pub struct Outbox {
    sender: Option<mpsc::UnboundedSender<Outgoing>>,
    unread: Arc<watch::Sender<Unread>>,
    /// Cancelled when the agent is disconnected.
    disconnect: CancellationToken,
    writing: Option<AbortOnDropHandle<()>>,
    limit: usize,
}

/// What the agent has not read yet.
#[derive(Debug, Clone, Copy, Default)]
struct Unread {
    bytes: usize,
    messages: usize,
}

impl Outbox {
    /// `limit` is the size of the largest message.
    pub fn new(write: Writer, limit: usize) -> Self {
        let (sender, queue) = mpsc::unbounded_channel();
        let (unread, disconnect) = (Arc::<watch::Sender<Unread>>::default(), CancellationToken::new());
        let writing = AbortOnDropHandle::new(tokio::spawn(write_all(write, queue, unread.clone(), disconnect.clone())));
        Self { sender: Some(sender), unread, disconnect, writing: Some(writing), limit }
    }

    /// Waits until the agent has read enough to send more requests.
    pub async fn has_room(&self) {
        let fits = |unread: &Unread| unread.bytes <= self.limit && unread.messages < MAX_UNREAD;
        self.unread.subscribe().wait_for(fits).await.ok();
    }

    /// Waits until the agent is disconnected.
    pub async fn disconnected(&self) {
        self.disconnect.cancelled().await;
    }

    /// Whether a result of this size may wait as well. Requests that were sent before the agent fell behind still end, so
    /// there is room for more than `has_room` allows. A single message may have any size.
    pub fn can_take(&self, bytes: usize) -> bool {
        let unread = *self.unread.borrow();
        unread.messages == 0 || (unread.bytes + bytes <= self.most() && unread.messages < 2 * MAX_UNREAD)
    }

    /// Why a result is not delivered.
    pub fn full_message(&self) -> String {
        let most = size(self.most());
        format!("the result was dropped: more than {most} of results wait for you to read them")
    }

    fn most(&self) -> usize {
        4 * self.limit
    }

    pub fn put(&self, text: Vec<u8>, raw: Option<Arc<RawValue>>) -> Result<(), Disconnected> {
        let length = length(&text, raw.as_deref());
        self.unread.send_modify(|unread| {
            unread.bytes += length;
            unread.messages += 1;
        });
        self.sender.as_ref().ok_or(Disconnected)?.send((text, raw)).map_err(|_| Disconnected)
    }

    pub async fn close(&mut self) {
        self.sender = None;
        if let Some(writing) = self.writing.take()
            && !self.disconnect.is_cancelled()
        {
            // Do not wait longer for an agent that does not read.
            tokio::time::timeout(FLUSH_TIMEOUT, writing).await.ok();
        }
    }
}

/// Writes the queue in order. Combines small messages, and writes large results without copying them.
async fn write_all(
    mut write: Writer,
    mut queue: mpsc::UnboundedReceiver<Outgoing>,
    unread: Arc<watch::Sender<Unread>>,
    disconnect: CancellationToken,
) {
    // Stops reading, too, when writing fails.
    let _disconnect = disconnect.drop_guard();
    let mut text = Vec::new();
    let (mut messages, mut bytes) = (0, 0);
    let mut next = queue.recv().await;
    while let Some((head, raw)) = next.take() {
        messages += 1;
        bytes += length(&head, raw.as_deref());
        text.extend_from_slice(&head);
        if let Some(raw) = raw
            && put_result(&mut write, &mut text, raw.get()).await.is_err()
        {
            return;
        }
        if text.len() < WRITE_SIZE
            && let Ok(more) = queue.try_recv()
        {
            next = Some(more);
            continue;
        }
        if put(&mut write, &text).await.is_err() || write.flush().await.is_err() {
            return;
        }
        text.clear();
        unread.send_modify(|unread| {
            unread.bytes -= std::mem::take(&mut bytes);
            unread.messages -= std::mem::take(&mut messages);
        });
        next = queue.recv().await;
    }
    write.shutdown().await.ok();
}

/// Writes everything, however long it takes, unless the agent takes no byte at all for a while.
async fn put(write: &mut Writer, mut bytes: &[u8]) -> std::io::Result<()> {
    while !bytes.is_empty() {
        let piece = bytes.get(..WRITE_SIZE).unwrap_or(bytes);
        let Ok(written) = tokio::time::timeout(STALL_TIMEOUT, write.write(piece)).await else {
            tracing::warn!("disconnected an agent that did not read its responses for {STALL_TIMEOUT:?}");
            return Err(std::io::ErrorKind::TimedOut.into());
        };
        match written? {
            0 => return Err(std::io::ErrorKind::WriteZero.into()),
            length => bytes = bytes.get(length..).unwrap_or_default(),
        }
    }
    Ok(())
}

/// The size of a message.
fn length(head: &[u8], raw: Option<&RawValue>) -> usize {
    head.len() + raw.map_or(0, |raw| raw.get().len() + 2)
}

/// Adds a result and the end of the response to `text`. A large result is written immediately.
async fn put_result(write: &mut Writer, text: &mut Vec<u8>, raw: &str) -> std::io::Result<()> {
    if memchr::memchr2(b'\n', b'\r', raw.as_bytes()).is_some() {
        // Raw line breaks in JSON are only whitespace, so they can become spaces.
        text.extend(raw.bytes().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }));
    } else if raw.len() < WRITE_SIZE {
        text.extend_from_slice(raw.as_bytes());
    } else {
        put(write, text).await?;
        text.clear();
        put(write, raw.as_bytes()).await?;
    }
    text.extend_from_slice(b"}\n");
    Ok(())
}
