//! Receives the environments of the fronts and publishes which one each server starts with.
//!
//! They are in memory only. An editor that an agent started supplies nothing: it is not the user's.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::watch;

use super::Engine;
use super::folders::ClaimedBy;
use super::hub::HubCommand;
use crate::config::environments::Supplies;
use crate::config::{Environment, Environments};

/// The environments of the fronts of all workspaces. Cheap to clone; all clones share them.
#[derive(Clone)]
pub struct FrontEnvironments {
    published: watch::Sender<Arc<Environments>>,
    last_id: Arc<AtomicU64>,
}

impl Default for FrontEnvironments {
    fn default() -> Self {
        Self { published: watch::Sender::new(Arc::default()), last_id: Arc::default() }
    }
}

impl FrontEnvironments {
    pub fn subscribe(&self) -> watch::Receiver<Arc<Environments>> {
        self.published.subscribe()
    }

    /// See [`Environments::open`].
    pub fn open(&self, folders: &[PathBuf]) {
        self.published.send_if_modified(|environments| Arc::make_mut(environments).open(folders));
    }

    fn change(&self, change: impl FnOnce(&mut Environments)) {
        self.published.send_modify(|environments| change(Arc::make_mut(environments)));
    }
}

/// The environment of one front. Dropping it withdraws the environment.
pub struct SentEnvironment {
    engine: Engine,
    id: u64,
    supplies: Supplies,
    environment: Environment,
}

impl Engine {
    /// Takes the environment that a front has sent. It has an effect once the front has set its folders. A front in the
    /// process of the engine sends none.
    pub fn take_environment(&self, sent_by: ClaimedBy, environment: Environment) -> SentEnvironment {
        let id = self.0.shared.environments.last_id.fetch_add(1, Ordering::Relaxed);
        let supplies = match sent_by {
            ClaimedBy::Editor => Supplies::Everything,
            ClaimedBy::Agent | ClaimedBy::Shell => Supplies::Referred,
        };
        SentEnvironment { engine: self.clone(), id, supplies, environment }
    }

    /// The environments that servers start with now.
    pub fn environments(&self) -> Arc<Environments> {
        self.0.shared.environments.published.borrow().clone()
    }
}

impl SentEnvironment {
    /// The front has these folders open. Returns when servers that waited for its variables are starting, so that its next
    /// request sees them.
    pub async fn set_folders(&self, folders: &[PathBuf]) {
        if self.environment.is_empty() {
            return;
        }
        let sent =
            |environments: &mut Environments| environments.set(self.id, self.supplies, &self.environment, folders);
        self.engine.0.shared.environments.change(sent);
        self.engine.send_command(|done| HubCommand::ApplyEnvironments { done }).await.ok();
    }
}

impl Drop for SentEnvironment {
    fn drop(&mut self) {
        if !self.environment.is_empty() {
            self.engine.0.shared.environments.change(|environments| environments.leave(self.id));
        }
    }
}
