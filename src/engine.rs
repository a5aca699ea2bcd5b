//! All servers, the one door to every tool, approvals: the only thing a front holds.
//!
//! An [`Engine`] is a handle; what it does happens in the hub, in one actor for each server, and in one task for each
//! call. Fronts look at its pictures (`loaded`, `snapshot`, `approvals`) and translate its answers.

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
mod inspect;
mod manage;
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
use hub::{Hub, Wish};
use memory::LongMemory;
use plan::Reload;
use snapshot::Snapshot;
use vault::Vault;

/// How many wishes and events may wait for the hub. It answers in microseconds; this is for bursts.
const QUEUE: usize = 1_024;
/// A front that falls further behind than this misses notices, and looks at the pictures instead.
const NOTICES: usize = 4_096;
/// The longest that leaving may take before the guardian is left to it.
const FAREWELL: Duration = Duration::from_secs(5);

/// Something that happened once. State is never told this way: it is in the pictures.
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
struct Said {
    /// What `config.toml` says.
    file: Settings,
    /// The editor's words on top of it.
    editor: Value,
}

/// When servers start that their definition does not keep asleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wake {
    AtOnce,
    OnDemand,
}

struct Inner {
    paths: Paths,
    settings: watch::Sender<Arc<Settings>>,
    /// What the settings are made of. A `std` lock, private to this file and never held over an await.
    said: Mutex<Said>,
    folders: watch::Sender<Vec<Arc<Path>>>,
    claims: folders::Claims,
    watcher: Watcher,
    wishes: mpsc::Sender<Wish>,
    snapshot: watch::Receiver<Arc<Snapshot>>,
    notices: broadcast::Sender<Notice>,
    approvals: Approvals,
    editors: Editors,
    askers: asking::Askers,
    store: Store,
    once: consent::Once,
    views: Views,
    judge: Arc<trust::Judge>,
    vault: Vault,
    /// What servers of this engine share; tests of a definition start theirs with it as well.
    context: Context,
}

impl Engine {
    /// Starts an engine without workspace folders; the front says them when it knows.
    pub fn start(paths: Paths, settings: Settings) -> Self {
        let keyring = Keyring::open(&paths);
        Self::with(paths, settings, Wake::AtOnce, keyring)
    }

    /// The same, but nothing goes into the user's keyring: for places that are gone when the engine is.
    pub fn start_apart(paths: Paths, settings: Settings) -> Self {
        let keyring = Keyring::without_system(&paths);
        Self::with(paths, settings, Wake::AtOnce, keyring)
    }

    /// The same, but each server starts at its first use: for a front that wants one of them, or only to look things up.
    pub fn start_on_demand(paths: Paths, settings: Settings) -> Self {
        let keyring = Keyring::open(&paths);
        Self::with(paths, settings, Wake::OnDemand, keyring)
    }

