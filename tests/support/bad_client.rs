//! An editor or agent that misbehaves: it runs a script of steps against any stream. The server with the same purpose is
//! `tests/fixtures/faulty.py`.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};

/// Fails tests that would hang.
const PATIENCE: Duration = Duration::from_secs(60);

/// How messages are separated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// One per line: an agent.
    Lines,
    /// With a header: an editor.
    Lsp,
}

#[derive(Debug, Clone)]
pub enum Step {
    Send(Value),
    /// Bytes that may be anything.
    Raw(Vec<u8>),
    /// The same request many times, with ids from the first number on.
    Flood {
        request: Value,
        first: i64,
        count: i64,
    },
    /// Reads this many bytes in small pieces, with a pause after each.
    ReadSlowly {
        bytes: usize,
        piece: usize,
        pause: Duration,
    },
    /// Reads until this many responses have arrived.
    Responses(usize),
    CloseInput,
    /// Waits until the other side hangs up.
    HungUp,
}

pub struct BadClient<R, W> {
    read: BufReader<R>,
    write: Option<W>,
    framing: Framing,
    /// Read slowly, and not yet part of a message.
    partial: Vec<u8>,
    /// All responses so far.
    pub responses: Vec<Value>,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> BadClient<R, W> {
    pub fn new(read: R, write: W, framing: Framing) -> Self {
        Self { read: BufReader::new(read), write: Some(write), framing, partial: Vec::new(), responses: Vec::new() }
    }

    /// Starts as a polite agent would.
    pub async fn initialize_agent(&mut self) {
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "bad", "version": "1" } });
        self.run(&[
            Step::Send(json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params })),
            Step::Responses(1),
            Step::Send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })),
            Step::Send(json!({ "jsonrpc": "2.0", "id": -1, "method": "tools/list", "params": {} })),
            Step::Responses(2),
        ])
        .await;
        self.responses.clear();
    }

    /// Starts as an editor with a plugin would.
    pub async fn initialize_editor(&mut self, folder: &Path) {
        let ours = json!({ "mcpSidecar": { "version": "1", "approvals": true } });
        let params = json!({ "processId": null, "capabilities": { "experimental": ours },
            "workspaceFolders": [{ "uri": super::uri(folder), "name": "project" }] });
        self.run(&[
            Step::Send(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params })),
            Step::Responses(1),
            Step::Send(json!({ "jsonrpc": "2.0", "method": "initialized", "params": {} })),
        ])
        .await;
    }

    pub async fn run(&mut self, script: &[Step]) {
        for step in script {
            let done = self.step(step);
            tokio::time::timeout(PATIENCE, done).await.unwrap_or_else(|_| panic!("this step hangs: {step:?}"));
        }
    }

    async fn step(&mut self, step: &Step) {
        match step {
            Step::Send(message) => self.send(message).await,
            Step::Raw(bytes) => self.write(bytes).await,
            Step::Flood { request, first, count } => {
                let mut request = request.clone();
                for id in *first..first + count {
                    request["id"] = json!(id);
                    self.send(&request).await;
                }
            }
            Step::ReadSlowly { bytes, piece, pause } => {
                let mut left = *bytes;
                while left > 0 {
                    let mut buffer = vec![0; left.min(*piece)];
                    let length = self.read.read(&mut buffer).await.unwrap();
                    assert!(length > 0, "the other side hung up on a client that reads");
                    self.partial.extend_from_slice(&buffer[..length]);
                    left -= length;
                    tokio::time::sleep(*pause).await;
                }
            }
            Step::Responses(count) => {
                while self.responses.len() < *count {
                    let message = self.next().await.expect("the other side hung up");
                    if message.get("method").is_none() {
                        self.responses.push(message);
                    }
                }
            }
            Step::CloseInput => self.write = None,
            Step::HungUp => {
                let mut rest = Vec::new();
                self.read.read_to_end(&mut rest).await.ok();
            }
        }
    }

    async fn send(&mut self, message: &Value) {
        let body = message.to_string();
        let bytes = match self.framing {
            Framing::Lines => format!("{body}\n"),
            Framing::Lsp => format!("Content-Length: {}\r\n\r\n{body}", body.len()),
        };
        self.write(bytes.as_bytes()).await;
    }

    /// A client that has been disconnected goes on.
    async fn write(&mut self, bytes: &[u8]) {
        if let Some(write) = &mut self.write
            && (write.write_all(bytes).await.is_err() || write.flush().await.is_err())
        {
            self.write = None;
        }
    }

    async fn next(&mut self) -> Option<Value> {
        let mut read = Chained { before: std::mem::take(&mut self.partial), stream: &mut self.read };
        let body = match self.framing {
            Framing::Lines => read.until(b"\n").await?,
            Framing::Lsp => {
                let header = String::from_utf8(read.until(b"\r\n\r\n").await?).unwrap();
                let length = header.trim().strip_prefix("Content-Length: ").unwrap().parse().unwrap();
                read.exactly(length).await?
            }
        };
        self.partial = read.before;
        Some(serde_json::from_slice(&body).expect("every message is JSON"))
    }
}

/// Bytes that have been read, and the stream that follows them.
struct Chained<'a, R> {
    before: Vec<u8>,
    stream: &'a mut BufReader<R>,
}

impl<R: AsyncRead + Unpin> Chained<'_, R> {
    async fn until(&mut self, end: &[u8]) -> Option<Vec<u8>> {
        loop {
            if let Some(at) = self.before.windows(end.len()).position(|window| window == end) {
                let rest = self.before.split_off(at + end.len());
                return Some(std::mem::replace(&mut self.before, rest));
            }
            let before = self.before.len();
            self.stream.read_until(*end.last()?, &mut self.before).await.ok()?;
            if self.before.len() == before {
                return None;
            }
        }
    }

    async fn exactly(&mut self, length: usize) -> Option<Vec<u8>> {
        let have = self.before.len();
        if have < length {
            self.before.resize(length, 0);
            self.stream.read_exact(&mut self.before[have..]).await.ok()?;
        }
        let rest = self.before.split_off(length);
        Some(std::mem::replace(&mut self.before, rest))
    }
}

/// A call of a tool by an agent; a flood gives it its id.
pub fn call(tool: &str, arguments: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": tool, "arguments": arguments } })
}
