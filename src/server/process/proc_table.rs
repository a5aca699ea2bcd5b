//! The running processes according to `/proc`. Empty outside of Linux, where only process groups are known.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// More than the longest `/proc/<pid>/stat`: 52 numbers and a short name.
const MAX_STAT: usize = 2 << 10;

/// One process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcEntry {
    pub pid: u32,
    pub parent: u32,
    pub group: u32,
    pub session: u32,
    /// Dead, but not yet reaped by its parent.
    pub zombie: bool,
    /// Clock ticks since boot. Pids are reused, so only pid and start time together identify a process.
    pub started: u64,
}

/// All processes at one time.
pub struct ProcTable {
    pub entries: Vec<ProcEntry>,
    /// The marks that were read so far. `std`, private to this file, held while one is read.
    marks: Mutex<HashMap<u32, Option<Vec<u8>>>>,
}

impl ProcTable {
    pub fn read() -> Self {
        Self { entries: processes(), marks: Mutex::default() }
    }

    /// The processes at some time after this call. Callers of about the same time share a table: a hundred servers may end
    /// together, and reading it for each of them would take longer than everything else. After a table, the next one waits
    /// three times as long as that one took, so that most of the processor is left to the processes that end. `None` if this
    /// process has no descendants left.
    pub async fn shared() -> Option<Arc<Self>> {
        /// The last table, when it was begun, and how long it took.
        static LAST: Mutex<Option<(Instant, Duration, Arc<ProcTable>)>> = Mutex::new(None);

        let last = || LAST.lock().unwrap_or_else(PoisonError::into_inner);
        if !may_have_descendants() {
            return None;
        }
        let asked = Instant::now();
        let next = last().as_ref().map(|(begun, took, _)| *begun + *took * 4);
        if let Some(next) = next.filter(|next| *next > asked) {
            tokio::time::sleep_until(next.into()).await;
            if !may_have_descendants() {
                return None;
            }
        }
        let mut last = last();
        if let Some((begun, _, table)) = last.as_ref()
            && *begun >= asked
        {
            return Some(table.clone());
        }
        let begun = Instant::now();
        let table = Arc::new(Self::read());
        *last = Some((begun, begun.elapsed(), table.clone()));
        Some(table)
    }

    /// Whether the process has a mark with this prefix in its environment.
    pub fn has_mark(&self, pid: u32, prefix: &str) -> bool {
        let mut marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        let mark = marks.entry(pid).or_insert_with(|| variable(pid, super::MARK));
        mark.as_ref().is_some_and(|mark| mark.starts_with(prefix.as_bytes()))
    }
}

/// All processes, in no particular order.
pub fn processes() -> Vec<ProcEntry> {
    if !cfg!(target_os = "linux") {
        return Vec::new();
    }
    let Ok(folder) = std::fs::read_dir("/proc") else { return Vec::new() };
    folder.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).filter_map(process).collect()
}

/// Whether this process has children, dead or alive. The kernel knows that without reading all processes.
pub fn has_children() -> bool {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{WaitId, WaitIdOptions, waitid};

        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        waitid(WaitId::All, look).err() != Some(rustix::io::Errno::CHILD)
    }
    #[cfg(not(target_os = "linux"))]
    true
}

/// Whether there may be descendants of this process. An orphan among them becomes our child before we learn of the exit of
/// its parent.
fn may_have_descendants() -> bool {
    #[cfg(target_os = "linux")]
    {
        has_children() || !matches!(rustix::process::child_subreaper(), Ok(Some(_)))
    }
    #[cfg(not(target_os = "linux"))]
    true
}

/// The children of a process that are alive. While some of them end, the kernel's lists may leave out others, and the whole
/// table one that has just forked: only if nothing is found several times, nothing is there.
pub fn living_children_of(pid: u32) -> Vec<ProcEntry> {
    const ROUNDS: usize = 3;
    if pid == std::process::id() && !has_children() {
        return Vec::new();
    }
    let lives = |entry: &ProcEntry| entry.parent == pid && !is_dead(entry);
    for _ in 0..ROUNDS {
        let listed: Vec<ProcEntry> = listed_children_of(pid).into_iter().filter_map(process).filter(lives).collect();
        if !listed.is_empty() {
            return listed;
        }
        let living: Vec<ProcEntry> = processes().into_iter().filter(lives).collect();
        if !living.is_empty() {
            return living;
        }
    }
    Vec::new()
}