    fn with(paths: Paths, settings: Settings, wake: Wake, keyring: Keyring) -> Self {
        let (wishes, heard_wishes) = mpsc::channel(QUEUE);
        let (events, heard_events) = mpsc::channel(QUEUE);
        let (notices, _) = broadcast::channel(NOTICES);
        let (published, snapshot) = watch::channel(Arc::default());
        let shared_settings = watch::Sender::new(Arc::new(settings.clone()));
        let folders = watch::Sender::new(Vec::new());
        let watcher = Watcher::spawn(paths.clone(), shared_settings.subscribe());
        let store = Store::begin(&paths.state_dir.join("state.db"), Options::new(Path::new(""), &settings));
        let approvals = Approvals::default();
        let editors = Editors::default();
        let askers = asking::Askers::default();
        let vault = Vault::new(keyring);
        vault.keyring().allow_file(settings.secrets.file);
        let memory = Arc::new(LongMemory::new(store.clone()));
        let judge =
            Arc::new(trust::Judge::new(store.clone(), approvals.clone(), watcher.subscribe(), folders.subscribe()));
        let host = host::EngineHost {
            paths: paths.clone(),
            approvals: approvals.clone(),
            editors: editors.clone(),
            askers: askers.clone(),
            settings: shared_settings.subscribe(),
            folders: folders.subscribe(),
            vault: vault.clone(),
            judge: judge.clone(),
            wishes: wishes.clone(),
        };
        let context = Context {
            cache: memory.clone(),
            on_demand: wake == Wake::OnDemand,
            ..Context::new(shared_settings.subscribe(), Arc::new(host), events)
        };
        let hub = Hub {
            slots: BTreeMap::new(),
            applied: Arc::default(),
            last_reload: Arc::default(),
            rules: Arc::new(Rules::new(&Config::default(), &SessionLevels::default(), None)),
            levels: SessionLevels::default(),
            generation: 0,
            judge: judge.clone(),
            memory,
            store: store.clone(),
            waiting: Vec::new(),
            context: context.clone(),
            wishes: wishes.clone(),
            published,
            notices: notices.clone(),
            tasks: JoinSet::new(),
        };
        let views = Views::new(&settings.agents);
        arguments::warm_up();
        tokio::spawn(hub.run(
            watcher.subscribe(),
            heard_events,
            heard_wishes,
            editors.subscribe(),
            folders.subscribe(),
        ));
        let engine = Self(Arc::new(Inner {
            paths,
            settings: shared_settings,
            said: Mutex::new(Said { file: settings, editor: Value::Null }),
            folders,
            claims: folders::Claims::default(),
            watcher,
            wishes,
            snapshot,
            notices,
            approvals,
            editors,
            askers,
            store,
            once: consent::Once::default(),
            views,
            judge,
            vault,
            context,
        }));
        engine.follow_settings();
        engine
    }

    /// Where this engine keeps its files.
    pub fn paths(&self) -> &Paths {
        &self.0.paths
    }

    pub fn loaded(&self) -> watch::Receiver<Arc<Loaded>> {
        self.0.watcher.subscribe()
    }

    pub fn snapshot(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.0.snapshot.clone()
    }

    /// The newest picture.
    pub fn now(&self) -> Arc<Snapshot> {
        self.0.snapshot.borrow().clone()
    }

    pub fn settings(&self) -> watch::Receiver<Arc<Settings>> {
        self.0.settings.subscribe()
    }

    pub fn notices(&self) -> broadcast::Receiver<Notice> {
        self.0.notices.subscribe()
    }

    /// Whether what is decided and called can be kept.
    pub fn health(&self) -> watch::Receiver<Health> {
        self.0.store.health()
    }

    pub fn approvals(&self) -> &Approvals {
        &self.0.approvals
    }

    pub fn editors(&self) -> &Editors {
        &self.0.editors
    }

    /// What somebody sees of all this, and how freely his calls may run at most.
    pub fn view(&self, requester: &Requester) -> &Arc<View> {
        self.0.views.of(requester)
    }

    /// The workspace folders whose config files count now.
    pub fn folders(&self) -> Vec<Arc<Path>> {
        self.0.folders.borrow().clone()
    }

    /// The workspace folders; their config files count from now on.
    pub async fn set_folders(&self, folders: Vec<PathBuf>) {
        let folders: Vec<Arc<Path>> = folders.into_iter().map(Arc::from).collect();
        self.0.folders.send_replace(folders.clone());
        self.configure_store();
        self.apply_disabled().await.ok();
        let loaded = self.0.watcher.set_folders(folders).await;
        // Whoever asks next sees the servers of these folders.
        self.wish(|done| Wish::Reloaded { loaded, done }).await.ok();
    }

    /// Puts what an editor says over what `config.toml` says; answers what was wrong with it.
    pub fn overlay_settings(&self, words: &Value) -> Vec<String> {
        self.change_settings(|said| said.editor = words.clone())
    }

