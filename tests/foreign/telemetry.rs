//! Exports calls to an OpenTelemetry collector of others (rotel), also behind a proxy that requires a token.

use std::path::Path;
use std::process::Stdio;

use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode, Uri};
use mcp_sidecar::protocol::commands::Doctor;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::TcpListener;
use tokio::process::{Child, ChildStdout, Command};

use crate::beyond::{free_port, line_with};
use crate::servers;
use crate::stdio_agent::{PATIENCE, PROGRAM, StdioAgent, text};
use crate::support::{Home, StdioEditor};

/// A collector that prints what it gets.
struct Rotel {
    port: u16,
    lines: Lines<BufReader<ChildStdout>>,
    _process: Child,
}

impl Rotel {
    /// `None` if the programs of `scripts/get-backends` are not wanted.
    async fn start() -> Option<Self> {
        let mut command = Command::new(servers::backend("MCP_BACKEND_ROTEL")?);
        let (port, grpc) = (free_port().await, free_port().await);
        command.args(["start", "--exporter", "blackhole", "--debug-log-verbosity", "detailed"]);
        command.args(["--debug-log", "traces", "--debug-log", "logs"]);
        command.args(["--otlp-http-endpoint", &format!("127.0.0.1:{port}")]);
        command.args(["--otlp-grpc-endpoint", &format!("127.0.0.1:{grpc}")]);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        line_with(&mut lines, "Starting Rotel").await;
        Some(Self { port, lines, _process: process })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_exported_to_a_collector_without_their_arguments() {
    let Some(Rotel { port, mut lines, _process: _collector }) = Rotel::start().await else { return };
    let home = Home::new();
    let settings = format!("[telemetry]\notlp-endpoint = \"http://127.0.0.1:{port}\"\n");
    std::fs::write(home.path("config/config.toml"), settings).unwrap();
    let demo =
        json!({ "command": PROGRAM, "args": ["demo-server"], "tools": { "echo": "allow-session", "add": "deny" } });
    std::fs::write(home.path("config/mcp.json"), json!({ "servers": { "demo": demo } }).to_string()).unwrap();
    let mut agent = StdioAgent::start(&home, &home.project()).await;
    agent.until_listed("demo__echo").await;
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let meta = json!({ "traceparent": format!("00-{trace}-00f067aa0ba902b7-01") });
    let params = json!({ "name": "demo__echo", "arguments": { "text": "a-private-argument" }, "_meta": meta });
    assert_eq!(text(&agent.ask("tools/call", params).await), "a-private-argument");
    let mut seen = vec![line_with(&mut lines, trace).await];
    agent.call("demo__add", json!({ "a": 1, "b": 2 })).await;
    // The log record of the second call comes last.
    let mut is_denied = false;
    while seen.iter().filter(|line| line.contains("tools/call add")).count() < 2 || !is_denied {
        let line = tokio::time::timeout(PATIENCE, lines.next_line()).await.expect("both calls").unwrap().unwrap();
        is_denied |= line.contains("mcp_sidecar.decision: Str(deny)");
        seen.push(line);
    }
    let shown = seen.join("\n");
    for expected in [
        "00f067aa0ba902b7",
        "tools/call echo",
        "mcp_sidecar.server: Str(demo)",
        "mcp_sidecar.requester.name: Str(stdio-agent)",
        "mcp_sidecar.decision: Str(allow-session)",
        "error.type: Str(denied)",
    ] {
        assert!(shown.contains(expected), "`{expected}` is missing: {shown}");
    }
    assert!(!shown.contains("a-private-argument"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_does_not_answer_delays_no_call() {
    let home = Home::new();
    // It accepts connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let settings = format!("[telemetry]\notlp-endpoint = \"http://{}\"\n", silent.local_addr().unwrap());
    std::fs::write(home.path("config/config.toml"), settings).unwrap();
    let demo = json!({ "command": PROGRAM, "args": ["demo-server"], "tools": { "*": "allow-session" } });
    std::fs::write(home.path("config/mcp.json"), json!({ "servers": { "demo": demo } }).to_string()).unwrap();
    let mut agent = StdioAgent::start(&home, &home.project()).await;
    agent.until_listed("demo__echo").await;
    agent.call("demo__echo", json!({ "text": "0" })).await;
    let (_held, _) = tokio::time::timeout(PATIENCE, silent.accept()).await.expect("it exports").unwrap();
    // The export waits for five seconds; hundreds of calls do not.
    let calls = async {
        for number in 1..300 {
            assert_eq!(
                text(&agent.call("demo__echo", json!({ "text": number.to_string() })).await),
                number.to_string()
            );
        }
    };
    tokio::time::timeout(PATIENCE, calls).await.expect("no call waits for the collector");
}

/// A proxy before a collector that passes on only what has this token, as collectors in a cloud do. Returns its port.
async fn guard(collector: u16, token: &'static str) -> u16 {
    rustls::crypto::ring::default_provider().install_default().ok();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let pass = move |uri: Uri, headers: HeaderMap, body: Bytes| {
        let client = client.clone();
        async move {
            let expected = [("authorization", format!("Bearer {token}")), ("x-team", "the-value-of-a-team".to_owned())];
            if expected.iter().any(|(name, value)| headers.get(*name).is_none_or(|sent| sent != value)) {
                return StatusCode::UNAUTHORIZED;
            }
            let request = client.post(format!("http://127.0.0.1:{collector}{}", uri.path()));
            request.header("content-type", "application/json").body(body).send().await.unwrap().status()
        }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move { axum::serve(listener, axum::Router::new().fallback(pass)).await });
    port
}

async fn run(home: &Home, arguments: &[&str], input: &str) -> String {
    let mut command = Command::new(PROGRAM);
    command.args(arguments).envs(home.variables()).current_dir(home.project()).stdin(Stdio::piped());
    let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    process.stdin.take().unwrap().write_all(input.as_bytes()).await.unwrap();
    let output = tokio::time::timeout(PATIENCE, process.wait_with_output()).await.unwrap().unwrap();
    String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
}

/// The files below a folder that contain these bytes.
fn files_with(folder: &Path, bytes: &str) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => found.extend(files_with(&entry.path(), bytes)),
            kind if kind.is_file() => {
                let content = std::fs::read(entry.path()).unwrap();
                found.extend(content.windows(bytes.len()).any(|part| part == bytes.as_bytes()).then(|| entry.path()));
            }
            _ => {}
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_requires_a_token_gets_it_and_a_refusal_is_shown_once_without_it() {
    const TOKEN: &str = "the-token-of-a-collector";
    let Some(Rotel { port, mut lines, _process: _collector }) = Rotel::start().await else { return };
    let (home, guard) = (Home::new(), guard(port, TOKEN).await);
    let settings = format!(
        "secrets = \"file\"\n[telemetry]\notlp-endpoint = \"http://127.0.0.1:{guard}\"\n\
         otlp-headers = {{ Authorization = \"Bearer ${{keyring:otlp}}\", X-Team = \"${{keyring:team}}\" }}\n\
         [log]\nlevel = \"trace\"\n[secret-commands]\nteam = [\"echo\", \"the-value-of-a-team\"]\n"
    );
    std::fs::write(home.path("config/config.toml"), settings).unwrap();
    let demo = json!({ "command": PROGRAM, "args": ["demo-server"], "tools": { "*": "allow-session" } });
    std::fs::write(home.path("config/mcp.json"), json!({ "servers": { "demo": demo } }).to_string()).unwrap();
    let StdioEditor { mut editor, process: _process } = StdioEditor::start(&home, &[]);
    for noise in
        ["mcp/serverChanged", "mcp/toolsChanged", "mcp/configReloaded", "mcp/callFinished", "mcp/agentsChanged"]
    {
        editor.ignore(noise);
    }
    editor.initialize(&[&home.project()], json!({})).await;
    let mut agent = StdioAgent::start(&home, &home.project()).await;
    agent.until_listed("demo__echo").await;

    agent.call("demo__echo", json!({ "text": "1" })).await;
    let message = |shown: &Value| shown["message"].as_str().unwrap().to_owned();
    let missing = message(&editor.notification("window/showMessage").await);
    let expected = "mcp-sidecar cannot export calls: the keyring has no entry `otlp` for the header of the collector; \
                    run `mcp-sidecar secret set otlp`, or correct `telemetry.otlp-headers` in config.toml.";
    assert_eq!(missing, expected);

    run(&home, &["secret", "set", "otlp"], "an-old-token-of-a-collector").await;
    let doctor = run(&home, &["doctor"], "").await;
    assert!(doctor.contains(&format!("the collector at 127.0.0.1:{guard} refused the records (HTTP 401)")), "{doctor}");
    for text in ["2", "3"] {
        agent.call("demo__echo", json!({ "text": text })).await;
    }
    let refused = message(&editor.notification("window/showMessage").await);
    let expected = format!(
        "mcp-sidecar cannot export calls: the collector at 127.0.0.1:{guard} refused the records (HTTP 401); check \
         `telemetry.otlp-headers` in config.toml and the secrets that it names."
    );
    assert_eq!(refused, expected);

    run(&home, &["secret", "set", "otlp"], TOKEN).await;
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let meta = json!({ "traceparent": format!("00-{trace}-00f067aa0ba902b7-01") });
    agent.ask("tools/call", json!({ "name": "demo__echo", "arguments": { "text": "4" }, "_meta": meta })).await;
    line_with(&mut lines, trace).await;
    let checks = editor.call(Doctor {}).await.unwrap().checks;
    let check = checks.iter().find(|check| check.name == "telemetry").unwrap();
    assert_eq!((check.ok, check.message.as_str()), (true, &*format!("calls are exported to 127.0.0.1:{guard}")));
    // Said once, and nothing after it.
    editor.assert_quiet();

    let mut shown = doctor + &format!("{checks:?}");
    for arguments in [["config", "--json"], ["calls", "--json"], ["doctor", "--json"], ["check", "--json"]] {
        shown.push_str(&run(&home, &arguments, "").await);
    }
    assert!(shown.contains("Bearer ${keyring:otlp}"), "{shown}");
    for secret in [TOKEN, "an-old-token-of-a-collector", "the-value-of-a-team"] {
        let is_own = |path: &Path| path.ends_with("secrets.json") || path.ends_with("config/config.toml");
        let files: Vec<_> = files_with(&home.path(""), secret).into_iter().filter(|path| !is_own(path)).collect();
        assert!(files.is_empty(), "{secret}: {files:?}");
        // The command that prints it is a setting.
        assert!(!shown.contains(secret) || secret == "the-value-of-a-team", "{secret}: {shown}");
    }
}
