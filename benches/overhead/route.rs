//! The routes to the server: a bare pipe, the client of rmcp, and the sidecar as an editor and as an agent use it.

use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::frames;
use super::http::Http;
use super::peers::{self, Peer};
use super::processes::Processes;
use super::rmcp_client::RmcpClient;
use super::server::SERVE;

/// How long a route may take to become usable.
const READY_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a program of others may take to end.
const PEER_END_TIMEOUT: Duration = Duration::from_secs(5);

/// A request to the server. Each route has its own format.
#[derive(Clone)]
pub enum Request {
    Call {
        tool: &'static str,
        text: String,
    },
    List,
    /// A call that the user is asked about, from an editor.
    Ask,
    /// The open questions, for an editor.
    Questions,
    /// The newest calls in the log, for an editor.
    Calls,
    /// The figures about all calls, for an editor.
    Metrics,
}

/// Which route.
#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    Direct,
    Rmcp,
    AgentAlone,
    Agent,
    EditorAlone,
    Editor,
    /// The index in the list of peers.
    Peer(usize),
}

/// The servers behind a route.
#[derive(Clone, Copy)]
pub struct Servers {
    pub count: usize,
    /// Of each server.
    pub tools: usize,
}

impl Kind {
    /// All routes whose program is there.
    pub fn all() -> impl Iterator<Item = Self> {
        let peers = peers::ALL.iter().enumerate().filter(|(_, peer)| peer.is_installed());
        [Self::Direct, Self::Rmcp, Self::AgentAlone, Self::Agent, Self::EditorAlone, Self::Editor]
            .into_iter()
            .chain(peers.map(|(index, _)| Self::Peer(index)))
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "bare pipe",
            Self::Rmcp => "rmcp client",
            Self::AgentAlone => "agent alone",
            Self::Agent => "agent",
            Self::EditorAlone => "editor alone",
            Self::Editor => "editor",
            Self::Peer(_) => self.peer().map_or("peer", |peer| peer.name),
        }
    }

    /// The program of others that this route goes through.
    pub fn peer(self) -> Option<&'static Peer> {
        let Self::Peer(index) = self else { return None };
        peers::ALL.get(index)
    }

    fn is_editor(self) -> bool {
        matches!(self, Self::Editor | Self::EditorAlone)
    }
}

/// An open route.
pub enum Route {
    Pipe(Box<Pipe>),
    Rmcp(RmcpClient),
}

impl Route {
    /// Opens a route in an empty folder, and waits until all tools of all servers are listed.
    pub fn open(kind: Kind, servers: Servers, place: &Path) -> io::Result<Self> {
        match kind {
            Kind::Rmcp => RmcpClient::open(servers).map(Self::Rmcp),
            _ => Pipe::open(kind, servers, place).map(|pipe| Self::Pipe(Box::new(pipe))),
        }
    }

    pub fn kind(&self) -> Kind {
        match self {
            Self::Pipe(pipe) => pipe.kind,
            Self::Rmcp(_) => Kind::Rmcp,
        }
    }

    /// Sends a request and waits for its response.
    pub fn request(&mut self, request: &Request) -> io::Result<()> {
        match self {
            Self::Pipe(pipe) => {
                let message = pipe.message(request);
                pipe.write(&message)?;
                pipe.receive().map(drop)
            }
            Self::Rmcp(client) => client.request(request),
        }
    }

