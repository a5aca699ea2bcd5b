//! Opens the way to a server: starts its program, connects to its address, or asks the editor for it. The connection
//! handles the messages. Tests use their own connector.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio_util::task::TaskTracker;

use super::Context;
use super::host::NoTunnel;
use super::logs::Logs;
use super::oauth::ServerAuth;
use super::process::{Process, StartError};
use super::transport::{OpenError, Wire, net, remote, tcp};
use crate::config::Environment;
use crate::config::expand::{Expanded, Program, child_environment, is_inherited, is_passed_on};
use crate::model::ServerName;
use crate::settings::Settings;

/// Everything that is needed to reach a server once.
pub struct ConnectRequest {
    pub name: ServerName,
    pub expanded: Expanded,
    /// The environment that the child's is derived from.
    pub environment: Environment,
    /// The time left for the start.
    pub limit: Duration,
    pub settings: Arc<Settings>,
    pub context: Context,
    pub auth: ServerAuth,
    pub logs: Logs,
    /// Tracks the end of the process.
    pub tracker: TaskTracker,
}

/// An open transport to a server.
pub struct OpenConnection {
    pub wire: Wire,
    /// The program that was started, if any.
    pub process: Option<Process>,
    pub warnings: Vec<String>,
}

pub trait Connector: Send + Sync + 'static {
    fn open(&self, request: ConnectRequest) -> BoxFuture<'static, Result<OpenConnection, OpenError>>;
}

/// Starts real programs and connects to real addresses.
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
            let left_out = left_out(&request.environment, program);
            let sandbox = &request.settings.sandbox;
            let (process, pipes) =
                Process::start(program, &environment, sandbox, request.logs.clone(), &request.tracker).map_err(
                    |StartError { mut message, transient }| {
                        message.extend(left_out.iter().flat_map(|left_out| ["; ", left_out]));
                        match transient {
                            true => OpenError::Io { message },
                            false => OpenError::Refused { message },
                        }
                    },
                )?;
            let input_closed = pipes.stdin_closed();
            let warnings = left_out.into_iter().chain(pipes.warnings).collect();
            let wire = Wire::Bytes { read: Box::new(pipes.stdout), write: Box::new(pipes.stdin), input_closed };
            Ok(OpenConnection { process: Some(process), warnings, ..open(wire) })
        }
        Expanded::Tcp { host, port } => {
            if !net::allowed_host(host, &request.settings.servers.tcp_hosts) {
                let message = format!(
                    "`tcp` connects only to this machine; to allow `{host}`, add it to `servers.tcp-hosts` in config.toml"
                );
                return Err(OpenError::Refused { message });
            }
            tcp::dial(host, *port, request.limit).await.map(open)
        }
        Expanded::Sdk { name } => match request.context.host.tunnel(name) {
            Ok(tunnel) => Ok(open(Wire::Tunnel(tunnel))),
            Err(NoTunnel::NoEditor) => {
                Err(OpenError::Closed { message: format!("no connected editor provides a server named `{name}`") })
            }
            Err(NoTunnel::InUse) => Err(OpenError::Closed {
                message: format!(
                    "another server already uses the editor's server `{name}`; remove one of the two entries"
                ),
            }),
        },
        Expanded::Http(_) | Expanded::Sse(_) => {
            let warnings = remote::warnings(&request.expanded);
            let bytes = request.settings.limits.message_bytes;
            let wire = remote::wire(&request.name, request.expanded, bytes, request.auth);
            Ok(OpenConnection { warnings, ..open(wire) })
        }
    }
}

/// What a program does not get from the environment, because an open folder would decide it.
fn left_out(environment: &Environment, program: &Program) -> Option<String> {
    let gets = |name: &str| {
        let is_sent = (program.inherit_env && is_inherited(name)) || is_passed_on(name);
        is_sent && !program.env.contains_key(name)
    };
    environment.left_out().describe(&program.command, gets)
}