    /// Takes over what `config.toml` says whenever it is saved, until the engine has gone.
    fn follow_settings(&self) {
        let engine = Arc::downgrade(&self.0);
        let mut file = self.0.watcher.settings_file();
        tokio::spawn(async move {
            let mut known = None;
            while file.changed().await.is_ok() {
                let Some(content) = file.borrow_and_update().clone() else { continue };
                // Without a file, what the engine was started with holds.
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
        let same = self.0.said.lock().unwrap_or_else(PoisonError::into_inner).file == settings;
        if !same {
            tracing::info!("settings read");
            self.change_settings(|said| said.file = settings);
        }
    }

    fn change_settings(&self, change: impl FnOnce(&mut Said)) -> Vec<String> {
        let said = {
            let mut said = self.0.said.lock().unwrap_or_else(PoisonError::into_inner);
            change(&mut said);
            said.clone()
        };
        let mut settings = said.file;
        let problems = if said.editor.is_null() { Vec::new() } else { settings.overlay(&said.editor) };
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

    /// Keeps a value for `${keyring:name}`. One that is kept under this name already is not replaced by another.
    pub async fn keep_secret(&self, name: &str, value: &Secret) -> Result<()> {
        let keyring = self.0.vault.keyring();
        let entry = crate::secrets::keyring_name(name);
        match keyring.get(&entry).await? {
            Some(known) if known == *value => Ok(()),
            Some(_) => Err(Error::Conflict(format!(
                "the keyring holds another value as `{name}`; `mcp-sidecar secret remove {name}` takes it away"
            ))),
            None => keyring.set(&entry, value).await,
        }
    }

    /// Loads the config as if the open buffers were saved.
    pub fn preview(&self, buffers: &BTreeMap<PathBuf, Arc<str>>) -> Loaded {
        self.0.watcher.preview(buffers)
    }

    /// Which of these definitions the user would have to be asked about, if the config were this one.
    pub async fn would_ask(&self, definitions: Vec<Arc<Definition>>, loaded: Arc<Loaded>) -> BTreeSet<ServerName> {
        let judged = definitions.into_iter().map(|definition| async {
            let name = definition.name.clone();
            self.0.judge.would_ask(definition, loaded.clone()).await.then_some(name)
        });
        futures::future::join_all(judged).await.into_iter().flatten().collect()
    }

    /// Reads all config files now; what that changed.
    pub async fn reload(&self) -> Result<Arc<Reload>> {
        let before = self.loaded().borrow().clone();
        let loaded = self.0.watcher.reload().await;
        if Arc::ptr_eq(&before, &loaded) {
            return Ok(Arc::new(plan::reload(&[], &loaded)));
        }
        self.wish(|done| Wish::Reloaded { loaded, done }).await
    }

    /// Stops every server and writes what is still to be written. The process may exit afterwards.
    pub async fn shutdown(&self) {
        let ended = self.wish(|done| Wish::Shutdown { done });
        if tokio::time::timeout(FAREWELL, ended).await.is_err() {
            tracing::warn!("servers did not leave in time; the guardian ends them");
        }
        crate::server::process::end_orphans().await;
        self.0.store.flush().await;
    }

    /// Sends the hub a wish and waits for its answer.
    async fn wish<T: Send + 'static>(&self, wish: impl FnOnce(oneshot::Sender<T>) -> Wish) -> Result<T> {
        self.begin_wish(wish).await?.await
    }

    /// The same in two steps: it is queued when the first is done.
    async fn begin_wish<T: Send + 'static>(
        &self,
        wish: impl FnOnce(oneshot::Sender<T>) -> Wish,
    ) -> Result<BoxFuture<'static, Result<T>>> {
        let gone = || Error::Io("the engine is leaving".to_owned());
        let (done, answer) = oneshot::channel();
        self.0.wishes.send(wish(done)).await.map_err(|_| gone())?;
        Ok(async move { answer.await.map_err(|_| gone()) }.boxed())
    }
}
