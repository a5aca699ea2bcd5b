//! The editors that are attached to the engine, and what each can do.
//!
//! The list is behind a `std` lock that is private to this file and never held over an await.

mod joins;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;
use tokio::sync::{broadcast, watch};

use crate::model::{Error, Result, ServerName};
use crate::policy::hex;
use crate::server::host::{MessageQueue, NoTunnel, Tunnel};
use crate::server::process;
use joins::Departures;
pub use joins::Join;

/// What an editor declares in `capabilities.experimental.mcpSidecar`. A plain LSP client declares nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Abilities {
    /// Supports the `mcp/…` notifications.
    pub plugin: bool,
    /// Shows approvals itself. Any other editor shows a message with buttons.
    pub approvals: bool,
    pub elicitation: bool,
    pub sampling: bool,
    /// Tells which files have unsaved changes.
    pub buffers: bool,
    /// The MCP servers that run inside it.
    pub sdk_servers: Vec<String>,
    /// The user cannot be asked here: a shell command without a terminal.
    pub silent: bool,
}

/// Which editor or shell this is, for records and for messages that say where to answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    pub name: Option<String>,
    pub process: Option<u32>,
    /// The program of that process, if the kernel knows it.
    pub program: Option<String>,
    /// The agent or server that started it. Then it can look, but not decide for the user.
    pub started_by: Option<String>,
}

impl Identity {
    /// Replaces what the front says about its process by what the kernel knows. `connected` is the process at the other
    /// end of the connection: a child of the editor, or the editor itself.
    #[must_use]
    pub fn checked(self, connected: Option<u32>) -> Self {
        let Some(connected) = connected else { return self };
        let claimed = self.process.filter(|claimed| process::ancestors(connected).any(|ancestor| ancestor == *claimed));
        let process = claimed.unwrap_or(connected);
        // Only our own program is a shell command.
        let name = self.name.filter(|name| name != SHELL || process::is_own_program(connected));
        Self {
            name,
            process: Some(process),
            program: process::program(process),
            started_by: process::started_by(connected),
        }
    }

    pub fn is_shell(&self) -> bool {
        self.name.as_deref() == Some(SHELL)
    }
}

/// The name of a shell command that asks the user.
pub const SHELL: &str = "a shell";

impl std::fmt::Display for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name.as_deref().unwrap_or("an editor"))?;
        match (self.process, &self.program) {
            (Some(process), Some(program)) => write!(f, " (process {process}, {program})"),
            (Some(process), None) => write!(f, " (process {process})"),
            (None, _) => Ok(()),
        }
    }
}

/// A page for the user's browser.
#[derive(Debug, Clone)]
pub struct WebPage {
    pub url: String,
    /// The server whose sign-in it is.
    pub sign_in_to: Option<ServerName>,
}

/// What the engine can ask an editor to do.
pub trait Editor: Send + Sync + 'static {
    fn abilities(&self) -> &Abilities;
    fn identity(&self) -> &Identity;
    /// Takes the params of MCP's `sampling/createMessage` and returns its result.
    fn sample(&self, _server: ServerName, _params: Value) -> BoxFuture<'static, Result<Value>> {
        std::future::ready(Err(Error::NotFound("there is no language model here".to_owned()))).boxed()
    }
    /// Opens a page in the user's browser.
    fn open_url(&self, page: WebPage) -> BoxFuture<'static, bool>;
    /// The text of a file, if it has unsaved changes in this editor.
    fn unsaved(&self, _file: PathBuf) -> BoxFuture<'static, Option<String>> {
        std::future::ready(None).boxed()
    }
    /// Sends a message to a server inside the editor. False if it could not be delivered.
    fn to_sdk(&self, _server: String, _message: Value) -> BoxFuture<'static, bool> {
        std::future::ready(false).boxed()
    }
}

/// How many messages of an editor-hosted server can be queued in each direction.
const TUNNEL: usize = 256;
/// How many announcements an editor may be behind.
const JOINS: usize = 16;

/// The attached editors of all workspaces. Cheap to clone; all clones share the list.
#[derive(Clone)]
pub struct Editors {
    /// The workspace of the editors that are attached through this handle.
    workspace: u64,
    attached: Arc<Mutex<BTreeMap<u64, Attached>>>,
    /// Counts editors. An id is never used again: questions remember the editors in which they were closed.
    last_id: Arc<AtomicU64>,
    changed: Arc<watch::Sender<usize>>,
    joins: broadcast::Sender<Join>,
    /// Editors that have left. The lock is like the one of the list.
    departures: Arc<Mutex<Departures>>,
    /// A secret that an editor can pass to an agent that it runs itself.
    ticket: Arc<str>,
}

struct Attached {
    editor: Arc<dyn Editor>,
    workspace: u64,
    /// Senders into the open tunnels of this editor, by server name.
    tunnels: BTreeMap<String, MessageQueue>,
    /// It turned out that it cannot show questions.
    cannot_ask: bool,
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
            workspace: 0,
            attached: Arc::default(),
            last_id: Arc::default(),
            changed: Arc::new(watch::Sender::new(0)),
            joins: broadcast::Sender::new(JOINS),
            departures: Arc::default(),
            ticket: ticket.unwrap_or_default().into(),
        }
    }
}

impl Editors {
    /// The same list, for the editors of this workspace.
    pub fn in_workspace(&self, workspace: u64) -> Self {
        Self { workspace, ..self.clone() }
    }