/// While the other threads of a zombie end, it still has children, which have no new parent yet.
fn is_dead(entry: &ProcEntry) -> bool {
    let threads = || std::fs::read_dir(format!("/proc/{}/task", entry.pid)).map_or(0, Iterator::count);
    entry.zombie && threads() <= 1
}

/// Takes less time than the whole table. Some kernels do not have these lists.
fn listed_children_of(pid: u32) -> Vec<u32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>()).collect()
}

/// The start time of a process; 0 if unknown.
pub fn start_time(pid: u32) -> u64 {
    process(pid).map_or(0, |entry| entry.started)
}

pub fn process(pid: u32) -> Option<ProcEntry> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    // One read returns all of it. The name of a program need not be UTF-8.
    let mut line = [0; MAX_STAT];
    let length = File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut line).ok()?;
    parse(pid, &String::from_utf8_lossy(line.get(..length)?))
}

/// Whether the environment of the process has the variable `name` with this prefix.
pub fn has_variable(pid: u32, name: &str, prefix: &str) -> bool {
    variable(pid, name).is_some_and(|value| value.starts_with(prefix.as_bytes()))
}

/// The value of a variable in the environment of the process.
fn variable(pid: u32, name: &str) -> Option<Vec<u8>> {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let value = |variable: &[u8]| {
        let value = variable.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        Some(value.to_vec())
    };
    environment.split(|byte| *byte == 0).find_map(value)
}

/// The words that the process was started with.
pub fn command_line(pid: u32) -> Vec<String> {
    let Ok(bytes) = std::fs::read(format!("/proc/{pid}/cmdline")) else { return Vec::new() };
    bytes.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

/// Parses `/proc/<pid>/stat`. The program's name is in parentheses and may contain anything, including `)`.
fn parse(pid: u32, line: &str) -> Option<ProcEntry> {
    let (_, rest) = line.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    let session = fields.next()?.parse().ok()?;
    // There are 15 fields between the session and the start time.
    let started = fields.nth(15)?.parse().ok()?;
    Some(ProcEntry { pid, parent, group, session, zombie: matches!(state, "Z" | "X"), started })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_is_parsed() {
        let line = "42 (a) b (c)) S 7 40 39 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1 2";
        let entry = parse(42, line).unwrap();
        assert_eq!(entry, ProcEntry { pid: 42, parent: 7, group: 40, session: 39, zombie: false, started: 98765 });
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_cannot_hide_behind_a_name_that_is_not_utf8() {
        use std::os::unix::ffi::OsStrExt;

        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join(std::ffi::OsStr::from_bytes(b"\xff\xfe"));
        std::fs::copy("/bin/sleep", &program).unwrap();
        let mut child = std::process::Command::new(&program).arg("60").spawn().unwrap();
        let found = processes().into_iter().find(|entry| entry.pid == child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found.map(|entry| entry.parent), Some(std::process::id()));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_process_table_contains_this_process() {
        let me = std::process::id();
        let entry = processes().into_iter().find(|entry| entry.pid == me).unwrap();
        assert!(!entry.zombie);
        assert_eq!(entry.started, start_time(me));
        assert!(!has_variable(me, "MCP_SIDECAR_ENGINE", "no such mark"));
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn callers_of_the_same_time_share_a_table_that_is_newer_than_their_call() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        // Each drops the table before the next one gets it, as servers that end together do.
        let tables = (0..20).map(|_| async { Arc::downgrade(&ProcTable::shared().await.unwrap()) });
        let mut tables = futures::future::join_all(tables).await;
        tables.dedup_by(|one, other| std::sync::Weak::ptr_eq(one, other));
        assert!(tables.len() <= 2, "{} tables were read", tables.len());
        let mut late = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let table = ProcTable::shared().await.unwrap();
        assert!(table.entries.iter().any(|entry| entry.pid == late.id()));
        for child in [&mut child, &mut late] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}
