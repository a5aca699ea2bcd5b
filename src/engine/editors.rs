//! The editors that are attached to the engine, and what each can do.
//!
//! The list is behind a `std` lock that is private to this file and never held over an await.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;
use serde_json::Value;
use tokio::sync::{mpsc, watch};

use crate::model::{Result, ServerName};
use crate::policy::hex;
use crate::server::host::Tunnel;

/// What an editor declares in `capabilities.experimental.mcpSidecar`. A plain LSP client declares nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Abilities {
    /// Supports the `mcp/…` notifications.
    pub plugin: bool,
    /// Shows approvals itself. Any other editor shows a message with buttons.
    pub approvals: bool,
    pub elicitation: bool,
    pub sampling: bool,
    /// The MCP servers that run inside it.
    pub sdk_servers: Vec<String>,
}

/// What the engine can ask an editor to do.
pub trait Editor: Send + Sync + 'static {
    fn abilities(&self) -> &Abilities;
    /// Takes the params of MCP's `sampling/createMessage` and returns its result.
    fn sample(&self, server: ServerName, params: Value) -> BoxFuture<'static, Result<Value>>;
    /// Opens a page in the user's browser.
    fn open_url(&self, url: String) -> BoxFuture<'static, bool>;
    /// Sends a message to a server inside the editor. False if it could not be delivered.
    fn to_sdk(&self, server: String, message: Value) -> BoxFuture<'static, bool>;
}

/// How many messages of an editor-hosted server can be queued in each direction.
const TUNNEL: usize = 256;

/// All attached editors. Cheap to clone; all clones share the list.
#[derive(Clone)]
pub struct Editors {
    attached: Arc<Mutex<BTreeMap<u64, Attached>>>,
    changed: Arc<watch::Sender<usize>>,
    /// A secret that an editor can pass to an agent that it runs itself.
    ticket: Arc<str>,
}

struct Attached {
    editor: Arc<dyn Editor>,
    /// Senders into the open tunnels of this editor, by server name.
    tunnels: BTreeMap<String, mpsc::Sender<Value>>,
}

/// An attached editor. Dropping this detaches it.
pub struct Attachment {
    editors: Editors,
    id: u64,
}

impl Default for Editors {
    fn default() -> Self {
        let mut bits = [0u8; 32];
        // Without a random source, no ticket is valid.
        let ticket = getrandom::fill(&mut bits).map(|()| hex(&bits));
        Self {
            attached: Arc::default(),
            changed: Arc::new(watch::Sender::new(0)),
            ticket: ticket.unwrap_or_default().into(),
        }
    }
}

impl Editors {
    pub fn attach(&self, editor: Arc<dyn Editor>) -> Attachment {
        let mut attached = self.lock();
        let id = attached.last_key_value().map_or(0, |(last, _)| last + 1);
        attached.insert(id, Attached { editor, tunnels: BTreeMap::new() });
        self.changed.send_replace(attached.len());
        Attachment { editors: self.clone(), id }
    }

    /// Proves that an agent was started by an attached editor, which asks its user before calls itself.
    pub fn ticket(&self) -> &str {
        &self.ticket
    }

    /// Whether this is the ticket of an editor, and one is still attached.
    pub fn issued(&self, ticket: &str) -> bool {
        !ticket.is_empty() && *ticket == *self.ticket && !self.lock().is_empty()
    }

    /// The number of editors, sent whenever it changes.
    pub fn subscribe(&self) -> watch::Receiver<usize> {
        self.changed.subscribe()
    }

    pub fn any(&self, able: impl Fn(&Abilities) -> bool) -> Option<Arc<dyn Editor>> {
        self.lock().values().map(|attached| &attached.editor).find(|editor| able(editor.abilities())).cloned()
    }

    /// Connects to a server inside the first editor that has one of this name.
    pub fn tunnel(&self, name: &str) -> Option<Tunnel> {
        let mut attached = self.lock();
        let hosting = attached
            .values_mut()
            .find(|attached| attached.editor.abilities().sdk_servers.iter().any(|server| server == name))?;
        let (to_editor, mut outgoing) = mpsc::channel::<Value>(TUNNEL);
        let (incoming, from_editor) = mpsc::channel(TUNNEL);
        hosting.tunnels.insert(name.to_owned(), incoming);
        let (editor, name) = (hosting.editor.clone(), name.to_owned());
        tokio::spawn(async move {
            // One after another, because MCP messages keep their order. Ends when the connection is dropped.
            while let Some(message) = outgoing.recv().await {
                if !editor.to_sdk(name.clone(), message).await {
                    break;
                }
            }
        });
        Some(Tunnel { to_editor, from_editor })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Attached>> {
        self.attached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Attachment {
    /// Passes on a message from a server inside this editor. False if the receiver is gone or too slow.
    pub fn from_sdk(&self, server: &str, message: Value) -> bool {
        let attached = self.editors.lock();
        let way = attached.get(&self.id).and_then(|attached| attached.tunnels.get(server));
        way.is_some_and(|way| way.try_send(message).is_ok())
    }

    /// Closes the tunnel of a server that the editor has stopped.
    pub fn close_sdk(&self, server: &str) {
        if let Some(attached) = self.editors.lock().get_mut(&self.id) {
            attached.tunnels.remove(server);
        }
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        let mut attached = self.editors.lock();
        attached.remove(&self.id);
        self.editors.changed.send_replace(attached.len());
    }
}
