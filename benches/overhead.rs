//! What the sidecar adds to a call: the same server, reached through a bare pipe, through `mcp-sidecar connect` (as an
//! agent reaches it) and through `mcp-sidecar lsp` (as an editor does). All paths take turns within one run, and only the
//! ratios mean anything: a machine's absolute figures say more about the machine.
//!
//! `make bench` runs it. `cargo bench --bench overhead -- 0.2` does a fifth of the work, for a quick look.

#![allow(
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a program for people, and a panic here harms nobody"
)]

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

const SERVE: &str = "--be-the-server";
const TOOLS: usize = 1_000;

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == SERVE) {
        return serve();
    }
    // Cargo adds `--bench`; a number is ours.
    let share = arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(1.0_f64);
    let place = tempfile::tempdir()?;
    let mut paths =
        [("bare pipe", Way::direct()?), ("agent", Way::agent(place.path())?), ("editor", Way::editor(place.path())?)];
    let times = |count: usize| ((count as f64 * share) as usize).max(5);

    println!("{:<28}{:>14}{:>14}{:>14}{:>11}{:>11}", "", "bare pipe", "agent", "editor", "agent ×", "editor ×");
    let text = "x".repeat(100);
    report("call of 100 B, p50", latencies(&mut paths, times(20), 100, &call("echo", &text))?);
    report("call with 1 MB back, p50", latencies(&mut paths, times(10), 5, &call("big", ""))?);
    report("1,000 tools listed, p50", latencies(&mut paths[..2], times(10), 5, &("tools/list", json!({})))?);
    throughput(&mut paths, times(20_000), &call("echo", &text))?;
    Ok(())
}

fn call(tool: &str, text: &str) -> (&'static str, Value) {
    ("tools/call", json!({ "name": tool, "arguments": { "text": text } }))
}

/// p50 of each path, measured in `rounds` turns of `each` calls.
fn latencies(
    paths: &mut [(&str, Way)],
    rounds: usize,
    each: usize,
    request: &(&str, Value),
) -> io::Result<Vec<Duration>> {
    let mut samples = vec![Vec::with_capacity(rounds * each); paths.len()];
    for round in 0..=rounds {
        for ((_, path), samples) in paths.iter_mut().zip(&mut samples) {
            for _ in 0..each {
                let started = Instant::now();
                path.send(request)?;
                path.receive()?;
                // The first round only warms up.
                if round > 0 {
                    samples.push(started.elapsed());
                }
            }
        }
    }
    Ok(samples
        .into_iter()
        .map(|mut samples| {
            samples.sort();
            samples[samples.len() / 2]
        })
        .collect())
}

fn throughput(paths: &mut [(&str, Way)], calls: usize, request: &(&str, Value)) -> io::Result<()> {
    let mut took = Vec::new();
    for (_, path) in paths {
        let started = Instant::now();
        for sent in 0..calls + 64 {
            if sent < calls {
                path.send(request)?;
            }
            if sent >= 64 {
                path.receive()?;
            }
        }
        took.push(started.elapsed() / u32::try_from(calls).unwrap_or(u32::MAX));
    }
    report("one of 64 calls in flight", took);
    Ok(())
}

fn report(what: &str, figures: Vec<Duration>) {
    let micros = |figure: &Duration| figure.as_secs_f64() * 1e6;
    print!("{what:<28}");
    for index in 0..3 {
        let shown = figures.get(index).map_or("–".to_owned(), |figure| format!("{:.1} µs", micros(figure)));
        print!("{shown:>14}");
    }
    for figure in &figures[1..] {
        print!("{:>10.1}×", micros(figure) / micros(&figures[0]));
    }
    println!();
}

/// One way to the server. How messages are framed, and how a tool is called, is all that differs.
struct Way {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    kind: Kind,
    next_id: u64,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Direct,
    Agent,
    Editor,
}

impl Drop for Way {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Way {
    fn direct() -> io::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(SERVE);
        let mut path = Self::open(command, Kind::Direct)?;
        path.greet_as_mcp()?;
        Ok(path)
    }

    fn agent(place: &Path) -> io::Result<Self> {
        let mut path = Self::open(sidecar(place, "agent", "connect")?, Kind::Agent)?;
        path.greet_as_mcp()?;
        path.wait_until_connected()?;
        Ok(path)
    }

    fn editor(place: &Path) -> io::Result<Self> {
        let mut path = Self::open(sidecar(place, "editor", "lsp")?, Kind::Editor)?;
        path.write(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": { "capabilities": {} } }))?;
        path.receive()?;
        path.write(&json!({ "jsonrpc": "2.0", "method": "initialized", "params": {} }))?;
        path.wait_until_connected()?;
        Ok(path)
    }

    fn open(mut command: Command, kind: Kind) -> io::Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("the pipes are missing"));
        };
        Ok(Self { child, input, output: BufReader::with_capacity(1 << 16, output), kind, next_id: 0 })
    }

    fn greet_as_mcp(&mut self) -> io::Result<()> {
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "bench", "version": "1" },
        });
        self.write(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }))?;
        self.receive()?;
        self.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
    }

    /// Calls until the answer is a result: before that the server is still starting.
    fn wait_until_connected(&mut self) -> io::Result<()> {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            self.send(&call("echo", "ready"))?;
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

    fn send(&mut self, (method, params): &(&str, Value)) -> io::Result<()> {
        self.next_id += 1;
        let id = self.next_id;
        let message = match self.kind {
            Kind::Direct => json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }),
            Kind::Agent => {
                let mut params = params.clone();
                rename(&mut params, "name");
                json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
            }
            Kind::Editor => {
                let mut params = params.clone();
                rename(&mut params, "name");
                let call = json!({ "tool": params["name"], "arguments": params["arguments"] });
                let params = json!({ "command": "mcp.tool.call", "arguments": [call] });
                json!({ "jsonrpc": "2.0", "id": id, "method": "workspace/executeCommand", "params": params })
            }
        };
        self.write(&message)
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

    /// The next answer; what the other side says or asks by itself in between is read and, where it must be, answered.
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
                    // A large result is not looked into: that would be measured, too.
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
        let mut body = Vec::new();
        if self.kind != Kind::Editor {
            self.output.read_until(b'\n', &mut body)?;
            return if body.is_empty() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(body) };
        }
        let mut length = 0;
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            match line.trim_end().strip_prefix("Content-Length: ") {
                Some(value) => length = value.parse().map_err(io::Error::other)?,
                None if line.trim_end().is_empty() => break,
                None => (),
            }
        }
        body.resize(length, 0);
        self.output.read_exact(&mut body)?;
        Ok(body)
    }
}

/// Tools are known as `mcp__server__tool` behind the sidecar.
fn rename(params: &mut Value, key: &str) {
    if let Some(name) = params[key].as_str().map(str::to_owned) {
        params[key] = format!("mcp__bench__{name}").into();
    }
}

/// The sidecar with config and state of its own. The user's config defines the server, so nobody has to be asked.
fn sidecar(place: &Path, name: &str, front: &str) -> io::Result<Command> {
    let place = place.join(name);
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
        .arg(front)
        .current_dir(place.join("workspace"))
        .env("MCP_SIDECAR_CONFIG_DIR", place.join("config"))
        .env("MCP_SIDECAR_STATE_DIR", place.join("state"))
        .env("MCP_SIDECAR_RUNTIME_DIR", place.join("run"))
        .env("MCP_SIDECAR_MANAGED_CONFIG", place.join("managed.json"));
    Ok(command)
}

/// The server: as fast as a pipe lets it be.
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
