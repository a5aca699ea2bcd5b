//! The state database: the user's decisions, the call log, and what is remembered about servers.
//!
//! One thread owns the connection; everybody else holds a [`Store`] and sends it work. Decisions are also kept as a
//! picture in memory, so that looking one up costs no trip to that thread. Several engines may share the file: a small
//! file beside it grows with every decision, and an engine that sees it grown reads the decisions anew.
//! When the file cannot be written, decisions are kept in memory, [`Store::health`] says so, and they are written as
//! soon as that works again. What lives only as long as the session never enters the file.

mod calls;
mod database;
mod decisions;
mod file;
mod owner;
mod remembered;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

pub use calls::{CallQuery, ToolMetrics};
pub use decisions::Decisions;

use crate::model::{CallRecord, Error, Result};
use crate::policy::grants::{self, Asked, Found, Grant, GrantScope};
use crate::policy::trust::{Fingerprint, TrustKey};
use crate::settings::Settings;
use decisions::Change;
use file::Files;
use owner::{Job, Owner};

/// Call records waiting to be written. Beyond that, a finished call waits for the database a moment.
const WAITING_RECORDS: usize = 8_192;
const WAITING_JOBS: usize = 1_024;
/// How long a finished call waits for room before its record is given up and counted as lost.
const PATIENCE: Duration = Duration::from_secs(5);

/// The handle on the state database. Cheap to clone; the thread ends, after writing what is left, with the last one.
#[derive(Clone)]
pub struct Store {
    jobs: mpsc::Sender<Job>,
    shared: Arc<Shared>,
}

/// What the handles and the owner look at together. The locks are private to the store, held for a copy or a push,
/// and never over an await.
struct Shared {
    files: Files,
    /// May change while the engine runs: an editor names the workspace after the store is open.
    options: RwLock<Arc<Options>>,
    /// Set when the file has been opened, or cannot be.
    opened: CancellationToken,
    decisions: RwLock<Arc<Decisions>>,
    /// Length of the growing file when the decisions were last read.
    seen: AtomicU64,
    session: RwLock<Vec<Arc<Grant>>>,
    records: Mutex<Vec<FinishedCall>>,
    room: Notify,
    health: watch::Sender<Health>,
}

/// How the store is run.
#[derive(Debug, Clone)]
pub struct Options {
    /// The real path of the workspace; calls and project grants belong to it.
    pub project: PathBuf,
    pub strict: bool,
    pub keep_days: u32,
    pub record_bytes: usize,
}

impl Options {
    pub fn new(project: &Path, settings: &Settings) -> Self {
        Self {
            project: crate::policy::trust::real(project),
            strict: settings.audit.strict,
            keep_days: settings.audit.keep_days,
            record_bytes: settings.limits.record_bytes,
        }
    }
}

/// Whether the database works, in words for people.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Health {
    /// Why nothing can be written now; decisions hold until the process ends.
    pub problem: Option<String>,
    /// Something that happened once and stays worth knowing: a broken file was set aside.
    pub notice: Option<String>,
    /// Call records that could not be kept.
    pub lost: u64,
}

impl Health {
    pub fn is_good(&self) -> bool {
        self.problem.is_none()
    }
}

/// Whether a decision survives the end of the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Saved {
    ToDisk,
    /// Only in memory, and why.
    InMemory(String),
}

/// A call on its way into the log. Masking and cutting happen on the store's thread, off the path of the call.
#[derive(Debug, Clone)]
pub struct FinishedCall {
    /// Without `arguments` and `result`.
    pub record: CallRecord,
    pub arguments: Arc<Map<String, Value>>,
    pub result: Option<Arc<RawValue>>,
}

/// The row that a strict log wrote before the call; nothing otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[must_use = "the row stays without an outcome until the call is finished"]
pub struct Begun(Option<i64>);

impl Store {
    /// Opens the database at `path`, or makes it, and waits until that is done.
    pub async fn open(path: &Path, options: Options) -> Self {
        let store = Self::begin(path, options);
        store.shared.opened.cancelled().await;
        store
    }

