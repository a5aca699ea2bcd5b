//! The environment that a server was started with, and what another one would change.

use std::sync::Arc;

use tokio::sync::watch;

use crate::config::environments::changes;
use crate::config::{Definition, Environment, Environments};

pub struct StartEnvironment {
    environments: watch::Receiver<Arc<Environments>>,
    /// Of the last start.
    started_with: Environment,
    /// A change that has not been compared yet.
    is_changed: bool,
}

/// What has changed since the last start.
pub struct EnvironmentChange {
    /// The names of the variables that matter for this definition.
    pub names: Vec<String>,
    /// The user has the folder open in an editor. Agents come and go, so without an editor a running server is not affected.
    pub has_editor: bool,
}

impl StartEnvironment {
    pub fn new(environments: watch::Receiver<Arc<Environments>>) -> Self {
        Self { environments, started_with: Environment::default(), is_changed: false }
    }

    /// The environment for a start.
    pub fn take(&mut self, definition: &Definition) -> Environment {
        let environments = self.environments.borrow_and_update().clone();
        self.is_changed = false;
        self.started_with = environments.of(definition);
        self.started_with.clone()
    }

    /// Waits for a change. Cancel-safe: no change is lost.
    pub async fn changed(&mut self, definition: &Arc<Definition>) -> EnvironmentChange {
        if !self.is_changed {
            if self.environments.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
            self.is_changed = true;
        }
        self.compare(definition).await
    }

    /// What has changed until now.
    pub async fn compare(&mut self, definition: &Arc<Definition>) -> EnvironmentChange {
        let environments = self.environments.borrow_and_update().clone();
        let (before, definition) = (self.started_with.clone(), definition.clone());
        let compared = tokio::task::spawn_blocking(move || EnvironmentChange {
            names: described(&definition, &before, &environments.of(&definition)),
            has_editor: environments.has_editor(definition.folder.as_deref()),
        });
        let change = compared.await.unwrap_or(EnvironmentChange { names: Vec::new(), has_editor: false });
        self.is_changed = false;
        change
    }
}

fn described(definition: &Definition, before: &Environment, now: &Environment) -> Vec<String> {
    let describe = |name: String| match now.get(&name) {
        Some(_) => format!("`{name}`"),
        None => format!("`{name}` (no longer set)"),
    };
    changes(definition, before, now).into_iter().map(describe).collect()
}
