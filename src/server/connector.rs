//! The way to a server: starts its program, dials its address, or asks the editor for it. What is said on the way is
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
pub struct Errand {
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

/// An open way.
pub struct Way {
    pub wire: Wire,
    /// The program behind it, where we started one.
    pub process: Option<Process>,
    pub warnings: Vec<String>,
}

pub trait Connector: Send + Sync + 'static {
    fn open(&self, errand: Errand) -> BoxFuture<'static, Result<Way, OpenError>>;
}

/// Real programs and real addresses.
pub struct Roads;

impl Connector for Roads {
    fn open(&self, errand: Errand) -> BoxFuture<'static, Result<Way, OpenError>> {
        Box::pin(open(errand))
    }
}

async fn open(errand: Errand) -> Result<Way, OpenError> {
    let way = |wire| Way { wire, process: None, warnings: Vec::new() };
    match &errand.expanded {
        Expanded::Stdio(program) => {
            let environment = child_environment(&errand.environment, program);
            let (process, pipes) = Process::start(program, &environment, errand.logs.clone(), &errand.tracker)
                .map_err(|StartError { message, passing }| match passing {
                    true => OpenError::Io { message },
                    false => OpenError::Refused { message },
                })?;
            let wire = Wire::Bytes { read: Box::new(pipes.stdout), write: Box::new(pipes.stdin) };
            Ok(Way { process: Some(process), ..way(wire) })
        }
        Expanded::Tcp { host, port } => {
            if !net::allowed_host(host, &errand.settings.servers.tcp_hosts) {
                let message = format!(
                    "`tcp` reaches only this machine; to allow `{host}`, add it to `servers.tcp-hosts` in config.toml"
                );
                return Err(OpenError::Refused { message });
            }
            tcp::dial(host, *port, errand.limit).await.map(way)
        }
        Expanded::Sdk { name } => match errand.context.host.tunnel(name) {
            Some(tunnel) => Ok(way(Wire::Tunnel(tunnel))),
            None => Err(OpenError::Closed { message: format!("no editor offers a server named `{name}`") }),
        },
        Expanded::Http(_) | Expanded::Sse(_) | Expanded::ClaudeAiProxy { .. } => {
            let warnings = remote::warnings(&errand.expanded);
            let tokens = errand.context.host.tokens();
            let wire = remote::wire(&errand.name, errand.expanded, errand.settings.limits.message_bytes, tokens);
            Ok(Way { warnings, ..way(wire) })
        }
    }
}
