//! A minimal editor that speaks LSP over any pair of streams, so that the demo uses the same front as real editors.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::timeout;

/// How long one step of the demo may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// The largest message that is accepted.
const MAX_MESSAGE: usize = 16 << 20;

/// Requests without a response yet. The lock is held for one insert or remove.
type Pending = Arc<Mutex<HashMap<i64, oneshot::Sender<Value>>>>;

pub struct Editor {
    outgoing: mpsc::UnboundedSender<Value>,
    incoming: mpsc::UnboundedReceiver<(String, Value)>,
    pending: Pending,
    next_id: i64,
    tasks: [AbortHandle; 2],
}

impl Drop for Editor {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

impl Editor {
    pub fn new(
        input: impl AsyncRead + Unpin + Send + 'static,
        output: impl AsyncWrite + Unpin + Send + 'static,
    ) -> Self {
        let (outgoing, to_write) = mpsc::unbounded_channel();
        let (notify, incoming) = mpsc::unbounded_channel();
        let pending = Pending::default();
        let writer = tokio::spawn(write(output, to_write));
        let reader = tokio::spawn(read(BufReader::new(input), pending.clone(), notify, outgoing.clone()));
        Self { outgoing, incoming, pending, next_id: 0, tasks: [writer.abort_handle(), reader.abort_handle()] }
    }

    /// Sends a request without waiting for the response.
    pub fn send_request(&mut self, method: &str, params: Value) -> oneshot::Receiver<Value> {
        self.next_id += 1;
        let (sender, response) = oneshot::channel();
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).insert(self.next_id, sender);
        self.send(json!({ "jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params }));
        response
    }

    /// Sends a request and returns its result, or the error of the server.
    pub async fn request(&mut self, method: &str, params: Value) -> io::Result<Value> {
        let response = self.send_request(method, params);
        result(method, response).await
    }

    /// Runs a command of the server.
    pub async fn command(&mut self, command: &str, params: Value) -> io::Result<Value> {
        self.request("workspace/executeCommand", json!({ "command": command, "arguments": [params] })).await
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Waits for a notification that `wanted` accepts and returns its params. Skips all others.
    pub async fn wait_for(&mut self, what: &str, wanted: impl Fn(&str, &Value) -> bool) -> io::Result<Value> {
        let search = async {
            while let Some((method, params)) = self.incoming.recv().await {
                if wanted(&method, &params) {
                    return Ok(params);
                }
            }
            Err(io::Error::other(format!("the language server ended while waiting for {what}")))
        };
        timeout(PATIENCE, search).await.map_err(|_| io::Error::other(format!("timed out while waiting for {what}")))?
    }

    fn send(&self, message: Value) {
        // If the writer has ended, the request fails while it waits for its response.
        self.outgoing.send(message).ok();
    }
}

/// Waits for the response to a request that [`Editor::send_request`] sent.
pub async fn result(method: &str, response: oneshot::Receiver<Value>) -> io::Result<Value> {
    let mut response = timeout(PATIENCE, response)
        .await
        .map_err(|_| io::Error::other(format!("no response to {method} after {} s", PATIENCE.as_secs())))?
        .map_err(|_| io::Error::other(format!("the language server ended before it answered {method}")))?;
    match response.get("error").and_then(|error| error.get("message")).and_then(Value::as_str) {
        Some(message) => Err(io::Error::other(message.to_owned())),
        None => Ok(response.get_mut("result").map(Value::take).unwrap_or_default()),
    }
}

async fn write(mut output: impl AsyncWrite + Unpin, mut messages: mpsc::UnboundedReceiver<Value>) -> io::Result<()> {
    while let Some(message) = messages.recv().await {
        let body = message.to_string();
        output.write_all(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes()).await?;
        output.flush().await?;
    }
    Ok(())
}

async fn read(
    mut input: impl AsyncBufReadExt + Unpin,
    pending: Pending,
    notify: mpsc::UnboundedSender<(String, Value)>,
    outgoing: mpsc::UnboundedSender<Value>,
) -> io::Result<()> {
    while let Some(mut message) = next_message(&mut input).await? {
        let method = message.get("method").and_then(Value::as_str).map(str::to_owned);
        let params = message.get_mut("params").map(Value::take).unwrap_or_default();
        match (method, message.get("id").cloned()) {
            (Some(method), None) => drop(notify.send((method, params))),
            (Some(_), Some(id)) => drop(outgoing.send(json!({ "jsonrpc": "2.0", "id": id, "result": null }))),
            (None, Some(id)) => {
                let waiter =
                    id.as_i64().and_then(|id| pending.lock().unwrap_or_else(PoisonError::into_inner).remove(&id));
                if let Some(waiter) = waiter {
                    waiter.send(message).ok();
                }
            }
            (None, None) => (),
        }
    }
    // Fails all pending requests.
    pending.lock().unwrap_or_else(PoisonError::into_inner).clear();
    Ok(())
}

async fn next_message(input: &mut (impl AsyncBufReadExt + Unpin)) -> io::Result<Option<Value>> {
    let mut length = None;
    loop {
        let mut line = String::new();
        if input.read_line(&mut line).await? == 0 {
            return Ok(None);
        }
        match line.trim_end() {
            "" => break,
            header => {
                if let Some(value) = header.strip_prefix("Content-Length:") {
                    length = value.trim().parse::<usize>().ok().filter(|length| *length <= MAX_MESSAGE);
                }
            }
        }
    }
    let length = length.ok_or_else(|| io::Error::other("received a message without a valid length"))?;
    let mut body = vec![0; length];
    input.read_exact(&mut body).await?;
    Ok(Some(serde_json::from_slice(&body)?))
}
