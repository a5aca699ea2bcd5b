//! Measures what the sidecar adds to a call. The same server is called through a bare pipe, and through `mcp-sidecar lsp`
//! and `connect`, each with a separate and with the shared engine. The routes take turns within one run. Only the ratios
//! are meaningful; the absolute numbers depend on the machine.
//!
//! `make bench` runs it. `cargo bench --bench overhead -- 0.2` does a fifth of the work.

#![allow(
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a program for people, and a panic here harms nobody"
)]

mod frames;

use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

const SERVE: &str = "--be-the-server";
const TOOLS: usize = 1_000;
/// The number of routes to the server.
const ROUTES: usize = 5;

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == SERVE) {
        return serve();
    }
    // Cargo adds `--bench`; the number is our own argument.
    let share = arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(1.0_f64);
    let place = tempfile::tempdir()?;
    let mut routes = [
        Route::direct()?,
        Route::editor(&place.path().join("editor"), &["lsp", "--standalone"])?,
        Route::editor(&place.path().join("shared"), &["lsp"])?,
        Route::agent(&place.path().join("agent"), &["connect", "--standalone"])?,
        Route::agent(&place.path().join("shared"), &["connect"])?,
    ];
    let times = |count: usize| ((count as f64 * share) as usize).max(5);
    let small = Request::Call { tool: "echo", text: "x".repeat(100) };
    let large = Request::Call { tool: "big", text: String::new() };

    print!("{:<28}{:>12}", "", "bare pipe");
    for route in ["editor alone", "editor", "agent alone", "agent"] {
        print!("{route:>20}");
    }
    println!();
    report("call of 100 B, p50", &latencies(&mut routes, times(20), 100, &small)?);
    report("call with 1 MB back, p50", &latencies(&mut routes, times(10), 5, &large)?);
    report("1,000 tools listed, p50", &latencies(&mut routes, times(10), 5, &Request::List)?);
    report("one of 64 calls in flight", &in_flight(&mut routes, times(20_000), &small)?);
    Ok(())
}

/// A request to the server. Each route has its own format.
enum Request {
    Call { tool: &'static str, text: String },
    List,
}

/// The median of each route, over `rounds` rounds of `each` requests.
fn latencies(
    routes: &mut [Route; ROUTES],
    rounds: usize,
    each: usize,
    request: &Request,
) -> io::Result<[Duration; ROUTES]> {
    let mut samples = [const { Vec::new() }; ROUTES];
    for round in 0..=rounds {
        for (route, samples) in routes.iter_mut().zip(&mut samples) {
            for _ in 0..each {
                let message = route.message(request);
                let started = Instant::now();
                route.write(&message)?;
                route.receive()?;
                // The first round only warms up.
                if round > 0 {
                    samples.push(started.elapsed());
                }
            }
        }
    }
    Ok(samples.map(|mut samples| {
        samples.sort();
        samples[samples.len() / 2]
    }))
}

/// The time per call if 64 calls are always in flight.
fn in_flight(routes: &mut [Route; ROUTES], calls: usize, request: &Request) -> io::Result<[Duration; ROUTES]> {
    let mut took = [Duration::ZERO; ROUTES];
    for (route, took) in routes.iter_mut().zip(&mut took) {
        let started = Instant::now();
        for sent in 0..calls + 64 {
            if sent < calls {
                let message = route.message(request);
                route.write(&message)?;
            }
            if sent >= 64 {
                route.receive()?;
            }
        }
        *took = started.elapsed() / u32::try_from(calls).unwrap_or(u32::MAX);
    }
    Ok(took)
}

/// Prints the time of the bare pipe, and the other times with their ratio to it.
fn report(what: &str, [direct, others @ ..]: &[Duration; ROUTES]) {
    let micros = |figure: &Duration| figure.as_secs_f64() * 1e6;
    print!("{what:<28}{:>9.1} µs", micros(direct));
    for other in others {
        print!("{:>9.1} µs{:>7.1}×", micros(other), micros(other) / micros(direct));
    }
    println!();
}

/// A route to the server. Routes differ in how messages are framed and how a tool is called.
struct Route {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    kind: Kind,
    next_id: u64,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Direct,
    Editor,
    Agent,
}

impl Drop for Route {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Route {
    fn direct() -> io::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(SERVE);
        let mut route = Self::open(command, Kind::Direct)?;
        route.greet()?;
        Ok(route)
    }

    fn agent(place: &Path, arguments: &[&str]) -> io::Result<Self> {
        let mut route = Self::open(sidecar(place, arguments)?, Kind::Agent)?;
        route.greet()?;
        route.wait_until_connected()?;
        Ok(route)
    }

