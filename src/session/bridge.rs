//! Forwards messages between a program and the engine, and outlives the engine: many agents and editors never restart a
//! server.
//!
//! When the connection is lost, calls that were running are answered with an error, the engine is joined or started
//! again, and what the program has sent to the old engine is repeated for the new one. Requests that only read are sent
//! again, and so are those that the old engine cannot have received. If no engine can be joined, the next message tries
//! again, so nothing polls.
//!
//! An editor with our plugin is not served here: it holds more state of an engine than its messages show, such as a
//! ticket, so it starts a new front instead.

mod agent_memory;
mod batch;
mod editor_memory;
mod message;

use std::borrow::Cow;
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufRead, BufWriter, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::forward::{ReadAhead, STACK, Stdio};
use super::join::{JoinError, Joined, ask_exit_code};
pub use agent_memory::AgentMemory;
use batch::{Batch, Call, write_counted};
pub use editor_memory::EditorMemory;
use message::Messages;

/// As much as one read and one write contain.
const BUFFER: usize = 64 << 10;
/// A buffer that has become larger than this is freed after its message.
const KEPT_BUFFER: usize = 2 << 20;
/// A connection that is lost sooner does not count as a success.
const STABLE: Duration = Duration::from_secs(5);
/// How often in a row a connection may be lost soon before the next request has to ask for it.
const QUICK_LOSSES: u32 = 3;

/// What must be known about a session to continue with another engine.
pub trait Memory: Default + Send + 'static {
    /// Reads the next message with its frame, or nothing at the end of the input. Returns whether it is complete.
    fn read(input: &mut impl BufRead, message: &mut Vec<u8>) -> io::Result<bool>;
    /// A message of the program. Returns what to send, or nothing for a response to an engine that has ended.
    fn take_from_program<'a>(&mut self, message: &'a [u8]) -> Option<Cow<'a, [u8]>>;
    /// The id of the message that was taken last, if it is a request that is sent as it is, and that must not be carried out
    /// twice.
    fn take_call(&mut self) -> Option<String> {
        None
    }
    /// These calls were written. If the connection was lost in between, returns the responses to them.
    fn written(&mut self, _calls: &[Call], _is_open: bool) -> Vec<u8> {
        Vec::new()
    }
    /// This call could not be written. Returns whether it must be sent again.
    fn take_back(&mut self, _call: &Call) -> bool {
        false
    }
    /// A message of the program for which there is no engine. Returns the response.
    fn unavailable(&mut self, message: &[u8], reason: &str) -> Option<Vec<u8>>;
    /// A message of the engine. Returns what to pass on, or nothing for a response to our own request.
    fn take_from_engine<'a>(&mut self, message: &'a [u8]) -> Option<Cow<'a, [u8]>>;
    /// The connection is lost. Returns what to send to the program, such as responses to requests that cannot be sent
    /// again.
    fn lose(&mut self) -> Vec<u8>;
    /// No engine can be joined. Returns the responses to all requests.
    fn fail_all(&mut self, reason: &str) -> Vec<u8>;
    /// What to send to a new engine before anything else. Nothing to the first one.
    fn replay(&self) -> Vec<u8>;
    /// What to send to the program about a new engine.
    fn news(&self) -> Vec<u8>;
    /// Whether the program has ended the session.
    fn has_ended(&self) -> bool;
    /// Whether an engine that keeps running has ended the session for good, with this exit code.
    fn ends_with(code: u8) -> bool;
}

struct Bridge<M> {
    state: Mutex<State<M>>,
    changed: Condvar,
    /// Written in whole messages.
    output: Mutex<BufWriter<File>>,
}

/// What becomes of a message of the program.
enum Admitted<'a> {
    Sent(Arc<UnixStream>, Cow<'a, [u8]>, Option<String>),
    /// The batch is for an engine that has ended, and comes first.
    AfterBatch,
    /// It is not for this engine, or is answered already.
    Done,
}

/// What the program sends. Before it is waited for, everything that came before is written to the engine.
struct ProgramInput<'a, M, R> {
    bridge: &'a Bridge<M>,
    batch: &'a RefCell<Batch>,
    input: R,
}

impl<M: Memory, R: Read> Read for ProgramInput<'_, M, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.bridge.flush(&mut self.batch.borrow_mut());
        self.input.read(buffer)
    }
}

/// What the engine sends. Before it is waited for, everything that came before is written to the program.
struct EngineInput<'a, M> {
    bridge: &'a Bridge<M>,
    stream: &'a UnixStream,
}

impl<M> Read for EngineInput<'_, M> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.bridge.output().flush()?;
        self.stream.read(buffer)
    }
}

