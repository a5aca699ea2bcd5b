//! The workspaces that are open in this process: an [`Engine`] for each folder that a front has stated.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::agent::{Endpoint, PendingBytes};
use crate::engine::{Engine, Shared};

/// How long a workspace without fronts stays open.
pub const LINGER: Duration = Duration::from_secs(2);

/// Cheap to clone; all clones share the list. The `std` lock is private to this file and never held over an await.
#[derive(Clone)]
pub struct OpenWorkspaces {
    shared: Shared,
    pending_bytes: PendingBytes,
    workspaces: Arc<Mutex<BTreeMap<PathBuf, Workspace>>>,
}

enum Workspace {
    Open {
        engine: Engine,
        agents: Endpoint,
        fronts: usize,
        /// How often the last front has left.
        departures: u64,
    },
    /// Its servers are stopping. Cancelled when they have.
    Closing(CancellationToken),
}

/// A front of a workspace. The workspace is closed some time after the last one is dropped.
pub struct WorkspaceFront {
    pub engine: Engine,
    pub agents: Endpoint,
    pub root: PathBuf,
    workspaces: OpenWorkspaces,
}

impl OpenWorkspaces {
    pub fn new(shared: Shared) -> Self {
        Self { shared, pending_bytes: PendingBytes::default(), workspaces: Arc::default() }
    }

    pub fn is_open(&self, root: &Path) -> bool {
        matches!(self.lock().get(root), Some(Workspace::Open { .. }))
    }

    /// Joins a workspace, or opens it.
    pub async fn join(&self, root: PathBuf) -> WorkspaceFront {
        loop {
            let closed = match self.try_join(&root) {
                Ok((engine, agents)) => return WorkspaceFront { engine, agents, root, workspaces: self.clone() },
                Err(closed) => closed,
            };
            // A server never runs twice: the next one starts when it has stopped.
            closed.cancelled().await;
        }
    }

    fn try_join(&self, root: &Path) -> Result<(Engine, Endpoint), CancellationToken> {
        let mut workspaces = self.lock();
        let workspace = workspaces.entry(root.to_path_buf()).or_insert_with(|| {
            tracing::info!(workspace = %root.display(), "workspace opened");
            let engine = self.shared.open();
            let agents = Endpoint::sharing(engine.clone(), self.pending_bytes.clone());
            Workspace::Open { engine, agents, fronts: 0, departures: 0 }
        });
        match workspace {
            Workspace::Open { engine, agents, fronts, .. } => {
                *fronts += 1;
                Ok((engine.clone(), agents.clone()))
            }
            Workspace::Closing(closed) => Err(closed.clone()),
        }
    }

    /// A front has left. Returns a number for [`Self::close`] if it was the last one.
    fn leave(&self, root: &Path) -> Option<u64> {
        match self.lock().get_mut(root) {
            Some(Workspace::Open { fronts, departures, .. }) => {
                *fronts = fronts.saturating_sub(1);
                *departures += 1;
                (*fronts == 0).then_some(*departures)
            }
            Some(Workspace::Closing(_)) | None => None,
        }
    }

    /// Closes a workspace, unless a front has joined it since.
    async fn close(&self, root: &Path, departure: u64) {
        let (engine, closed) = {
            let mut workspaces = self.lock();
            let Some(workspace) = workspaces.get_mut(root) else { return };
            let closed = CancellationToken::new();
            match workspace {
                Workspace::Open { engine, fronts: 0, departures, .. } if *departures == departure => {
                    let engine = engine.clone();
                    *workspace = Workspace::Closing(closed.clone());
                    (engine, closed)
                }
                Workspace::Open { .. } | Workspace::Closing(_) => return,
            }
        };
        engine.close().await;
        tracing::info!(workspace = %root.display(), "workspace closed");
        self.lock().remove(root);
        closed.cancel();
    }

    /// Stops the servers of all workspaces.
    pub async fn close_all(&self) {
        let workspaces = std::mem::take(&mut *self.lock());
        let closed = workspaces.into_values().map(|workspace| async move {
            match workspace {
                Workspace::Open { engine, .. } => engine.close().await,
                Workspace::Closing(closed) => closed.cancelled().await,
            }
        });
        futures::future::join_all(closed).await;
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Workspace>> {
        self.workspaces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for WorkspaceFront {
    fn drop(&mut self) {
        let Some(departure) = self.workspaces.leave(&self.root) else { return };
        let (workspaces, root) = (self.workspaces.clone(), std::mem::take(&mut self.root));
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                tokio::time::sleep(LINGER).await;
                workspaces.close(&root, departure).await;
            });
        }
    }
}
