//! Ways to the same stdio server: a port, a page behind a proxy, the inside of an editor.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::Response;
use mcp_sidecar::protocol::events::{Request as _, SdkMessage};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

use crate::support::TestEditor;
use crate::workspace::wait_for;

/// A program that listens on a port by itself; ends with the test.
pub struct Listening {
    pub port: u16,
    _process: Child,
}

impl Listening {
    pub async fn start(program: &PathBuf, argument: &str) -> Self {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let mut command = Command::new(program);
        command.arg(argument).env("PORT", port.to_string()).kill_on_drop(true);
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        wait_for("a server to listen", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()).await;
        Self { port, _process: process }
    }
}

fn spawn(program: &PathBuf, argument: &str) -> Child {
    let mut command = Command::new(program);
    command.arg(argument).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    command.kill_on_drop(true).spawn().unwrap()
}

/// Gives every connection to the port a stdio server of its own.
pub async fn on_a_port(program: PathBuf, argument: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(bridge(stream, spawn(&program, argument)));
        }
    });
    port
}

async fn bridge(stream: TcpStream, mut process: Child) {
    let (mut input, mut output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
    let (mut read, mut write) = stream.into_split();
    tokio::select! {
        _ = copy(&mut read, &mut input) => {}
        _ = copy(&mut output, &mut write) => {}
    }
}

/// A proxy in front of a page: what comes to any path goes to that page. Tells the paths and tokens that it saw.
pub async fn behind_a_proxy(page: String) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let seen = Arc::new(Mutex::new(Vec::new()));
    rustls::crypto::ring::default_provider().install_default().ok();
    let (noted, client) = (seen.clone(), reqwest::Client::builder().no_proxy().build().unwrap());
    let router = Router::new().fallback(move |request: Request| {
        let (noted, client, page) = (noted.clone(), client.clone(), page.clone());
        async move {
            let (head, body) = request.into_parts();
            let token = head.headers.get("authorization").and_then(|token| token.to_str().ok()).unwrap_or_default();
            noted.lock().unwrap().push(format!("{} {token}", head.uri.path()));
            let mut headers = head.headers.clone();
            for name in ["host", "content-length", "authorization"] {
                headers.remove(name);
            }
            let body = to_bytes(body, 1 << 20).await.unwrap();
            let answer = client.request(head.method, page).headers(headers).body(body).send().await.unwrap();
            let mut response = Response::builder().status(answer.status());
            for (name, value) in answer.headers().iter().filter(|(name, _)| *name != "transfer-encoding") {
                response = response.header(name, value);
            }
            response.body(Body::from_stream(answer.bytes_stream())).unwrap()
        }
    });
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    (port, seen)
}

/// Has an editor host a stdio server under this name.
pub fn inside(editor: &mut TestEditor, name: &'static str, program: &PathBuf, argument: &str) {
    let mut process = spawn(program, argument);
    let (mut input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
    let (to_server, mut messages) = mpsc::unbounded_channel::<Value>();
    tokio::spawn(async move {
        // The process lives as long as somebody may still write to it.
        let _process = process;
        while let Some(message) = messages.recv().await {
            input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
        }
    });
    let client = editor.client.clone();
    tokio::spawn(async move {
        let mut lines = BufReader::new(output).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let message: Value = serde_json::from_str(&line).unwrap();
            // Not waited for, but not cancelled either.
            let message = SdkMessage { server: name.to_owned(), message };
            tokio::spawn(client.send_request::<Value>(SdkMessage::METHOD, &message));
        }
    });
    editor.handle(SdkMessage::METHOD, move |params| {
        let SdkMessage { server, message } = serde_json::from_value(params.clone()).unwrap();
        assert_eq!(server, name);
        to_server.send(message).ok();
        Ok(json!({}))
    });
}
