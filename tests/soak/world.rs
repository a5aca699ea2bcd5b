//! What all actors share: the folders, the config that they save, and the model.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcp_sidecar::lsp_client::LspClient;
use serde_json::{Map, Value, json};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{Barrier, watch};

use crate::model::Model;
use crate::remote::Remotes;
use crate::support::Home;
use crate::watcher::{SecretTap, processes_of};

pub const EDITORS: usize = 3;
pub const AGENTS: usize = 5;
/// Nothing may take longer. The longest wait is that for a question that nobody answers.
pub const PATIENCE: Duration = Duration::from_secs(90);
/// The servers in the user's config, and that of the project.
pub const SERVERS: [&str; 10] = ["demo0", "demo1", "py0", "py1", "py2", "ask0", "ask1", "open", "shop", "project"];
/// That of `make test`.
const SEED: u64 = 7;

pub struct Options {
    pub duration: Duration,
    pub seed: u64,
    /// The run was asked for, so its figures are reported.
    pub full: bool,
}

impl Options {
    pub fn from_command_line() -> Self {
        let mut options = Self { duration: Duration::from_secs(15), seed: SEED, full: false };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().expect("a number follows");
            match argument.as_str() {
                "--minutes" => {
                    let minutes: f64 = value().parse().expect("minutes are a number");
                    (options.duration, options.full) = (Duration::from_secs_f64(minutes * 60.0), true);
                }
                "--seed" => options.seed = value().parse().expect("a seed is a whole number"),
                _ => {}
            }
        }
        options
    }

    /// With an even seed, records are written before calls are sent.
    pub fn strict(&self) -> bool {
        self.seed.is_multiple_of(2)
    }
}

/// What the actors should do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Run,
    /// Be connected, finish everything, and wait for the director.
    Rest,
    /// Leave.
    End,
}

pub struct World {
    pub home: Home,
    pub model: Model,
    pub remotes: Remotes,
    secret: String,
    /// What an editor has changed in the definitions of the user, by server.
    changes: Mutex<BTreeMap<String, Change>>,
    pub phase: watch::Sender<Phase>,
    pub barrier: Barrier,
    /// Counts the notifications to editors, so that a wait for a state of the engine can look again.
    pub news: watch::Sender<u64>,
    /// What each actor does, for the report of one that hangs.
    doing: Mutex<BTreeMap<String, String>>,
    /// The connections of the editors.
    pub editors: Mutex<BTreeMap<usize, LspClient>>,
    leaks: Mutex<Vec<std::sync::Arc<std::sync::OnceLock<String>>>>,
}

/// How a definition differs from its usual form.
#[derive(Debug, Clone, Copy)]
pub enum Change {
    /// Another launch, which restarts the server.
    Launch(u32),
    /// Every tool is refused.
    Denied,
    Removed,
}

impl World {
    pub async fn new(options: &Options) -> Self {
        let home = Home::new();
        let model = Model::new(options.strict());
        let audit = if options.strict() { "strict" } else { "normal" };
        let settings = format!(
            "audit = \"{audit}\"\nsecrets = \"file\"\n[servers]\nbackoff-first = \"100ms\"\nbackoff-longest = \"1s\"\n\
             [approvals]\ntimeout = \"4s\"\n[log]\nlevel = \"debug\"\n"
        );
        std::fs::write(home.path("config/config.toml"), settings).unwrap();
        let world = Self {
            remotes: Remotes::start(&home).await,
            home,
            model,
            secret: format!("soak-secret-{:016x}", options.seed),
            changes: Mutex::default(),
            phase: watch::channel(Phase::Run).0,
            barrier: Barrier::new(EDITORS + AGENTS + 1),
            news: watch::channel(0).0,
            doing: Mutex::default(),
            editors: Mutex::default(),
            leaks: Mutex::default(),
        };
        world.write_config();
        let project = json!({ "servers": { "project": world.python("allow-session", 0) } });
        world.home.write("mcp.json", &format!("{project:#}"));
        world
    }