struct State<M> {
    memory: M,
    link: Link,
    /// The program has closed its side.
    ended: bool,
}

impl<M: Memory> State<M> {
    fn has_ended(&self) -> bool {
        self.ended || self.memory.has_ended()
    }

    /// Whether this is the connection to the current engine.
    fn is_open(&self, stream: &Arc<UnixStream>) -> bool {
        matches!(&self.link, Link::Open(open) if Arc::ptr_eq(open, stream))
    }
}

enum Link {
    Open(Arc<UnixStream>),
    /// The engine is being joined. Messages wait.
    Joining,
    /// No engine could be joined. The next request asks for it.
    Down {
        reason: String,
    },
}

/// Forwards messages until the program closes its side. `rejoin` finds or starts an engine. Returns the exit code.
pub fn bridge<M: Memory>(
    mut joined: Joined,
    stdio: Stdio,
    read_ahead: ReadAhead,
    mut rejoin: impl FnMut() -> Result<Joined, JoinError>,
) -> io::Result<u8> {
    let Stdio { input, output } = stdio;
    let state = State { memory: M::default(), link: Link::Joining, ended: false };
    let bridge = Arc::new(Bridge { state: Mutex::new(state), changed: Condvar::new(), output: buffered(output) });
    bridge.open(&joined.stream)?;
    let reader = bridge.clone();
    let input = io::Cursor::new(read_ahead.0).chain(input);
    std::thread::Builder::new().name("input".to_owned()).stack_size(STACK).spawn(move || reader.read_program(input))?;
    let mut quick_losses = 0;
    loop {
        let since = Instant::now();
        let written = bridge.read_engine(&joined.stream);
        joined.stream.shutdown(Shutdown::Both).ok();
        // The program reads no more, or it has ended the session.
        if written.is_err() || bridge.lock().has_ended() {
            return Ok(ask_exit_code(&joined.address, joined.session).unwrap_or(0));
        }
        // The engine has ended this session and keeps running: it does so if a program reads nothing.
        if let Some(code) = ask_exit_code(&joined.address, joined.session).filter(|code| M::ends_with(*code)) {
            return Ok(code);
        }
        if let Some(engine) = joined.engine.take() {
            std::thread::Builder::new().stack_size(STACK).spawn(move || engine.end_leftovers())?;
        }
        bridge.lose()?;
        quick_losses = if since.elapsed() < STABLE { quick_losses + 1 } else { 0 };
        let mut reason = (quick_losses >= QUICK_LOSSES).then(|| "it keeps exiting".to_owned());
        joined = loop {
            if let Some(reason) = reason.take()
                && !bridge.wait_for_message(reason)?
            {
                return Ok(1);
            }
            let rejoined = rejoin().and_then(|joined| {
                bridge.open(&joined.stream)?;
                Ok(joined)
            });
            match rejoined {
                Ok(joined) => break joined,
                Err(error) => reason = Some(error.to_string()),
            }
        };
    }
}

impl<M> Bridge<M> {
    fn output(&self) -> MutexGuard<'_, BufWriter<File>> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<M: Memory> Bridge<M> {
    fn lock(&self) -> MutexGuard<'_, State<M>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells a new engine what the old one knew, and lets messages pass.
    fn open(&self, stream: &UnixStream) -> io::Result<()> {
        let stream = Arc::new(stream.try_clone()?);
        let (replay, news) = {
            let state = self.lock();
            (state.memory.replay(), state.memory.news())
        };
        // A failed write is a lost connection, which is noticed when it is read.
        (&*stream).write_all(&replay).ok();
        let mut state = self.lock();
        if state.ended {
            // The program closed its side while there was no engine, which this one would wait for forever.
            stream.shutdown(Shutdown::Write).ok();
        }
        state.link = Link::Open(stream);
        drop(state);
        self.changed.notify_all();
        self.write(&news)
    }

    /// The connection is lost: answers what was running and cannot be sent again.
    fn lose(&self) -> io::Result<()> {
        let mut state = self.lock();
        state.link = Link::Joining;
        let answers = state.memory.lose();
        drop(state);
        self.write(&answers)
    }

