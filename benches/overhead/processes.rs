//! What the processes of a route take: memory, threads and processor time. Linux only; elsewhere everything is unknown.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::server::SERVE;

/// The processes between us and the servers.
pub struct Processes(Vec<PathBuf>);

impl Processes {
    /// The processes whose environment contains this text, without the servers.
    pub fn with(mark: &str) -> Self {
        let Ok(entries) = fs::read_dir("/proc") else { return Self(Vec::new()) };
        let is_ours = |process: &PathBuf| {
            let holds = |file: &str, text: &str| {
                let content = fs::read(process.join(file)).unwrap_or_default();
                memchr::memmem::find(&content, text.as_bytes()).is_some()
            };
            let number = process.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok());
            number.is_some_and(|number| number != std::process::id())
                && holds("environ", mark)
                && !holds("cmdline", SERVE)
        };
        Self(entries.flatten().map(|entry| entry.path()).filter(is_ours).collect())
    }

    /// This process.
    pub fn this() -> Self {
        Self(vec![PathBuf::from("/proc/self")])
    }

    /// The memory of all of them, in MB. What they share counts once.
    pub fn memory(&self) -> Option<f64> {
        let bytes = |process: &PathBuf| {
            let text = fs::read_to_string(process.join("smaps_rollup")).ok()?;
            let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
            line.trim().trim_end_matches(" kB").parse::<f64>().ok()
        };
        let all: Option<Vec<f64>> = self.0.iter().map(bytes).collect();
        all.filter(|all| !all.is_empty()).map(|all| all.iter().sum::<f64>() / 1024.0)
    }

    pub fn threads(&self) -> Option<f64> {
        let threads = self.0.iter().map(|process| tasks(process).len()).sum::<usize>();
        (threads > 0).then_some(threads as f64)
    }

    /// The processor time of all of them so far.
    pub fn processor_time(&self) -> Duration {
        let used = |task: PathBuf| {
            let text = fs::read_to_string(task.join("schedstat")).ok()?;
            text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
        };
        self.0.iter().flat_map(|process| tasks(process)).filter_map(used).sum()
    }
}

fn tasks(process: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(process.join("task")).into_iter().flatten();
    entries.flatten().map(|entry| entry.path()).collect()
}
