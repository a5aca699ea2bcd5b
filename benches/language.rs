//! Measures how long language requests take in a file with 200 servers, over pipes to `mcp-sidecar lsp`. Requests are sent
//! for positions all over the file, with and without a change of the text right before.
//!
//! `make bench` runs it. `cargo bench --bench language -- 0.2` does a fifth of the work.

#![allow(
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a program for people, and a panic here harms nobody"
)]

mod frames;

use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const SERVERS: usize = 200;
/// The longest time that a request may take.
const LIMIT: Duration = Duration::from_millis(10);

fn main() -> io::Result<()> {
    // Cargo adds `--bench`; the number is our own argument.
    let share = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(1.0_f64);
    let rounds = ((50.0 * share) as usize).max(5);
    let place = tempfile::tempdir()?;
    let mut editor = Editor::open(place.path())?;
    println!("{SERVERS} servers, {} KB", editor.text.len() / 1_000);
    println!("{:<34}{:>12}{:>12}{:>12}", "", "p50", "p95", "max");
    let mut slow = Vec::new();
    for (what, after_a_change) in [("", false), (", just typed", true)] {
        for request in REQUESTS {
            let mut samples = Vec::new();
            for round in 0..=rounds {
                // Positions all over the file. The first round is a warm-up.
                let line = editor.line_of_server(round * 37 % SERVERS);
                if after_a_change {
                    editor.type_something()?;
                }
                let took = editor.time(request, line)?;
                if round > 0 {
                    samples.push(took);
                }
            }
            slow.extend(report(&format!("{}{what}", request.method), samples));
        }
    }
    let mut samples = Vec::new();
    for _ in 0..rounds {
        let started = Instant::now();
        editor.type_something()?;
        editor.wait_for_diagnostics()?;
        samples.push(started.elapsed());
    }
    slow.extend(report("diagnostics after a change", samples));
    match slow.as_slice() {
        [] => println!("every request took less than {} ms at the 95th percentile", LIMIT.as_millis()),
        slow => println!("over {} ms at the 95th percentile: {}", LIMIT.as_millis(), slow.join(", ")),
    }
    Ok(())
}

/// Prints one line of the table. Returns its name if it is too slow.
fn report(what: &str, mut samples: Vec<Duration>) -> Option<String> {
    samples.sort();
    let at = |share: usize| samples[(samples.len() * share / 100).min(samples.len() - 1)];
    let millis = |figure: Duration| figure.as_secs_f64() * 1e3;
    println!("{what:<34}{:>9.2} ms{:>9.2} ms{:>9.2} ms", millis(at(50)), millis(at(95)), millis(at(100)));
    (at(95) > LIMIT).then(|| what.to_owned())
}

struct Request {
    method: &'static str,
    /// Lines below the server's key, and the column.
    at: (u32, u32),
}

/// All requests that an editor may send for a config file.
const REQUESTS: &[Request] = &[
    Request { method: "completion", at: (2, 8) },
    Request { method: "hover", at: (0, 8) },
    Request { method: "codeLens", at: (0, 0) },
    Request { method: "inlayHint", at: (0, 0) },
    Request { method: "codeAction", at: (0, 8) },
    Request { method: "documentSymbol", at: (0, 0) },
    Request { method: "definition", at: (5, 10) },
    Request { method: "references", at: (0, 8) },
    Request { method: "documentHighlight", at: (0, 8) },
    Request { method: "rename", at: (0, 8) },
    Request { method: "foldingRange", at: (0, 0) },
    Request { method: "selectionRange", at: (5, 10) },
    Request { method: "documentLink", at: (0, 0) },
];

struct Editor {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    uri: String,
    text: String,
    version: i64,
    next_id: i64,
}

impl Drop for Editor {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Editor {
    fn open(place: &Path) -> io::Result<Self> {
        let path = write_files(place)?;
        let mut child = Command::new(env!("CARGO_BIN_EXE_mcp-sidecar"))
            .arg("lsp")
            .current_dir(place.join("workspace"))
            .env("MCP_SIDECAR_CONFIG_DIR", place.join("config"))
            .env("MCP_SIDECAR_STATE_DIR", place.join("state"))
            .env("MCP_SIDECAR_RUNTIME_DIR", place.join("run"))
            .env("MCP_SIDECAR_MANAGED_CONFIG", place.join("managed.json"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("the pipes are missing"));
        };
        let text = std::fs::read_to_string(&path)?;
        let uri = url::Url::from_file_path(&path).map_err(|()| io::Error::other("no absolute path"))?.to_string();
        let output = BufReader::with_capacity(1 << 16, output);
        let mut editor = Self { child, input, output, uri, text, version: 1, next_id: 0 };
        let literals = json!({ "codeActionKind": { "valueSet": [] } });
        let capabilities = json!({ "textDocument": {
            "codeAction": { "codeActionLiteralSupport": literals },
            "documentSymbol": { "hierarchicalDocumentSymbolSupport": true },
        } });
        editor.request("initialize", json!({ "capabilities": capabilities }))?;
        editor.notify("initialized", json!({}))?;
        let document = json!({ "uri": editor.uri, "languageId": "json", "version": 1, "text": editor.text });
        editor.notify("textDocument/didOpen", json!({ "textDocument": document }))?;
        editor.wait_for_diagnostics()?;
        // One server runs, so that responses contain live data.
        let start = json!({ "command": "mcp.server.start", "arguments": [{ "server": "server-0" }] });
        editor.request("workspace/executeCommand", start)?;
        Ok(editor)
    }

