//! The engine: all servers, the gate to every tool, and the approvals. Fronts hold nothing else.
//!
//! An [`Engine`] is a handle. The work happens in the hub, in one actor per server, and in one task per call. Fronts
//! watch its state (`loaded`, `snapshot`, `approvals`) and translate its answers.

pub mod approvals;
mod arguments;
pub mod asking;
mod auth;
pub mod change;
pub mod consent;
pub mod doctor;
pub mod edit;
pub mod editors;
mod exchange;
pub mod folders;
pub mod gate;
mod host;
mod hub;
pub mod inspect;
pub mod manage;
mod memory;
pub mod plan;
mod prompt;
mod record;
mod slot;
pub mod snapshot;
mod trust;
pub mod turns;
mod vault;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::task::JoinSet;

use crate::config::watch::Watcher;
use crate::config::{Config, Content, Definition, Loaded};
use crate::model::{CallRecord, Error, LogLine, Requester, Result, ServerName};
use crate::paths::Paths;
use crate::policy::{Rules, SessionLevels, View, Views};
use crate::secrets::Keyring;
pub use crate::server::Action;
use crate::server::Context;
use crate::settings::{Settings, SettingsFile};
use crate::store::{Health, Options, Store};
use crate::text::Secret;
use approvals::Approvals;
use editors::Editors;
use hub::{Hub, HubCommand};
use memory::PersistentCache;
use plan::Reload;
use snapshot::Snapshot;
use trust::TrustChecker;
use vault::Vault;

/// How many commands and events can be queued for the hub. It handles each in microseconds, so this is for bursts.
const QUEUE_CAPACITY: usize = 1_024;
/// A front that falls further behind than this misses notices and reads the snapshot instead.
const NOTICE_CAPACITY: usize = 4_096;
/// How long a shutdown may take. After that, the guardian ends the servers.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// A one-time event. State is never sent this way: it is in the snapshot.
#[derive(Debug, Clone)]
pub enum Notice {
    Log { server: ServerName, line: LogLine },
    ResourceUpdated { server: ServerName, uri: String },
    Reloaded(Arc<Reload>),
    CallFinished(Arc<CallRecord>),
}

/// The handle that fronts hold. Cheap to clone.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

/// Where the settings come from.
#[derive(Clone)]
struct SettingsSources {
    /// The content of `config.toml`.
    file: Settings,
    /// The editor's settings, which override the file.
    editor: Value,
}

/// When servers start, unless their definition says that they start on demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StartMode {
    Immediate,
    OnDemand,
}

struct Inner {
    paths: Paths,
    settings: watch::Sender<Arc<Settings>>,
    /// The lock is private to this file and never held over an await.
    sources: Mutex<SettingsSources>,
    folders: watch::Sender<Vec<Arc<Path>>>,
    claims: folders::Claims,
    watcher: Watcher,
    commands: mpsc::Sender<HubCommand>,
    snapshot: watch::Receiver<Arc<Snapshot>>,
    notices: broadcast::Sender<Notice>,
    approvals: Approvals,
    editors: Editors,
    askers: asking::Askers,
    store: Store,
    once: consent::OnceTracker,
    views: Views,
    trust_checker: Arc<TrustChecker>,
    vault: Vault,
    /// Shared by all servers of this engine, and by test runs of a definition.
    context: Context,
}

impl Engine {
    /// Starts an engine without workspace folders. The front sets them later.
    pub fn start(paths: Paths, settings: Settings) -> Self {
        let keyring = Keyring::open(&paths);
        Self::start_with(paths, settings, StartMode::Immediate, keyring)
    }

    /// The same, but does not use the user's keyring: for temporary workspaces.
    pub fn start_isolated(paths: Paths, settings: Settings) -> Self {
        let keyring = Keyring::without_system(&paths);
        Self::start_with(paths, settings, StartMode::Immediate, keyring)
    }

    /// The same, but starts each server on first use: for a front that needs one server or only reads the config.
    pub fn start_on_demand(paths: Paths, settings: Settings) -> Self {
        let keyring = Keyring::open(&paths);
        Self::start_with(paths, settings, StartMode::OnDemand, keyring)
    }

