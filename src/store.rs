//! The state database: the user's decisions, the call log, and facts about servers.
//!
//! One thread owns the connection; a [`Store`] sends it work. Decisions are also cached in memory, so that a lookup
//! does not involve that thread. Several engines may share the file: a small file next to it grows with every decision,
//! and an engine that notices that reads the decisions again. If the file cannot be written, decisions are kept in
//! memory, [`Store::health`] reports it, and they are written as soon as possible. Session decisions are never written.

mod agent_figures;
mod calls;
mod chain;
mod database;
mod decisions;
mod file;
mod launch_facts;
mod owner;
mod stored_text;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

pub use agent_figures::{AgentFigures, AllAgentFigures, ToolCalls};
pub use calls::{CallQuery, ToolMetrics};
pub use chain::ChainReport;
pub use decisions::Decisions;

use crate::model::{CallRecord, Error, RawJson, Result, ServerName, Timestamp};
use crate::paths::in_main_checkout;
use crate::policy::grants::{self, Grant, GrantMatch, GrantQuery, GrantScope};
use crate::policy::trust::{Fingerprint, TrustKey};
use crate::settings::Settings;
use decisions::Change;
use file::Files;
use launch_facts::Fact;
use owner::{Job, Owner};

/// How many call records can wait to be written. After that, a finished call waits for the database.
const MAX_QUEUED_RECORDS: usize = 8_192;
const MAX_QUEUED_JOBS: usize = 1_024;
/// How long a finished call waits before its record is counted as lost.
const PUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// A handle to the state database. Cheap to clone. With the last one, the thread writes what is left and ends.
#[derive(Clone)]
pub struct Store {
    jobs: mpsc::Sender<Job>,
    shared: Arc<Shared>,
}

/// Shared by the handles and the owner. The locks are private to the store, held for a copy or a push, and never over
/// an await.
struct Shared {
    files: Files,
    /// Can change at run time: an editor sets the workspace after the store is open.
    options: RwLock<Arc<Options>>,
    /// Set when the file has been opened, or opening it has failed.
    opened: CancellationToken,
    decisions: RwLock<Arc<Decisions>>,
    /// Length of the growing file when the decisions were last read.
    seen: AtomicU64,
    session: RwLock<Vec<Arc<Grant>>>,
    records: Mutex<Vec<FinishedCall>>,
    facts: Mutex<Vec<Fact>>,
    room: Notify,
    health: watch::Sender<Health>,
}

/// How the store works.
#[derive(Debug, Clone)]
pub struct Options {
    /// The canonical path of the workspace. Calls belong to it.
    pub project: PathBuf,
    /// The same folder in the main checkout. Project grants belong to it, and so hold in all worktrees.
    pub main: PathBuf,
    pub strict: bool,
    pub keep_days: u32,
    pub record_bytes: usize,
}

impl Options {
    pub fn new(project: &Path, settings: &Settings) -> Self {
        Self {
            project: crate::paths::canonical(project),
            main: in_main_checkout(project),
            strict: settings.audit.strict,
            keep_days: settings.audit.keep_days,
            record_bytes: settings.limits.record_bytes,
        }
    }
}

/// Whether the database works.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Health {
    /// Why nothing can be written now. Decisions are kept in memory.
    pub problem: Option<String>,
    /// A one-time event: an unusable file was moved.
    pub notice: Option<String>,
    /// Counts decisions that could not be saved at once.
    pub unsaved: u64,
    /// Call records that could not be saved.
    pub lost: u64,
}

impl Health {
    pub fn is_good(&self) -> bool {
        self.problem.is_none()
    }

    /// The problem, and what it means for the user.
    pub fn describe(&self) -> Option<String> {
        let problem = self.problem.as_ref()?;
        Some(format!("{problem}. Until this is fixed, your decisions are lost when mcp-sidecar stops"))
    }
}

/// Whether a decision is saved on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Saved {
    ToDisk,
    /// Only in memory, and why.
    InMemory(String),
}

/// A call for the log. It is masked and truncated on the store's thread, so the call does not wait for that.
#[derive(Debug, Clone)]
pub struct FinishedCall {
    /// Without `arguments` and `result`.
    pub record: Arc<CallRecord>,
    pub arguments: Arc<Map<String, Value>>,
    /// The arguments that were requested, if the user changed them.
    pub requested: Option<Arc<Map<String, Value>>>,
    pub result: Option<RawJson>,
}

