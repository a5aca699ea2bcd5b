//! What is left if an engine and both of its guardians are killed in the same instant. An engine has a limit that no
//! other process has, on file locks, which the kernel does not enforce. Everything that its servers start inherits the
//! limit and cannot raise it, so it finds processes that left their parent, group, session and environment. Who ends
//! them: each front of the engine, and the next engine that starts.

pub use implementation::{EngineProcess, forget_this_engine, mark_this_engine};

#[cfg(target_os = "linux")]
mod implementation {
    use std::io;
    use std::os::fd::OwnedFd;
    use std::path::{Path, PathBuf};
    use std::sync::OnceLock;
    use std::time::{Duration, Instant};

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, Signal, getrlimit, kill_process, pidfd_open, setrlimit};

    use crate::paths::make_private_folder;
    use crate::server::process::{mark_of_this_engine, process, processes, start_time};

    /// Limits below this one are not ours. No program sets such a large one.
    const LOWEST: u64 = 1 << 40;
    const HIGHEST: u64 = 1 << 62;
    const EXTENSION: &str = "engine";
    /// How long an engine that closes its connections may take to end.
    const AFTER_CLOSE: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };
    const AFTER_KILL: Duration = Duration::from_secs(5);

    /// The file of this engine.
    static FILE: OnceLock<PathBuf> = OnceLock::new();

    /// Marks this engine before it starts anything, notes the mark for the next engine, and ends what engines have left
    /// behind that can no longer do it themselves.
    pub fn mark_this_engine(folder: &Path) {
        let marked = mark().and_then(|mark| {
            make_private_folder(folder)?;
            let pid = std::process::id();
            let file = folder.join(format!("{pid}.{EXTENSION}"));
            std::fs::write(&file, format!("{pid} {} {mark}\n", start_time(pid)))?;
            FILE.set(file).ok();
            Ok(())
        });
        if let Err(error) = marked {
            tracing::debug!(%error, "the processes of servers are not marked");
        }
        let lost = lost_engines(folder);
        if !lost.is_empty() {
            std::thread::spawn(move || {
                let (files, marks): (Vec<PathBuf>, Vec<u64>) = lost.into_iter().unzip();
                kill_marked(&marks);
                files.iter().for_each(|file| drop(std::fs::remove_file(file)));
            });
        }
    }

    /// This engine ends, and leaves nothing.
    pub fn forget_this_engine() {
        if let Some(file) = FILE.get() {
            std::fs::remove_file(file).ok();
        }
    }

    fn mark() -> io::Result<u64> {
        // An engine below a server of another engine cannot have a higher limit than that.
        let highest = getrlimit(Resource::Locks).maximum.unwrap_or(HIGHEST).min(HIGHEST);
        if highest <= LOWEST {
            return Err(io::Error::other("the limit on file locks is too low"));
        }
        let random = mark_of_this_engine().get(..16).and_then(|hex| u64::from_str_radix(hex, 16).ok());
        let mark = LOWEST + random.unwrap_or_default() % (highest - LOWEST);
        setrlimit(Resource::Locks, Rlimit { current: Some(mark), maximum: Some(mark) })?;
        Ok(mark)
    }

    /// The files and marks of engines that have ended without removing them.
    fn lost_engines(folder: &Path) -> Vec<(PathBuf, u64)> {
        let files = folder.read_dir().into_iter().flatten().flatten().map(|file| file.path());
        let lost = files.filter(|file| file.extension() == Some(EXTENSION.as_ref())).filter_map(|file| {
            let text = std::fs::read_to_string(&file).ok()?;
            let numbers: Vec<u64> = text.split_whitespace().filter_map(|number| number.parse().ok()).collect();
            let [pid, started, mark] = numbers.try_into().ok()?;
            let engine = process(u32::try_from(pid).ok()?).filter(|engine| engine.started == started);
            engine.is_none_or(|engine| engine.zombie).then_some((file, mark))
        });
        lost.collect()
    }

    /// The engine that a front is connected to.
    #[derive(Debug)]
    pub struct EngineProcess {
        handle: OwnedFd,
        mark: u64,
    }

    impl EngineProcess {
        /// `None` if it has no mark.
        pub fn new(pid: u32) -> Option<Self> {
            let handle = pidfd_open(Pid::from_raw(pid.cast_signed())?, PidfdFlags::empty()).ok()?;
            Some(Self { handle, mark: mark_of(pid)? })
        }

        /// Kills what is left of the engine's servers, if the engine ends now: it was killed, or it has ended them.
        pub fn end_leftovers(&self) {
            if poll(&mut [PollFd::new(&self.handle, PollFlags::IN)], Some(&AFTER_CLOSE)).is_ok_and(|ended| ended > 0) {
                kill_marked(&[self.mark]);
            }
        }
    }

    fn mark_of(pid: u32) -> Option<u64> {
        let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
        let line = limits.lines().find_map(|line| line.strip_prefix("Max file locks"))?;
        line.split_whitespace().next()?.parse().ok().filter(|mark| (LOWEST..HIGHEST).contains(mark))
    }

    /// Kills all processes with one of these marks. One that forks all the time has a new pid whenever the whole table
    /// has been read, so the pids that the kernel gave out last are looked at in between.
    fn kill_marked(marks: &[u64]) {
        const ROUNDS: usize = 3;
        const NEWEST: u32 = 4;
        const LOOKS: usize = 500;
        let until = Instant::now() + AFTER_KILL;
        let kill = |pid: u32| {
            let marked = pid != std::process::id() && mark_of(pid).is_some_and(|mark| marks.contains(&mark));
            marked && Pid::from_raw(pid.cast_signed()).is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok())
        };
        let mut empty_rounds = 0;
        while empty_rounds < ROUNDS && Instant::now() < until {
            let living = processes().into_iter().filter(|entry| !entry.zombie);
            let listed = living.filter(|entry| kill(entry.pid)).count();
            let newest = (0..LOOKS).filter_map(|_| newest_pid());
            let chased = newest.flat_map(|pid| pid.saturating_sub(NEWEST)..=pid + 1).filter(|pid| kill(*pid)).count();
            empty_rounds = if listed + chased == 0 { empty_rounds + 1 } else { 0 };
        }
    }

    /// The pid that the kernel gave out last.
    fn newest_pid() -> Option<u32> {
        std::fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().next_back()?.parse().ok()
    }
}

#[cfg(not(target_os = "linux"))]
mod implementation {
    use std::path::Path;

    pub fn mark_this_engine(_folder: &Path) {}

    pub fn forget_this_engine() {}

    #[derive(Debug)]
    pub struct EngineProcess;

    impl EngineProcess {
        pub fn new(_pid: u32) -> Option<Self> {
            None
        }

        pub fn end_leftovers(&self) {}
    }
}
