//! One editor's seat at the engine: what all handlers of its session share.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use serde_json::Value;
use tokio::sync::watch;

use super::documents::{Document, Documents};
use super::editor::Editor;
use super::greeting::Greeting;
use crate::engine::Engine;

pub struct Seat {
    pub engine: Engine,
    pub editor: Editor,
    pub documents: Arc<Documents>,
    greeting: OnceLock<Greeting>,
    /// The workspace folders as the editor last said them.
    folders: watch::Sender<Vec<PathBuf>>,
    /// Those that the engine has taken over.
    settled: watch::Sender<Vec<PathBuf>>,
}

impl Seat {
    pub fn new(engine: Engine, editor: Editor) -> Self {
        Self {
            engine,
            editor,
            documents: Arc::default(),
            greeting: OnceLock::new(),
            folders: watch::Sender::new(Vec::new()),
            settled: watch::Sender::new(Vec::new()),
        }
    }

    /// What the editor said about itself; defaults before it said anything.
    pub fn greeting(&self) -> &Greeting {
        static NOBODY: OnceLock<Greeting> = OnceLock::new();
        self.greeting.get().unwrap_or_else(|| NOBODY.get_or_init(Greeting::default))
    }

    pub fn is_greeted(&self) -> bool {
        self.greeting.get().is_some()
    }

    /// The first greeting counts.
    pub fn greet(&self, greeting: Greeting) {
        let folders = greeting.folders.clone();
        if self.greeting.set(greeting).is_ok() {
            self.folders.send_replace(folders);
        }
    }

    pub fn change_folders(&self, removed: &[PathBuf], added: Vec<PathBuf>) {
        self.folders.send_modify(|folders| {
            folders.retain(|folder| !removed.contains(folder) && !added.contains(folder));
            folders.extend(added);
        });
    }

    /// Hands the folders to the engine, the newest list each time, until the session drops it.
    pub async fn keep_folders(self: Arc<Self>) {
        let mut folders = self.folders.subscribe();
        loop {
            let newest = folders.borrow_and_update().clone();
            self.engine.set_folders(newest.clone()).await;
            self.settled.send_replace(newest);
            if folders.changed().await.is_err() {
                return;
            }
        }
    }

    /// Waits until the engine knows the folders, so that a command sent right after `initialize` sees their servers.
    pub async fn settled(&self) {
        let wanted = self.folders.borrow().clone();
        self.settled.subscribe().wait_for(|settled| *settled == wanted).await.ok();
    }

    /// Puts the editor's settings over those of the file; what is wrong with them is for the user to see.
    pub fn apply_settings(&self, words: &Value) -> Vec<String> {
        let own = ["mcpSidecar", "mcp-sidecar", "mcp_sidecar"].iter().find_map(|&section| words.get(section));
        match own.unwrap_or(words) {
            words if words.is_object() => self.engine.overlay_settings(words),
            // Editors that want to be asked send nothing here.
            _ => Vec::new(),
        }
    }

    /// Whether a buffer is a config file, by its place in a workspace folder or by its name.
    pub fn is_config(&self, document: &Document) -> bool {
        let Some(path) = &document.path else { return false };
        if self.engine.loaded().borrow().file(path).is_some() {
            return true;
        }
        let settings = self.engine.settings();
        let files = &settings.borrow().files;
        files.project.iter().chain(&files.local).any(|name| path.ends_with(name))
    }
}
