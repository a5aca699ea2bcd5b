use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::value::to_raw_value;
use tokio::io::{AsyncReadExt, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::Notify;

use super::*;

/// A front end whose methods do what their names say.
struct Script {
    editor: Editor,
    notes: Vec<Value>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// How many requests have waited, and how many of them were dropped.
    waiting: AtomicUsize,
    dropped: AtomicUsize,
    changed: Notify,
}

struct CountedWait(Arc<Shared>);

impl CountedWait {
    fn new(shared: &Arc<Shared>) -> Self {
        shared.waiting.fetch_add(1, Ordering::SeqCst);
        shared.changed.notify_waiters();
        Self(shared.clone())
    }
}

impl Drop for CountedWait {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, Ordering::SeqCst);
        self.0.changed.notify_waiters();
    }
}

impl Shared {
    async fn until(&self, counter: &AtomicUsize, count: usize) {
        loop {
            let changed = self.changed.notified();
            if counter.load(Ordering::SeqCst) >= count {
                return;
            }
            changed.await;
        }
    }
}

impl Front for Script {
    fn request(&mut self, _: Id, method: String, params: Option<Value>) -> BoxFuture<'static, Reply> {
        let (editor, shared) = (self.editor.clone(), self.shared.clone());
        let notes = json!(self.notes);
        assert_ne!(method, "panic-at-once");
        async move {
            let answer = match method.as_str() {
                "wait" => {
                    let _waiting = CountedWait::new(&shared);
                    std::future::pending().await
                }
                "panic" => panic!("requested"),
                "notes" => notes,
                "ask" => {
                    editor.send_request("question", &json!({})).await.unwrap_or_else(|error| json!(error.to_string()))
                }
                "give-up" => {
                    // Poll once to send the request, then drop it.
                    assert!(editor.send_request::<_, Value>("question", &json!({})).now_or_never().is_none());
                    json!("gave up")
                }
                _ => params.unwrap_or_default(),
            };
            Ok(to_raw_value(&answer).unwrap())
        }
        .boxed()
    }

    fn notify(&mut self, method: &str, params: Value) {
        assert_ne!(method, "panic");
        self.notes.push(params);
    }

    fn begin(&mut self) {}
}

/// The editor's side of the connection.
struct Client {
    input: WriteHalf<DuplexStream>,
    output: ReadHalf<DuplexStream>,
    shared: Arc<Shared>,
    session: tokio::task::JoinHandle<End>,
}

impl Client {
    fn start() -> Self {
        let (near, far) = tokio::io::duplex(1 << 20);
        let (output, input) = tokio::io::split(near);
        let (reader, writer) = tokio::io::split(far);
        let shared = Arc::<Shared>::default();
        let script = shared.clone();
        let session = tokio::spawn(run(reader, writer, |editor| Script { editor, notes: Vec::new(), shared: script }));
        Self { input, output, shared, session }
    }

    async fn bytes(&mut self, bytes: &[u8]) {
        self.input.write_all(bytes).await.unwrap();
    }

    async fn send(&mut self, message: Value) {
        let body = message.to_string();
        self.bytes(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes()).await;
    }

    async fn request(&mut self, id: i64, method: &str) {
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method })).await;
    }

    async fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
    }

    async fn next(&mut self) -> Value {
        let mut header = Vec::new();
        while !header.ends_with(b"\r\n\r\n") {
            header.push(self.output.read_u8().await.unwrap());
        }
        let length = String::from_utf8(header).unwrap().trim().trim_start_matches("Content-Length: ").parse().unwrap();
        let mut body = vec![0; length];
        self.output.read_exact(&mut body).await.unwrap();
        serde_json::from_slice(&body).unwrap()
    }

    /// The next message in short: a result as `id result`, an error as `id code`, else the method.
    async fn summary(&mut self) -> String {
        let message = self.next().await;
        match (message.get("method"), message.get("error")) {
            (Some(method), _) => method.as_str().unwrap().to_owned(),
            (None, Some(error)) => format!("{} {}", message["id"], error["code"]),
            (None, None) => format!("{} {}", message["id"], message["result"]),
        }
    }

    async fn end(self) -> End {
        drop((self.input, self.output));
        self.session.await.unwrap()
    }
}

#[tokio::test]
async fn a_hundred_waiting_requests_block_nothing() {
    let mut client = Client::start();
    for id in 0..100 {
        client.request(id, "wait").await;
    }
    client.request(200, "echo").await;
    assert_eq!(client.summary().await, "200 null");
}

#[tokio::test]
async fn a_cancelled_request_is_dropped_and_gets_one_response() {
    let mut client = Client::start();
    client.request(1, "wait").await;
    client.shared.until(&client.shared.waiting, 1).await;
    client.notify("$/cancelRequest", json!({ "id": 1 })).await;
    assert_eq!(client.summary().await, "1 -32800");
    client.shared.until(&client.shared.dropped, 1).await;
    client.notify("$/cancelRequest", json!({ "id": 1 })).await;
    client.notify("$/cancelRequest", json!({ "id": "unknown" })).await;
    client.notify("$/cancelRequest", json!(null)).await;
    client.request(2, "echo").await;
    assert_eq!(client.summary().await, "2 null");
}

#[tokio::test]
async fn cancelling_progress_cancels_its_request() {
    let mut client = Client::start();
    client.send(json!({ "jsonrpc": "2.0", "id": 1, "method": "wait", "params": { "workDoneToken": "t" } })).await;
    client.notify("window/workDoneProgress/cancel", json!({ "token": "t" })).await;
    assert_eq!(client.summary().await, "1 -32800");
}