    /// No engine could be joined: answers what waits, and waits for the next message. `false` if the program has gone.
    fn wait_for_message(&self, reason: String) -> io::Result<bool> {
        let mut state = self.lock();
        let answers = state.memory.fail_all(&reason);
        state.link = Link::Down { reason };
        self.changed.notify_all();
        drop(state);
        self.write(&answers)?;
        let state = self.lock();
        let wait =
            self.changed.wait_while(state, |state| !state.has_ended() && matches!(state.link, Link::Down { .. }));
        Ok(!wait.unwrap_or_else(PoisonError::into_inner).has_ended())
    }

    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let mut output = self.output();
        output.write_all(bytes)?;
        output.flush()
    }

    /// Forwards messages of the engine. An error means that the program reads no more.
    fn read_engine(&self, stream: &UnixStream) -> io::Result<()> {
        let mut messages = Messages::new(EngineInput { bridge: self, stream });
        while let Ok(Some((message, is_whole))) = messages.next::<M>() {
            let passed = self.lock().memory.take_from_engine(message);
            if let Some(message) = passed.filter(|_| is_whole) {
                self.output().write_all(&message)?;
            }
        }
        self.output().flush()
    }

    fn read_program(&self, input: impl Read) {
        let batch = RefCell::default();
        let mut messages = Messages::new(ProgramInput { bridge: self, batch: &batch, input });
        while let Ok(Some((message, _))) = messages.next::<M>() {
            self.send(message, &mut batch.borrow_mut());
        }
        let mut state = self.lock();
        state.ended = true;
        if let Link::Open(stream) = &state.link {
            // Tells the engine that the input has ended.
            stream.shutdown(Shutdown::Write).ok();
        }
        self.changed.notify_all();
    }

    /// Adds a message of the program to the batch for the engine.
    fn send(&self, message: &[u8], batch: &mut Batch) {
        loop {
            match self.admit(message, batch.stream.as_ref()) {
                Admitted::Sent(stream, sent, call) => break batch.add(stream, &sent, call),
                Admitted::AfterBatch => self.flush(batch),
                Admitted::Done => return,
            }
        }
        if batch.bytes.len() >= BUFFER {
            self.flush(batch);
        }
    }

    /// Writes the batch. What its engine cannot have received is sent to the next one.
    fn flush(&self, batch: &mut Batch) {
        while let Some(stream) = batch.stream.take() {
            let (bytes, calls) = (std::mem::take(&mut batch.bytes), std::mem::take(&mut batch.calls));
            for call in self.write_batch(&stream, &bytes, &calls) {
                self.send(bytes.get(call.place.clone()).unwrap_or_default(), batch);
            }
            if batch.bytes.is_empty() {
                // It keeps its memory.
                (batch.bytes, batch.calls) = (bytes, calls);
                batch.bytes.clear();
                batch.bytes.shrink_to(KEPT_BUFFER);
                batch.calls.clear();
            }
        }
    }

    /// Returns the calls that must be sent again, to the next engine.
    fn write_batch<'c>(&self, stream: &Arc<UnixStream>, bytes: &[u8], calls: &'c [Call]) -> Vec<&'c Call> {
        let length = write_counted(stream, bytes);
        let mut state = self.lock();
        let is_open = state.is_open(stream);
        if length < bytes.len() && is_open {
            // Ends the other thread's reading, which joins the next engine.
            stream.shutdown(Shutdown::Both).ok();
            state.link = Link::Joining;
        }
        let (written, rest) = calls.split_at(calls.partition_point(|call| call.place.end <= length));
        let answer = state.memory.written(written, is_open);
        let again = rest.iter().filter(|call| state.memory.take_back(call)).collect();
        drop(state);
        self.write(&answer).ok();
        again
    }

    /// Notes what the program sends, once an engine is there. `earlier` is the engine that the batch is for.
    fn admit<'a>(&self, message: &'a [u8], earlier: Option<&Arc<UnixStream>>) -> Admitted<'a> {
        let mut state = self.lock();
        let mut asked = false;
        loop {
            if earlier.is_some_and(|earlier| !state.is_open(earlier)) {
                return Admitted::AfterBatch;
            }
            match &state.link {
                Link::Open(stream) => {
                    let stream = stream.clone();
                    let Some(sent) = state.memory.take_from_program(message) else { return Admitted::Done };
                    return Admitted::Sent(stream, sent, state.memory.take_call());
                }
                Link::Down { reason } if asked => {
                    let reason = reason.clone();
                    let answer = state.memory.unavailable(message, &reason);
                    drop(state);
                    // The message may have ended the session.
                    self.changed.notify_all();
                    self.write(&answer.unwrap_or_default()).ok();
                    return Admitted::Done;
                }
                Link::Down { .. } => {
                    asked = true;
                    state.link = Link::Joining;
                    self.changed.notify_all();
                }
                Link::Joining => {
                    asked = true;
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}

fn buffered(output: File) -> Mutex<BufWriter<File>> {
    Mutex::new(BufWriter::with_capacity(BUFFER, output))
}

#[cfg(test)]
mod tests;
