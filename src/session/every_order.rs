//! Joining, leaving and taking over, as a model: two fronts, one of a newer version, and their engines take their steps in
//! every possible order, each step on the real lock and the real sockets. There is never more than one engine, no front
//! is lost, and nothing waits forever.
//!
//! The steps of a front are those of [`super::join`], one system call at a time; those of an engine those of
//! [`super::serve`].

use std::collections::{BTreeSet, VecDeque};
use std::io::{ErrorKind, Read};
use std::os::unix::net as std_net;
use std::os::unix::net::UnixStream;
use std::path::Path;

use tokio::net::UnixListener;

use super::address::EngineAddress;
use super::listeners::{self, leave};
use super::lock::Lock;

enum Front {
    /// Looks for an engine without the lock.
    Looks,
    /// Found an engine, which has not accepted it yet.
    Connects(UnixStream, Option<Lock>),
    WaitsForLock,
    /// Looks again, now with the lock.
    LooksAgain(Lock),
    Starts(Lock),
    Served,
    /// A newer version asks the engine to end, with the lock.
    TakesOver(Lock),
    Gone,
}

impl Front {
    fn name(&self) -> &'static str {
        match self {
            Self::Looks => "looks",
            Self::Connects(_, None) => "connects",
            Self::Connects(_, Some(_)) => "connects with the lock",
            Self::WaitsForLock => "waits for the lock",
            Self::LooksAgain(_) => "looks again",
            Self::Starts(_) => "starts an engine",
            Self::Served => "is served",
            Self::TakesOver(_) => "takes over",
            Self::Gone => "is gone",
        }
    }
}

/// The sockets of an engine. Those of tokio are what `leave` expects.
struct Engine {
    everyone: UnixListener,
    agents: UnixListener,
    accepts: std_net::UnixListener,
}

struct World {
    address: EngineAddress,
    fronts: [Front; 2],
    /// The second front is of a newer version until it has tried to take over.
    is_newer: bool,
    engine: Option<Engine>,
    /// The fronts that connect to the engine, in their order.
    queue: VecDeque<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Front(usize),
    /// The engine accepts the front that has waited longest.
    Accept,
    /// The engine has been idle for a while.
    Leave,
}

const STEPS: [Step; 4] = [Step::Front(0), Step::Front(1), Step::Accept, Step::Leave];

impl World {
    fn new(folder: &Path) -> Self {
        let (root, home, socket) = (folder.to_path_buf(), folder.to_path_buf(), folder.join("e.sock"));
        let (lock, agents) = (socket.with_extension("lock"), folder.join("a/e.sock"));
        let address = EngineAddress { root, home, socket, agents, lock };
        let fronts = [Front::Looks, Front::Looks];
        Self { address, fronts, is_newer: true, engine: None, queue: VecDeque::new() }
    }

    /// All that decides what can happen next.
    fn key(&self) -> String {
        let [one, other] = &self.fronts;
        format!("{} | {} | {} | {} | {:?}", one.name(), other.name(), self.is_newer, self.engine.is_some(), self.queue)
    }

    /// Takes a step. Returns false if it cannot be taken now.
    fn take(&mut self, step: Step) -> bool {
        match step {
            Step::Front(number) => {
                let before = std::mem::replace(&mut self.fronts[number], Front::Gone);
                let name = before.name();
                self.fronts[number] = self.next(number, before);
                self.fronts[number].name() != name
            }
            Step::Accept => {
                let Some(engine) = &self.engine else { return false };
                match (engine.accepts.accept(), self.queue.pop_front()) {
                    (Ok(_), Some(front)) => {
                        // A front releases the lock when it is served.
                        self.fronts[front] = Front::Served;
                        true
                    }
                    (Err(error), None) if error.kind() == ErrorKind::WouldBlock => false,
                    (accepted, expected) => panic!("{accepted:?} instead of {expected:?}"),
                }
            }
            Step::Leave => match &self.engine {
                Some(engine) if !self.is_serving() && leave(&self.address, [&engine.everyone, &engine.agents]) => {
                    assert!(self.queue.is_empty(), "the engine left while a front connects");
                    self.engine = None;
                    true
                }
                _ => false,
            },
        }
    }

