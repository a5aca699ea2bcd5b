//! A listener that limits the number of connections. If there are too many, the oldest one without the token makes room, because
//! any process of this machine can open connections. Otherwise the next one waits.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// How long to wait if the system cannot accept another connection.
const RETRY_DELAY: Duration = Duration::from_millis(100);

pub struct Connections {
    listener: TcpListener,
    permits: Arc<Semaphore>,
    /// The open connections that have not sent the token, oldest first.
    strangers: VecDeque<Weak<PeerState>>,
}

impl Connections {
    pub fn new(listener: TcpListener, limit: usize) -> Self {
        Self { listener, permits: Arc::new(Semaphore::new(limit)), strangers: VecDeque::new() }
    }

    async fn permit(&mut self) -> Option<OwnedSemaphorePermit> {
        self.strangers.retain(|peer| peer.upgrade().is_some_and(|peer| !peer.is_admitted()));
        if self.permits.available_permits() == 0
            && let Some(oldest) = self.strangers.pop_front().and_then(|peer| peer.upgrade())
        {
            tracing::debug!("closed a connection without the token: there are too many");
            oldest.closed.cancel();
        }
        self.permits.clone().acquire_owned().await.ok()
    }
}

impl Listener for Connections {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        loop {
            match self.listener.accept().await {
                Ok((stream, address)) => {
                    // The semaphore is never closed.
                    let Some(permit) = self.permit().await else { return std::future::pending().await };
                    let peer = Arc::<PeerState>::default();
                    self.strangers.push_back(Arc::downgrade(&peer));
                    let closed = Box::pin(peer.closed.clone().cancelled_owned());
                    return (Connection { stream, peer, closed, _permit: permit }, address);
                }
                Err(_) => tokio::time::sleep(RETRY_DELAY).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// What is known about the other end of a connection.
#[derive(Default)]
pub struct PeerState {
    is_admitted: AtomicBool,
    closed: CancellationToken,
}

impl PeerState {
    /// It has sent the token.
    pub fn admit(&self) {
        self.is_admitted.store(true, Ordering::Release);
    }

    fn is_admitted(&self) -> bool {
        self.is_admitted.load(Ordering::Acquire)
    }
}

/// The state of the connection of a request.
#[derive(Clone)]
pub struct RequestPeer(pub Arc<PeerState>);

impl Connected<IncomingStream<'_, Connections>> for RequestPeer {
    fn connect_info(stream: IncomingStream<'_, Connections>) -> Self {
        Self(stream.io().peer.clone())
    }
}

/// A connection, and its permit.
pub struct Connection {
    stream: TcpStream,
    peer: Arc<PeerState>,
    closed: Pin<Box<WaitForCancellationFutureOwned>>,
    _permit: OwnedSemaphorePermit,
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if !self.peer.is_admitted() && self.closed.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn the_oldest_connection_without_the_token_makes_room() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut connections = Connections::new(listener, 3);
        let mut clients = Vec::new();
        let mut accepted = Vec::new();
        for _ in 0..3 {
            clients.push(TcpStream::connect(address).await.unwrap());
            accepted.push(connections.accept().await.0);
        }
        accepted[0].peer.admit();
        let mut oldest = accepted.remove(1);
        let closed = tokio::spawn(async move { oldest.read_u8().await.unwrap_err().kind() });
        clients.push(TcpStream::connect(address).await.unwrap());
        connections.accept().await;
        assert_eq!(closed.await.unwrap(), io::ErrorKind::ConnectionAborted);
    }
}