    fn start_with(paths: Paths, settings: Settings, start_mode: StartMode, keyring: Keyring) -> Self {
        let (commands, command_receiver) = mpsc::channel(QUEUE_CAPACITY);
        let (events, event_receiver) = mpsc::channel(QUEUE_CAPACITY);
        let (notices, _) = broadcast::channel(NOTICE_CAPACITY);
        let (published, snapshot) = watch::channel(Arc::default());
        let shared_settings = watch::Sender::new(Arc::new(settings.clone()));
        let folders = watch::Sender::new(Vec::new());
        let watcher = Watcher::spawn(paths.clone(), shared_settings.subscribe());
        let store =
            Store::open_in_background(&paths.state_dir.join("state.db"), Options::new(Path::new(""), &settings));
        let approvals = Approvals::default();
        let editors = Editors::default();
        let askers = asking::Askers::default();
        let vault = Vault::new(keyring);
        vault.keyring().allow_file(settings.secrets.file);
        let memory = Arc::new(PersistentCache::new(store.clone()));
        let trust_checker =
            Arc::new(TrustChecker::new(store.clone(), approvals.clone(), watcher.subscribe(), folders.subscribe()));
        let host = host::EngineHost {
            paths: paths.clone(),
            approvals: approvals.clone(),
            editors: editors.clone(),
            askers: askers.clone(),
            settings: shared_settings.subscribe(),
            folders: folders.subscribe(),
            vault: vault.clone(),
            trust_checker: trust_checker.clone(),
            commands: commands.clone(),
        };
        let context = Context {
            cache: memory.clone(),
            on_demand: start_mode == StartMode::OnDemand,
            ..Context::new(shared_settings.subscribe(), Arc::new(host), events)
        };
        let hub = Hub {
            slots: BTreeMap::new(),
            applied: Arc::default(),
            last_reload: Arc::default(),
            rules: Arc::new(Rules::new(&Config::default(), &SessionLevels::default(), None)),
            levels: SessionLevels::default(),
            generation: 0,
            trust_checker: trust_checker.clone(),
            memory,
            store: store.clone(),
            pending_reloads: Vec::new(),
            context: context.clone(),
            commands: commands.clone(),
            published,
            notices: notices.clone(),
            tasks: JoinSet::new(),
        };
        let views = Views::new(&settings.agents);
        arguments::warm_up();
        tokio::spawn(hub.run(
            watcher.subscribe(),
            event_receiver,
            command_receiver,
            editors.subscribe(),
            folders.subscribe(),
        ));
        let engine = Self(Arc::new(Inner {
            paths,
            settings: shared_settings,
            sources: Mutex::new(SettingsSources { file: settings, editor: Value::Null }),
            folders,
            claims: folders::Claims::default(),
            watcher,
            commands,
            snapshot,
            notices,
            approvals,
            editors,
            askers,
            store,
            once: consent::OnceTracker::default(),
            views,
            trust_checker,
            vault,
            context,
        }));
        engine.follow_settings();
        engine
    }

    /// The paths of this engine's files.
    pub fn paths(&self) -> &Paths {
        &self.0.paths
    }

    pub fn loaded(&self) -> watch::Receiver<Arc<Loaded>> {
        self.0.watcher.subscribe()
    }

    pub fn snapshot(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.0.snapshot.clone()
    }

    /// The current snapshot.
    pub fn now(&self) -> Arc<Snapshot> {
        self.0.snapshot.borrow().clone()
    }

    pub fn settings(&self) -> watch::Receiver<Arc<Settings>> {
        self.0.settings.subscribe()
    }

    pub fn notices(&self) -> broadcast::Receiver<Notice> {
        self.0.notices.subscribe()
    }

    /// Whether decisions and calls can be saved.
    pub fn health(&self) -> watch::Receiver<Health> {
        self.0.store.health()
    }

    pub fn approvals(&self) -> &Approvals {
        &self.0.approvals
    }

    pub fn editors(&self) -> &Editors {
        &self.0.editors
    }

    /// What a requester can see, and the highest level its calls can have.
    pub fn view(&self, requester: &Requester) -> &Arc<View> {
        self.0.views.of(requester)
    }

    /// The workspace folders whose config files are in effect.
    pub fn folders(&self) -> Vec<Arc<Path>> {
        self.0.folders.borrow().clone()
    }

    /// Sets the workspace folders and applies their config files.
    pub async fn set_folders(&self, folders: Vec<PathBuf>) {
        let folders: Vec<Arc<Path>> = folders.into_iter().map(Arc::from).collect();
        self.0.folders.send_replace(folders.clone());
        self.configure_store();
        self.apply_disabled().await.ok();
        let loaded = self.0.watcher.set_folders(folders).await;
        // The next request sees the servers of these folders.
        self.send_command(|done| HubCommand::ApplyConfig { loaded, done }).await.ok();
    }

    /// Overrides `config.toml` with the settings of an editor. Returns what is wrong with them.
    pub fn overlay_settings(&self, settings: &Value) -> Vec<String> {
        self.change_settings(|sources| sources.editor = settings.clone())
    }

