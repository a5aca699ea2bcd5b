//! All servers, the one door to every tool, approvals: the only thing a front holds.
//!
//! An [`Engine`] is a handle; what it does happens in tasks of its own. Fronts look at its pictures and translate its
//! answers.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::watch;

use crate::config::Loaded;
use crate::config::watch::Watcher;
use crate::paths::Paths;
use crate::settings::Settings;

/// The handle that fronts hold. Cheap to clone.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

struct Inner {
    settings: watch::Sender<Arc<Settings>>,
    /// What `config.toml` says, before the editor's words on top of it.
    base_settings: Settings,
    watcher: Watcher,
}

impl Engine {
    /// Starts an engine without workspace folders; the front says them when it knows.
    pub fn start(paths: Paths, settings: Settings) -> Self {
        let shared = watch::Sender::new(Arc::new(settings.clone()));
        let watcher = Watcher::spawn(paths, shared.subscribe());
        Self(Arc::new(Inner { settings: shared, base_settings: settings, watcher }))
    }

    pub fn loaded(&self) -> watch::Receiver<Arc<Loaded>> {
        self.0.watcher.subscribe()
    }

    pub fn settings(&self) -> watch::Receiver<Arc<Settings>> {
        self.0.settings.subscribe()
    }

    /// The workspace folders; their config files count from now on.
    pub async fn set_folders(&self, folders: Vec<PathBuf>) {
        self.0.watcher.set_folders(folders.into_iter().map(Arc::from).collect()).await;
    }

    /// Puts what an editor says over what `config.toml` says; answers what was wrong with it.
    pub fn overlay_settings(&self, words: &Value) -> Vec<String> {
        let mut settings = self.0.base_settings.clone();
        let problems = settings.overlay(words);
        self.0.settings.send_replace(Arc::new(settings));
        problems
    }

    /// Loads the config as if the open buffers were saved.
    pub fn preview(&self, buffers: &BTreeMap<PathBuf, Arc<str>>) -> Loaded {
        self.0.watcher.preview(buffers)
    }
}