    /// Initializes an MCP session.
    fn greet(&mut self) -> io::Result<()> {
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "bench", "version": "1" },
        });
        self.write(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }))?;
        self.receive()?;
        self.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
    }

    fn editor(place: &Path, arguments: &[&str]) -> io::Result<Self> {
        let mut route = Self::open(sidecar(place, arguments)?, Kind::Editor)?;
        route.write(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": { "capabilities": {} } }))?;
        route.receive()?;
        route.write(&json!({ "jsonrpc": "2.0", "method": "initialized", "params": {} }))?;
        route.wait_until_connected()?;
        Ok(route)
    }

    fn open(mut command: Command, kind: Kind) -> io::Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("the pipes are missing"));
        };
        Ok(Self { child, input, output: BufReader::with_capacity(1 << 16, output), kind, next_id: 0 })
    }

    /// Calls until the response is a result: until then, the server is starting.
    fn wait_until_connected(&mut self) -> io::Result<()> {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let message = self.message(&Request::Call { tool: "echo", text: "ready".to_owned() });
            self.write(&message)?;
            let answer = self.receive()?;
            let result = &answer["result"];
            if !result.is_null() && result["isError"] != true {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(io::Error::other(format!("the server did not become usable: {answer}")));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn message(&mut self, request: &Request) -> Value {
        self.next_id += 1;
        let (method, params) = match (self.kind, request) {
            (Kind::Direct | Kind::Agent, Request::List) => ("tools/list", json!({})),
            (Kind::Agent, Request::Call { tool, text }) => {
                ("tools/call", json!({ "name": format!("bench__{tool}"), "arguments": { "text": text } }))
            }
            (Kind::Direct, Request::Call { tool, text }) => {
                ("tools/call", json!({ "name": tool, "arguments": { "text": text } }))
            }
            (Kind::Editor, Request::List) => command("mcp.tools", json!({})),
            (Kind::Editor, Request::Call { tool, text }) => {
                let call = json!({ "tool": format!("mcp__bench__{tool}"), "arguments": { "text": text } });
                command("mcp.tool.call", call)
            }
        };
        json!({ "jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params })
    }

    fn write(&mut self, message: &Value) -> io::Result<()> {
        let mut text = message.to_string();
        if self.kind == Kind::Editor {
            text = format!("Content-Length: {}\r\n\r\n{text}", text.len());
        } else {
            text.push('\n');
        }
        self.input.write_all(text.as_bytes())
    }

    /// The next response. Skips notifications and answers requests.
    fn receive(&mut self) -> io::Result<Value> {
        #[derive(Deserialize)]
        struct Envelope<'text> {
            id: Option<Value>,
            method: Option<String>,
            #[serde(borrow)]
            result: Option<&'text RawValue>,
            error: Option<Value>,
        }
        loop {
            let body = self.read_body()?;
            let envelope: Envelope = serde_json::from_slice(&body)?;
            match (envelope.method, envelope.id) {
                (None, _) => {
                    // A large result is not parsed, because that would be measured, too.
                    let result = envelope.result.filter(|result| result.get().len() < 10_000);
                    let result = result.and_then(|result| serde_json::from_str::<Value>(result.get()).ok());
                    return Ok(json!({ "result": result, "error": envelope.error }));
                }
                (Some(_), Some(id)) => self.write(&json!({ "jsonrpc": "2.0", "id": id, "result": null }))?,
                (Some(_), None) => (),
            }
        }
    }

    fn read_body(&mut self) -> io::Result<Vec<u8>> {
        if self.kind == Kind::Editor {
            return frames::read(&mut self.output);
        }
        let mut body = Vec::new();
        self.output.read_until(b'\n', &mut body)?;
        if body.is_empty() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(body) }
    }
}

fn command(command: &str, params: Value) -> (&'static str, Value) {
    ("workspace/executeCommand", json!({ "command": command, "arguments": [params] }))
}

/// The sidecar with its own config and state. The user's config defines the server, so it needs no trust.
fn sidecar(place: &Path, arguments: &[&str]) -> io::Result<Command> {
    for folder in ["config", "state", "run", "workspace"] {
        std::fs::create_dir_all(place.join(folder))?;
    }
    let server = json!({
        "command": std::env::current_exe()?,
        "args": [SERVE],
        "tools": { "*": "allow-always" },
    });
    std::fs::write(place.join("config/mcp.json"), json!({ "servers": { "bench": server } }).to_string())?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcp-sidecar"));
    command
        .args(arguments)
        .current_dir(place.join("workspace"))
        .env("MCP_SIDECAR_CONFIG_DIR", place.join("config"))
        .env("MCP_SIDECAR_STATE_DIR", place.join("state"))
        .env("MCP_SIDECAR_RUNTIME_DIR", place.join("run"))
        .env("MCP_SIDECAR_MANAGED_CONFIG", place.join("managed.json"));
    Ok(command)
}

/// The server, as fast as possible.
fn serve() -> io::Result<()> {
    #[derive(Deserialize)]
    struct Request<'text> {
        #[serde(borrow)]
        id: Option<&'text RawValue>,
        method: String,
        #[serde(borrow)]
        params: Option<&'text RawValue>,
    }
    #[derive(Deserialize)]
    struct CallParams {
        name: String,
    }
    let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
    let tools: Vec<Value> = ["echo".to_owned(), "big".to_owned()]
        .into_iter()
        .chain((2..TOOLS).map(|number| format!("tool_{number}")))
        .map(|name| json!({ "name": name, "description": "one of many", "inputSchema": schema }))
        .collect();
    let tools = json!({ "tools": tools }).to_string();
    let content = |text: String| json!({ "content": [{ "type": "text", "text": text }] }).to_string();
    let (small, large) = (content("x".repeat(100)), content("y".repeat(1 << 20)));
    let greeting = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": { "tools": {} },
        "serverInfo": { "name": "bench", "version": "1" },
    })
    .to_string();
    let mut output = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let line = line?;
        let request: Request = serde_json::from_str(&line)?;
        let Some(id) = request.id else { continue };
        let result = match request.method.as_str() {
            "initialize" => greeting.as_str(),
            "tools/list" => tools.as_str(),
            "tools/call" => {
                let params = request.params.map(RawValue::get).unwrap_or("{}");
                let call: CallParams = serde_json::from_str(params)?;
                if call.name == "big" { large.as_str() } else { small.as_str() }
            }
            _ => "{}",
        };
        output.write_all(format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{result}}}\n", id.get()).as_bytes())?;
        output.flush()?;
    }
    Ok(())
}
