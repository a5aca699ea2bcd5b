//! A server that answers as a test wants it to, and a client that says in one line what it got.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract;
use axum::http::{HeaderMap, Method, Response, Uri};
use futures::{FutureExt, Stream, StreamExt};
use mcp_sidecar::config::expand::{Endpoint, Expanded};
use mcp_sidecar::model::ServerName;
use mcp_sidecar::server::connection::{Connection, ConnectionOptions, Era, Lists, OpenError, Request, ServerNotice};
use mcp_sidecar::server::host::Host;
use mcp_sidecar::server::oauth::{MemoryTokens, OpenPage, ServerAuth};
use mcp_sidecar::server::transport::remote::wire;
use mcp_sidecar::settings::Settings;
use mcp_sidecar::text::Secret;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// One request, as the server saw it.
#[derive(Debug, Clone)]
pub struct Seen {
    pub method: Method,
    pub uri: Uri,
    pub headers: HeaderMap,
    pub text: String,
    pub body: Value,
}

impl Seen {
    pub fn rpc(&self) -> &str {
        self.body.get("method").and_then(Value::as_str).unwrap_or_default()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The answer to this request, as a JSON-RPC text.
    pub fn result(&self, result: Value) -> String {
        json!({ "jsonrpc": "2.0", "id": self.body.get("id"), "result": result }).to_string()
    }
}

/// As an extension of an answer: how much later it is sent.
#[derive(Clone)]
pub struct Late(pub Duration);

pub struct Mock {
    pub url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Mock {
    /// Serves `answer` on a port of this machine for as long as the test runs.
    pub async fn start(answer: impl Fn(Seen) -> Response<Body> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (noted, answer) = (seen.clone(), Arc::new(answer));
        let router = Router::new().fallback(move |request: extract::Request| {
            let (noted, answer) = (noted.clone(), answer.clone());
            async move {
                let (head, body) = request.into_parts();
                let text = String::from_utf8(to_bytes(body, 1 << 20).await.unwrap().to_vec()).unwrap();
                let body = serde_json::from_str(&text).unwrap_or_default();
                let request = Seen { method: head.method, uri: head.uri, headers: head.headers, text, body };
                noted.lock().unwrap().push(request.clone());
                let mut answer = answer(request);
                if let Some(Late(delay)) = answer.extensions_mut().remove() {
                    tokio::time::sleep(delay).await;
                }
                answer
            }
        });
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, seen }
    }

