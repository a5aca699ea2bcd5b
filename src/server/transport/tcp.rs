//! A server that already listens on a port.

use std::io::ErrorKind;
use std::time::Duration;

use tokio::net::TcpStream;

use super::net::lookup;
use super::{OpenError, Wire};

/// Connects. The caller has checked that the host is allowed.
pub async fn dial(host: &str, port: u16, limit: Duration) -> Result<Wire, OpenError> {
    let address = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    let connect = async { TcpStream::connect(&*lookup(host, port).await?).await };
    let stream = match tokio::time::timeout(limit, connect).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            let message = describe(&error, &address);
            return Err(match error.kind() {
                ErrorKind::ConnectionRefused => OpenError::PortClosed { message },
                _ => OpenError::Io { message },
            });
        }
        Err(_) => {
            let limit = limit.as_secs_f64();
            let message = format!("cannot connect to {address} within {limit} s (`startupTimeout` sets this limit)");
            return Err(OpenError::Io { message });
        }
    };
    // Send small messages immediately: a caller waits for each.
    stream.set_nodelay(true).ok();
    let (read, write) = stream.into_split();
    Ok(Wire::Bytes { read: Box::new(read), write: Box::new(write), input_closed: None })
}

fn describe(error: &std::io::Error, address: &str) -> String {
    let reason = match error.kind() {
        ErrorKind::ConnectionRefused => "connection refused; is the server running?",
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => "the host is unreachable",
        ErrorKind::TimedOut => "the host does not answer",
        _ => &error.to_string(),
    };
    format!("cannot connect to {address}: {reason}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_port_where_nothing_listens_is_named() {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let Err(error) = dial("127.0.0.1", port, Duration::from_secs(5)).await else { panic!("something listens") };
        assert_eq!(
            error.to_string(),
            format!("cannot connect to 127.0.0.1:{port}: connection refused; is the server running?")
        );
    }
}