#[tokio::test]
async fn a_panic_fails_only_its_own_request() {
    let mut client = Client::start();
    client.request(1, "panic").await;
    assert_eq!(client.summary().await, "1 -32603");
    client.request(2, "panic-at-once").await;
    assert_eq!(client.summary().await, "2 -32603");
    client.notify("panic", json!({})).await;
    client.request(3, "echo").await;
    assert_eq!(client.summary().await, "3 null");
}

#[tokio::test]
async fn notifications_are_handled_in_order() {
    let mut client = Client::start();
    for number in 0..300 {
        client.notify("note", json!(number)).await;
    }
    client.request(1, "notes").await;
    let notes = client.next().await;
    assert_eq!(notes["result"], json!((0..300).collect::<Vec<_>>()));
}

#[tokio::test]
async fn a_response_reaches_its_handler_and_a_late_one_is_ignored() {
    let mut client = Client::start();
    client.request(1, "ask").await;
    let question = client.next().await;
    client.send(json!({ "jsonrpc": "2.0", "id": question["id"], "result": "yes" })).await;
    assert_eq!(client.summary().await, r#"1 "yes""#);

    client.request(2, "give-up").await;
    let question = client.next().await;
    let cancellation = client.next().await;
    assert_eq!((&cancellation["method"], &cancellation["params"]["id"]), (&json!("$/cancelRequest"), &question["id"]));
    assert_eq!(client.summary().await, r#"2 "gave up""#);
    client.send(json!({ "jsonrpc": "2.0", "id": question["id"], "result": "late" })).await;
    client.send(json!({ "jsonrpc": "2.0", "id": 999, "error": { "code": 1, "message": "whose?" } })).await;
    client.request(3, "echo").await;
    assert_eq!(client.summary().await, "3 null");
}

#[tokio::test]
async fn an_invalid_message_does_not_end_the_session() {
    let mut client = Client::start();
    client.bytes(b"Content-Length: 5\r\n\r\n{nope").await;
    assert_eq!(client.summary().await, "null -32700");
    client.bytes(b"Content-Length: many\r\n\r\n").await;
    assert_eq!(client.summary().await, "null -32700");
    client.bytes(b"nonsense\r\n\r\n").await;
    client.send(json!([])).await;
    assert_eq!(client.summary().await, "null -32600");
    let deep = "[".repeat(200_000);
    client.bytes(format!("Content-Length: {}\r\n\r\n{deep}", deep.len()).as_bytes()).await;
    assert_eq!(client.summary().await, "null -32700");
    client.request(1, "echo").await;
    assert_eq!(client.summary().await, "1 null");
}

#[tokio::test]
async fn two_running_requests_cannot_share_an_id() {
    let mut client = Client::start();
    client.request(1, "wait").await;
    client.request(1, "echo").await;
    assert_eq!(client.summary().await, "1 -32600");
}

#[tokio::test]
async fn exit_ends_the_session_while_requests_are_running() {
    let mut client = Client::start();
    client.request(1, "wait").await;
    client.request(2, "ask").await;
    client.notify("exit", json!(null)).await;
    let end = (&mut client.session).await.unwrap();
    assert_eq!((end, end.exit_code()), (End { reason: Reason::Exit, after_shutdown: false }, 1));
    client.shared.until(&client.shared.dropped, 1.min(client.shared.waiting.load(Ordering::SeqCst))).await;
}

#[tokio::test]
async fn shutdown_may_be_sent_twice_and_makes_the_exit_code_zero() {
    let mut client = Client::start();
    client.request(1, "shutdown").await;
    client.request(2, "shutdown").await;
    assert_eq!(client.summary().await, "1 null");
    assert_eq!(client.summary().await, "2 null");
    let end = client.end().await;
    assert_eq!((end, end.exit_code()), (End { reason: Reason::InputClosed, after_shutdown: true }, 0));
}

#[tokio::test]
async fn the_end_of_input_ends_the_session() {
    let mut client = Client::start();
    client.request(1, "wait").await;
    client.shared.until(&client.shared.waiting, 1).await;
    let shared = client.shared.clone();
    let end = client.end().await;
    assert_eq!(end.exit_code(), 1);
    shared.until(&shared.dropped, 1).await;
}

#[tokio::test]
async fn the_session_ends_if_the_editor_stops_reading() {
    let (mut input, far_input) = tokio::io::duplex(1 << 20);
    let (output, far_output) = tokio::io::duplex(64);
    let shared = Arc::default();
    let session = tokio::spawn(run(far_input, far_output, |editor| Script { editor, notes: Vec::new(), shared }));
    drop(output);
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"echo"}"#;
    input.write_all(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes()).await.unwrap();
    let end = session.await.unwrap();
    assert_eq!(end, End { reason: Reason::OutputClosed, after_shutdown: false });
}

#[cfg(unix)]
#[tokio::test]
async fn the_session_ends_with_the_process_of_the_editor() {
    let mut editor = tokio::process::Command::new("sleep").arg("60").spawn().unwrap();
    let mut client = Client::start();
    let params = json!({ "processId": editor.id() });
    client.send(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params })).await;
    client.next().await;
    editor.kill().await.unwrap();
    let end = (&mut client.session).await.unwrap();
    assert_eq!(end.reason, Reason::EditorDied);
}

#[tokio::test]
async fn the_last_messages_are_sent_after_exit() {
    let mut client = Client::start();
    client.request(1, "shutdown").await;
    client.notify("exit", json!(null)).await;
    assert_eq!(client.summary().await, "1 null");
    assert_eq!((&mut client.session).await.unwrap().exit_code(), 0);
}