    /// Sends a request whose response comes later, or never.
    pub fn send(&mut self, request: &Request) -> io::Result<()> {
        match self {
            Self::Pipe(pipe) => {
                let message = pipe.message(request);
                pipe.write(&message)
            }
            Self::Rmcp(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Makes calls so that 64 of them are always in flight.
    pub fn in_flight(&mut self, calls: usize, request: &Request) -> io::Result<()> {
        match self {
            Self::Pipe(pipe) => {
                for sent in 0..calls + 64 {
                    if sent < calls {
                        let message = pipe.message(request);
                        pipe.write(&message)?;
                    }
                    if sent >= 64 {
                        pipe.receive()?;
                    }
                }
                Ok(())
            }
            Self::Rmcp(client) => client.in_flight(calls, request),
        }
    }

    /// The processes between us and the servers. The bare pipe has none.
    pub fn processes(&self) -> Option<Processes> {
        match self {
            Self::Pipe(pipe) if pipe.kind == Kind::Direct => None,
            Self::Pipe(pipe) => Some(Processes::with(&pipe.mark)),
            Self::Rmcp(_) => Some(Processes::this()),
        }
    }

    /// Closes the route as an editor or agent would, and waits until everything has ended.
    pub fn close(self) -> io::Result<()> {
        match self {
            Self::Pipe(pipe) => pipe.close(),
            Self::Rmcp(client) => client.close(),
        }
    }
}

/// A route that is a pair of pipes.
pub struct Pipe {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    /// Instead of the pipes, for a program that listens.
    http: Option<Http>,
    /// The tool of a peer whose name ends like this: each peer has its own prefix.
    names: Vec<String>,
    /// For a bare pipe: the other servers.
    others: Vec<Pipe>,
    kind: Kind,
    next_id: u64,
    /// Only the processes of this route have this text in their environment.
    mark: String,
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Pipe {
    fn open(kind: Kind, servers: Servers, place: &Path) -> io::Result<Self> {
        let mut listens = None;
        let mut command = match kind {
            Kind::Peer(_) => {
                let prepared = kind.peer().ok_or(io::ErrorKind::NotFound)?.prepare(servers, place)?;
                listens = prepared.listens;
                prepared.command
            }
            Kind::Direct | Kind::Rmcp => server_command(servers.tools)?,
            Kind::AgentAlone => sidecar(place, &["connect", "--standalone"], servers)?,
            Kind::Agent => sidecar(place, &["connect"], servers)?,
            Kind::EditorAlone => sidecar(place, &["lsp", "--standalone"], servers)?,
            Kind::Editor => sidecar(place, &["lsp"], servers)?,
        };
        let mark = place.display().to_string();
        command.env("BENCH_PLACE", &mark);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("the pipes are missing"));
        };
        let output = BufReader::with_capacity(1 << 16, output);
        let http = listens.map(|(address, path)| Http::new(address, path));
        let (others, names) = Default::default();
        let mut pipe = Self { child, input: Some(input), output, http, names, others, kind, next_id: 0, mark };
        if kind == Kind::Direct {
            let one = Servers { count: 1, ..servers };
            for _ in 1..servers.count {
                pipe.others.push(Self::open(kind, one, place)?);
            }
        }
        pipe.greet()?;
        pipe.wait_until_listed(if kind == Kind::Direct { 1 } else { servers.count } * servers.tools)?;
        Ok(pipe)
    }

    fn greet(&mut self) -> io::Result<()> {
        let params = match self.kind.is_editor() {
            true => json!({ "capabilities": {} }),
            false => json!({
                // Some of the others know no newer version.
                "protocolVersion": if self.kind.peer().is_some() { "2025-06-18" } else { "2025-11-25" },
                "capabilities": {},
                "clientInfo": { "name": "bench", "version": "1" },
            }),
        };
        self.write(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }))?;
        self.receive()?;
        let method = if self.kind.is_editor() { "initialized" } else { "notifications/initialized" };
        self.write(&json!({ "jsonrpc": "2.0", "method": method, "params": {} }))?;
        // Over HTTP, a notification has a response, too.
        self.http.as_mut().map_or(Ok(()), |http| http.read().map(drop))
    }

