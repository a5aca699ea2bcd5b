//! The config files that are open in the editor, loaded together with those on disk: once per version of their texts,
//! however many requests use them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use lsp_types::Url;

use super::convert::PositionMap;
use super::documents::Document;
use super::session::{EditorSession, config_folder};
use crate::config::{Code, Content, Environment, Environments, File, Loaded, Problem, Source, layers};
use crate::engine::Engine;
use crate::engine::snapshot::Snapshot;
use crate::ide;
use crate::ide::config_view::ConfigView;
use crate::model::{Scope, ServerName};
use crate::settings::Settings;
use crate::text::one_line;

/// An open config file, understood: its text, all config files, and the state of their servers. Cheap to clone.
#[derive(Clone)]
pub struct OpenConfig {
    pub document: Document,
    pub positions: Arc<PositionMap>,
    /// The path under which the engine knows the file.
    pub path: Arc<Path>,
    /// All config files; only this one if it is outside of every workspace folder.
    pub loaded: Arc<Loaded>,
    /// Whether the text differs from the file on disk.
    unsaved: bool,
    /// Whether the engine runs the servers of this file. It does not if the file is outside of every workspace folder.
    in_workspace: bool,
    snapshot: Arc<Snapshot>,
    /// The environment that the servers of this file start with.
    pub environment: Environment,
    /// The names of the variables that they can refer to. Language features never see their values.
    variables: Arc<BTreeSet<String>>,
}

impl OpenConfig {
    /// The same file with the current state of its servers.
    pub fn at(&self, snapshot: &Arc<Snapshot>) -> Self {
        Self { snapshot: if self.in_workspace { snapshot.clone() } else { Arc::default() }, ..self.clone() }
    }

    pub fn uri(&self) -> &Url {
        &self.document.uri
    }

    /// What language features read.
    pub fn view(&self) -> Option<ConfigView<'_>> {
        Some(ConfigView::of(self.loaded.file(&self.path)?, &self.loaded, &self.snapshot, &self.variables))
    }

    /// The value of `${workspaceFolder}` in this file.
    pub fn folder(&self) -> Option<&Path> {
        let source = self.loaded.file(&self.path).map(|file| &file.source);
        source.and_then(|source| source.folder.as_deref()).or_else(|| self.path.parent())
    }

    /// The names of the `.env` files in that folder.
    pub fn env_files(&self) -> Vec<String> {
        let entries = self.folder().and_then(|folder| std::fs::read_dir(folder).ok()).into_iter().flatten().flatten();
        let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_dir()));
        let names = files.filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| name.starts_with(".env")).collect();
        names.sort();
        names
    }

    /// The servers that would need trust if this buffer were saved; `None` if there is nothing to save.
    pub async fn needs_trust_on_save(&self, engine: &Engine) -> Option<BTreeSet<ServerName>> {
        if !self.unsaved {
            return None;
        }
        let changed = ide::save_preview::changed_definitions(&self.loaded, &self.snapshot);
        Some(engine.would_ask(changed, self.loaded.clone()).await)
    }

    pub fn problems(&self) -> Vec<Problem> {
        self.view().map(|config| ide::diagnostics::diagnostics(&config)).unwrap_or_default()
    }
}

/// All config files for one version of their texts.
pub struct OpenConfigs {
    /// All files; the text in the editor replaces the text on disk.
    pub loaded: Arc<Loaded>,
    pub open: BTreeMap<Url, OpenConfig>,
}

/// The latest version that was requested. It has a lock because requests run in parallel. The lock is held only to
/// compare versions; requests that need a version that is being loaded wait for it.
#[derive(Default)]
pub struct OpenConfigCache {
    latest: Mutex<Option<Arc<CachedVersion>>>,
}

/// The inputs of a version, and the result.
struct CachedVersion {
    saved: Arc<Loaded>,
    settings: Arc<Settings>,
    buffers: Vec<Document>,
    /// The workspace folders that the engine has loaded; `None` while it loads others.
    folders: Option<Vec<PathBuf>>,
    result: OnceLock<Arc<OpenConfigs>>,
}

impl EditorSession {
    /// All open config files, without the state of their servers.
    pub fn open_configs(&self) -> Arc<OpenConfigs> {
        let saved = self.engine.loaded().borrow().clone();
        let settings = self.engine.settings().borrow().clone();
        let buffers = self.documents.filter(|document| self.is_config(document));
        let version = self.open_configs.version(saved, settings, buffers, self.settled_folders());
        version.result.get_or_init(|| Arc::new(OpenConfigs::load(self, &version))).clone()
    }

    /// An open config file as it is now; `None` for any other buffer.
    pub fn open_config(&self, uri: &Url) -> Option<OpenConfig> {
        // Editors send requests for every file the user types in; most of them are not config files.
        let document = self.documents.get(uri)?;
        if !self.is_config(&document) {
            return None;
        }
        self.open_configs().open.get(uri).map(|config| config.at(&self.engine.now()))
    }
}

