//! The client of rmcp in this process: what a program pays that uses the library directly.

use std::io;
use std::process::Stdio;

use futures::{StreamExt, TryStreamExt, stream};
use rmcp::model::CallToolRequestParams;
use rmcp::service::{Peer, RunningService};
use rmcp::{RoleClient, ServiceExt};
use tokio::process::{Child, Command};
use tokio::runtime::Runtime;

use super::route::{Request, Servers, server_command};

type Service = RunningService<RoleClient, ()>;

pub struct RmcpClient {
    runtime: Runtime,
    servers: Vec<(Service, Child)>,
}

impl RmcpClient {
    /// Connects to all servers at once, and lists their tools.
    pub fn open(servers: Servers) -> io::Result<Self> {
        let runtime = Runtime::new()?;
        let servers = runtime.block_on(async {
            let connections = (0..servers.count).map(|_| connect(servers.tools));
            futures::future::try_join_all(connections).await
        })?;
        Ok(Self { runtime, servers })
    }

    fn peer(&self) -> io::Result<Peer<RoleClient>> {
        let (service, _) = self.servers.first().ok_or(io::ErrorKind::NotConnected)?;
        Ok(service.peer().clone())
    }

    pub fn request(&self, request: &Request) -> io::Result<()> {
        let peer = self.peer()?;
        self.runtime.block_on(send(&peer, request))
    }

    pub fn in_flight(&self, calls: usize, request: &Request) -> io::Result<()> {
        let peer = self.peer()?;
        let all = stream::iter(0..calls).map(|_| send(&peer, request)).buffered(64);
        self.runtime.block_on(all.try_collect::<Vec<()>>()).map(drop)
    }

    pub fn close(self) -> io::Result<()> {
        let Self { runtime, servers } = self;
        let closing = servers.into_iter().map(|(service, mut server)| async move {
            service.cancel().await.map_err(io::Error::other)?;
            server.wait().await.map(drop)
        });
        runtime.block_on(futures::future::try_join_all(closing)).map(drop)
    }
}

async fn connect(tools: usize) -> io::Result<(Service, Child)> {
    let mut command = Command::from(server_command(tools)?);
    let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
    let (Some(input), Some(output)) = (server.stdin.take(), server.stdout.take()) else {
        return Err(io::Error::other("the pipes are missing"));
    };
    let service = ().serve((output, input)).await.map_err(io::Error::other)?;
    service.list_all_tools().await.map_err(io::Error::other)?;
    Ok((service, server))
}

async fn send(peer: &Peer<RoleClient>, request: &Request) -> io::Result<()> {
    match request {
        Request::Ask | Request::Questions | Request::Calls | Request::Metrics => Err(io::ErrorKind::Unsupported.into()),
        Request::List => peer.list_all_tools().await.map(drop).map_err(io::Error::other),
        Request::Call { tool, text } => {
            let mut params = CallToolRequestParams::new(*tool);
            params.arguments = Some(serde_json::Map::from_iter([("text".to_owned(), text.as_str().into())]));
            peer.call_tool(params).await.map(drop).map_err(io::Error::other)
        }
    }
}
