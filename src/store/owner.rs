//! The thread that owns the connection: runs the jobs of the handles, writes records in batches, and retries when the
//! file cannot be written.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::chain::{self, ChainHead};
use super::database::{self, Opened, is_broken, reason};
use super::decisions::{Change, Decisions};
use super::file::{Files, Identities, InUse};
use super::{FinishedCall, MAX_QUEUED_RECORDS, Saved, Shared};

/// Records that arrive within this time are written together. A killed process loses no more than this.
const BATCH_WINDOW: Duration = Duration::from_millis(25);
/// After a failure, the first retry comes after this time. The time doubles up to the longest.
const FIRST_RETRY: Duration = Duration::from_millis(500);
const LONGEST_RETRY: Duration = Duration::from_secs(30);

/// Old records are deleted with the first batch, then once a day.
const SWEEP_INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);

pub enum Job {
    Run(Box<dyn FnOnce(&mut Owner) + Send>),
    /// There are records to write.
    Records,
}

struct OpenDatabase {
    connection: Connection,
    /// The files that it uses.
    identities: Identities,
    in_use: InUse,
}

pub struct Owner {
    pub(super) shared: Arc<Shared>,
    /// `None` while the file cannot be opened.
    open: Option<OpenDatabase>,
    /// Decisions that are not in the file yet.
    unsaved: Vec<Change>,
    /// Decisions that the database rejected. They are valid until the process ends.
    rejected: Vec<Change>,
    unwritten: Vec<FinishedCall>,
    /// The newest link that this engine wrote.
    pub(super) head: Option<ChainHead>,
    /// Whether another program has replaced it, which is logged once.
    is_rewritten: bool,
    retry: Duration,
    /// When to delete old records next.
    next_sweep: Instant,
}

