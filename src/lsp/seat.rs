//! One editor's seat at the engine: what all handlers of its session share.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use serde_json::Value;
use tokio::sync::watch;
use tower_lsp::lsp_types::Url;

use super::convert::Shown;
use super::documents::{Document, Documents};
use super::editor::Editor;
use super::greeting::Greeting;
use super::reference;
use super::sheets::Shelf;
use crate::engine::Engine;
use crate::engine::folders::Claimant;

pub struct Seat {
    pub engine: Engine,
    pub editor: Editor,
    pub documents: Arc<Documents>,
    pub(super) shelf: Shelf,
    /// The names of the variables that are set. Their values are nobody's business here.
    pub variables: BTreeSet<String>,
    greeting: OnceLock<Greeting>,
    reference: OnceLock<Option<Url>>,
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
            shelf: Shelf::default(),
            variables: std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect(),
            greeting: OnceLock::new(),
            reference: OnceLock::new(),
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

    /// The workspace folders as the editor last said them.
    pub fn folders(&self) -> Vec<PathBuf> {
        self.folders.borrow().clone()
    }

    /// Hands the folders to the engine, the newest list each time, until the session drops it.
    pub async fn keep_folders(self: Arc<Self>) {
        let claim = self.engine.claim(Claimant::Editor);
        let mut folders = self.folders.subscribe();
        loop {
            let newest = folders.borrow_and_update().clone();
            claim.set(newest.clone()).await;
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

    /// Puts the editor's settings over those of the file: what it said when it came, and over that what it says now.
    /// What is wrong with them is for the user to see.
    pub fn apply_settings(&self, words: &Value) -> Vec<String> {
        let Some(words) = own_section(words) else {
            // Editors that want to be asked send nothing here.
            return Vec::new();
        };
        let mut settings = self.greeting().settings.as_ref().and_then(own_section).cloned().unwrap_or_default();
        put_over(&mut settings, words);
        self.engine.overlay_settings(&settings)
    }

    /// What commands of lenses and actions in a buffer have to know about it.
    pub fn shown<'a>(&self, document: &'a Document) -> Shown<'a> {
        Shown { uri: &document.uri, version: document.version, plain: self.greeting().abilities.is_none() }
    }

    /// The built-in reference as a file, for links that explain complaints; only for editors that show such links.
    pub fn reference(&self) -> Option<&Url> {
        let state = &self.engine.paths().state_dir;
        let laid_down = || self.greeting().supports.code_description.then(|| reference::lay_down(state)).flatten();
        self.reference.get_or_init(laid_down).as_ref()
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

/// Our part of an editor's settings, or all of them when they are ours alone.
fn own_section(words: &Value) -> Option<&Value> {
    let own = ["mcpSidecar", "mcp-sidecar", "mcp_sidecar"].iter().find_map(|&section| words.get(section));
    own.or(Some(words)).filter(|words| words.is_object())
}

/// Objects are joined, anything else is replaced.
fn put_over(settings: &mut Value, words: &Value) {
    match (settings, words) {
        (Value::Object(settings), Value::Object(words)) => {
            for (key, value) in words {
                put_over(settings.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (settings, words) => *settings = words.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn later_settings_go_over_earlier_ones_and_leave_the_rest() {
        let mut settings = json!({ "log": { "level": "debug", "days": 3 }, "files": { "project": ["a"] } });
        put_over(&mut settings, &json!({ "log": { "level": "warn" }, "files": { "project": [] } }));
        assert_eq!(settings, json!({ "log": { "level": "warn", "days": 3 }, "files": { "project": [] } }));
    }

    #[test]
    fn our_section_is_found_however_it_is_spelled() {
        let ours = json!({ "log": {} });
        for words in [json!({ "mcpSidecar": ours, "editor": 1 }), json!({ "mcp-sidecar": ours }), ours.clone()] {
            assert_eq!(own_section(&words), Some(&ours));
        }
        assert_eq!(own_section(&Value::Null), None);
        assert_eq!(own_section(&json!({ "mcpSidecar": null })), None);
    }
}
