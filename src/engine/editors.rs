//! The editors that are attached to the engine: what each can do, and who may be asked for it.
//!
//! The list is behind a `std` lock, private to this file and never held over an await.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;
use serde_json::Value;
use tokio::sync::{mpsc, watch};

use crate::model::{Result, ServerName};
use crate::policy::hex;
use crate::server::host::Tunnel;

/// What an editor says about itself in `capabilities.experimental.mcpSidecar`; a plain LSP client says nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Abilities {
    /// It knows the `mcp/…` notifications.
    pub plugin: bool,
    /// It shows approvals by itself; any other editor is asked by a message with buttons.
    pub approvals: bool,
    pub elicitation: bool,
    pub sampling: bool,
    /// Names of the MCP servers that live inside it.
    pub sdk_servers: Vec<String>,
}

/// What the engine may ask of an editor.
pub trait Editor: Send + Sync + 'static {
    fn abilities(&self) -> &Abilities;
    /// MCP's `sampling/createMessage` params in, its result out.
    fn sample(&self, server: ServerName, params: Value) -> BoxFuture<'static, Result<Value>>;
    /// Opens a page in the user's browser.
    fn open_url(&self, url: String) -> BoxFuture<'static, bool>;
    /// Hands a message to a server that lives inside the editor; false when it could not be delivered.
    fn to_sdk(&self, server: String, message: Value) -> BoxFuture<'static, bool>;
}

/// How many messages of an editor-hosted server may wait on their way, in each direction.
const TUNNEL: usize = 256;

/// All attached editors. Cheap to clone; all clones share the list.
#[derive(Clone)]
pub struct Editors {
    attached: Arc<Mutex<BTreeMap<u64, Attached>>>,
    changed: Arc<watch::Sender<usize>>,
    /// What an editor may hand to an agent that it runs itself; nobody else can know it.
    ticket: Arc<str>,
}

struct Attached {
    editor: Arc<dyn Editor>,
    /// Ways into the live tunnels of this editor, by the server's name inside it.
    tunnels: BTreeMap<String, mpsc::Sender<Value>>,
}

/// An editor's place in the list; leaving it is dropping this.
pub struct Attachment {
    editors: Editors,
    id: u64,
}

impl Default for Editors {
    fn default() -> Self {
        let mut bits = [0u8; 32];
        // Without the system's randomness there is none that holds.
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

    /// An agent that shows it was started by an attached editor, which asks its user before calls by itself.
    pub fn ticket(&self) -> &str {
        &self.ticket
    }

    /// Whether an editor gave this out, and one is still there to ask.
    pub fn gave(&self, ticket: &str) -> bool {
        !ticket.is_empty() && *ticket == *self.ticket && !self.lock().is_empty()
    }

    /// The number of editors, whenever one comes or goes.
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
            // One after another: MCP messages keep their order. Ends when the connection lets go of its side.
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
    /// A message from a server inside this editor; false when nobody listens to it, or far too slowly.
    pub fn from_sdk(&self, server: &str, message: Value) -> bool {
        let attached = self.editors.lock();
        let way = attached.get(&self.id).and_then(|attached| attached.tunnels.get(server));
        way.is_some_and(|way| way.try_send(message).is_ok())
    }

    /// The editor ended one of its servers.
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