    fn next(&mut self, number: usize, front: Front) -> Front {
        match front {
            Front::Looks => self.connect(number, None),
            Front::WaitsForLock => match Lock::try_take(&self.address.lock).unwrap() {
                Some(lock) => Front::LooksAgain(lock),
                None => Front::WaitsForLock,
            },
            Front::LooksAgain(lock) => self.connect(number, Some(lock)),
            Front::Starts(lock) => {
                assert!(self.engine.is_none(), "a second engine is started");
                let bound = listeners::bind(&self.address).expect("the owner of the lock can start an engine");
                let accepts = bound.everyone.try_clone().unwrap();
                let listener = |listener| UnixListener::from_std(listener).unwrap();
                let (everyone, agents) = (listener(bound.everyone), listener(bound.agents));
                self.engine = Some(Engine { everyone, agents, accepts });
                self.connect(number, Some(lock))
            }
            Front::Connects(stream, lock) if has_ended(&stream) => {
                assert!(lock.is_none(), "an engine ended while the owner of the lock connects");
                Front::WaitsForLock
            }
            Front::Served if number == 1 && self.is_newer => match Lock::try_take(&self.address.lock).unwrap() {
                Some(lock) => Front::TakesOver(lock),
                None => Front::Served,
            },
            Front::Served => Front::Gone,
            Front::TakesOver(lock) => {
                self.is_newer = false;
                // It has left its session by now.
                if self.is_serving() {
                    return Front::LooksAgain(lock);
                }
                self.address.remove();
                self.engine = None;
                self.queue.clear();
                Front::Starts(lock)
            }
            waits @ (Front::Connects(..) | Front::Gone) => waits,
        }
    }

    /// Connects to the engine, if there is a socket.
    fn connect(&mut self, number: usize, lock: Option<Lock>) -> Front {
        match (UnixStream::connect(&self.address.socket), lock) {
            (Ok(stream), lock) => {
                self.queue.push_back(number);
                Front::Connects(stream, lock)
            }
            (Err(_), Some(lock)) => Front::Starts(lock),
            (Err(_), None) => Front::WaitsForLock,
        }
    }

    fn is_serving(&self) -> bool {
        self.fronts.iter().any(|front| matches!(front, Front::Served))
    }

    /// When nothing can happen any more, everything has come to a good end.
    fn check_end(&self) {
        assert!(self.fronts.iter().all(|front| matches!(front, Front::Gone)), "a front waits forever: {}", self.key());
        assert!(self.engine.is_none(), "an engine stays without a front");
        assert!(!self.address.socket.exists() && !self.address.lock.exists(), "a file is left");
    }
}

/// Whether the other side closed the connection before it sent a byte.
fn has_ended(stream: &UnixStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let read = (&*stream).read(&mut [0]);
    !read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

/// Replays these steps, each of which could be taken before.
fn replay(folder: &Path, steps: &[Step]) -> World {
    let mut world = World::new(folder);
    for step in steps {
        assert!(world.take(*step), "{steps:?} could be taken before");
    }
    world
}

#[tokio::test]
async fn fronts_and_engines_find_each_other_in_every_order() {
    let mut seen = BTreeSet::new();
    let mut paths = VecDeque::from([Vec::new()]);
    let mut ends = 0;
    // The shortest first, so that a failure shows a smallest example.
    while let Some(path) = paths.pop_front() {
        let mut is_end = true;
        for step in STEPS {
            let folder = tempfile::tempdir().unwrap();
            let taken = std::panic::AssertUnwindSafe(|| {
                let mut world = replay(folder.path(), &path);
                world.take(step).then(|| world.key())
            });
            let taken = std::panic::catch_unwind(taken).unwrap_or_else(|_| panic!("after {path:?}: {step:?}"));
            is_end &= taken.is_none();
            if taken.is_some_and(|key| seen.insert(key)) {
                paths.push_back([path.as_slice(), &[step]].concat());
            }
        }
        if is_end {
            ends += 1;
            replay(tempfile::tempdir().unwrap().path(), &path).check_end();
        }
    }
    assert!(seen.len() > 50 && ends > 0, "{} states, {ends} ends", seen.len());
}