impl OpenConfigCache {
    fn version(
        &self,
        saved: Arc<Loaded>,
        settings: Arc<Settings>,
        buffers: Vec<Document>,
        folders: Option<Vec<PathBuf>>,
    ) -> Arc<CachedVersion> {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |cached: &CachedVersion| {
            Arc::ptr_eq(&cached.saved, &saved)
                && Arc::ptr_eq(&cached.settings, &settings)
                && cached.buffers == buffers
                && cached.folders == folders
        };
        match latest.as_ref().filter(|cached| same(cached)) {
            Some(cached) => cached.clone(),
            None => {
                let result = OnceLock::new();
                latest.insert(Arc::new(CachedVersion { saved, settings, buffers, folders, result })).clone()
            }
        }
    }
}

impl OpenConfigs {
    fn load(session: &EditorSession, version: &CachedVersion) -> Self {
        let buffers: Vec<(&Document, Option<Arc<Path>>)> = version
            .buffers
            .iter()
            .map(|buffer| (buffer, buffer.path.as_deref().and_then(|path| source_of(&version.saved, path))))
            .collect();
        let loaded = load_with_buffers(&session.engine, &version.saved, &buffers);
        let environments = session.engine.environments();
        let open = |(buffer, source): (&Document, Option<Arc<Path>>)| {
            let path = buffer.path.as_deref()?;
            let in_workspace = source.is_some();
            let alone = || {
                let mut loaded = load_alone(path, buffer, &version.settings, &environments);
                if version.folders.is_some() {
                    loaded.files.iter_mut().for_each(report_outside);
                }
                (path.into(), Arc::new(loaded))
            };
            let (path, loaded) = source.map(|source| (source, loaded.clone())).unwrap_or_else(alone);
            let folder = loaded.file(&path).and_then(|file| file.source.folder.clone()).filter(|_| in_workspace);
            let config = OpenConfig {
                unsaved: version.saved.file(&path).is_some_and(|file| file.text != buffer.text),
                positions: Arc::new(PositionMap::new(&buffer.text, session.info().encoding)),
                document: buffer.clone(),
                path,
                loaded,
                in_workspace,
                snapshot: Arc::default(),
                environment: environments.in_folder(folder.as_deref()).clone(),
                variables: Arc::new(environments.names(folder.as_deref())),
            };
            Some((buffer.uri.clone(), config))
        };
        Self { open: buffers.into_iter().filter_map(open).collect(), loaded }
    }
}

/// All config files; the text in the editor replaces the text on disk.
fn load_with_buffers(engine: &Engine, saved: &Arc<Loaded>, buffers: &[(&Document, Option<Arc<Path>>)]) -> Arc<Loaded> {
    let changed = |path: &Path, buffer: &Document| {
        saved.file(path).is_none_or(|file| !file.exists || !file.valid || file.text != buffer.text)
    };
    let overlay: BTreeMap<PathBuf, Arc<str>> = buffers
        .iter()
        .filter_map(|(buffer, source)| Some((source.as_deref()?, buffer)))
        .filter(|(path, buffer)| changed(path, buffer))
        .map(|(path, buffer)| (path.to_owned(), buffer.text.clone()))
        .collect();
    if overlay.is_empty() { saved.clone() } else { Arc::new(engine.preview(&overlay)) }
}

/// The path under which the engine knows a file. The editor may use another link to it.
fn source_of(loaded: &Loaded, path: &Path) -> Option<Arc<Path>> {
    if let Some(file) = loaded.file(path) {
        return Some(file.source.path.clone());
    }
    let real = path.canonicalize().ok()?;
    let same = |file: &&File| file.source.path.canonicalize().is_ok_and(|other| other == real);
    loaded.files.iter().find(same).map(|file| file.source.path.clone())
}

/// Loads a file that is named like a config file but is outside of every workspace folder.
fn load_alone(path: &Path, buffer: &Document, settings: &Settings, environments: &Environments) -> Loaded {
    let folder = config_folder(path, &settings.files).or(path.parent()).map(Into::into);
    let source = Source { path: path.into(), scope: Scope::Project, folder };
    let environments = Arc::new(environments.in_folder(None).clone().into());
    let contents = [(source, Content::Text(buffer.text.clone()))];
    let mut loaded = layers::load_with(&contents, &BTreeMap::new(), &settings.limits, &environments);
    // Another file may define the server that an entry restricts.
    for file in &mut loaded.files {
        file.problems.retain(|problem| problem.code != Code::UnknownServer);
    }
    loaded
}

/// Says why the file has no effect, and what to do.
fn report_outside(file: &mut File) {
    let folder = file.source.folder.as_deref().map(|folder| folder.display().to_string()).unwrap_or_default();
    let start = file.tree.root.as_ref().map_or(0, |root| root.span.start);
    let span = start..(start + 1).min(file.text.len());
    let message = "this file has no effect: it is outside of the workspace folders of this editor";
    let help = format!("to use it, open the folder {}", one_line(&folder, 400));
    file.problems.push(Problem::new(Code::OutsideWorkspace, span, message).help(help));
}
