//! The engine: all servers, the gate to every tool, and the approvals. Fronts hold nothing else.
//!
//! An [`Engine`] is a handle. The work happens in the hub, in one actor per server, and in one task per call. Fronts
//! watch its state (`loaded`, `snapshot`, `approvals`) and translate its answers.

pub(crate) mod agents;
pub(crate) mod answers;
pub(crate) mod approvals;
pub(crate) mod arguments;
pub(crate) mod asking;
mod auth;
pub(crate) mod away;
pub(crate) mod change;
pub(crate) mod consent;
pub(crate) mod costs;
pub(crate) mod doctor;
pub(crate) mod edit;
pub(crate) mod editors;
pub(crate) mod environments;
mod exchange;
mod finished_calls;
pub(crate) mod folders;
pub mod gate;
mod host;
mod hub;
pub(crate) mod inspect;
mod keyring_consent;
pub(crate) mod large_results;
pub(crate) mod manage;
mod memory;
pub(crate) mod plan;
mod prompt;
pub(crate) mod reads;
mod record;
mod secret_commands;
pub(crate) mod server_actions;
mod shared;
mod slot;
pub(crate) mod snapshot;
mod sources;
mod subjects;
mod telemetry;
mod trust;
pub(crate) mod turns;
pub(crate) mod upgrade;
pub(crate) mod usage;
mod vault;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;
use tokio::sync::{broadcast, mpsc, oneshot, watch};

pub use self::shared::Shared;
pub use self::trust::record_launches;
use crate::config::watch::Watcher;
use crate::config::{Content, Definition, Loaded};
use crate::model::{CallId, CallRecord, Error, LogLine, Requester, Result, ServerName, UnknownNotification};
use crate::paths::Paths;
use crate::policy::{AgentAccess, AgentAccessTable};
use crate::secrets::Keyring;
pub use crate::server::Action;
use crate::server::Context;
use crate::settings::{Settings, SettingsFile};
use crate::store::{Health, Options, Store};
use crate::text::Secret;
use agents::Agents;
use approvals::Approvals;
use asking::AgentConnection;
use editors::Editors;
use hub::HubCommand;
use large_results::LargeResults;
use plan::Reload;
use shared::{SettingsSources, StartMode};
use snapshot::Snapshot;
use trust::TrustChecker;

/// How many commands and events can be queued for the hub. It handles each in microseconds, so this is for bursts.
const QUEUE_CAPACITY: usize = 1_024;
/// A front that falls further behind than this misses notices and reads the snapshot instead.
const NOTICE_CAPACITY: usize = 4_096;
/// How long a shutdown may take. After that, the guardian ends the servers.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// A one-time event. State is never sent this way: it is in the snapshot.
#[derive(Debug, Clone)]
pub enum Notice {
    Log {
        server: ServerName,
        line: LogLine,
        /// The calls that it may be about. Only agents with all of them may read it.
        calls: Vec<CallId>,
    },
    ResourceUpdated {
        server: ServerName,
        uri: String,
    },
    /// A notification that we do not know, for agents that may.
    Unknown {
        server: ServerName,
        notification: Arc<UnknownNotification>,
        /// As for a log line.
        calls: Vec<CallId>,
    },
    Reloaded(Arc<Reload>),
    CallFinished(Arc<CallRecord>),
}

/// The handle that fronts hold. Cheap to clone.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

struct Inner {
    /// Identifies the workspace in this process.
    workspace: u64,
    /// What it has in common with the engines of other workspaces.
    shared: Shared,
    folders: watch::Sender<Vec<Arc<Path>>>,
    claims: folders::Claims,
    watcher: Watcher,
    commands: mpsc::Sender<HubCommand>,
    snapshot: watch::Receiver<Arc<Snapshot>>,
    notices: broadcast::Sender<Notice>,
    approvals: Approvals,
    editors: Editors,
    denials: consent::RecentDenials,
    absence: away::Absence,
    store: Store,
    once: consent::OnceTracker,
    trust_checker: Arc<TrustChecker>,
    /// Shared by all servers of this engine, and by test runs of a definition.
    context: Context,
}

impl Engine {
    /// Starts an engine without workspace folders. The front sets them later.
    pub fn start(paths: Paths, settings: Settings) -> Self {
        Shared::new(paths, settings).open()
    }

    /// The same, but does not use the user's keyring: for temporary workspaces.
    pub fn start_isolated(paths: Paths, settings: Settings) -> Self {
        let keyring = Keyring::without_system(&paths);
        Shared::with(paths, settings, StartMode::Immediate, keyring).open()
    }

    /// The same, but starts each server on first use: for a front that needs one server or only reads the config.
    pub fn start_on_demand(paths: Paths, settings: Settings) -> Self {
        let keyring = Keyring::open(&paths);
        Shared::with(paths, settings, StartMode::OnDemand, keyring).open()
    }

    /// The paths of this engine's files.
    pub fn paths(&self) -> &Paths {
        &self.0.shared.paths
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
        self.0.shared.settings.subscribe()
    }

