//! An agent that the test controls, whatever its SDK: it lists, calls and cancels on request, and reports what it
//! receives.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;
use tokio::sync::mpsc;

use super::PROGRAM;
use crate::servers::client;
use crate::support::Home;

/// No wait of a test takes longer on the slowest machine; it only ends tests that would hang.
const PATIENCE: Duration = Duration::from_secs(60);

pub type Instructions = mpsc::UnboundedReceiver<Value>;
pub type Reports = mpsc::UnboundedSender<Value>;

pub struct Agent {
    pub tells_progress: bool,
    instructions: mpsc::UnboundedSender<Value>,
    heard: mpsc::UnboundedReceiver<Value>,
}

impl Agent {
    /// `made` carries out instructions (`{"do": "list"}`, `call`, `cancel`) until there are no more.
    pub fn new<F>(made: impl FnOnce(Instructions, Reports) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (instructions, received) = mpsc::unbounded_channel();
        let (reports, heard) = mpsc::unbounded_channel();
        tokio::spawn(made(received, reports));
        Self { tells_progress: true, instructions, heard }
    }

    pub fn typescript(home: &Home, version: &str) -> Option<Self> {
        let mut command = Command::new(client("MCP_CLIENT_NODE")?);
        command.arg(script("typescript.mjs")).args([version, PROGRAM]).env("MCP_CLIENTS", client("MCP_CLIENTS")?);
        Some(Self::process(home, command))
    }

    pub fn python(home: &Home, version: &str) -> Option<Self> {
        let key = if version == "v1" { "MCP_CLIENT_PYTHON_V1" } else { "MCP_CLIENT_PYTHON_V2" };
        let mut command = Command::new(client(key)?);
        command.arg(script("python.py")).arg(PROGRAM);
        Some(Self::process(home, command))
    }

    /// A program that obeys lines of JSON and answers in such lines.
    fn process(home: &Home, mut command: Command) -> Self {
        command.envs(home.variables()).current_dir(home.project()).kill_on_drop(true);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (mut input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        Self::new(|mut instructions, reports| async move {
            let mut lines = BufReader::new(output).lines();
            loop {
                tokio::select! {
                    instruction = instructions.recv() => match instruction {
                        Some(instruction) => input.write_all(format!("{instruction}\n").as_bytes()).await.unwrap(),
                        None => break,
                    },
                    line = lines.next_line() => match line.unwrap() {
                        Some(line) => drop(reports.send(serde_json::from_str(&line).unwrap())),
                        None => break,
                    },
                }
            }
            drop(input);
            let status = tokio::time::timeout(PATIENCE, process.wait()).await.expect("it should leave").unwrap();
            reports.send(json!({ "left": status.success() })).ok();
        })
    }

    pub async fn list(&mut self) -> Vec<String> {
        self.instructions.send(json!({ "do": "list" })).unwrap();
        serde_json::from_value(self.hears("tools").await).unwrap()
    }

    /// The names of the entries of all lists.
    pub async fn list_all(&mut self) -> Value {
        self.instructions.send(json!({ "do": "list-all" })).unwrap();
        self.hears("lists").await
    }

    /// Calls a tool without waiting for what comes of it.
    pub fn begin(&mut self, tool: &str, arguments: Value) {
        self.instructions.send(json!({ "do": "call", "tool": tool, "arguments": arguments })).unwrap();
    }

    pub fn cancel(&mut self) {
        self.instructions.send(json!({ "do": "cancel" })).unwrap();
    }

    pub async fn result(&mut self) -> Value {
        self.hears("result").await
    }

    /// The call came to nothing, and the agent knows it.
    pub async fn refusal(&mut self) {
        self.hears("error").await;
    }

    /// Waits until a countdown reports a number. Earlier calls have reported that they wait for the user.
    pub async fn counted(&mut self) {
        while self.hears("progress").await.as_str().is_none_or(|message| message.parse::<u32>().is_err()) {}
    }

    /// What its user is asked.
    pub async fn question(&mut self) -> String {
        self.hears("asked").await.as_str().unwrap().to_owned()
    }

    /// Closes its side, as an agent does that has done its work.
    pub async fn leave(mut self) {
        let (nothing, _) = mpsc::unbounded_channel();
        self.instructions = nothing;
        assert_eq!(self.hears("left").await, true);
    }

    /// The next thing of this kind; it may tell of progress at any time.
    async fn hears(&mut self, kind: &str) -> Value {
        loop {
            let next = tokio::time::timeout(PATIENCE, self.heard.recv()).await;
            let next = next.unwrap_or_else(|_| panic!("waited in vain for a {kind}"));
            let mut next = next.unwrap_or_else(|| panic!("the agent has gone; waiting for a {kind}"));
            if let Some(found) = next.get_mut(kind) {
                return found.take();
            }
            assert!(next.get("progress").is_some(), "not expected: {next:#}");
        }
    }
}

fn script(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign/agents").join(name)
}
