//! Two processes above an engine. Orphans on Linux become children of the nearest ancestor that asks for them, whatever
//! they did to their environment, group or session. So when the engine dies, everything that its servers started becomes
//! the child of the inner guardian, and if that dies as well, of the outer one. A guardian ends all of its children, until
//! none is left. If one of the three is killed, the others end everything at once: the next one may be killed soon, and
//! after the last one nothing is left that could clean up.
//!
//! Other systems do not have this: there [`super`] ends the process groups of the servers.

#[cfg(not(target_os = "linux"))]
pub fn is_guarded() -> bool {
    false
}

#[cfg(not(target_os = "linux"))]
pub fn stop_without_guardian() {}

#[cfg(not(target_os = "linux"))]
pub fn kill_rest_without_guardian() {}

#[cfg(not(target_os = "linux"))]
pub fn guard_this_program() -> Option<u8> {
    None
}

#[cfg(target_os = "linux")]
pub use linux::{guard_this_program, is_guarded, kill_rest_without_guardian, stop_without_guardian};

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::sync::atomic::{AtomicI32, Ordering};
    use std::time::{Duration, Instant};

    use rustix::process::{
        Pid, Signal, WaitOptions, WaitStatus, getpid, getppid, kill_process, set_child_subreaper,
        set_parent_process_death_signal, setsid, wait,
    };
    use tokio::signal::unix::{Signal as SignalStream, SignalKind, signal};

    use crate::os;
    use crate::server::process::{living_children_of, reserve_descriptors};

    /// How long the engine may take to stop after a signal.
    const AFTER_STOP: Duration = Duration::from_millis(3_500);
    /// How long its orphans may take to end after SIGTERM, if the engine has exited by itself.
    const AFTER_TERM: Duration = Duration::from_secs(1);
    /// How long to keep sending SIGKILL. Nothing survives it, but a process may fork faster than it is found.
    const AFTER_KILL: Duration = Duration::from_secs(30);
    const POLL_INTERVAL: Duration = Duration::from_millis(20);
    /// Of the thread that waits for the death of a guardian.
    const STACK: usize = 128 << 10;

    /// The guardian of this process, an engine. It may have died.
    static GUARDIAN: AtomicI32 = AtomicI32::new(0);

    /// Kills what is left below an engine whose guardians were killed: after it, nothing could.
    pub fn kill_rest_without_guardian() {
        if GUARDIAN.load(Ordering::Relaxed) != 0 && !is_guarded() {
            kill_below(std::process::id());
        }
    }

    /// Whether the parent of this process is its guardian.
    pub fn is_guarded() -> bool {
        // The first process of a container has no parent.
        getppid().is_some_and(|parent| parent.as_raw_nonzero().get() == GUARDIAN.load(Ordering::Relaxed))
    }

    /// Stops this process, an engine, when its guardian dies. Its servers end at once: the engine may be killed as well.
    pub fn stop_without_guardian() {
        if let Err(error) = end_servers_without_guardian() {
            tracing::warn!(%error, "cannot watch the guardian");
        }
        set_parent_process_death_signal(Some(Signal::TERM)).ok();
        if !is_guarded() {
            // It has died before this.
            kill_process(getpid(), Signal::TERM).ok();
        }
    }

    fn end_servers_without_guardian() -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let mut terminate = {
            let _inside = runtime.enter();
            signal(SignalKind::terminate())?
        };
        let watch = move || {
            while runtime.block_on(terminate.recv()).is_some() {
                if !is_guarded() {
                    return kill_below(std::process::id());
                }
            }
        };
        std::thread::Builder::new().name("guardian".to_owned()).stack_size(STACK).spawn(watch).map(drop)
    }

    /// Kills the children of an engine, and theirs, which become its own. Others reap them.
    fn kill_below(engine: u32) {
        let until = Instant::now() + AFTER_STOP;
        while Instant::now() < until {
            let living = living_children_of(engine);
            if living.is_empty() {
                return;
            }
            for child in living.iter().filter_map(|child| i32::try_from(child.pid).ok().and_then(Pid::from_raw)) {
                kill_process(child, Signal::KILL).ok();
            }
        }
    }

    /// Continues as an engine below two guardians: this process becomes the outer one, and its child the inner one. In the
    /// guardians, this returns the engine's exit code after everything has ended. In the engine, or if the process cannot be
    /// guarded, it returns `None`. Called before there are threads. The three are copies of one process, so they start
    /// quickly, and share memory.
    pub fn guard_this_program() -> Option<u8> {
        let outer = getpid();
        if let Some(code) = guard_copy(Guardian { outer: None })? {
            return Some(code);
        }
        // It stops with the outer guardian.
        set_parent_process_death_signal(Some(Signal::TERM)).ok();
        let inner = getpid();
        if let Some(code) = guard_copy(Guardian { outer: Some(outer) })? {
            return Some(code);
        }
        GUARDIAN.store(inner.as_raw_nonzero().get(), Ordering::Relaxed);
        // The table of a copy is only as large as it has to be.
        reserve_descriptors();
        None
    }

    /// Guards a copy of this process. Returns its exit code, and in the copy `Some(None)`. `None` if there is no copy.
    fn guard_copy(guardian: Guardian) -> Option<Option<u8>> {
        // Before there is a copy, which could leave orphans at once. The copy does not inherit it.
        set_child_subreaper(Some(getpid())).ok()?;
        match os::fork().ok()? {
            Some(child) => Some(Some(guardian.run(child).unwrap_or(1))),
            None => Some(None),
        }
    }

    struct Guardian {
        /// The guardian of this one.
        outer: Option<Pid>,
    }

    impl Guardian {
        fn run(self, child: Pid) -> io::Result<u8> {
            // First: until then, it looks like the engine.
            std::fs::write("/proc/self/comm", "mcp-guardian").ok();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.spawn(os::give_memory_back_after_start());
            runtime.block_on(self.guard(child))
        }

        async fn guard(self, child: Pid) -> io::Result<u8> {
            let mut exits = signal(SignalKind::child())?;
            let mut stop = StopSignals::new()?;
            if self.outer.is_some() {
                // A signal to the group of the editor must not reach both guardians. The child keeps its terminal.
                setsid().ok();
            }
            let is_alone = || self.outer.is_some() && getppid() != self.outer;
            if is_alone() {
                // The outer guardian was killed before this one could notice.
                kill_process(getpid(), Signal::TERM).ok();
            }
            let mut deadline = None;
            let (code, patience) = loop {
                if let Some(status) = reap(child) {
                    let is_killed = status.terminating_signal() == Some(Signal::KILL.as_raw());
                    break (exit_code(status), if is_killed { Duration::ZERO } else { AFTER_TERM });
                }
                tokio::select! {
                    _ = exits.recv() => {}
                    number = stop.recv() => {
                        if is_alone() {
                            break (1, Duration::ZERO);
                        }
                        kill_process(child, number).ok();
                        deadline.get_or_insert(tokio::time::Instant::now() + AFTER_STOP);
                    }
                    () = until(deadline) => break (1, Duration::ZERO),
                }
            };
            end_children(patience);
            Ok(code)
        }
    }

    /// The signals that stop an engine; a guardian passes them on.
    struct StopSignals {
        terminate: SignalStream,
        interrupt: SignalStream,
        hangup: SignalStream,
    }

    impl StopSignals {
        fn new() -> io::Result<Self> {
            Ok(Self {
                terminate: signal(SignalKind::terminate())?,
                interrupt: signal(SignalKind::interrupt())?,
                hangup: signal(SignalKind::hangup())?,
            })
        }

        async fn recv(&mut self) -> Signal {
            tokio::select! {
                _ = self.terminate.recv() => Signal::TERM,
                _ = self.interrupt.recv() => Signal::INT,
                _ = self.hangup.recv() => Signal::HUP,
            }
        }
    }

    async fn until(deadline: Option<tokio::time::Instant>) {
        match deadline {
            Some(deadline) => tokio::time::sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    }

    /// Reaps all children that have ended. Returns how this one has ended, if it is among them.
    fn reap(child: Pid) -> Option<WaitStatus> {
        let mut ended = None;
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            if pid == child {
                ended = Some(status);
            }
        }
        ended
    }

    fn exit_code(status: WaitStatus) -> u8 {
        let code = status.exit_status().or_else(|| status.terminating_signal().map(|number| 128 + number));
        code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
    }

    /// Ends everything that is left, with SIGKILL after `patience`. Only children are signalled: their children become ours
    /// when they have ended, and a child keeps its pid until we reap it, so that no other process is ever hit.
    fn end_children(patience: Duration) {
        let me = std::process::id();
        let until_killed = Instant::now() + patience;
        let until_given_up = until_killed + AFTER_KILL;
        loop {
            while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
            let children = living_children_of(me);
            let now = Instant::now();
            if children.is_empty() || now > until_given_up {
                return;
            }
            let is_patient = now < until_killed;
            if !is_patient {
                // An engine last: if this process is killed now, the engine still ends the rest.
                children.iter().for_each(|child| kill_below(child.pid));
            }
            for child in children.iter().filter_map(|child| i32::try_from(child.pid).ok().and_then(Pid::from_raw)) {
                kill_process(child, if is_patient { Signal::TERM } else { Signal::KILL }).ok();
            }
            if is_patient {
                std::thread::sleep(POLL_INTERVAL);
            }
        }
    }
}
