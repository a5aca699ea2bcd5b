//! The least that a client of Streamable HTTP needs, so that little of it is measured: connections that stay open, one
//! request on each at a time.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(30);

pub struct Http {
    address: SocketAddr,
    path: &'static str,
    session: Option<String>,
    connections: Vec<BufReader<TcpStream>>,
    /// The connections whose response was not read yet, in order.
    open: std::collections::VecDeque<usize>,
}

impl Http {
    pub fn new(address: SocketAddr, path: &'static str) -> Self {
        Self { address, path, session: None, connections: Vec::new(), open: Default::default() }
    }

    /// Sends a message on a connection that is free. The first one waits until the program listens.
    pub fn write(&mut self, message: &str) -> io::Result<()> {
        let free = (0..self.connections.len()).find(|index| !self.open.contains(index));
        let index = match free {
            Some(index) => index,
            None => {
                self.connections.push(BufReader::with_capacity(1 << 16, self.connect()?));
                self.connections.len() - 1
            }
        };
        let session = self.session.as_ref().map(|id| format!("Mcp-Session-Id: {id}\r\n")).unwrap_or_default();
        let text = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nAccept: application/json, \
             text/event-stream\r\nMCP-Protocol-Version: 2025-06-18\r\n{session}Content-Length: {}\r\n\r\n{message}",
            self.path,
            self.address,
            message.len(),
        );
        self.connections[index].get_mut().write_all(text.as_bytes())?;
        self.open.push_back(index);
        Ok(())
    }

    fn connect(&self) -> io::Result<TcpStream> {
        let deadline = Instant::now() + TIMEOUT;
        let stream = loop {
            match TcpStream::connect(self.address) {
                Ok(stream) => break stream,
                Err(error) if Instant::now() > deadline => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        Ok(stream)
    }

    /// The body of the oldest response that was not read yet.
    pub fn read(&mut self) -> io::Result<Vec<u8>> {
        let index = self.open.pop_front().ok_or(io::ErrorKind::NotConnected)?;
        let connection = &mut self.connections[index];
        let (mut length, mut is_chunked, mut is_ok) = (0, false, false);
        let mut line = String::new();
        loop {
            line.clear();
            if connection.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let header = line.trim_end();
            if header.is_empty() {
                break;
            }
            is_ok |= header.starts_with("HTTP/1.1 2");
            if let Some((name, value)) = header.split_once(':') {
                let value = value.trim();
                match name.to_ascii_lowercase().as_str() {
                    "content-length" => length = value.parse().map_err(io::Error::other)?,
                    "transfer-encoding" => is_chunked = value.eq_ignore_ascii_case("chunked"),
                    "mcp-session-id" => self.session = Some(value.to_owned()),
                    _ => {}
                }
            }
        }
        let mut body = Vec::new();
        if is_chunked {
            loop {
                line.clear();
                connection.read_line(&mut line)?;
                let size = u64::from_str_radix(line.trim_end(), 16).map_err(io::Error::other)?;
                connection.by_ref().take(size).read_to_end(&mut body)?;
                connection.read_line(&mut line)?;
                if size == 0 {
                    break;
                }
            }
        } else {
            connection.by_ref().take(length).read_to_end(&mut body)?;
        }
        if is_ok { Ok(body) } else { Err(io::Error::other(String::from_utf8_lossy(&body).into_owned())) }
    }
}
