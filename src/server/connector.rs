//! The open to a server: starts its program, dials its address, or asks the editor for it. What is said on the open is
//! the connection's business. Tests give the actor another connector.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio_util::task::TaskTracker;

use super::Context;
use super::logs::Logs;
use super::process::{Process, StartError};
use super::transport::{OpenError, Wire, net, remote, tcp};
use crate::config::expand::{Expanded, child_environment};
use crate::model::ServerName;
use crate::settings::Settings;

/// Everything that is needed to reach one server once.
pub struct ConnectRequest {
    pub name: ServerName,
    pub expanded: Expanded,
    /// The environment of the engine, from which a child's is made.
    pub environment: BTreeMap<String, String>,
    /// What is left of the start's time.
    pub limit: Duration,
    pub settings: Arc<Settings>,
    pub context: Context,
    pub logs: Logs,
    /// Where the end of a process is awaited.
    pub tracker: TaskTracker,
}

/// An open open.
pub struct OpenConnection {
    pub wire: Wire,
    /// The program behind it, where we started one.
    pub process: Option<Process>,
    pub warnings: Vec<String>,
}

pub trait Connector: Send + Sync + 'static {
    fn open(&self, request: ConnectRequest) -> BoxFuture<'static, Result<OpenConnection, OpenError>>;
}

/// Real programs and real addresses.
pub struct DefaultConnector;

impl Connector for DefaultConnector {
    fn open(&self, request: ConnectRequest) -> BoxFuture<'static, Result<OpenConnection, OpenError>> {
        Box::pin(open(request))
    }
}

async fn open(request: ConnectRequest) -> Result<OpenConnection, OpenError> {
    let open = |wire| OpenConnection { wire, process: None, warnings: Vec::new() };
    match &request.expanded {
        Expanded::Stdio(program) => {
            let environment = child_environment(&request.environment, program);
            let (process, pipes) = Process::start(program, &environment, request.logs.clone(), &request.tracker)
                .map_err(|StartError { message, transient }| match transient {
                    true => OpenError::Io { message },
                    false => OpenError::Refused { message },
                })?;
            let wire = Wire::Bytes { read: Box::new(pipes.stdout), write: Box::new(pipes.stdin) };
            Ok(OpenConnection { process: Some(process), ..open(wire) })
        }
        Expanded::Tcp { host, port } => {
            if !net::allowed_host(host, &request.settings.servers.tcp_hosts) {
                let message = format!(
                    "`tcp` reaches only this machine; to allow `{host}`, add it to `servers.tcp-hosts` in config.toml"
                );
                return Err(OpenError::Refused { message });
            }
            tcp::dial(host, *port, request.limit).await.map(open)
        }
        Expanded::Sdk { name } => match request.context.host.tunnel(name) {
            Some(tunnel) => Ok(open(Wire::Tunnel(tunnel))),
            None => Err(OpenError::Closed { message: format!("no editor offers a server named `{name}`") }),
        },
        Expanded::Http(_) | Expanded::Sse(_) | Expanded::ClaudeAiProxy { .. } => {
            let warnings = remote::warnings(&request.expanded);
            let tokens = request.context.host.tokens();
            let wire = remote::wire(&request.name, request.expanded, request.settings.limits.message_bytes, tokens);
            Ok(OpenConnection { warnings, ..open(wire) })
        }
    }
}
