//! The descendants of one server process or of an engine: members of the recorded groups, processes with the mark in
//! their environment, and the children of both.

use std::collections::{BTreeMap, BTreeSet};

use super::proc_table::{self, ProcTable};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    Term,
    Kill,
}

#[derive(Debug)]
pub struct Descendants {
    /// The prefix of the marks.
    mark: String,
    /// Leader of a group → its start time.
    groups: BTreeMap<u32, u64>,
    /// Members seen before, with their start times, so that one that loses its parent stays known.
    seen: BTreeMap<u32, u64>,
}

impl Descendants {
    pub fn new(mark: String) -> Self {
        Self { mark, groups: BTreeMap::new(), seen: BTreeMap::new() }
    }

    pub fn add(&mut self, leader: u32, started: u64) {
        if leader > 1 {
            self.groups.insert(leader, started);
        }
    }

    /// Adds a single process.
    pub fn adopt(&mut self, pid: u32, started: u64) {
        self.seen.insert(pid, started);
    }

    pub fn remove(&mut self, leader: u32) {
        self.groups.remove(&leader);
    }

    /// The members that are alive. Outside of Linux only the groups are known; each counts as one member.
    pub fn living(&mut self) -> BTreeSet<u32> {
        if !cfg!(target_os = "linux") {
            return self.groups.keys().copied().filter(|leader| group_exists(*leader)).collect();
        }
        self.living_in(&ProcTable::read())
    }

    /// The members that are alive according to this table.
    fn living_in(&mut self, table: &ProcTable) -> BTreeSet<u32> {
        let processes = &table.entries;
        self.drop_reused_groups(processes);
        let oldest = self.groups.values().min().copied().unwrap_or(0);
        let me = std::process::id();
        let mut members: BTreeSet<u32> = processes
            .iter()
            .filter(|entry| !entry.zombie && entry.pid != me)
            .filter(|entry| {
                self.groups.contains_key(&entry.group)
                    || self.seen.get(&entry.pid) == Some(&entry.started)
                    // A descendant is never older than its ancestor, so the environment of older processes is not read.
                    || (entry.started >= oldest && table.has_mark(entry.pid, &self.mark))
            })
            .map(|entry| entry.pid)
            .collect();
        loop {
            let before = members.len();
            for entry in processes {
                if !entry.zombie && entry.pid != me && members.contains(&entry.parent) {
                    members.insert(entry.pid);
                }
            }
            if members.len() == before {
                break;
            }
        }
        self.seen = processes
            .iter()
            .filter(|entry| members.contains(&entry.pid))
            .map(|entry| (entry.pid, entry.started))
            .collect();
        members
    }

    /// Signals every member and returns their number.
    pub fn signal(&mut self, signal: Signal) -> usize {
        let members = self.living();
        self.send_all(&members, signal)
    }

    /// Whether no member is alive according to this table, which may be shared.
    pub fn have_ended(&mut self, table: &ProcTable) -> bool {
        let living = if cfg!(target_os = "linux") { self.living_in(table) } else { self.living() };
        living.is_empty()
    }

    fn send_all(&self, members: &BTreeSet<u32>, signal: Signal) -> usize {
        if members.is_empty() {
            return 0;
        }
        // The groups first: a member cannot escape by forking in between.
        for leader in self.groups.keys() {
            send_group(*leader, signal);
        }
        if cfg!(target_os = "linux") {
            for member in members {
                send(*member, signal);
            }
        }
        members.len()
    }

    /// Forgets a group whose number has been reused by a process that started later.
    fn drop_reused_groups(&mut self, processes: &[proc_table::ProcEntry]) {
        for entry in processes {
            if self.groups.get(&entry.pid).is_some_and(|started| *started != 0 && *started != entry.started) {
                self.groups.remove(&entry.pid);
            }
        }
    }
}

#[cfg(unix)]
mod system {
    use rustix::process::{Pid, Signal as Number, kill_process, kill_process_group, test_kill_process_group};

    use super::Signal;

    fn pid(raw: u32) -> Option<Pid> {
        // 0 and 1 would mean our own group and all processes.
        i32::try_from(raw).ok().filter(|raw| *raw > 1).and_then(Pid::from_raw)
    }

    fn number(signal: Signal) -> Number {
        match signal {
            Signal::Term => Number::TERM,
            Signal::Kill => Number::KILL,
        }
    }

    pub fn send_group(leader: u32, signal: Signal) {
        if let Some(pid) = pid(leader) {
            kill_process_group(pid, number(signal)).ok();
        }
    }

    pub fn send(member: u32, signal: Signal) {
        if let Some(pid) = pid(member) {
            kill_process(pid, number(signal)).ok();
        }
    }

    pub fn group_exists(leader: u32) -> bool {
        pid(leader).is_some_and(|pid| test_kill_process_group(pid).is_ok())
    }
}

/// Without process groups only the leader ends, through its own handle.
#[cfg(not(unix))]
mod system {
    pub fn send_group(_leader: u32, _signal: super::Signal) {}
    pub fn send(_member: u32, _signal: super::Signal) {}
    pub fn group_exists(_leader: u32) -> bool {
        false
    }
}

pub(super) use system::send;
use system::{group_exists, send_group};
