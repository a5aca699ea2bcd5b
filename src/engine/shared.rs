//! What the workspaces of one process have in common. Each workspace has its own [`Engine`], with its own servers, config
//! and rules. A question of one workspace can be answered in the editors of all, and a secret is asked for once.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio::sync::{broadcast, mpsc, watch};
use tokio::task::JoinSet;

use super::agents::Agents;
use super::approvals::Approvals;
use super::asking::RunningCalls;
use super::editors::Editors;
use super::environments::FrontEnvironments;
use super::finished_calls::FinishedCall;
use super::hub::Hub;
use super::large_results::LargeResults;
use super::memory::PersistentCache;
use super::telemetry::{Collector, Telemetry};
use super::trust::{SessionTrust, TrustChecker};
use super::vault::Vault;
use super::{Engine, Inner, NOTICE_CAPACITY, QUEUE_CAPACITY, away, consent, folders, host, secret_commands};
use crate::config::Config;
use crate::config::watch::Watcher;
use crate::os;
use crate::paths::{MANAGED_VARIABLE, Paths};
use crate::policy::{AgentAccessTable, Rules, SessionLevels};
use crate::secrets::Keyring;
use crate::server::{Context, SharedServers, StartQueue};
use crate::settings::Settings;
use crate::store::{Options, Store};

/// Cheap to clone; all clones share everything.
#[derive(Clone)]
pub struct Shared {
    pub(super) paths: Paths,
    pub(super) settings: Arc<watch::Sender<Arc<Settings>>>,
    /// The lock is private to this file and never held over an await.
    sources: Arc<Mutex<SettingsSources>>,
    /// Read again with the settings.
    pub(super) views: Arc<watch::Sender<Arc<AgentAccessTable>>>,
    pub(super) agents: Agents,
    pub(super) results: LargeResults,
    pub(super) vault: Vault,
    pub(super) environments: FrontEnvironments,
    pub(super) calls: RunningCalls,
    pub(super) allowed_actions: consent::AllowedActions,
    /// A newer version that is waiting for this process to end.
    pub(super) newer_version: Arc<watch::Sender<Option<String>>>,
    pub(super) editors: Editors,
    approvals: Approvals,
    session_trust: SessionTrust,
    start_mode: StartMode,
    start_queue: Arc<StartQueue>,
    /// The servers that do not depend on the workspace.
    servers: SharedServers,
    last_workspace: Arc<AtomicU64>,
    /// The calls that end in all workspaces.
    pub(super) finished_calls: broadcast::Sender<FinishedCall>,
    pub(super) telemetry: Telemetry,
}

/// Where the settings come from.
#[derive(Clone)]
pub(super) struct SettingsSources {
    /// The content of `config.toml`.
    pub file: Settings,
    /// The editor's settings, which override the file.
    pub editor: Value,
}

/// When servers start, unless their definition says that they start on demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StartMode {
    Immediate,
    OnDemand,
}

impl Shared {
    pub fn new(paths: Paths, settings: Settings) -> Self {
        let keyring = Keyring::open(&paths);
        Self::with(paths, settings, StartMode::Immediate, keyring)
    }

    pub(super) fn with(paths: Paths, settings: Settings, start_mode: StartMode, keyring: Keyring) -> Self {
        let (editors, calls) = (Editors::default(), RunningCalls::default());
        let vault = Vault::new(keyring);
        vault.keyring().allow_file(settings.secrets.file);
        let views = Arc::new(watch::Sender::new(Arc::new(AgentAccessTable::new(&settings))));
        let current = Arc::new(watch::Sender::new(Arc::new(settings.clone())));
        if let Some(ignored) = paths.ignored_variable(std::env::var_os(MANAGED_VARIABLE).as_deref()) {
            tracing::warn!("{ignored}");
        }
        let environments = FrontEnvironments::default();
        let collector = Collector::new(vault.clone(), environments.subscribe(), secret_commands::folder(&paths));
        let telemetry = Telemetry::new(current.subscribe(), collector);
        Self {
            telemetry,
            paths,
            approvals: Approvals::new(editors.clone(), calls.clone(), current.subscribe()),
            settings: current,
            sources: Arc::new(Mutex::new(SettingsSources { file: settings, editor: Value::Null })),
            views,
            agents: Agents::default(),
            results: LargeResults::default(),
            vault,
            environments,
            calls,
            allowed_actions: consent::AllowedActions::default(),
            newer_version: Arc::new(watch::Sender::new(None)),
            editors,
            session_trust: SessionTrust::default(),
            start_mode,
            start_queue: Arc::default(),
            servers: SharedServers::default(),
            last_workspace: Arc::default(),
            finished_calls: broadcast::channel(NOTICE_CAPACITY).0,
        }
    }

    pub fn settings(&self) -> watch::Receiver<Arc<Settings>> {
        self.settings.subscribe()
    }

