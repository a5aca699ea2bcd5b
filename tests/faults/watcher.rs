//! What is watched in every case: the memory, descriptors and threads of the engine, the processes that are left, and a
//! secret that must reach no message, log or file.

use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, ReadBuf};

/// The most memory over that of an idle engine.
const MEMORY_MIB: u64 = 256;
/// What an engine may have more after a run than after the first. The allocator keeps some memory for each thread.
const GROWTH: Figures = Figures { memory_mib: 64, peak_mib: 0, descriptors: 3, threads: 6 };
/// The promise is five seconds; a loaded machine gets more.
const PATIENCE: Duration = Duration::from_secs(60);
/// How much of a message is shown that leaks a secret.
const CONTEXT: usize = 300;

#[derive(Debug, Clone, Copy, Default)]
pub struct Figures {
    pub memory_mib: u64,
    pub peak_mib: u64,
    pub descriptors: u64,
    pub threads: u64,
}

impl Figures {
    /// The figures of a process, or `None` if it is gone.
    pub fn of(pid: u32) -> Option<Self> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let number = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key))?;
            line.trim().trim_end_matches(" kB").parse::<u64>().ok()
        };
        Some(Self {
            memory_mib: number("VmRSS:")? >> 10,
            peak_mib: number("VmHWM:")? >> 10,
            descriptors: std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count() as u64,
            threads: number("Threads:")?,
        })
    }

    /// The larger figure of each kind.
    pub fn max(self, other: Self) -> Self {
        Self {
            memory_mib: self.memory_mib.max(other.memory_mib),
            peak_mib: self.peak_mib.max(other.peak_mib),
            descriptors: self.descriptors.max(other.descriptors),
            threads: self.threads.max(other.threads),
        }
    }

    fn exceeds(self, first: Self) -> Option<&'static str> {
        let grown = |now: u64, then: u64, allowed: u64| now > then + allowed;
        if grown(self.descriptors, first.descriptors, GROWTH.descriptors) {
            Some("descriptors")
        } else if grown(self.threads, first.threads, GROWTH.threads) {
            Some("threads")
        } else if grown(self.memory_mib, first.memory_mib, GROWTH.memory_mib) {
            Some("memory")
        } else {
            None
        }
    }
}

/// Waits until the engine has given back what the fault took.
pub async fn settled(engine: u32, first: Figures) -> Result<Figures, String> {
    let until = Instant::now() + PATIENCE;
    loop {
        let now = Figures::of(engine).ok_or("the engine ended")?;
        match now.exceeds(first) {
            None => return Ok(now),
            Some(what) if Instant::now() > until => {
                return Err(format!("growth of {what} from run to run: {first:?} became {now:?}"));
            }
            Some(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

pub fn check_peak(idle: Figures, peak: Figures) -> Result<(), String> {
    if peak.peak_mib > idle.peak_mib + MEMORY_MIB {
        return Err(format!("{} MiB when idle became {} MiB", idle.peak_mib, peak.peak_mib));
    }
    Ok(())
}

/// The processes of the shared engine of a project. There may be several while one takes over.
pub fn engines_of(project: &Path) -> Vec<u32> {
    let Ok(root) = project.canonicalize() else { return Vec::new() };
    let wanted = format!("mcp-sidecar\0engine\0--workspace\0{}\0", root.display());
    let read = |pid: u32, file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    // Its guardians are copies of it, by another name.
    let is_engine =
        |pid: &u32| read(*pid, "cmdline") == wanted && read(*pid, "comm") != "mcp-guardian\n" && alive(*pid);
    pids().filter(is_engine).collect()
}

fn pids() -> impl Iterator<Item = u32> {
    let all = std::fs::read_dir("/proc").unwrap();
    all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// The processes that mention this folder in their environment or arguments, except this one.
pub fn processes_of(folder: &Path) -> Vec<(u32, String)> {
    let wanted = folder.to_str().unwrap().as_bytes();
    let mentions = |text: &[u8]| text.windows(wanted.len()).any(|part| part == wanted);
    let others = pids().filter(|pid| *pid != std::process::id());
    let read = |pid: u32, file: &str| std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let found =
        others.filter(|pid| alive(*pid) && (mentions(&read(*pid, "environ")) || mentions(&read(*pid, "cmdline"))));
    found.map(|pid| (pid, String::from_utf8_lossy(&read(pid, "cmdline")).replace('\0', " "))).collect()
}

/// Whether a process is there, and not only its corpse.
pub fn alive(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

pub async fn nothing_left(folder: &Path) -> Result<(), String> {
    let until = Instant::now() + PATIENCE;
    loop {
        let left = processes_of(folder);
        if left.is_empty() {
            return Ok(());
        }
        if Instant::now() > until {
            return Err(format!("processes are left: {left:?}"));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// No file below `folder` contains this text, except the configs that define servers.
pub fn in_no_file(folder: &Path, text: &str) -> Result<(), String> {
    let mut files: Vec<PathBuf> = vec![folder.to_owned()];
    while let Some(path) = files.pop() {
        if path.is_dir() && !path.is_symlink() {
            files.extend(std::fs::read_dir(&path).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())));
            continue;
        }
        let is_config = path.file_name().is_some_and(|name| name == "mcp.json" || name == "mcp.local.json");
        if !is_config && path.is_file() && contains(&std::fs::read(&path).unwrap_or_default(), text.as_bytes()) {
            return Err(format!("`{text}` is in {}", path.display()));
        }
    }
    Ok(())
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// Reads a stream on, and notices a secret in it.
pub struct SecretTap<R> {
    stream: R,
    secret: Vec<u8>,
    /// The end of what has been read, in which the secret may have begun.
    tail: Vec<u8>,
    /// What came before it.
    pub seen: Arc<OnceLock<String>>,
}

impl<R> SecretTap<R> {
    pub fn new(stream: R, secret: &str) -> Self {
        Self { stream, secret: secret.into(), tail: Vec::new(), seen: Arc::default() }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for SecretTap<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let this = &mut *self;
        ready!(Pin::new(&mut this.stream).poll_read(context, buffer))?;
        this.tail.extend_from_slice(&buffer.filled()[before..]);
        if let Some(at) = this.tail.windows(this.secret.len()).position(|window| window == this.secret) {
            let before = &this.tail[at.saturating_sub(CONTEXT)..at];
            this.seen.set(String::from_utf8_lossy(before).into_owned()).ok();
        }
        let over = this.tail.len().saturating_sub(this.secret.len() + CONTEXT);
        this.tail.drain(..over);
        Poll::Ready(Ok(()))
    }
}
