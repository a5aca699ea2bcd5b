//! One server of the fixture, as an engine would run it, and eyes for what is alive.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcp_sidecar::config::spec::Stdio;
use mcp_sidecar::config::{Config, Definition, Environment, Launch, ServerSpec};
use mcp_sidecar::model::{Scope, ServerName, ServerState};
use mcp_sidecar::policy::trust::{Verdict, check};
use mcp_sidecar::server::host::Host;
use mcp_sidecar::server::{Context, Event, Server};
use mcp_sidecar::settings::Settings;
use serde_json::Value;
use tokio::sync::{mpsc, watch};

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-sidecar");

pub struct Stage {
    pub server: Server,
    events: mpsc::Receiver<(ServerName, u64, Event)>,
    _settings: watch::Sender<Arc<Settings>>,
}

impl Stage {
    /// Runs the fixture with these arguments.
    pub fn start(args: &[&str]) -> Self {
        let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/server.py");
        Self::run("python3", &[&[fixture], args].concat())
    }

    pub fn run(command: &str, args: &[&str]) -> Self {
        let stdio = Stdio {
            command: command.to_owned(),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            cwd: Some(env!("CARGO_MANIFEST_DIR").to_owned()),
            ..Stdio::default()
        };
        let spec = ServerSpec::new(Launch::Stdio(stdio));
        let definition = Definition::of_session(ServerName::new("fixture").unwrap(), spec, Value::Null);
        let definition = Arc::new(Definition { scope: Scope::User, ..definition });
        let environment = Environment::of_this_process();
        let verdict = check(&definition, &Config::default(), &environment, |_| None, |_, _| false);
        let Verdict::Trusted(trusted) = verdict else { panic!("the user's own servers need no trust") };
        let (settings, watched) = watch::channel(Arc::new(Settings::default()));
        let (tell, events) = mpsc::channel(1_000);
        let server = Server::spawn(trusted, 1, Context::new(watched, Arc::new(Nobody), tell));
        Self { server, events, _settings: settings }
    }

    pub async fn until(&mut self, fits: impl Fn(&ServerState) -> bool) -> Arc<ServerState> {
        let waiting = async {
            loop {
                let (_, _, event) = self.events.recv().await.expect("the server still tells");
                if let Event::State(state) = event
                    && fits(&state)
                {
                    return state;
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(60), waiting).await.expect("the picture that was waited for")
    }

    pub async fn until_settled(&mut self) -> Arc<ServerState> {
        self.until(|state| state.status.settled()).await
    }
}

/// The file into which the fixture writes whom it started.
pub struct Pids {
    path: PathBuf,
    _folder: Option<tempfile::TempDir>,
}

impl Pids {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { path: folder.path().join("pids"), _folder: Some(folder) }
    }

    pub fn at(path: PathBuf) -> Self {
        Self { path, _folder: None }
    }

    pub fn path(&self) -> &str {
        self.path.to_str().unwrap()
    }

    pub fn read(&self) -> Vec<u32> {
        let text = std::fs::read_to_string(&self.path).unwrap_or_default();
        text.lines().filter_map(|line| line.trim().parse().ok()).collect()
    }

    pub fn wait_for(&self, count: usize) -> Vec<u32> {
        let until = Instant::now() + Duration::from_secs(30);
        loop {
            let pids = self.read();
            if pids.len() >= count {
                return pids;
            }
            assert!(Instant::now() < until, "only {pids:?} of {count} started");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until one more has started than there were.
    pub async fn wait_for_more(&self) {
        let before = self.read().len();
        let until = Instant::now() + Duration::from_secs(30);
        while self.read().len() == before {
            assert!(Instant::now() < until, "nothing started");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// Whether a process is there, and not only its corpse.
pub fn alive(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

pub fn guardian_of(engine: u32) -> Option<u32> {
    let all = std::fs::read_dir("/proc").unwrap();
    all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).find(|pid: &u32| {
        let read = |file| std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let parent = read("stat").rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
        parent == Some(engine) && read("cmdline").contains("\0guardian\0") && alive(*pid)
    })
}

/// What a process has taken for itself. Pages of the program that the loader had to touch are left aside: an
/// unoptimised build has more of those than the process has memory.
pub fn private_kilobytes(pid: u32) -> usize {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps")).unwrap();
    let mut file_backed = false;
    let mut sum = 0;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            // The head of a mapping: `from-to rights offset device inode path`.
            [range, _, _, _, _, path @ ..] if range.contains('-') => {
                file_backed = path.first().is_some_and(|path| path.starts_with('/'));
            }
            [key, count, "kB"] if key.starts_with("Private_") && !file_backed => sum += count.parse::<usize>().unwrap(),
            _ => {}
        }
    }
    sum
}

/// A host with nobody at it.
struct Nobody;

impl Host for Nobody {}