    /// Gives the memory back that only starts needed, whenever servers have started.
    pub fn trim_after_starts(&self) -> impl Future<Output = ()> + Send + 'static {
        let queue = self.start_queue.clone();
        async move {
            loop {
                queue.settled().await;
                tokio::task::spawn_blocking(os::give_memory_back).await.ok();
            }
        }
    }

    /// Starts an engine whose servers start on first use: for a question about a workspace that no front has open.
    pub fn open_on_demand(&self) -> Engine {
        Self { start_mode: StartMode::OnDemand, ..self.clone() }.open()
    }

    /// Starts the engine of another workspace. It has no folders yet: the front sets them later.
    pub fn open(&self) -> Engine {
        let Self { paths, settings, vault, environments, .. } = self.clone();
        let workspace = self.last_workspace.fetch_add(1, Ordering::Relaxed) + 1;
        let (commands, command_receiver) = mpsc::channel(QUEUE_CAPACITY);
        let (events, event_receiver) = mpsc::channel(QUEUE_CAPACITY);
        let (notices, _) = broadcast::channel(NOTICE_CAPACITY);
        let (published, snapshot) = watch::channel(Arc::default());
        let folders = watch::Sender::new(Vec::new());
        let watcher = Watcher::spawn(paths.clone(), settings.subscribe(), environments.subscribe());
        let options = Options::new(Path::new(""), &settings.borrow());
        let store = Store::open_in_background(&paths.state_dir.join("state.db"), options);
        let approvals = self.approvals.in_workspace(workspace, folders.subscribe());
        let editors = self.editors.in_workspace(workspace);
        let memory = Arc::new(PersistentCache::new(store.clone()));
        let trust_checker = Arc::new(TrustChecker::new(
            store.clone(),
            approvals.clone(),
            vault.clone(),
            watcher.subscribe(),
            folders.subscribe(),
            environments.subscribe(),
            self.session_trust.clone(),
        ));
        let host = host::EngineHost {
            is_shared: false,
            paths,
            approvals: approvals.clone(),
            editors: editors.clone(),
            settings: settings.subscribe(),
            folders: folders.subscribe(),
            environments: environments.subscribe(),
            vault,
            store: store.clone(),
            trust_checker: trust_checker.clone(),
            commands: commands.clone(),
        };
        let shared_host = host::EngineHost { is_shared: true, approvals: self.approvals.clone(), ..host.clone() };
        let context = Context {
            cache: memory.clone(),
            on_demand: self.start_mode == StartMode::OnDemand,
            start_queue: self.start_queue.clone(),
            ..Context::new(settings.subscribe(), Arc::new(host), events)
        };
        let hub = Hub {
            slots: BTreeMap::new(),
            applied: Arc::default(),
            last_reload: Arc::default(),
            rules: Arc::new(Rules::new(&Config::default(), &SessionLevels::default(), &[])),
            levels: SessionLevels::default(),
            usage: Arc::default(),
            generation: 0,
            trust_checker: trust_checker.clone(),
            memory,
            store: store.clone(),
            pending_reloads: Vec::new(),
            pending_checks: Vec::new(),
            is_gathering: false,
            context: context.clone(),
            shared_servers: self.servers.clone(),
            shared_host: Arc::new(shared_host),
            commands: commands.clone(),
            published,
            notices: notices.clone(),
            tasks: JoinSet::new(),
        };
        tokio::spawn(hub.run(
            watcher.subscribe(),
            event_receiver,
            command_receiver,
            editors.subscribe(),
            folders.subscribe(),
            environments.subscribe(),
        ));
        let engine = Engine(Arc::new(Inner {
            workspace,
            shared: self.clone(),
            folders,
            claims: folders::Claims::default(),
            watcher,
            commands,
            snapshot,
            notices,
            approvals,
            editors,
            denials: consent::RecentDenials::default(),
            absence: away::Absence::default(),
            store,
            once: consent::OnceTracker::default(),
            trust_checker,
            context,
        }));
        engine.follow_settings();
        engine.follow_usage();
        engine.follow_absence();
        engine
    }

    /// Whether these are the settings of `config.toml` that are in effect.
    pub(super) fn has_read(&self, settings: &Settings) -> bool {
        let file = &self.sources.lock().unwrap_or_else(PoisonError::into_inner).file;
        file == settings && file.stated() == settings.stated()
    }

    /// Returns what is wrong with the settings of the editor.
    pub(super) fn change_settings(&self, change: impl FnOnce(&mut SettingsSources)) -> Vec<String> {
        let sources = {
            let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
            change(&mut sources);
            sources.clone()
        };
        let mut settings = sources.file;
        let problems = if sources.editor.is_null() { Vec::new() } else { settings.overlay(&sources.editor) };
        self.vault.keyring().allow_file(settings.secrets.file);
        let before = self.settings.borrow().clone();
        if (&before.agents, &before.sets) != (&settings.agents, &settings.sets) {
            self.views.send_replace(Arc::new(AgentAccessTable::new(&settings)));
        }
        self.settings.send_replace(Arc::new(settings));
        problems
    }
}