    /// Lists the tools until all of them are there: until then, servers are starting.
    fn wait_until_listed(&mut self, tools: usize) -> io::Result<()> {
        let deadline = Instant::now() + READY_TIMEOUT;
        loop {
            let message = self.message(&Request::List);
            self.write(&message)?;
            let answer = self.receive()?;
            let listed = memchr::memmem::find_iter(&answer, b"one of many").count();
            if listed >= tools {
                self.names = names_in(&answer);
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(io::Error::other(format!("{listed} of {tools} tools were listed")));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn message(&mut self, request: &Request) -> Value {
        self.next_id += 1;
        let (method, params) = match (self.kind, request) {
            (Kind::Editor | Kind::EditorAlone, Request::List) => command("mcp.tools", json!({})),
            (_, Request::Questions) => command("mcp.approvals", json!({})),
            (_, Request::Calls) => command("mcp.calls", json!({})),
            (_, Request::Metrics) => command("mcp.metrics", json!({})),
            (_, Request::Ask) => command("mcp.tool.call", json!({ "tool": "mcp__s0__tool_2", "arguments": {} })),
            (_, Request::List) => ("tools/list", json!({})),
            (Kind::Editor | Kind::EditorAlone, Request::Call { tool, text }) => {
                let call = json!({ "tool": format!("mcp__s0__{tool}"), "arguments": { "text": text } });
                command("mcp.tool.call", call)
            }
            (kind, Request::Call { tool, text }) => {
                let name = match kind {
                    Kind::Agent | Kind::AgentAlone => format!("s0__{tool}"),
                    Kind::Peer(_) => self.names.iter().find(|name| name.ends_with(tool)).cloned().unwrap_or_default(),
                    _ => (*tool).to_owned(),
                };
                ("tools/call", json!({ "name": name, "arguments": { "text": text } }))
            }
        };
        json!({ "jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params })
    }

    fn write(&mut self, message: &Value) -> io::Result<()> {
        let mut text = message.to_string();
        if self.kind.is_editor() {
            text = format!("Content-Length: {}\r\n\r\n{text}", text.len());
        } else {
            if let Some(http) = &mut self.http {
                return http.write(&text);
            }
            text.push('\n');
        }
        self.input.as_mut().ok_or(io::ErrorKind::NotConnected)?.write_all(text.as_bytes())
    }

    /// The text of the next response. Skips notifications and answers requests.
    fn receive(&mut self) -> io::Result<Vec<u8>> {
        #[derive(Deserialize)]
        struct Envelope<'text> {
            #[serde(borrow)]
            id: Option<&'text RawValue>,
            method: Option<String>,
            error: Option<Value>,
        }
        loop {
            let body = self.read_body()?;
            if self.http.is_some() {
                let is_error = memchr::memmem::find(&body, b"\"result\":").is_none();
                return if is_error {
                    Err(io::Error::other(String::from_utf8_lossy(&body).into_owned()))
                } else {
                    Ok(body)
                };
            }
            // The start of a response. The rest is not parsed, because that would be measured, too.
            let start = body.get(..40.min(body.len())).unwrap_or_default();
            if memchr::memmem::find(start, b"\"result\":").is_some() {
                if body.len() < 10_000 && memchr::memmem::find(&body, b"\"isError\":true").is_some() {
                    return Err(io::Error::other(String::from_utf8_lossy(&body).into_owned()));
                }
                return Ok(body);
            }
            let envelope: Envelope = serde_json::from_slice(&body)?;
            match (envelope.method, envelope.id, envelope.error) {
                (None, _, Some(error)) => return Err(io::Error::other(error.to_string())),
                (None, _, None) => return Ok(body),
                // An answer would close the question.
                (Some(method), _, _) if method == "window/showMessageRequest" => (),
                (Some(_), Some(id), _) => self.write(&json!({ "jsonrpc": "2.0", "id": id, "result": null }))?,
                (Some(_), None, _) => (),
            }
        }
    }

    fn read_body(&mut self) -> io::Result<Vec<u8>> {
        if self.kind.is_editor() {
            return frames::read(&mut self.output);
        }
        if let Some(http) = &mut self.http {
            return http.read();
        }
        let mut body = Vec::new();
        self.output.read_until(b'\n', &mut body)?;
        if body.is_empty() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(body) }
    }

    fn close(mut self) -> io::Result<()> {
        #[cfg(unix)]
        if self.http.is_some()
            && let Some(pid) = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw)
        {
            rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
        }
        if self.kind.is_editor() {
            self.write(&json!({ "jsonrpc": "2.0", "id": "end", "method": "shutdown" }))?;
            self.receive()?;
            self.write(&json!({ "jsonrpc": "2.0", "method": "exit" }))?;
        }
        self.input = None;
        self.others.iter_mut().for_each(|other| other.input = None);
        if self.kind.peer().is_some() {
            // Not all of them end on their own.
            let deadline = Instant::now() + PEER_END_TIMEOUT;
            while self.child.try_wait()?.is_none() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(1));
            }
            return Ok(());
        }
        self.child.wait()?;
        self.others.iter_mut().try_for_each(|other| other.child.wait().map(drop))
    }
}

/// All names in the text of a list of tools, which may be inside of an event.
fn names_in(list: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(list);
    let names = text.split("\"name\":\"").skip(1).filter_map(|rest| rest.split_once('"'));
    names.map(|(name, _)| name.to_owned()).collect()
}

fn command(command: &str, params: Value) -> (&'static str, Value) {
    ("workspace/executeCommand", json!({ "command": command, "arguments": [params] }))
}

/// The server itself.
pub fn server_command(tools: usize) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args([SERVE, &tools.to_string()]);
    Ok(command)
}

/// The sidecar with its own config and state. The user's config defines the servers, so they need no trust.
fn sidecar(place: &Path, arguments: &[&str], servers: Servers) -> io::Result<Command> {
    for folder in ["config", "state", "run", "workspace"] {
        std::fs::create_dir_all(place.join(folder))?;
    }
    let args = [SERVE.to_owned(), servers.tools.to_string()];
    let definition = json!({ "command": std::env::current_exe()?, "args": args, "tools": { "*": "allow-always", "tool_2": "require-approval" } });
    let all: Value = (0..servers.count).map(|number| (format!("s{number}"), definition.clone())).collect();
    std::fs::write(place.join("config/mcp.json"), json!({ "servers": all }).to_string())?;
    let mut command = Command::new(program());
    command
        .args(arguments)
        .current_dir(place.join("workspace"))
        .env("MCP_SIDECAR_CONFIG_DIR", place.join("config"))
        .env("MCP_SIDECAR_STATE_DIR", place.join("state"))
        .env("MCP_SIDECAR_RUNTIME_DIR", place.join("run"))
        .env("MCP_SIDECAR_MANAGED_CONFIG", place.join("managed.json"));
    Ok(command)
}

/// The program to measure: the one in `BENCH_PROGRAM`, for example of the `dist` build, or the one that was just built.
fn program() -> PathBuf {
    let built = || PathBuf::from(option_env!("CARGO_BIN_EXE_mcp-sidecar").unwrap_or("mcp-sidecar"));
    std::env::var_os("BENCH_PROGRAM").map_or_else(built, PathBuf::from)
}
