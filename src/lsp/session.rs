//! The session of one editor: the state that all its handlers share.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use lsp_types::Url;
use serde_json::Value;
use tokio::sync::watch;

use super::approval_messages::ShownIn;
use super::convert::CommandTarget;
use super::documents::{Document, Documents};
use super::editor::Editor;
use super::initialize_info::InitializeInfo;
use super::open_config::OpenConfigCache;
use super::reference;
use crate::config::Environment;
use crate::engine::Engine;
use crate::engine::folders::ClaimedBy;
use crate::paths::canonical;
use crate::settings::Files;

pub struct EditorSession {
    pub engine: Engine,
    pub editor: Editor,
    pub documents: Arc<Documents>,
    pub(super) open_configs: OpenConfigCache,
    /// The environment of the editor.
    environment: Environment,
    info: OnceLock<InitializeInfo>,
    /// How the editor shows approvals as messages; set when it is attached.
    pub shown_in: OnceLock<ShownIn>,
    reference: OnceLock<Option<Url>>,
    /// The editor's latest workspace folders.
    folders: watch::Sender<Vec<PathBuf>>,
    /// The workspace folders that the engine has loaded.
    settled: watch::Sender<Vec<PathBuf>>,
}

impl EditorSession {
    pub fn new(engine: Engine, editor: Editor, environment: Environment) -> Self {
        Self {
            engine,
            editor,
            documents: Arc::default(),
            open_configs: OpenConfigCache::default(),
            environment,
            info: OnceLock::new(),
            shown_in: OnceLock::new(),
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

    /// Whether what comes from this editor comes from the user.
    pub fn may_decide(&self) -> bool {
        self.info().identity.started_by.is_none()
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
        let is_shell = self.info().abilities.as_ref().is_some_and(|abilities| abilities.shell);
        let claimed_by = if is_shell { ClaimedBy::Shell } else { ClaimedBy::Editor };
        let claim = self.engine.claim(claimed_by);
        // What an agent has started must not decide what the user's servers run.
        let environment = self.environment.clone();
        let environment = self.may_decide().then(|| self.engine.take_environment(claimed_by, environment));
        let mut folders = self.folders.subscribe();
        loop {
            let latest = folders.borrow_and_update().clone();
            if let Some(environment) = &environment {
                environment.set_folders(&latest).await;
            }
            claim.set(latest.clone()).await;
            self.settled.send_replace(latest);
            if folders.changed().await.is_err() {
                return;
            }
        }
    }

    /// The workspace folders, if the engine has loaded all of them.
    pub fn settled_folders(&self) -> Option<Vec<PathBuf>> {
        let settled = self.settled.borrow().clone();
        Some(settled).filter(|settled| !settled.is_empty() && *settled == *self.folders.borrow())
    }

    /// Signals that the engine has loaded other folders.
    pub fn folders_settled(&self) -> watch::Receiver<Vec<PathBuf>> {
        self.settled.subscribe()
    }

    /// An editor without a root gets the folder of the first config file that it opens.
    pub fn adopt_folder(&self, file: &Path) {
        let paths = self.engine.paths();
        let is_own =
            [paths.user_config(), paths.managed_config.clone()].iter().any(|own| canonical(own) == canonical(file));
        let is_shell = self.info().abilities.as_ref().is_some_and(|abilities| abilities.shell);
        if is_own || is_shell || !self.folders.borrow().is_empty() {
            return;
        }
        let settings = self.engine.settings().borrow().clone();
        if let Some(folder) = config_folder(file, &settings.files) {
            self.folders.send_replace(vec![folder.to_owned()]);
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
        let can_edit = self.info().supports.apply_edit;
        CommandTarget { uri: &document.uri, version: document.known_version(), show_outcome, can_edit }
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
        config_folder(path, &self.engine.settings().borrow().files).is_some()
    }

    /// A buffer, if it is `config.toml`.
    pub fn settings_document(&self, uri: &Url) -> Option<Document> {
        let own = self.engine.paths().settings_file();
        self.documents
            .get(uri)
            .filter(|document| document.path.as_deref().is_some_and(|path| canonical(path) == canonical(&own)))
    }
}

/// The workspace folder that a file would be a config file of.
pub fn config_folder<'a>(file: &'a Path, files: &Files) -> Option<&'a Path> {
    let depth = |name: &String| Path::new(name).components().count();
    // `.vscode/mcp.json` also ends with `mcp.json`.
    let names = files.project.iter().chain(&files.local).filter(|name| file.ends_with(name));
    file.ancestors().nth(names.map(depth).max()?)
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