    /// A server that does the handshake and leaves everything else to the test.
    pub async fn mcp(answer: impl Fn(&Seen) -> Response<Body> + Send + Sync + 'static) -> Self {
        Self::start(move |request| handshake(&request).unwrap_or_else(|| answer(&request))).await
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// How many requests of a JSON-RPC method came.
    pub fn count(&self, rpc: &str) -> usize {
        self.seen().iter().filter(|request| request.rpc() == rpc).count()
    }
}

pub fn handshake(request: &Seen) -> Option<Response<Body>> {
    match (request.method.as_str(), request.rpc()) {
        ("POST", "initialize") => {
            let mut answer = answer(200, "application/json", greeting(request));
            answer.headers_mut().insert("mcp-session-id", "first".parse().unwrap());
            Some(answer)
        }
        ("POST", "notifications/initialized" | "notifications/cancelled") => Some(answer(202, "", "")),
        ("GET", _) if request.header("last-event-id").is_none() => Some(answer(405, "", "")),
        ("DELETE", _) => Some(answer(200, "", "")),
        _ => None,
    }
}

pub fn greeting(request: &Seen) -> String {
    request.result(json!({ "protocolVersion": "2025-11-25", "capabilities": { "resources": {} }, "serverInfo": { "name": "mock", "version": "1" } }))
}

pub fn answer(status: u16, kind: &str, body: impl Into<Body>) -> Response<Body> {
    let mut builder = Response::builder().status(status);
    if !kind.is_empty() {
        builder = builder.header("content-type", kind);
    }
    builder.body(body.into()).unwrap()
}

/// A body of pieces that come one by one; the connection breaks where an error stands.
pub fn stream(pieces: impl Stream<Item = Bytes> + Send + 'static) -> Response<Body> {
    answer(200, "text/event-stream", Body::from_stream(pieces.map(Ok::<_, Infallible>)))
}

pub fn events(text: impl Into<String>) -> Response<Body> {
    answer(200, "text/event-stream", text.into())
}

pub fn event(data: &str) -> String {
    format!("data: {data}\n\n")
}

pub fn text_result(text: &str) -> Value {
    json!({ "contents": [{ "uri": "t:", "text": text }] })
}

pub fn endpoint(url: &str) -> Endpoint {
    Endpoint { url: Secret::plain(url), headers: BTreeMap::new(), oauth: None, client: None }
}

pub fn header(url: &str, name: &str, value: &str) -> Expanded {
    Expanded::Http(with_header(url, name, value))
}

pub fn with_header(url: &str, name: &str, value: &str) -> Endpoint {
    Endpoint { headers: BTreeMap::from([(name.to_owned(), Secret::new(value))]), ..endpoint(url) }
}

/// A connection, and what it reports.
pub struct Client {
    connection: Connection,
    _notices: mpsc::Receiver<ServerNotice>,
}

pub async fn connect(url: &str) -> Result<Client, String> {
    connect_to(Expanded::Http(endpoint(url))).await
}

pub async fn connect_to(expanded: Expanded) -> Result<Client, String> {
    connect_with(expanded, ServerAuth::new(Arc::new(MemoryTokens::default()))).await
}

pub async fn connect_with(expanded: Expanded, auth: ServerAuth) -> Result<Client, String> {
    open(expanded, auth, None).await.map_err(|error| error.to_string())
}

pub async fn open(expanded: Expanded, auth: ServerAuth, era: Option<Era>) -> Result<Client, OpenError> {
    let name = ServerName::new("far").unwrap();
    let wire = wire(&name, expanded, 1 << 20, auth);
    let (reported, notices) = mpsc::channel(64);
    let options = ConnectionOptions {
        name,
        limits: Arc::new(Settings::default().limits),
        host: Arc::new(NoUser),
        era,
        startup_timeout: Duration::from_secs(20),
        timeout: Duration::from_secs(20),
        log_level: String::new(),
        notices: reported,
    };
    Ok(Client { connection: Connection::open(wire, options).await?, _notices: notices })
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a live connection")
    }
}

impl Client {
    /// Reads a resource, which travels as a tool call does, and gives its text or the reason why there is none.
    pub async fn read(&self, uri: &str) -> Result<String, String> {
        self.read_within(uri, Duration::from_secs(20)).await
    }

    pub async fn read_within(&self, uri: &str, limit: Duration) -> Result<String, String> {
        let request = Request::ReadResource { uri: uri.to_owned() };
        let raw = self.connection.request(request, limit).await.map_err(|error| {
            let said = error.to_string();
            said.strip_prefix("server `far`: ").map(str::to_owned).unwrap_or(said)
        })?;
        let result: Value = serde_json::from_str(raw.get()).unwrap();
        Ok(result["contents"][0]["text"].as_str().unwrap().to_owned())
    }

    pub async fn lists(&self) -> Result<Lists, String> {
        self.connection
            .lists(tokio::time::Instant::now() + Duration::from_secs(60))
            .await
            .map_err(|error| error.to_string())
    }

    /// Ends when the connection has, with the reason.
    pub async fn closed(&self) -> String {
        self.connection.closed().await
    }

    pub async fn close(self) {
        self.connection.close().await;
    }
}

/// A host without a user.
struct NoUser;

impl Host for NoUser {}

/// A browser that follows a sign-in page by itself.
#[derive(Default)]
pub struct Headless {
    /// Changes the address under which the browser comes back.
    pub tamper: Option<fn(String) -> String>,
    /// Somebody else comes first, with a state of his own.
    pub stranger: bool,
}

impl Headless {
    pub fn opens(self) -> OpenPage {
        Box::new(move |url| self.follow(url).boxed())
    }

    async fn follow(self, url: String) -> bool {
        let browser = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
        let sent_back = browser.get(url).send().await.unwrap();
        let location = sent_back.headers()["location"].to_str().unwrap().to_owned();
        if self.stranger {
            let sent_away = browser.get(location.replace("state=", "state=x")).send().await.unwrap();
            assert_eq!(sent_away.status(), 400);
        }
        let tamper = self.tamper.unwrap_or(|url| url);
        let page = browser.get(tamper(location)).send().await.unwrap();
        assert!(page.text().await.unwrap().contains("igned in"));
        true
    }
}