    /// Opens the database without waiting for it; whoever needs it first waits. Never fails: what is wrong stands in
    /// [`Store::health`].
    pub fn begin(path: &Path, options: Options) -> Self {
        let (jobs, receiver) = mpsc::channel(WAITING_JOBS);
        let shared = Arc::new(Shared {
            files: Files::new(path),
            options: RwLock::new(Arc::new(options)),
            opened: CancellationToken::new(),
            decisions: RwLock::default(),
            seen: AtomicU64::new(0),
            session: RwLock::default(),
            records: Mutex::default(),
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
            let problem = format!("the state database has no thread: {error}");
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

    /// Other options from now on.
    pub fn configure(&self, options: Options) {
        if let Ok(mut current) = self.shared.options.write() {
            *current = Arc::new(options);
        }
    }

    /// All decisions that are kept, those of other engines included.
    pub async fn decisions(&self) -> Arc<Decisions> {
        self.shared.opened.cancelled().await;
        if self.shared.files.version() != self.shared.seen.load(Ordering::Acquire) {
            self.run(Owner::reload).await.ok();
        }
        self.shared.picture()
    }

    pub async fn trust(&self, key: TrustKey, fingerprint: Arc<Fingerprint>) -> Saved {
        self.save(Change::Trust(key, fingerprint)).await
    }

    /// Remembers a no to exactly this definition.
    pub async fn distrust(&self, key: TrustKey, fingerprint: &Fingerprint) -> Saved {
        self.save(Change::Distrust(key, fingerprint.digest.clone())).await
    }

    /// Takes back whatever was said about a server of a project: it is asked about again.
    pub async fn forget_trust(&self, key: TrustKey) -> Saved {
        self.save(Change::Forget(key)).await
    }

    /// Looks for an earlier answer that covers a call.
    pub async fn find_grant(&self, asked: &Asked<'_>) -> Found {
        let kept = self.decisions().await;
        let session = self.shared.session();
        grants::find(session.iter().chain(&kept.grants), asked)
    }

    /// Keeps an answer; one of session scope in memory only.
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

    /// The grants that count in this workspace, oldest first.
    pub async fn grants(&self) -> Vec<Arc<Grant>> {
        let kept = self.decisions().await;
        let options = self.shared.options();
        let here = |grant: &&Arc<Grant>| grant.project.as_deref().is_none_or(|project| project == options.project);
        let mut grants: Vec<_> = kept.grants.iter().filter(here).cloned().collect();
        grants.extend(self.shared.session());
        grants.sort_by(|a, b| (a.since, &a.id).cmp(&(b.since, &b.id)));
        grants
    }

    /// Takes one grant back. `false` when there is none of that id.
    pub async fn revoke_grant(&self, id: &str) -> bool {
        let known = self.grants().await.iter().any(|grant| grant.id == id);
        if known {
            self.revoke(vec![id.to_owned()]).await;
        }
        known
    }

    /// Takes all grants back that count in this workspace, and says how many there were.
    pub async fn revoke_grants(&self) -> usize {
        let ids: Vec<String> = self.grants().await.iter().map(|grant| grant.id.clone()).collect();
        let count = ids.len();
        if count > 0 {
            self.revoke(ids).await;
        }
        count
    }

    async fn revoke(&self, ids: Vec<String>) {
        self.shared.change_session(|session| session.retain(|grant| !ids.contains(&grant.id)));
        self.save(Change::Revoke(ids)).await;
    }

    /// In a strict log, writes the row of a call before the call is sent; otherwise does nothing.
    pub async fn begin_call(&self, call: FinishedCall) -> Result<Begun> {
        if !self.is_strict() {
            return Ok(Begun(None));
        }
        let row = self.run(move |owner| owner.begin(&call)).await.and_then(|row| row);
        row.map(|row| Begun(Some(row))).map_err(|why| Error::Io(format!("audit log cannot be written: {why}")))
    }

    /// Writes what came of a call: at once in a strict log, with the next batch otherwise.
    pub async fn finish_call(&self, begun: Begun, call: FinishedCall) {
        match begun.0 {
            Some(row) => {
                let written = self.run(move |owner| owner.finish(row, &call)).await.and_then(|done| done);
                if let Err(why) = written {
                    tracing::error!(%why, "the outcome of a call could not be written to the audit log");
                    self.shared.lose(1);
                }
            }
            None => self.push(call).await,
        }
    }

    /// Puts a record into the next batch, waiting for room where there is none.
    async fn push(&self, call: FinishedCall) {
        let mut call = Some(call);
        let waited = tokio::time::timeout(PATIENCE, async {
            loop {
                let room = self.shared.room.notified();
                match self.shared.push(&mut call) {
                    Pushed::First => return self.jobs.try_send(Job::Records).unwrap_or_default(),
                    Pushed::Behind => return,
                    Pushed::Full => room.await,
                }
            }
        });
        if waited.await.is_err() {
            self.shared.lose(1);
        }
    }

    /// Waits until everything that was recorded so far is written.
    pub async fn flush(&self) {
        self.run(|_| ()).await.ok();
    }

    /// Calls of this workspace, newest first.
    pub async fn calls(&self, query: CallQuery) -> Result<Vec<CallRecord>> {
        self.run(move |owner| owner.calls(&query)).await.and_then(|rows| rows).map_err(unreadable)
    }

    /// Counts and percentiles of the calls of this workspace, by server and tool.
    pub async fn metrics(&self, server: Option<String>) -> Result<Vec<ToolMetrics>> {
        self.run(move |owner| owner.metrics(server.as_deref())).await.and_then(|rows| rows).map_err(unreadable)
    }

    /// Keeps a fact about a launch (by [`Fingerprint::launch`]): the protocol era it speaks, the tools it had.
    pub async fn remember(&self, launch: &str, what: &'static str, value: String) {
        let launch = launch.to_owned();
        let kept = self.run(move |owner| owner.remember(&launch, what, &value)).await.and_then(|kept| kept);
        if let Err(why) = kept {
            tracing::debug!(what, %why, "not remembered");
        }
    }

    pub async fn recall(&self, launch: &str, what: &'static str) -> Option<String> {
        let launch = launch.to_owned();
        self.run(move |owner| owner.recall(&launch, what)).await.ok().flatten()
    }

    /// Whether the user still has to be told that their own servers run in private folders now. Asking marks it as told.
    pub async fn take_private_folders_notice(&self) -> bool {
        let taken = self.run(|owner| {
            owner.write("NORMAL", |transaction| {
                transaction.execute("DELETE FROM notices WHERE name = ?1", [database::PRIVATE_FOLDERS])
            })
        });
        matches!(taken.await, Ok(Ok(1..)))
    }

    async fn save(&self, change: Change) -> Saved {
        match self.run(move |owner| owner.save(change)).await {
            Ok(saved) => saved,
            Err(why) => Saved::InMemory(why),
        }
    }

    /// Has the owner do something and waits for the answer.
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

fn unreadable(why: String) -> Error {
    Error::Io(format!("the state database cannot be read: {why}"))
}

enum Pushed {
    /// The owner has to be woken.
    First,
    Behind,
    Full,
}

impl Shared {
    fn options(&self) -> Arc<Options> {
        self.options.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn picture(&self) -> Arc<Decisions> {
        self.decisions.read().map(|picture| picture.clone()).unwrap_or_default()
    }

    fn publish(&self, decisions: Decisions) {
        if let Ok(mut picture) = self.decisions.write() {
            *picture = Arc::new(decisions);
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

    fn push(&self, call: &mut Option<FinishedCall>) -> Pushed {
        let Ok(mut records) = self.records.lock() else { return Pushed::Full };
        if records.len() >= WAITING_RECORDS {
            return Pushed::Full;
        }
        let first = records.is_empty();
        records.extend(call.take());
        if first { Pushed::First } else { Pushed::Behind }
    }

    fn take_records(&self) -> Vec<FinishedCall> {
        let records = self.records.lock().map(|mut records| std::mem::take(&mut *records)).unwrap_or_default();
        self.room.notify_waiters();
        records
    }

    fn lose(&self, count: u64) {
        self.health.send_modify(|health| health.lost += count);
    }
}

#[cfg(test)]
mod tests;
