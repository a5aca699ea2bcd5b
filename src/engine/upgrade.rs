//! When a newer version may take over from this process.

use tokio::sync::watch;

use super::{Engine, Shared};

impl Shared {
    /// Whether nothing is lost if another engine takes over: no call is running, and no editor is attached. Agents join
    /// the next engine without losing their session; for many editors, that would look like a crash.
    pub fn is_idle(&self) -> bool {
        *self.calls.count().borrow() == 0 && *self.editors.subscribe().borrow() == 0
    }

    pub async fn until_idle(&self) {
        let (mut calls, mut editors) = (self.calls.count(), self.editors.subscribe());
        while !self.is_idle() {
            tokio::select! {
                _ = calls.changed() => {}
                _ = editors.changed() => {}
            }
        }
    }

    /// A newer version has been started, and this engine is in use.
    pub fn note_newer_version(&self, version: &str) {
        tracing::info!(version, "a newer version takes over when no editor is attached");
        self.newer_version.send_if_modified(|known| known.replace(version.to_owned()).as_deref() != Some(version));
    }
}

impl Engine {
    pub fn newer_version(&self) -> watch::Receiver<Option<String>> {
        self.0.shared.newer_version.subscribe()
    }
}