    /// Starts a front in the project.
    pub fn start(&self, front: &str) -> (Child, SecretTap<ChildStdout>, ChildStdin) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mcp-sidecar"));
        command.arg(front).envs(self.home.variables()).current_dir(self.home.project()).kill_on_drop(true);
        let stderr = std::fs::File::options().append(true).create(true).open(self.home.path("stderr")).unwrap();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr);
        let mut process = command.spawn().unwrap();
        let output = SecretTap::new(process.stdout.take().unwrap(), &self.secret);
        lock(&self.leaks).push(output.seen.clone());
        let input = process.stdin.take().unwrap();
        (process, output, input)
    }

    /// Changes the definition of a server, or restores all of them, and writes the config of the user.
    pub fn change(&self, change: Option<(&str, Change)>) {
        {
            let mut changes = lock(&self.changes);
            match change {
                Some((server, change)) => drop(changes.insert(server.to_owned(), change)),
                None => changes.retain(|_, change| matches!(change, Change::Launch(_))),
            }
        }
        self.write_config();
    }

    fn write_config(&self) {
        let changes = lock(&self.changes);
        let mut servers = Map::new();
        for name in SERVERS.into_iter().filter(|name| *name != "project") {
            let change = changes.get(name);
            let launch = if let Some(Change::Launch(number)) = change { *number } else { 0 };
            let asks = name.starts_with("ask");
            let level = match change {
                Some(Change::Removed) => continue,
                Some(Change::Denied) => "deny",
                _ if asks => "require-approval",
                _ => "allow-session",
            };
            let definition = match name {
                "demo0" | "demo1" => json!({
                    "command": env!("CARGO_BIN_EXE_mcp-sidecar"), "args": ["demo-server"], "tools": { "*": level },
                    "env": self.environment(launch),
                }),
                "open" | "shop" => json!({
                    "url": self.remotes.url(name), "tools": { "*": level },
                    "headers": { "X-Secret": self.secret, "X-Launch": launch.to_string() },
                }),
                _ => self.python(level, launch),
            };
            servers.insert(name.to_owned(), definition);
        }
        // Written under the lock, so that the last change is the one in the file.
        let text = format!("{:#}", json!({ "servers": servers }));
        std::fs::write(self.home.path("config/mcp.json"), text).unwrap();
    }

    /// A server that ends when the argument `crash` is true, and hesitates when `late` is.
    fn python(&self, level: &str, launch: u32) -> Value {
        let script =
            json!({ "tools/call": [{ "exit": 1, "if": "crash" }, { "sleep": 0.2, "if": "late" }, { "usual": true }] });
        let mut server = crate::support::harness::faulty(&script.to_string());
        server["tools"] = json!({ "*": level });
        server["env"] = self.environment(launch);
        server
    }

    fn environment(&self, launch: u32) -> Value {
        json!({
            "CALLS": self.home.path("calls"), "SECRET": self.secret, "LAUNCH": launch.to_string(),
        })
    }

    /// The processes of the servers that run on this machine, each with its command line.
    pub fn processes_of_servers(&self) -> Vec<(u32, String)> {
        let mut found = processes_of(&self.home.path(""));
        found.retain(|(_, line)| line.contains("faulty.py") || line.contains("demo-server"));
        found
    }

    /// What an actor does from now on.
    pub fn note(&self, actor: &str, doing: impl Into<String>) {
        lock(&self.doing).insert(actor.to_owned(), doing.into());
    }

    pub fn doing(&self) -> String {
        format!("{:#?}", lock(&self.doing))
    }

    pub fn check_secret(&self) -> Result<(), String> {
        if let Some(text) = lock(&self.leaks).iter().find_map(|leak| leak.get()) {
            return Err(format!("the secret is in a message to an editor or agent: {text}"));
        }
        crate::watcher::in_no_file(&self.home.path(""), &self.secret)
    }
}

/// A lock that is held for a lookup.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