/// The row that a strict log wrote before the call; `None` otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[must_use = "the row stays without an outcome until the call is finished"]
pub struct StartedRecord(Option<i64>);

impl Store {
    /// Opens or creates the database at `path` and waits until that is done.
    pub async fn open(path: &Path, options: Options) -> Self {
        let store = Self::open_in_background(path, options);
        store.shared.opened.cancelled().await;
        store
    }

    /// Opens the database without waiting; the first use waits. Never fails: [`Store::health`] reports problems.
    pub fn open_in_background(path: &Path, options: Options) -> Self {
        let (jobs, receiver) = mpsc::channel(MAX_QUEUED_JOBS);
        let shared = Arc::new(Shared {
            files: Files::new(path),
            options: RwLock::new(Arc::new(options)),
            opened: CancellationToken::new(),
            decisions: RwLock::default(),
            seen: AtomicU64::new(0),
            session: RwLock::default(),
            records: Mutex::default(),
            facts: Mutex::default(),
            room: Notify::new(),
            health: watch::Sender::new(Health::default()),
        });
        let store = Self { jobs, shared: shared.clone() };
        let opened = shared.opened.clone();
        let started = std::thread::Builder::new().name("store".to_owned()).spawn(move || {
            let mut owner = Owner::new(shared);
            owner.open();
            opened.cancel();
            owner.run(receiver);
        });
        if let Err(error) = started {
            let problem = format!("cannot start the thread of the state database: {error}");
            store.shared.health.send_modify(|health| health.problem = Some(problem));
            store.shared.opened.cancel();
        }
        store
    }

    pub fn health(&self) -> watch::Receiver<Health> {
        self.shared.health.subscribe()
    }

    pub fn is_strict(&self) -> bool {
        self.shared.options().strict
    }

    /// Changes the options.
    pub fn configure(&self, options: Options) {
        if let Ok(mut current) = self.shared.options.write() {
            *current = Arc::new(options);
        }
    }

    /// All saved decisions, including those of other engines.
    pub async fn decisions(&self) -> Arc<Decisions> {
        self.shared.opened.cancelled().await;
        if self.shared.files.version() != self.shared.seen.load(Ordering::Acquire) {
            self.run(Owner::reload).await.ok();
        }
        self.shared.cached_decisions()
    }

    pub async fn trust(&self, key: TrustKey, fingerprint: Arc<Fingerprint>) -> Saved {
        self.save(Change::Trust(key, fingerprint)).await
    }

    /// Trusts several definitions at once.
    pub async fn trust_all(&self, trusted: Vec<(TrustKey, Arc<Fingerprint>)>) -> Saved {
        let changes = trusted.into_iter().map(|(key, fingerprint)| Change::Trust(key, fingerprint)).collect();
        self.save_all(changes).await
    }

    /// Saves that the user denied exactly this definition.
    pub async fn distrust(&self, key: TrustKey, fingerprint: &Fingerprint) -> Saved {
        self.save(Change::Distrust(key, fingerprint.digest.clone())).await
    }

    /// Deletes all decisions about a server of a project. The user is asked again.
    pub async fn forget_trust(&self, key: TrustKey) -> Saved {
        self.save(Change::Forget(key)).await
    }

    /// Finds an earlier answer that covers a call.
    pub async fn find_grant(&self, query: &GrantQuery<'_>) -> GrantMatch {
        let kept = self.decisions().await;
        let session = self.shared.session();
        grants::find(session.iter().chain(&kept.grants), query)
    }

    /// Saves an answer. One for the session stays in memory.
    pub async fn add_grant(&self, grant: Grant) -> Saved {
        let grant = Arc::new(grant);
        if grant.scope != GrantScope::Session {
            return self.save(Change::Grant(grant)).await;
        }
        self.shared.change_session(|session| {
            session.retain(|older| !grant.replaces(older));
            session.push(grant);
        });
        Saved::ToDisk
    }

    /// The grants that apply in this workspace, oldest first.
    pub async fn grants(&self) -> Vec<Arc<Grant>> {
        let kept = self.decisions().await;
        let options = self.shared.options();
        let here = |grant: &&Arc<Grant>| grant.project.as_deref().is_none_or(|project| project == options.main);
        let mut grants: Vec<_> = kept.grants.iter().filter(here).cloned().collect();
        grants.extend(self.shared.session());
        grants.sort_by(|a, b| (a.since, &a.id).cmp(&(b.since, &b.id)));
        grants
    }

