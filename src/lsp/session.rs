//! The session of one editor: the state that all its handlers share.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use lsp_types::Url;
use serde_json::Value;
use tokio::sync::watch;

use super::convert::CommandTarget;
use super::documents::{Document, Documents};
use super::editor::Editor;
use super::initialize_info::InitializeInfo;
use super::open_config::OpenConfigCache;
use super::reference;
use crate::engine::Engine;
use crate::engine::folders::Claimant;

pub struct EditorSession {
    pub engine: Engine,
    pub editor: Editor,
    pub documents: Arc<Documents>,
    pub(super) open_configs: OpenConfigCache,
    /// The names of the environment variables. Language features never see their values.
    pub variables: Arc<BTreeSet<String>>,
    info: OnceLock<InitializeInfo>,
    reference: OnceLock<Option<Url>>,
    /// The editor's latest workspace folders.
    folders: watch::Sender<Vec<PathBuf>>,
    /// The workspace folders that the engine has loaded.
    settled: watch::Sender<Vec<PathBuf>>,
}

impl EditorSession {
    pub fn new(engine: Engine, editor: Editor) -> Self {
        Self {
            engine,
            editor,
            documents: Arc::default(),
            open_configs: OpenConfigCache::default(),
            variables: Arc::new(std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect()),
            info: OnceLock::new(),
            reference: OnceLock::new(),
            folders: watch::Sender::new(Vec::new()),
            settled: watch::Sender::new(Vec::new()),
        }
    }

    /// The parameters of `initialize`; defaults before it arrives.
    pub fn info(&self) -> &InitializeInfo {
        static DEFAULT: OnceLock<InitializeInfo> = OnceLock::new();
        self.info.get().unwrap_or_else(|| DEFAULT.get_or_init(InitializeInfo::default))
    }

    pub fn is_initialized(&self) -> bool {
        self.info.get().is_some()
    }

    /// Only the first call has an effect.
    pub fn initialize(&self, info: InitializeInfo) {
        let folders = info.folders.clone();
        if self.info.set(info).is_ok() {
            self.folders.send_replace(folders);
        }
    }

    pub fn change_folders(&self, removed: &[PathBuf], added: Vec<PathBuf>) {
        self.folders.send_modify(|folders| {
            folders.retain(|folder| !removed.contains(folder) && !added.contains(folder));
            folders.extend(added);
        });
    }

    /// The editor's latest workspace folders.
    pub fn folders(&self) -> Vec<PathBuf> {
        self.folders.borrow().clone()
    }

    /// Passes the workspace folders to the engine until the session drops this future.
    pub async fn keep_folders(self: Arc<Self>) {
        let claim = self.engine.claim(Claimant::Editor);
        let mut folders = self.folders.subscribe();
        loop {
            let latest = folders.borrow_and_update().clone();
            claim.set(latest.clone()).await;
            self.settled.send_replace(latest);
            if folders.changed().await.is_err() {
                return;
            }
        }
    }

    /// Waits until the engine has loaded the folders, so that a command right after `initialize` sees their servers.
    pub async fn settled(&self) {
        let wanted = self.folders.borrow().clone();
        self.settled.subscribe().wait_for(|settled| *settled == wanted).await.ok();
    }

    /// Overrides the settings file with the editor's settings: those from `initialize`, overridden by the new ones. Returns
    /// problems to show to the user.
    pub fn apply_settings(&self, new: &Value) -> Vec<String> {
        let Some(new) = own_section(new) else {
            // Editors that expect us to request the settings send nothing here.
            return Vec::new();
        };
        let mut settings = self.info().settings.as_ref().and_then(own_section).cloned().unwrap_or_default();
        merge(&mut settings, new);
        self.engine.overlay_settings(&settings)
    }

    /// What commands of code lenses and code actions in a buffer need to know about it.
    pub fn command_target<'a>(&self, document: &'a Document) -> CommandTarget<'a> {
        let show_outcome = self.info().abilities.is_none();
        CommandTarget { uri: &document.uri, version: document.version, show_outcome }
    }

    /// The built-in reference as a file, for links from diagnostics. Only for editors that support such links.
    pub fn reference(&self) -> Option<&Url> {
        let state = &self.engine.paths().state_dir;
        let write = || self.info().supports.code_description.then(|| reference::write(state)).flatten();
        self.reference.get_or_init(write).as_ref()
    }

    /// Whether a buffer is a config file, by its path or by its name.
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

/// Our section of the editor's settings, or all of them if there are no sections.
fn own_section(settings: &Value) -> Option<&Value> {
    let own = ["mcpSidecar", "mcp-sidecar", "mcp_sidecar"].iter().find_map(|&section| settings.get(section));
    own.or(Some(settings)).filter(|settings| settings.is_object())
}

/// Merges objects and replaces anything else.
fn merge(settings: &mut Value, new: &Value) {
    match (settings, new) {
        (Value::Object(settings), Value::Object(new)) => {
            for (key, value) in new {
                merge(settings.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (settings, new) => *settings = new.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn new_settings_override_only_what_they_contain() {
        let mut settings = json!({ "log": { "level": "debug", "days": 3 }, "files": { "project": ["a"] } });
        merge(&mut settings, &json!({ "log": { "level": "warn" }, "files": { "project": [] } }));
        assert_eq!(settings, json!({ "log": { "level": "warn", "days": 3 }, "files": { "project": [] } }));
    }

    #[test]
    fn our_section_is_found_in_every_spelling() {
        let ours = json!({ "log": {} });
        for settings in [json!({ "mcpSidecar": ours, "editor": 1 }), json!({ "mcp-sidecar": ours }), ours.clone()] {
            assert_eq!(own_section(&settings), Some(&ours));
        }
        assert_eq!(own_section(&Value::Null), None);
        assert_eq!(own_section(&json!({ "mcpSidecar": null })), None);
    }
}