impl Owner {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            open: None,
            unsaved: Vec::new(),
            rejected: Vec::new(),
            unwritten: Vec::new(),
            head: None,
            is_rewritten: false,
            retry: FIRST_RETRY,
            next_sweep: Instant::now(),
        }
    }

    /// Runs until the last handle is dropped. The thread has its own small runtime, to wait for a job and for the end
    /// of a batch at once.
    pub(super) fn run(mut self, mut jobs: mpsc::Receiver<Job>) {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_time().build() else {
            self.fail("cannot start the timer of the state database".to_owned());
            return;
        };
        runtime.block_on(async {
            let mut due: Option<Instant> = None;
            loop {
                let job = match due {
                    None => jobs.recv().await,
                    Some(at) => match tokio::time::timeout_at(at, jobs.recv()).await {
                        Ok(job) => job,
                        Err(_) => {
                            due = self.write_batch();
                            continue;
                        }
                    },
                };
                match job {
                    Some(Job::Records) => {
                        due.get_or_insert_with(|| Instant::now() + BATCH_WINDOW);
                    }
                    Some(Job::Run(work)) => {
                        // A query sees all records before it.
                        let retry = self.write_batch();
                        work(&mut self);
                        due = retry.or_else(|| self.next_try());
                    }
                    None => break,
                }
            }
            self.write_batch();
            self.close();
        });
    }

    /// Opens the file and reads the decisions, or reports the problem.
    pub(super) fn open(&mut self) {
        match database::open(&self.shared.files, self.wait()) {
            Ok(Opened { connection, in_use, identities, is_new, set_aside }) => {
                self.open = Some(OpenDatabase { connection, identities, in_use });
                if let Some((aside, why)) = set_aside {
                    let aside = aside.display();
                    tracing::warn!(%aside, %why, "the state database was unusable and has been moved");
                    let notice = format!("the state database was unusable ({why}); it was moved to {aside}");
                    self.shared.health.send_modify(|health| health.notice = Some(notice));
                }
                if is_new {
                    // Known decisions go into the new file.
                    self.head = None;
                    let known = self.shared.cached_decisions().changes();
                    self.unsaved.splice(0..0, known);
                }
                self.read_decisions();
            }
            Err(why) => self.fail(format!("cannot open the state database: {why}")),
        }
    }

    /// Reads the decisions again and publishes them, including those that are not in the file yet.
    pub(super) fn reload(&mut self) {
        self.check_files();
        self.read_decisions();
    }

    fn read_decisions(&mut self) {
        let version = self.shared.files.version();
        let read = match &self.open {
            Some(open) => Decisions::read(&open.connection),
            None => return self.shared.seen.store(version, Ordering::Release),
        };
        match read {
            Ok(mut decisions) => {
                self.rejected.iter().chain(&self.unsaved).for_each(|change| decisions.apply(change));
                self.shared.publish(decisions);
                self.shared.seen.store(version, Ordering::Release);
            }
            Err(error) => self.failed(&error),
        }
    }

    /// Saves decisions. They are valid at once, and on disk if this returns [`Saved::ToDisk`].
    pub(super) fn save(&mut self, changes: Vec<Change>) -> Saved {
        let mut decisions = (*self.shared.cached_decisions()).clone();
        changes.iter().for_each(|change| decisions.apply(change));
        self.shared.publish(decisions);
        self.unsaved.extend(changes);
        match self.save_all() {
            Ok(()) => Saved::ToDisk,
            Err(why) => Saved::InMemory(why),
        }
    }

    /// Writes the decisions that are not in the file yet. They are synced to disk, so they survive a power failure.
    fn save_all(&mut self) -> Result<(), String> {
        // Before the changes are taken: a new file also gets all that are known.
        self.check_files();
        if self.unsaved.is_empty() {
            return Ok(());
        }
        let changes = std::mem::take(&mut self.unsaved);
        let written = self.write("FULL", |transaction| {
            changes.iter().map(|change| change.write_alone(transaction)).collect::<rusqlite::Result<Vec<_>>>()
        });
        let results = match written {
            Ok(results) => results,
            // A damaged file may have been replaced in between, which has already queued the cached decisions.
            Err(why) => {
                self.unsaved.splice(0..0, changes).for_each(drop);
                return Err(why);
            }
        };
        let mut outcome = Ok(());
        for (change, rejected) in changes.into_iter().zip(results) {
            outcome = rejected.map_or(Ok(()), Err);
            if let Err(why) = &outcome {
                self.rejected.push(change);
                self.fail(format!("cannot write a decision to the state database: {why}"));
            }
        }
        let seen = self.shared.seen.load(Ordering::Acquire);
        if let Err(error) = self.shared.files.announce() {
            tracing::warn!(%error, "other engines do not see this decision yet");
        }
        // If the file grew only by our byte, the cache is complete. Otherwise another engine has also decided.
        if self.shared.files.version() == seen + 1 {
            self.shared.seen.store(seen + 1, Ordering::Release);
        } else {
            self.reload();
        }
        // The result of the last change, which is the decision that was just made.
        outcome
    }

    /// Writes everything that waits. Returns when to retry, if something is left.
    fn write_batch(&mut self) -> Option<Instant> {
        let arrived = self.shared.take_records();
        self.unwritten.extend(arrived);
        if self.unwritten.is_empty() && self.unsaved.is_empty() {
            return None;
        }
        // What could not be saved stays in `unsaved`, and `health` reports it.
        self.save_all().ok();
        let records = std::mem::take(&mut self.unwritten);
        if !records.is_empty() {
            let options = self.shared.options();
            let written = self.write_records(|transaction| {
                super::calls::insert(transaction, &options, &records, true).map(|(_, head)| ((), head))
            });
            if written.is_err() {
                self.keep(records);
            }
        }
        if Instant::now() >= self.next_sweep {
            self.next_sweep = Instant::now() + SWEEP_INTERVAL;
            self.delete_old();
        }
        self.next_try()
    }

    /// Keeps unwritten records for a retry, up to a limit. The oldest are dropped first.
    fn keep(&mut self, mut records: Vec<FinishedCall>) {
        let over = records.len().saturating_sub(MAX_QUEUED_RECORDS);
        if over > 0 {
            records.drain(..over);
            self.shared.count_lost(over as u64);
        }
        self.unwritten = records;
    }

    fn next_try(&mut self) -> Option<Instant> {
        if self.unwritten.is_empty() && self.unsaved.is_empty() {
            return None;
        }
        let at = Instant::now() + self.retry;
        self.retry = (self.retry * 2).min(LONGEST_RETRY);
        Some(at)
    }

    /// Writes records with their links, and remembers the newest link. If another program has replaced an earlier one, the
    /// earlier one is kept: it is the only proof.
    pub(super) fn write_records<T>(
        &mut self,
        work: impl Fn(&Transaction<'_>) -> rusqlite::Result<(T, Option<ChainHead>)>,
    ) -> Result<T, String> {
        let known = self.head.clone();
        let (is_intact, done, head) = self.write("NORMAL", |transaction| {
            let is_intact = known.as_ref().map_or(Ok(true), |known| chain::contains(transaction, known))?;
            let (done, head) = work(transaction)?;
            Ok((is_intact, done, head))
        })?;
        if is_intact {
            self.head = head.or(known);
        } else if !std::mem::replace(&mut self.is_rewritten, true) {
            tracing::warn!("the call log was changed: {}", chain::REWRITTEN);
        }
        Ok(done)
    }

    /// Runs something in a transaction. A damaged file is moved, and a new one is created.
    pub(super) fn write<T>(
        &mut self,
        synchronous: &str,
        work: impl Fn(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, String> {
        self.check_files();
        let wait = self.wait();
        let done = self.connected(|connection| {
            connection.busy_timeout(wait)?;
            connection.pragma_update(None, "synchronous", synchronous)?;
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let done = work(&transaction)?;
            transaction.commit()?;
            Ok(done)
        });
        if done.is_ok() {
            self.recovered();
        }
        done
    }

    /// Runs something with the connection, and opens it first if necessary.
    pub(super) fn connected<T>(
        &mut self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
    ) -> Result<T, String> {
        if self.open.is_none() {
            self.open();
        }
        let Some(OpenDatabase { connection, .. }) = &mut self.open else {
            let problem = self.shared.health.borrow().problem.clone();
            return Err(problem.unwrap_or_else(|| "the state database is not open".to_owned()));
        };
        work(connection).map_err(|error| {
            self.failed(&error);
            reason(&error)
        })
    }

    /// Restores files that were deleted while in use. If that is impossible, or if another program has replaced one, opens
    /// the database again.
    fn check_files(&mut self) {
        let files = &self.shared.files;
        let is_intact = |open: &OpenDatabase| files.identities() == open.identities;
        if self.open.as_ref().is_none_or(is_intact) {
            return;
        }
        files.restore_deleted();
        let Some(open) = self.open.take_if(|open| !is_intact(open)) else { return };
        tracing::warn!("the files of the state database were deleted or replaced while in use");
        let before = open.identities;
        open.close(files);
        if files.identities().database != before.database {
            files.remove_log(before);
        }
        self.open();
    }

    /// How long to wait for another engine that has locked the file.
    fn wait(&self) -> Duration {
        match self.shared.health.borrow().is_good() {
            true => database::BUSY_TIMEOUT,
            false => database::IMPATIENT_TIMEOUT,
        }
    }

    fn failed(&mut self, error: &rusqlite::Error) {
        self.fail(format!("cannot use the state database: {}", reason(error)));
        if is_broken(error) {
            // Opening checks the file, moves it if it is damaged, and restores the decisions.
            self.open = None;
            self.open();
        }
    }

    fn fail(&mut self, problem: String) {
        let changed = self.shared.health.send_if_modified(|health| {
            let new = health.problem.as_ref() != Some(&problem);
            health.problem = Some(problem.clone());
            new
        });
        if changed {
            tracing::error!(%problem, "decisions are kept in memory until this is fixed");
        }
    }

    fn recovered(&mut self) {
        self.retry = FIRST_RETRY;
        if !self.rejected.is_empty() {
            return;
        }
        if self.shared.health.send_if_modified(|health| health.problem.take().is_some()) {
            tracing::info!("the state database works again");
        }
    }

    /// Closes the database on a clean exit. Creates nothing: the user may have deleted the folder.
    pub(super) fn close(&mut self) {
        let files = &self.shared.files;
        files.restore_deleted();
        if let Some(open) = self.open.take() {
            files.release(open.close(files));
        }
    }
}

impl OpenDatabase {
    /// Merges the log into the file, unless another program has replaced one of the files: what we read and wrote does not
    /// belong there.
    fn close(self, files: &Files) -> InUse {
        let Self { connection, identities, in_use } = self;
        if identities.is_replaced_by(files.identities()) {
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).ok();
        } else {
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).ok();
        }
        in_use
    }
}