    /// Revokes one grant. `None` if it does not exist.
    pub async fn revoke_grant(&self, id: &str) -> Option<Saved> {
        let known = self.grants().await.iter().any(|grant| grant.id == id);
        if known { Some(self.revoke(vec![id.to_owned()]).await) } else { None }
    }

    /// Revokes all grants that apply in this workspace. Returns how many.
    pub async fn revoke_grants(&self) -> (usize, Saved) {
        let ids: Vec<String> = self.grants().await.iter().map(|grant| grant.id.clone()).collect();
        let count = ids.len();
        (count, if count > 0 { self.revoke(ids).await } else { Saved::ToDisk })
    }

    async fn revoke(&self, ids: Vec<String>) -> Saved {
        self.shared.change_session(|session| session.retain(|grant| !ids.contains(&grant.id)));
        self.save(Change::Revoke(ids)).await
    }

    /// In a strict log, writes the row of a call before it is sent. Otherwise does nothing.
    pub async fn begin_call(&self, call: FinishedCall) -> Result<StartedRecord> {
        if !self.is_strict() {
            return Ok(StartedRecord(None));
        }
        let row = self.run(move |owner| owner.begin(&call)).await.and_then(|row| row);
        row.map(|row| StartedRecord(Some(row))).map_err(|why| Error::Io(format!("cannot write the audit log: {why}")))
    }

    /// Writes the outcome of a call: at once in a strict log, otherwise with the next batch.
    pub async fn finish_call(&self, started: StartedRecord, call: FinishedCall) {
        match started.0 {
            Some(row) => {
                let written = Box::pin(self.run(move |owner| owner.finish(row, &call))).await.and_then(|done| done);
                if let Err(why) = written {
                    tracing::error!(%why, "the outcome of a call could not be written to the audit log");
                    self.shared.count_lost(1);
                }
            }
            None => {
                // There is nearly always room. The future of each call would have space for the rest.
                if let Some(call) = self.push(call) {
                    Box::pin(self.push_later(call)).await;
                }
                if self.is_strict() {
                    // A denied call has no row yet. Whatever runs is preceded by the batch.
                    Box::pin(self.flush()).await;
                }
            }
        }
    }

    /// Adds a record to the next batch. Returns it if there is no room.
    fn push(&self, call: FinishedCall) -> Option<FinishedCall> {
        let mut call = Some(call);
        if self.shared.push(&mut call) {
            self.jobs.try_send(Job::Records).ok();
        }
        call
    }

    /// The same as soon as there is room.
    async fn push_later(&self, mut call: FinishedCall) {
        let waited = tokio::time::timeout(PUSH_TIMEOUT, async {
            loop {
                let room = self.shared.room.notified();
                match self.push(call) {
                    Some(rejected) => call = rejected,
                    None => return,
                }
                room.await;
            }
        });
        if waited.await.is_err() {
            self.shared.count_lost(1);
        }
    }

    /// Waits until all records so far are written.
    pub async fn flush(&self) {
        self.run(|_| ()).await.ok();
    }

    /// Calls of this workspace, newest first.
    pub async fn calls(&self, query: CallQuery) -> Result<Vec<CallRecord>> {
        self.run(move |owner| owner.calls(&query)).await.and_then(|rows| rows).map_err(read_error)
    }

    /// Compares the records of this workspace with their chain. Other work does not wait for this.
    pub async fn verify_calls(&self) -> Result<ChainReport> {
        let shared = self.shared.clone();
        // Before the check, all records so far are written.
        let head = self.run(|owner| owner.head.clone()).await.map_err(read_error)?;
        let checked = tokio::task::spawn_blocking(move || {
            let project = decisions::path_text(&shared.options().project);
            chain::verify(&mut database::open_to_read(&shared.files)?, &project, head.as_ref())
        });
        let checked = checked.await.map_err(|error| read_error(error.to_string()))?;
        checked.map_err(|error| read_error(database::reason(&error)))
    }

    /// Counts and percentiles of the calls of this workspace, by server and tool.
    pub async fn metrics(&self, server: Option<String>) -> Result<Vec<ToolMetrics>> {
        self.run(move |owner| owner.metrics(server.as_deref())).await.and_then(|rows| rows).map_err(read_error)
    }