    pub fn notices(&self) -> broadcast::Receiver<Notice> {
        self.0.notices.subscribe()
    }

    /// `config.toml` as it was last read; `None` before that.
    pub fn settings_file(&self) -> watch::Receiver<Option<Content>> {
        self.0.watcher.settings_file()
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
    pub fn view(&self, requester: &Requester) -> Arc<AgentAccess> {
        self.0.shared.views.borrow().of(requester).clone()
    }

    /// The same for one connection of an agent, which may be limited to a set of tools.
    pub fn view_of(&self, requester: &Requester, connection: Option<&AgentConnection>) -> Arc<AgentAccess> {
        let views = self.0.shared.views.borrow();
        let view = views.of(requester);
        let set = connection.and_then(|connection| connection.set.clone().or_else(|| self.agents().set_of(connection)));
        set.map_or_else(|| view.clone(), |set| views.with_set(view, &set))
    }

    /// Sent when the settings change what agents see.
    pub fn views(&self) -> watch::Receiver<Arc<AgentAccessTable>> {
        self.0.shared.views.subscribe()
    }

    /// The number of running calls, sent whenever it changes.
    pub fn running_calls(&self) -> watch::Receiver<usize> {
        self.0.shared.calls.count()
    }

    /// The agents that are connected.
    pub fn agents(&self) -> &Agents {
        &self.0.shared.agents
    }

    /// The large results that agents got only in part.
    pub fn large_results(&self) -> &LargeResults {
        &self.0.shared.results
    }

    /// The workspace folders whose config files are in effect.
    pub fn folders(&self) -> Vec<Arc<Path>> {
        self.0.folders.borrow().clone()
    }

    /// Sets the workspace folders and applies their config files.
    pub async fn set_folders(&self, folders: Vec<PathBuf>) {
        self.0.shared.environments.open(&folders);
        let folders: Vec<Arc<Path>> = folders.into_iter().map(Arc::from).collect();
        self.0.folders.send_replace(folders.clone());
        self.configure_store();
        self.apply_disabled().await.ok();
        self.0.watcher.set_folders(folders).await;
        // The next request sees the servers of these folders.
        self.send_command(|done| HubCommand::ApplyConfig { done }).await.ok();
    }

    /// Overrides `config.toml` with the settings of an editor. Returns what is wrong with them.
    pub fn overlay_settings(&self, settings: &Value) -> Vec<String> {
        self.change_settings(|sources| sources.editor = settings.clone())
    }

    /// Applies `config.toml` whenever it is saved, until the engine is dropped.
    fn follow_settings(&self) {
        let engine = Arc::downgrade(&self.0);
        let (mut file, mut settings) = (self.0.watcher.settings_file(), self.settings());
        tokio::spawn(async move {
            let mut known = None;
            loop {
                tokio::select! {
                    changed = file.changed() => if changed.is_err() { return },
                    // The editor of another workspace may have changed them.
                    Ok(()) = settings.changed() => {
                        let Some(engine) = engine.upgrade().map(Self) else { return };
                        engine.configure_store();
                        continue;
                    }
                }
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
        let SettingsFile { settings, problems, .. } = Settings::from_file(&self.0.shared.paths);
        for problem in problems {
            tracing::warn!(problem = problem.message, "config.toml");
        }
        if !self.0.shared.has_read(&settings) {
            tracing::info!("settings read");
            self.change_settings(|sources| sources.file = settings);
        }
    }

    fn change_settings(&self, change: impl FnOnce(&mut SettingsSources)) -> Vec<String> {
        let problems = self.0.shared.change_settings(change);
        self.configure_store();
        problems
    }

    fn configure_store(&self) {
        let project = self.0.folders.borrow().first().cloned();
        let project = project.as_deref().unwrap_or(Path::new(""));
        self.0.store.configure(Options::new(project, &self.0.shared.settings.borrow()));
    }

    /// Stores a value for `${keyring:name}`. Never replaces a different value.
    pub async fn store_secret(&self, name: &str, value: &Secret) -> Result<()> {
        let keyring = self.0.shared.vault.keyring();
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

    /// Reads all config files now, and checks definitions again that wait for trust. Returns what changed.
    pub async fn reload(&self) -> Result<Arc<Reload>> {
        let before = self.loaded().borrow().clone();
        let loaded = self.0.watcher.reload().await;
        let applied = self.send_command(|done| HubCommand::ApplyConfig { done }).await?;
        match Arc::ptr_eq(&before, &loaded) {
            true => Ok(Arc::new(plan::reload(&[], &loaded))),
            false => Ok(applied),
        }
    }

    /// Stops every server and flushes the store. The process can exit afterwards.
    pub async fn shutdown(&self) {
        self.close().await;
        crate::server::process::end_orphans().await;
    }

    /// The same, if other engines of this process keep running.
    pub async fn close(&self) {
        let ended = self.send_command(|done| HubCommand::Shutdown { done });
        if tokio::time::timeout(SHUTDOWN_TIMEOUT, ended).await.is_err() {
            tracing::warn!("servers did not stop in time; the guardian kills them");
        }
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