    pub fn attach(&self, editor: Arc<dyn Editor>) -> Attachment {
        let mut attached = self.lock();
        let id = self.last_id.fetch_add(1, Ordering::Relaxed);
        self.announce(id, editor.identity(), &attached);
        let workspace = self.workspace;
        attached.insert(id, Attached { editor, workspace, tunnels: BTreeMap::new(), cannot_ask: false });
        self.changed.send_replace(attached.len());
        Attachment { editors: self.clone(), id }
    }

    /// Announces an editor to the others, unless it is one of them, or one that has just restarted.
    fn announce(&self, id: u64, joining: &Identity, attached: &BTreeMap<u64, Attached>) {
        let editors = || attached.values().filter(|attached| !attached.editor.identity().is_shell());
        let mut others = editors().map(|attached| attached.editor.identity());
        let returns = self.departures.lock().unwrap_or_else(PoisonError::into_inner).take(joining);
        if joining.is_shell()
            || returns
            || others.clone().next().is_none()
            || others.any(|other| joining.is_process_of(other))
        {
            return;
        }
        tracing::info!(editor = %joining, started_by = joining.started_by, "another editor joined");
        let is_elsewhere = editors().all(|attached| attached.workspace != self.workspace);
        self.joins.send(Join::new(id, joining, if is_elsewhere { "repository" } else { "workspace" })).ok();
    }

    /// The editors that join from now on.
    pub fn joins(&self) -> broadcast::Receiver<Join> {
        self.joins.subscribe()
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

    /// Whether an editor is attached that is not a shell.
    pub fn has_editor(&self) -> bool {
        self.lock().values().any(|attached| !attached.editor.identity().is_shell())
    }

    pub fn any(&self, able: impl Fn(&Abilities) -> bool) -> Option<Arc<dyn Editor>> {
        self.lock().values().map(|attached| &attached.editor).find(|editor| able(editor.abilities())).cloned()
    }

    /// Opens a page in the user's browser: through the editor or shell that asks for it, or otherwise through another
    /// one.
    pub async fn open_page(&self, page: WebPage, asked_by: Option<&Identity>) -> bool {
        let mut editors: Vec<Arc<dyn Editor>> = self
            .lock()
            .values()
            .map(|attached| attached.editor.clone())
            .filter(|each| !each.abilities().silent)
            .collect();
        // Their user works in this one, and may have to copy the address from it.
        editors.sort_by_key(|editor| Some(editor.identity()) != asked_by);
        for editor in editors {
            if editor.open_url(page.clone()).await {
                return true;
            }
        }
        false
    }

    /// The text of a file, if it has unsaved changes in one of the editors.
    pub async fn unsaved(&self, file: &Path) -> Option<String> {
        let able: Vec<Arc<dyn Editor>> = {
            let attached = self.lock();
            let editors = attached.values().map(|attached| attached.editor.clone());
            editors.filter(|editor| editor.abilities().buffers).collect()
        };
        let answers = able.iter().map(|editor| editor.unsaved(file.to_path_buf()));
        futures::future::join_all(answers).await.into_iter().flatten().next()
    }

    /// The editors where the user can be asked.
    pub fn askable(&self, able: impl Fn(u64, &Abilities) -> bool) -> Vec<Identity> {
        let attached = self.lock();
        let asks = |(id, each): &(&u64, &Attached)| {
            let abilities = each.editor.abilities();
            !each.cannot_ask && !abilities.silent && able(**id, abilities)
        };
        attached.iter().filter(asks).map(|(_, each)| each.editor.identity().clone()).collect()
    }

    /// Records that an editor cannot show questions. Returns whether that is new.
    pub fn cannot_ask(&self, id: u64) -> bool {
        let mut attached = self.lock();
        let known = attached.get_mut(&id).is_none_or(|editor| std::mem::replace(&mut editor.cannot_ask, true));
        self.changed.send_replace(attached.len());
        !known
    }

    /// Connects to a server inside the first editor of this workspace that has one of this name, unless it is connected
    /// already. Two workspaces cannot share the connection.
    pub fn tunnel(&self, name: &str) -> Result<Tunnel, NoTunnel> {
        let mut attached = self.lock();
        let hosting = attached
            .values_mut()
            .filter(|attached| attached.workspace == self.workspace)
            .find(|attached| attached.editor.abilities().sdk_servers.iter().any(|server| server == name))
            .ok_or(NoTunnel::NoEditor)?;
        if hosting.tunnels.get(name).is_some_and(|tunnel| !tunnel.is_closed()) {
            return Err(NoTunnel::InUse);
        }
        let (to_editor, mut outgoing) = MessageQueue::new(TUNNEL);
        let (incoming, from_editor) = MessageQueue::new(TUNNEL);
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
        Ok(Tunnel { to_editor, from_editor })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Attached>> {
        self.attached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Attachment {
    /// Identifies the editor among the attached ones.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Passes on a message from a server inside this editor, as soon as there is room. False if the receiver is gone.
    pub fn deliver_from_sdk(&self, server: &str, message: Value) -> BoxFuture<'static, bool> {
        let attached = self.editors.lock();
        let tunnel = attached.get(&self.id).and_then(|attached| attached.tunnels.get(server));
        match tunnel {
            Some(tunnel) => tunnel.send(message).boxed(),
            None => std::future::ready(false).boxed(),
        }
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
        if let Some(left) = attached.remove(&self.id) {
            let mut departures = self.editors.departures.lock().unwrap_or_else(PoisonError::into_inner);
            departures.add(left.editor.identity().clone());
        }
        self.editors.changed.send_replace(attached.len());
    }
}

#[cfg(test)]
mod tests;
