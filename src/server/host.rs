//! What a server needs from the layer above. The engine implements it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, Waker};

use futures::future::BoxFuture;
use serde_json::Value;
use tokio::sync::{Mutex, mpsc, watch};

use crate::config::spec::Input;
use crate::config::{Definition, Environment, Environments};
use crate::model::{CallId, Result, ServerName};
use crate::server::oauth::{NoTokens, TokenStore};
use crate::text::Secret;

/// The defaults are those of a host without a user: questions are never answered, and there are no values.
pub trait Host: Send + Sync + 'static {
    /// The workspace folders, as MCP roots.
    fn roots(&self) -> Vec<Arc<Path>> {
        Vec::new()
    }

    /// The working directory of a user's server in the open workspace.
    fn private_folder(&self, server: &ServerName) -> PathBuf {
        std::env::temp_dir().join(format!("mcp-sidecar-{server}-{}", std::process::id()))
    }

    /// The environments that servers start with.
    fn environments(&self) -> watch::Receiver<Arc<Environments>> {
        watch::channel(Arc::default()).1
    }

    /// Whether an editor supports sampling: it is advertised only then.
    fn can_sample(&self) -> bool {
        false
    }

    /// Whether the user can be asked.
    fn can_elicit(&self) -> bool {
        false
    }

    /// Asks the user on behalf of a server: takes the params of MCP's `elicitation/create`, returns its result. The
    /// question belongs to one of `calls`.
    fn elicit(&self, _server: ServerName, _calls: Vec<CallId>, _params: Value) -> BoxFuture<'static, Result<Value>> {
        Box::pin(std::future::pending())
    }

    /// Samples after approval: takes the params of MCP's `sampling/createMessage`, returns its result.
    fn sample(&self, _server: ServerName, _params: Value) -> BoxFuture<'static, Result<Value>> {
        Box::pin(std::future::pending())
    }

    /// The saved answer of an `inputs` entry.
    fn saved_input(&self, _input: &Input) -> BoxFuture<'static, Option<Secret>> {
        Box::pin(std::future::ready(None))
    }

    /// Asks the user for the value of an `inputs` entry and saves it. `None` if the user does not answer.
    fn input(&self, _server: ServerName, _input: Input) -> BoxFuture<'static, Option<Secret>> {
        Box::pin(std::future::ready(None))
    }

    /// The value saved in the keyring under this name, for this definition. The error says why it does not get it.
    fn keyring(&self, _for: &Definition, _name: String) -> BoxFuture<'static, Result<Option<Secret>, String>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// The store for the tokens of signed-in servers. By default nothing is stored.
    fn tokens(&self) -> Arc<dyn TokenStore> {
        Arc::new(NoTokens)
    }

    /// Whether a definition may start now: its program or its scripts may have changed on disk since it was trusted.
    /// `environment` is the one that it starts with.
    fn may_start(&self, _definition: Arc<Definition>, _environment: Environment) -> BoxFuture<'static, bool> {
        Box::pin(std::future::ready(true))
    }

    /// An editor-hosted server by its name, if an editor provides it.
    fn tunnel(&self, _name: &str) -> Result<Tunnel, NoTunnel> {
        Err(NoTunnel::NoEditor)
    }
}

/// Why there is no connection to an editor-hosted server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoTunnel {
    NoEditor,
    /// Another connection uses it. Two cannot share it, because they use the same ids.
    InUse,
}

/// One direction of an editor-hosted server. Cheap to clone.
#[derive(Debug, Clone)]
pub struct MessageQueue {
    sender: mpsc::Sender<Value>,
    /// Held while a message waits for room.
    order: Arc<Mutex<()>>,
}

impl MessageQueue {
    pub fn new(capacity: usize) -> (Self, mpsc::Receiver<Value>) {
        let (sender, receiver) = mpsc::channel(capacity);
        (Self { sender, order: Arc::default() }, receiver)
    }

    /// Whether the receiver is gone.
    pub fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Sends a message as soon as there is room. It queues now, not when the future is first polled, so messages keep their
    /// order. False if the receiver is gone.
    pub fn send(&self, message: Value) -> impl Future<Output = bool> + Send + use<> {
        let (sender, order) = (self.sender.clone(), self.order.clone());
        let sending = async move {
            let _turn = order.lock_owned().await;
            sender.send(message).await.is_ok()
        };
        // Unconstrained, because the poll would not queue a task that has used up its budget.
        let mut sending = Box::pin(tokio::task::unconstrained(sending));
        let first = sending.as_mut().poll(&mut TaskContext::from_waker(Waker::noop()));
        async move {
            match first {
                Poll::Ready(sent) => sent,
                Poll::Pending => sending.await,
            }
        }
    }
}

/// Both directions of an editor-hosted server: complete MCP messages. A closed channel means that the editor has
/// disconnected.
pub struct Tunnel {
    pub to_editor: MessageQueue,
    pub from_editor: mpsc::Receiver<Value>,
}
