//! LSP messages on a stream, as an editor reads and writes them.

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

pub async fn write<W: AsyncWrite + Unpin>(output: &mut W, message: &Value) -> std::io::Result<()> {
    let body = message.to_string();
    output.write_all(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes()).await?;
    output.flush().await
}

/// The next message; `None` at the end of the stream.
pub async fn read<R: AsyncRead + Unpin>(input: &mut R) -> Option<Value> {
    let mut header = Vec::new();
    while !header.ends_with(b"\r\n\r\n") {
        header.push(input.read_u8().await.ok()?);
    }
    let header = String::from_utf8(header).unwrap();
    let length = header.trim().strip_prefix("Content-Length: ").expect("only Content-Length is sent").parse().unwrap();
    let mut body = vec![0; length];
    input.read_exact(&mut body).await.ok()?;
    Some(serde_json::from_slice(&body).expect("every message is JSON"))
}
