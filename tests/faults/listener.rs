//! A port that answers each connection with a script of steps: `read` waits for the end of the headers of a request, and
//! its body; `write` sends text, `hex` and `random` send bytes, `drip` sends text slowly, `hold` keeps the connection
//! open, `note` writes the headers of the last request into a file. Without `hold`, the connection closes at the end.

use std::io::Read;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A bound port, before its script is known: scripts may contain ports.
pub struct Port {
    listener: std::net::TcpListener,
    pub number: u16,
}

impl Port {
    pub fn bind() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let number = listener.local_addr().unwrap().port();
        Self { listener, number }
    }

    /// Serves until the task is aborted.
    pub fn serve(&self, script: Value) -> JoinHandle<()> {
        let listener = self.listener.try_clone().unwrap();
        listener.set_nonblocking(true).unwrap();
        let listener = TcpListener::from_std(listener).unwrap();
        tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(answer(stream, script.clone()));
            }
        })
    }
}

async fn answer(mut stream: TcpStream, script: Value) {
    let mut request = String::new();
    for step in script.as_array().expect("a script is a list of steps") {
        let (kind, value) = step.as_object().unwrap().iter().next().unwrap();
        let text = value.as_str().unwrap_or_default();
        let sent = match kind.as_str() {
            "read" => {
                request = read(&mut stream).await;
                Ok(())
            }
            "write" => stream.write_all(http(text, &request).as_bytes()).await,
            "random" => {
                let mut noise = vec![0; usize::try_from(value.as_u64().unwrap()).unwrap()];
                std::fs::File::open("/dev/urandom").unwrap().read_exact(&mut noise).unwrap();
                stream.write_all(&noise).await
            }
            "flood" => flood(&mut stream, text, step["times"].as_u64().unwrap()).await,
            "drip" => drip(&mut stream, http(text, &request).as_bytes()).await,
            "note" => tokio::fs::write(text, &request).await,
            "hold" => {
                tokio::time::sleep(Duration::from_secs(600)).await;
                Ok(())
            }
            other => panic!("a listener cannot `{other}`"),
        };
        if sent.is_err() {
            return;
        }
    }
}

/// Scripts are written with plain newlines; `$id` is the id of the request.
fn http(text: &str, request: &str) -> String {
    let id = request.split_once("\"id\":").map_or("0", |(_, rest)| rest.split([',', '}']).next().unwrap());
    text.replace("$id", id).replace('\n', "\r\n")
}

/// One request with its body.
async fn read(stream: &mut TcpStream) -> String {
    let mut request = String::new();
    let mut buffer = [0; 4096];
    loop {
        if let Some((head, body)) = request.split_once("\r\n\r\n") {
            let head = head.to_ascii_lowercase();
            let length = head.split_once("content-length:").map_or("0", |(_, rest)| rest.lines().next().unwrap());
            if body.len() >= length.trim().parse::<usize>().unwrap() {
                return request;
            }
        }
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return request,
            Ok(length) => request.push_str(&String::from_utf8_lossy(&buffer[..length])),
        }
    }
}

async fn flood(stream: &mut TcpStream, text: &str, times: u64) -> std::io::Result<()> {
    let piece = http(text, "");
    for _ in 0..times {
        stream.write_all(piece.as_bytes()).await?;
    }
    Ok(())
}

async fn drip(stream: &mut TcpStream, text: &[u8]) -> std::io::Result<()> {
    for byte in text {
        stream.write_all(&[*byte]).await?;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    Ok(())
}