    /// Applies `config.toml` whenever it is saved, until the engine is dropped.
    fn follow_settings(&self) {
        let engine = Arc::downgrade(&self.0);
        let mut file = self.0.watcher.settings_file();
        tokio::spawn(async move {
            let mut known = None;
            while file.changed().await.is_ok() {
                let Some(content) = file.borrow_and_update().clone() else { continue };
                // Without a file, the settings that the engine was started with stay in effect.
                if known.replace(content.clone()).is_none() && content == Content::Absent {
                    continue;
                }
                let Some(engine) = engine.upgrade().map(Self) else { return };
                engine.read_settings();
            }
        });
    }

    fn read_settings(&self) {
        let SettingsFile { settings, problems, .. } = Settings::from_file(&self.0.paths);
        for problem in problems {
            tracing::warn!(problem = problem.message, "config.toml");
        }
        let same = self.0.sources.lock().unwrap_or_else(PoisonError::into_inner).file == settings;
        if !same {
            tracing::info!("settings read");
            self.change_settings(|sources| sources.file = settings);
        }
    }

    fn change_settings(&self, change: impl FnOnce(&mut SettingsSources)) -> Vec<String> {
        let sources = {
            let mut sources = self.0.sources.lock().unwrap_or_else(PoisonError::into_inner);
            change(&mut sources);
            sources.clone()
        };
        let mut settings = sources.file;
        let problems = if sources.editor.is_null() { Vec::new() } else { settings.overlay(&sources.editor) };
        self.0.vault.keyring().allow_file(settings.secrets.file);
        self.0.settings.send_replace(Arc::new(settings));
        self.configure_store();
        problems
    }

    fn configure_store(&self) {
        let project = self.0.folders.borrow().first().cloned();
        let project = project.as_deref().unwrap_or(Path::new(""));
        self.0.store.configure(Options::new(project, &self.0.settings.borrow()));
    }

    /// Stores a value for `${keyring:name}`. Never replaces a different value.
    pub async fn store_secret(&self, name: &str, value: &Secret) -> Result<()> {
        let keyring = self.0.vault.keyring();
        let entry = crate::secrets::keyring_name(name);
        match keyring.get(&entry).await? {
            Some(known) if known == *value => Ok(()),
            Some(_) => Err(Error::Conflict(format!(
                "the keyring already holds another value for `{name}`; run `mcp-sidecar secret remove {name}` first"
            ))),
            None => keyring.set(&entry, value).await,
        }
    }

    /// Loads the config as if the open buffers were saved.
    pub fn preview(&self, buffers: &BTreeMap<PathBuf, Arc<str>>) -> Loaded {
        self.0.watcher.preview(buffers)
    }

    /// Which of these definitions would require a trust question if `loaded` were in effect.
    pub async fn would_ask(&self, definitions: Vec<Arc<Definition>>, loaded: Arc<Loaded>) -> BTreeSet<ServerName> {
        let checked = definitions.into_iter().map(|definition| async {
            let name = definition.name.clone();
            self.0.trust_checker.would_ask(definition, loaded.clone()).await.then_some(name)
        });
        futures::future::join_all(checked).await.into_iter().flatten().collect()
    }

    /// Reads all config files now. Returns what changed.
    pub async fn reload(&self) -> Result<Arc<Reload>> {
        let before = self.loaded().borrow().clone();
        let loaded = self.0.watcher.reload().await;
        if Arc::ptr_eq(&before, &loaded) {
            return Ok(Arc::new(plan::reload(&[], &loaded)));
        }
        self.send_command(|done| HubCommand::ApplyConfig { loaded, done }).await
    }

    /// Stops every server and flushes the store. The process can exit afterwards.
    pub async fn shutdown(&self) {
        let ended = self.send_command(|done| HubCommand::Shutdown { done });
        if tokio::time::timeout(SHUTDOWN_TIMEOUT, ended).await.is_err() {
            tracing::warn!("servers did not stop in time; the guardian kills them");
        }
        crate::server::process::end_orphans().await;
        self.0.store.flush().await;
    }

    /// Sends a command to the hub and waits for its answer.
    async fn send_command<T: Send + 'static>(&self, new: impl FnOnce(oneshot::Sender<T>) -> HubCommand) -> Result<T> {
        self.queue_command(new).await?.await
    }

    /// The same in two steps: the command is queued when the first step is done.
    async fn queue_command<T: Send + 'static>(
        &self,
        new: impl FnOnce(oneshot::Sender<T>) -> HubCommand,
    ) -> Result<BoxFuture<'static, Result<T>>> {
        let gone = || Error::Io("the engine is shutting down".to_owned());
        let (done, answer) = oneshot::channel();
        self.0.commands.send(new(done)).await.map_err(|_| gone())?;
        Ok(async move { answer.await.map_err(|_| gone()) }.boxed())
    }
}
