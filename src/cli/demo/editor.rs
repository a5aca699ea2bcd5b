//! The smallest editor there is: it speaks LSP over any pair of streams, so that the demo goes the way of every editor.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::timeout;

/// Nothing in the demo takes longer on a machine that works.
const PATIENCE: Duration = Duration::from_secs(20);
/// A frame larger than this is none of ours.
const LARGEST: usize = 16 << 20;

/// Who waits for which answer. A lock, because it is held for one insert or remove.
type Waiting = Arc<Mutex<HashMap<i64, oneshot::Sender<Value>>>>;

pub struct Editor {
    outgoing: mpsc::UnboundedSender<Value>,
    incoming: mpsc::UnboundedReceiver<(String, Value)>,
    waiting: Waiting,
    next_id: i64,
    tasks: [AbortHandle; 2],
}

impl Drop for Editor {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

impl Editor {
    pub fn over(
        input: impl AsyncRead + Unpin + Send + 'static,
        output: impl AsyncWrite + Unpin + Send + 'static,
    ) -> Self {
        let (outgoing, to_write) = mpsc::unbounded_channel();
        let (notify, incoming) = mpsc::unbounded_channel();
        let waiting = Waiting::default();
        let writer = tokio::spawn(write(output, to_write));
        let reader = tokio::spawn(read(BufReader::new(input), waiting.clone(), notify, outgoing.clone()));
        Self { outgoing, incoming, waiting, next_id: 0, tasks: [writer.abort_handle(), reader.abort_handle()] }
    }

    /// Sends a request without waiting, so that something else can be done before its answer.
    pub fn ask(&mut self, method: &str, params: Value) -> oneshot::Receiver<Value> {
        self.next_id += 1;
        let (sender, answer) = oneshot::channel();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(self.next_id, sender);
        self.send(json!({ "jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params }));
        answer
    }

    /// The result of a request; an error that the server answers becomes an error here, with its own words.
    pub async fn request(&mut self, method: &str, params: Value) -> io::Result<Value> {
        let answer = self.ask(method, params);
        settled(method, answer).await
    }

    /// One of the server's own commands.
    pub async fn command(&mut self, command: &str, params: Value) -> io::Result<Value> {
        self.request("workspace/executeCommand", json!({ "command": command, "arguments": [params] })).await
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// The params of the next notification that `wanted` likes; others are skipped.
    pub async fn wait_for(&mut self, what: &str, wanted: impl Fn(&str, &Value) -> bool) -> io::Result<Value> {
        let search = async {
            while let Some((method, params)) = self.incoming.recv().await {
                if wanted(&method, &params) {
                    return Ok(params);
                }
            }
            Err(io::Error::other(format!("the language server left before {what}")))
        };
        timeout(PATIENCE, search).await.map_err(|_| io::Error::other(format!("{what} did not come in time")))?
    }

    fn send(&self, message: Value) {
        // When the writer has gone, whoever waits for an answer says so.
        self.outgoing.send(message).ok();
    }
}

/// The answer to a request that [`Editor::ask`] sent.
pub async fn settled(method: &str, answer: oneshot::Receiver<Value>) -> io::Result<Value> {
    let mut answer = timeout(PATIENCE, answer)
        .await
        .map_err(|_| io::Error::other(format!("no answer to {method} in {} s", PATIENCE.as_secs())))?
        .map_err(|_| io::Error::other(format!("the language server left before it answered {method}")))?;
    match answer.get("error").and_then(|error| error.get("message")).and_then(Value::as_str) {
        Some(message) => Err(io::Error::other(message.to_owned())),
        None => Ok(answer.get_mut("result").map(Value::take).unwrap_or_default()),
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
    waiting: Waiting,
    notify: mpsc::UnboundedSender<(String, Value)>,
    outgoing: mpsc::UnboundedSender<Value>,
) -> io::Result<()> {
    // Dropping `waiting` with its senders tells everybody who waits that no answer will come.
    while let Some(mut message) = next_message(&mut input).await? {
        let method = message.get("method").and_then(Value::as_str).map(str::to_owned);
        let params = message.get_mut("params").map(Value::take).unwrap_or_default();
        match (method, message.get("id").cloned()) {
            (Some(method), None) => drop(notify.send((method, params))),
            (Some(_), Some(id)) => drop(outgoing.send(json!({ "jsonrpc": "2.0", "id": id, "result": null }))),
            (None, Some(id)) => {
                let waiter =
                    id.as_i64().and_then(|id| waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&id));
                if let Some(waiter) = waiter {
                    waiter.send(message).ok();
                }
            }
            (None, None) => (),
        }
    }
    waiting.lock().unwrap_or_else(PoisonError::into_inner).clear();
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
                    length = value.trim().parse::<usize>().ok().filter(|length| *length <= LARGEST);
                }
            }
        }
    }
    let length = length.ok_or_else(|| io::Error::other("a message came without a usable length"))?;
    let mut body = vec![0; length];
    input.read_exact(&mut body).await?;
    Ok(Some(serde_json::from_slice(&body)?))
}