    /// What agents did since a time, in all workspaces.
    pub async fn agent_figures(&self, since: Timestamp) -> Result<AllAgentFigures> {
        self.run(move |owner| owner.agent_figures(since)).await.and_then(|rows| rows).map_err(read_error)
    }

    /// How often each tool was called since a time.
    pub async fn tool_calls(&self, since: Timestamp) -> Result<Vec<(ServerName, String, ToolCalls)>> {
        self.run(move |owner| owner.tool_calls(since)).await.and_then(|rows| rows).map_err(read_error)
    }

    /// Saves facts about a launch (by [`Fingerprint::launch`]): its MCP version, its tools. Facts that arrive while others
    /// are written are written together.
    pub async fn remember(&self, launch: &str, facts: impl IntoIterator<Item = (&'static str, String)>) {
        let facts = facts.into_iter().map(|(what, value)| Fact { launch: launch.to_owned(), what, value });
        self.shared.facts.lock().unwrap_or_else(PoisonError::into_inner).extend(facts);
        if let Err(why) = self.run(Owner::remember).await.and_then(|kept| kept) {
            tracing::debug!(%why, "not remembered");
        }
    }

    pub async fn recall<const N: usize>(&self, launch: &str, facts: [&'static str; N]) -> [Option<String>; N] {
        let launch = launch.to_owned();
        let recalled = self.run(move |owner| facts.map(|what| owner.recall(&launch, what))).await;
        recalled.unwrap_or_else(|_| facts.map(|_| None))
    }

    /// Whether the user must still be notified that their servers now run in private folders. True only once.
    pub async fn take_private_folders_notice(&self) -> bool {
        let taken = self.run(|owner| {
            owner.write("NORMAL", |transaction| {
                transaction.execute("DELETE FROM notices WHERE name = ?1", [database::PRIVATE_FOLDERS])
            })
        });
        matches!(taken.await, Ok(Ok(1..)))
    }

    async fn save(&self, change: Change) -> Saved {
        self.save_all(vec![change]).await
    }

    async fn save_all(&self, changes: Vec<Change>) -> Saved {
        let saved = self.run(move |owner| owner.save(changes)).await.unwrap_or_else(Saved::InMemory);
        if saved != Saved::ToDisk {
            self.shared.health.send_modify(|health| health.unsaved += 1);
        }
        saved
    }

    /// Runs something on the owner's thread and waits for the result.
    async fn run<T: Send + 'static>(&self, work: impl FnOnce(&mut Owner) -> T + Send + 'static) -> Result<T, String> {
        let (sender, answer) = oneshot::channel();
        let job = Job::Run(Box::new(move |owner| {
            sender.send(work(owner)).ok();
        }));
        let gone = || "the state database has stopped".to_owned();
        self.jobs.send(job).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())
    }
}

fn read_error(why: String) -> Error {
    Error::Io(format!("cannot read the state database: {why}"))
}

impl Shared {
    fn options(&self) -> Arc<Options> {
        self.options.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn cached_decisions(&self) -> Arc<Decisions> {
        self.decisions.read().map(|cached_decisions| cached_decisions.clone()).unwrap_or_default()
    }

    fn publish(&self, decisions: Decisions) {
        if let Ok(mut cached_decisions) = self.decisions.write() {
            *cached_decisions = Arc::new(decisions);
        }
    }

    fn session(&self) -> Vec<Arc<Grant>> {
        self.session.read().map(|session| session.clone()).unwrap_or_default()
    }

    fn change_session(&self, change: impl FnOnce(&mut Vec<Arc<Grant>>)) {
        if let Ok(mut session) = self.session.write() {
            change(&mut session);
        }
    }

    /// Takes the record if there is room. Returns whether the owner must be woken.
    fn push(&self, call: &mut Option<FinishedCall>) -> bool {
        let Ok(mut records) = self.records.lock() else { return false };
        if records.len() >= MAX_QUEUED_RECORDS {
            return false;
        }
        records.extend(call.take());
        records.len() == 1
    }

    fn take_records(&self) -> Vec<FinishedCall> {
        let records = self.records.lock().map(|mut records| std::mem::take(&mut *records)).unwrap_or_default();
        self.room.notify_waiters();
        records
    }

    fn count_lost(&self, count: u64) {
        self.health.send_modify(|health| health.lost += count);
    }
}

#[cfg(test)]
mod tests;