    fn line_of_server(&self, number: usize) -> u32 {
        let key = format!("\"server-{number}\": {{");
        let at = self.text.find(&key).unwrap_or_default();
        u32::try_from(self.text[..at].matches('\n').count()).unwrap_or(u32::MAX)
    }

    /// The time from the request to the last byte of the response.
    fn time(&mut self, request: &Request, line: u32) -> io::Result<Duration> {
        let position = json!({ "line": line + request.at.0, "character": request.at.1 });
        let end = json!({ "line": line + 40, "character": 0 });
        let mut params = json!({
            "textDocument": { "uri": self.uri },
            "position": position,
            "positions": [position],
            "range": { "start": position, "end": end },
            "context": { "includeDeclaration": true, "diagnostics": [] },
            "newName": "renamed",
        });
        if request.method == "codeAction" {
            params["range"]["end"] = position;
        } else if request.method == "completion" {
            params["context"] = json!({ "triggerKind": 1 });
        }
        let method = format!("textDocument/{}", request.method);
        let started = Instant::now();
        let answer = self.request(&method, params)?;
        let took = started.elapsed();
        if answer.get(..60).unwrap_or(&answer).contains("\"error\"") {
            return Err(io::Error::other(format!("{method} failed at line {line}: {answer}")));
        }
        Ok(took)
    }

    /// Changes one letter in a comment. The whole text is sent.
    fn type_something(&mut self) -> io::Result<()> {
        self.version += 1;
        self.text = self.text.replacen("//", "//x", 1).replacen("//xxxxxxxx", "//", 1);
        let document = json!({ "uri": self.uri, "version": self.version });
        let params = json!({ "textDocument": document, "contentChanges": [{ "text": self.text }] });
        self.notify("textDocument/didChange", params)
    }

    fn wait_for_diagnostics(&mut self) -> io::Result<()> {
        let version = format!("\"version\":{}", self.version);
        loop {
            let body = self.receive()?;
            if body.contains("textDocument/publishDiagnostics") && body.contains(&version) {
                return Ok(());
            }
        }
    }

    /// Sends a request and returns the raw response.
    fn request(&mut self, method: &str, params: Value) -> io::Result<String> {
        self.next_id += 1;
        let id = self.next_id;
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        let (before, after) = (format!("\"id\":{id},"), format!("\"id\":{id}}}"));
        loop {
            let body = self.receive()?;
            // The id is near the beginning or at the end. Parsing the response would be measured, too.
            let start = body.get(..60.min(body.len())).unwrap_or_default();
            if !start.contains("\"method\"") && (start.contains(&before) || body.ends_with(&after)) {
                return Ok(body);
            }
        }
    }

    fn notify(&mut self, method: &str, params: Value) -> io::Result<()> {
        self.write(&json!({ "jsonrpc": "2.0", "method": method, "params": params }))
    }

    fn write(&mut self, message: &Value) -> io::Result<()> {
        let text = message.to_string();
        self.input.write_all(format!("Content-Length: {}\r\n\r\n{text}", text.len()).as_bytes())
    }

    fn receive(&mut self) -> io::Result<String> {
        String::from_utf8(frames::read(&mut self.output)?).map_err(io::Error::other)
    }
}

/// Writes a user config with 200 servers of all kinds; one of them can be started.
fn write_files(place: &Path) -> io::Result<PathBuf> {
    for folder in ["config", "state", "run", "workspace"] {
        std::fs::create_dir_all(place.join(folder))?;
    }
    let program = env!("CARGO_BIN_EXE_mcp-sidecar");
    let mut text = "// Written by the benchmark.\n{\n  \"servers\": {\n".to_owned();
    for number in 0..SERVERS {
        let reached = match number % 4 {
            _ if number == 0 => format!("\"command\": {},\n      \"args\": [\"demo-server\"]", json!(program)),
            1 => "\"url\": \"https://example.test/mcp\",\n      \"headers\": { \"Authorization\": \"Bearer ${env:HOME}\" }"
                .to_owned(),
            2 => "\"command\": \"uvx\",\n      \"args\": [\"some-server\", \"--folder\", \"${workspaceFolder}\"]".to_owned(),
            3 => format!("\"type\": \"tcp\",\n      \"port\": {}", 3_000 + number),
            _ => "\"command\": \"npx\",\n      \"args\": [\"-y\", \"@example/server\", \"${HOME}\"]".to_owned(),
        };
        text.push_str(&format!(
            "    // What server {number} is for.\n    \"server-{number}\": {{\n      {reached},\n      \"autoStart\": false,\n      \"tools\": {{\n        \
             \"echo\": \"allow-session\",\n        \"write_*\": [{{ \"when\": {{ \"path\": {{ \"inside\": \"${{workspaceFolder}}\" }} }}, \"level\": \"allow-once\" }}, \"require-approval\"],\n        \
             \"drop_{number}\": \"deny\"\n      }}\n    }}{}\n",
            if number + 1 < SERVERS { "," } else { "" },
        ));
    }
    text.push_str("  },\n  \"policy\": { \"allowlist\": [{ \"server\": \"server-1*\", \"tool\": \"read_*\" }] },\n");
    text.push_str("  \"actions\": [{ \"title\": \"Echo\", \"tool\": \"mcp__server-0__echo\", \"arguments\": { \"text\": \"${selection}\" } }]\n}\n");
    let path = place.join("config/mcp.json");
    std::fs::write(&path, text)?;
    Ok(path)
}
