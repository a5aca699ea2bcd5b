//! The endpoint for agents, as the official suite judges it: `connect --http` with the suite's server behind it.
//!
//! The suite knows neither our token nor that a tool here carries its server's name. Between the two stands a door that
//! adds the one and hides the other, and passes everything else as it came.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_LENGTH, HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderValue, Response};
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};

use crate::suite::{Side, Suite};
use crate::support::Home;

const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-sidecar");
/// No wait takes longer on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// What every name of the suite's server begins with on our side.
const PREFIX: &str = "suite__";

#[tokio::test(flavor = "multi_thread")]
async fn the_endpoint_for_agents_passes_the_server_scenarios_of_the_official_suite() {
    let Some(suite) = Suite::find() else { return };
    plays(&suite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_endpoint_for_agents_passes_the_server_scenarios_of_the_newer_era() {
    let Some(suite) = Suite::next() else { return };
    plays(&suite).await;
}

async fn plays(suite: &Suite) {
    let home = Home::new();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/conformance.py");
    let levels = json!({ "*": "allow-session", "resource:*": "allow-session" });
    let server = json!({ "command": "python3", "args": [script], "tools": levels });
    std::fs::write(home.path("config/mcp.json"), json!({ "servers": { "suite": server } }).to_string()).unwrap();
    let (_endpoint, door) = open(&home).await;
    let url = door.open().await;

    suite.judge(Side::Server, &suite.play_all(&url).await);
}

/// Starts the endpoint, and waits until it says where it is.
async fn open(home: &Home) -> (Child, Door) {
    let mut command = Command::new(PROGRAM);
    command.args(["connect", "--http", "--json"]).envs(home.variables()).current_dir(home.project());
    let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let mut said = String::new();
    let said = loop {
        let line = tokio::time::timeout(PATIENCE, lines.next_line()).await.expect("it should say where it is");
        said.push_str(&line.unwrap().unwrap_or_else(|| panic!("it ended: {said}")));
        if let Ok(said) = serde_json::from_str::<Value>(&said) {
            break said;
        }
    };
    let token = std::fs::read_to_string(said["tokenFile"].as_str().unwrap()).unwrap();
    let authorization = HeaderValue::from_str(&format!("Bearer {}", token.trim())).unwrap();
    // One that is there already does as well.
    rustls::crypto::ring::default_provider().install_default().ok();
    let url = url::Url::parse(said["url"].as_str().unwrap()).unwrap();
    (process, Door { url, authorization, client: reqwest::Client::builder().no_proxy().build().unwrap() })
}

#[derive(Clone)]
struct Door {
    url: url::Url,
    authorization: HeaderValue,
    client: reqwest::Client,
}

impl Door {
    /// Opens it for as long as the test runs, and tells where.
    async fn open(self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let router = Router::new().fallback(pass).with_state((Arc::new(self), port));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        format!("http://127.0.0.1:{port}/mcp")
    }
}

async fn pass(State((door, port)): State<(Arc<Door>, u16)>, request: Request) -> Response<Body> {
    let (head, body) = request.into_parts();
    let mut headers = head.headers;
    headers.remove(CONTENT_LENGTH);
    headers.insert(AUTHORIZATION, door.authorization.clone());
    readdress(&mut headers, port, door.url.port().unwrap());
    rename(&mut headers);
    let body = named(&to_bytes(body, 1 << 20).await.unwrap());
    let sent = door.client.request(head.method, door.url.clone()).headers(headers).body(body).send().await.unwrap();

    let mut response = Response::builder().status(sent.status());
    let headers = response.headers_mut().unwrap();
    headers.extend(sent.headers().clone());
    headers.remove(CONTENT_LENGTH);
    headers.remove("transfer-encoding");
    response.body(Body::from_stream(lines(sent))).unwrap()
}

/// Whoever says that he comes to this port means the one behind; a stranger's name stays what it is.
fn readdress(headers: &mut HeaderMap, from: u16, to: u16) {
    for name in [HOST, ORIGIN] {
        if let Some(value) = headers.get(&name).and_then(|value| value.to_str().ok()) {
            let value = value.replace(&format!(":{from}"), &format!(":{to}"));
            headers.insert(name, value.parse().unwrap());
        }
    }
}

/// In the newer era the name stands in a header as well.
fn rename(headers: &mut HeaderMap) {
    let prefixed = headers.get("mcp-method").is_some_and(|method| method == "tools/call" || method == "prompts/get");
    if let Some(name) = headers.get("mcp-name").filter(|_| prefixed).and_then(|name| name.to_str().ok()) {
        let name = format!("{PREFIX}{name}");
        headers.insert("mcp-name", name.parse().unwrap());
    }
}

/// A request, with the names that are in use behind the door.
fn named(body: &[u8]) -> Vec<u8> {
    let Ok(mut message) = serde_json::from_slice::<Value>(body) else { return body.to_vec() };
    let place = match message["method"].as_str() {
        Some("tools/call" | "prompts/get") => "/params/name",
        Some("completion/complete") => "/params/ref/name",
        _ => return body.to_vec(),
    };
    if let Some(Value::String(name)) = message.pointer_mut(place) {
        name.insert_str(0, PREFIX);
    }
    message.to_string().into_bytes()
}

/// An answer, with the names that the suite knows, line by line as it comes.
fn lines(response: reqwest::Response) -> impl futures::Stream<Item = Result<Bytes, std::io::Error>> {
    let bytes = response.bytes_stream().map(|bytes| bytes.map_err(std::io::Error::other));
    let reader = BufReader::new(tokio_util::io::StreamReader::new(Box::pin(bytes)));
    futures::stream::unfold(reader, |mut reader| async move {
        let mut line = Vec::new();
        match reader.read_until(b'\n', &mut line).await {
            Ok(0) => None,
            Ok(_) => Some((Ok(String::from_utf8_lossy(&line).replace(PREFIX, "").into()), reader)),
            Err(error) => Some((Err(error), reader)),
        }
    })
}
