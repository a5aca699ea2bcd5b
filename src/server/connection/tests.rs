//! Conversations with a scripted server over an in-memory pipe.

mod asking;
mod calls;
mod eras;
mod faults;
mod listing;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};

use super::*;
use crate::model::{CallId, Requester, ToolCall, ToolId};
use crate::server::host::Tunnel;
use crate::settings::Settings;

/// The server side of a connection, scripted by the test.
struct Fake {
    lines: tokio::io::Lines<BufReader<ReadHalf<DuplexStream>>>,
    write: WriteHalf<DuplexStream>,
}

impl Fake {
    /// A transport and its server side.
    fn wired(capacity: usize) -> (Wire, Self) {
        let (ours, theirs) = tokio::io::duplex(capacity);
        let (read, write) = tokio::io::split(ours);
        let wire = Wire::Bytes { read: Box::new(read), write: Box::new(write), input_closed: None };
        let (read, write) = tokio::io::split(theirs);
        (wire, Self { lines: BufReader::new(read).lines(), write })
    }

    /// The next message that the server receives.
    async fn receive(&mut self) -> Value {
        let line = self.lines.next_line().await.unwrap().expect("the connection is closed");
        serde_json::from_str(&line).unwrap()
    }

    /// The next message; it must have this method.
    async fn expect(&mut self, method: &str) -> Value {
        let message = self.receive().await;
        assert_eq!(message["method"], method, "{message}");
        message
    }

    async fn send(&mut self, text: impl AsRef<[u8]>) {
        self.write.write_all(text.as_ref()).await.unwrap();
    }

    async fn line(&mut self, text: impl AsRef<str>) {
        self.send(format!("{}\n", text.as_ref())).await;
    }

    async fn reply(&mut self, request: &Value, result: Value) {
        self.line(json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }).to_string()).await;
    }

    async fn refuse(&mut self, request: &Value, code: i32, message: &str) {
        let error = json!({ "code": code, "message": message });
        self.line(json!({ "jsonrpc": "2.0", "id": request["id"], "error": error }).to_string()).await;
    }

    /// The handshake of the older era.
    async fn shake(&mut self, capabilities: Value) {
        let request = self.expect("initialize").await;
        let result = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": { "name": "fake", "version": "1" } });
        self.reply(&request, result).await;
        self.expect("notifications/initialized").await;
    }
}

/// A host with one root that accepts every question.
#[derive(Default)]
struct FakeHost {
    elicits: bool,
    samples: bool,
    asked: AtomicUsize,
    /// The maximum number of concurrent questions.
    together: AtomicUsize,
    now: AtomicUsize,
    /// Never answers.
    silent: bool,
    /// How long the user takes to answer.
    delay: Duration,
}

impl Host for Arc<FakeHost> {
    fn roots(&self) -> Vec<Arc<Path>> {
        vec![Path::new("/home/you/work space").into()]
    }
    fn can_elicit(&self) -> bool {
        self.elicits
    }
    fn can_sample(&self) -> bool {
        self.samples
    }
    fn sample(&self, _: ServerName, _: Value) -> BoxFuture<'static, Result<Value>> {
        let host = self.clone();
        Box::pin(async move {
            host.asked.fetch_add(1, Ordering::SeqCst);
            let now = host.now.fetch_add(1, Ordering::SeqCst) + 1;
            host.together.fetch_max(now, Ordering::SeqCst);
            tokio::time::sleep(host.delay).await;
            host.now.fetch_sub(1, Ordering::SeqCst);
            Ok(json!({ "model": "m" }))
        })
    }
    fn elicit(&self, server: ServerName, calls: Vec<CallId>, params: Value) -> BoxFuture<'static, Result<Value>> {
        let host = self.clone();
        Box::pin(async move {
            assert_eq!(server.as_str(), "fake");
            assert_eq!(calls.len(), 1, "one call runs, so that the question belongs to it");
            host.asked.fetch_add(1, Ordering::SeqCst);
            let now = host.now.fetch_add(1, Ordering::SeqCst) + 1;
            host.together.fetch_max(now, Ordering::SeqCst);
            if host.silent {
                std::future::pending::<()>().await;
            }
            tokio::task::yield_now().await;
            tokio::time::sleep(host.delay).await;
            host.now.fetch_sub(1, Ordering::SeqCst);
            Ok(json!({ "action": "accept", "content": { "echo": params["message"] } }))
        })
    }
}

type Notices = mpsc::Receiver<ServerNotice>;

fn options() -> (ConnectionOptions, Notices) {
    options_with(Arc::default())
}

fn options_with(host: Arc<FakeHost>) -> (ConnectionOptions, Notices) {
    let (notices, received) = mpsc::channel(64);
    let mut limits = Settings::default().limits;
    limits.message_bytes = 64 << 10;
    let options = ConnectionOptions {
        name: ServerName::new("fake").unwrap(),
        limits: Arc::new(limits),
        host: Arc::new(host),
        era: None,
        startup_timeout: Duration::from_secs(30),
        timeout: Duration::from_secs(60),
        log_level: String::new(),
        notices,
    };
    (options, received)
}

/// A connection to a server with these capabilities.
async fn connected(capabilities: Value) -> (Connection, Fake, Notices) {
    connected_with(capabilities, Arc::default()).await
}

async fn connected_with(capabilities: Value, host: Arc<FakeHost>) -> (Connection, Fake, Notices) {
    let (wire, mut fake) = Fake::wired(256 << 10);
    let (options, notices) = options_with(host);
    let (connection, ()) = tokio::join!(Connection::open(wire, options), fake.shake(capabilities));
    (connection.unwrap(), fake, notices)
}

fn permitted(tool: &str, arguments: Value) -> Permitted {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    Permitted::for_test(ToolCall {
        id: CallId("1".into()),
        kind: Default::default(),
        tool: ToolId::new(ServerName::new("fake").unwrap(), tool),
        arguments: Arc::new(arguments),
        requester: Requester::default(),
        workflow: None,
        timeout: None,
        meta: Default::default(),
        unknown_fields: Default::default(),
    })
}

/// A deadline that no list reaches.
fn soon() -> Instant {
    Instant::now() + Duration::from_secs(600)
}

fn call_options() -> CallOptions {
    CallOptions {
        timeout: Duration::from_secs(60),
        max_timeout: Duration::from_secs(600),
        progress: None,
        sent: Default::default(),
        connection: None,
        as_task: false,
    }
}

/// The outcome of a call as text.
async fn call(connection: &Connection, tool: &str) -> String {
    shown(connection.call(&permitted(tool, json!({})), call_options()).await)
}

fn shown(outcome: Result<CallResult>) -> String {
    match outcome {
        Ok(result) if result.is_error => format!("error result {}", result.raw.get()),
        Ok(result) => result.raw.to_string(),
        Err(error) => format!("{}: {error}", error.kind()),
    }
}
