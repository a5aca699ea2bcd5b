//! The thread that owns the connection: does what the handles send, writes records in batches, and keeps trying when
//! the file cannot be written.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::database::{self, is_broken, reason};
use super::decisions::{Change, Decisions};
use super::{FinishedCall, Saved, Shared, WAITING_RECORDS};

/// Records that arrive within this time after a write are written together; the first one after a pause at once. What
/// is killed loses no more than this.
const WINDOW: Duration = Duration::from_millis(5);
/// After a failure, the next try comes by itself after this long, doubling up to the longest.
const FIRST_RETRY: Duration = Duration::from_millis(500);
const LONGEST_RETRY: Duration = Duration::from_secs(30);

/// Old records are deleted with the first batch, and then once a day.
const SWEEP: Duration = Duration::from_secs(24 * 60 * 60);

pub enum Job {
    Run(Box<dyn FnOnce(&mut Owner) + Send>),
    /// There are records to be written soon.
    Records,
}

pub struct Owner {
    pub(super) shared: Arc<Shared>,
    /// Absent while the file cannot be opened.
    connection: Option<Connection>,
    /// Decisions and records that the file does not have yet.
    unsaved: Vec<Change>,
    /// Decisions that the database refuses to store; they hold until the process ends.
    rejected: Vec<Change>,
    unwritten: Vec<FinishedCall>,
    retry: Duration,
    /// When a batch was last written.
    written: Instant,
    /// Whether the write-ahead log must be there, because we have written to it.
    wrote: bool,
    /// When old records are looked for next.
    next_sweep: Instant,
}

impl Owner {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            connection: None,
            unsaved: Vec::new(),
            rejected: Vec::new(),
            unwritten: Vec::new(),
            retry: FIRST_RETRY,
            written: Instant::now(),
            wrote: false,
            next_sweep: Instant::now(),
        }
    }

    /// Works until the last handle is gone. The thread has a small runtime of its own, only to be able to wait for
    /// a job and for the end of a batch at once.
    pub(super) fn run(mut self, mut jobs: mpsc::Receiver<Job>) {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_time().build() else {
            self.fail("the state database has no timer".to_owned());
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
                        let at = due.unwrap_or(self.written + WINDOW);
                        due = if at <= Instant::now() { self.write_batch() } else { Some(at) };
                    }
                    Some(Job::Run(work)) => {
                        // What was recorded before is there for a query that comes after.
                        let retry = self.write_batch();
                        work(&mut self);
                        due = retry.or_else(|| self.next_try());
                    }
                    None => break,
                }
            }
            self.write_batch();
            self.tidy_up();
        });
    }

    /// Opens the file and reads the decisions; says what is wrong when it cannot.
    pub(super) fn open(&mut self) {
        match database::open(&self.shared.files) {
            Ok(opened) => {
                self.connection = Some(opened.connection);
                self.wrote = false;
                if let Some((aside, why)) = opened.set_aside {
                    let aside = aside.display();
                    tracing::warn!(%aside, %why, "the state database could not be used and was set aside");
                    let notice = format!("the state database could not be used ({why}); it was set aside as {aside}");
                    self.shared.health.send_modify(|health| health.notice = Some(notice));
                    // What is known in memory goes into the new file.
                    let known = self.shared.picture().changes();
                    self.unsaved.splice(0..0, known);
                }
                self.reload();
            }
            Err(why) => self.fail(format!("the state database cannot be opened: {why}")),
        }
    }

    /// Reads the decisions anew and publishes them, those included that are not in the file yet.
    pub(super) fn reload(&mut self) {
        let version = self.shared.files.version();
        let read = match &self.connection {
            Some(connection) => Decisions::read(connection),
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

    /// Takes a decision: it holds at once, and is on disk when this says so.
    pub(super) fn save(&mut self, change: Change) -> Saved {
        let mut decisions = (*self.shared.picture()).clone();
        decisions.apply(&change);
        self.shared.publish(decisions);
        self.unsaved.push(change);
        match self.save_all() {
            Ok(()) => Saved::ToDisk,
            Err(why) => Saved::InMemory(why),
        }
    }

    /// Writes the decisions that the file does not have yet. They are synced to disk: no power cut loses them.
    fn save_all(&mut self) -> Result<(), String> {
        if self.unsaved.is_empty() {
            return Ok(());
        }
        let changes = std::mem::take(&mut self.unsaved);
        let written = self.write("FULL", |transaction| {
            changes.iter().map(|change| change.write_alone(transaction)).collect::<rusqlite::Result<Vec<_>>>()
        });
        let results = match written {
            Ok(results) => results,
            // A broken file may have been replaced in the meantime, with the picture's decisions in line already.
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
                self.fail(format!("a decision cannot be written to the state database: {why}"));
            }
        }
        let seen = self.shared.seen.load(Ordering::Acquire);
        if let Err(error) = self.shared.files.announce() {
            tracing::warn!(%error, "other engines are not told of this decision");
        }
        // Grown by our own byte alone: the picture is complete. Otherwise another engine has decided, too.
        if self.shared.files.version() == seen + 1 {
            self.shared.seen.store(seen + 1, Ordering::Release);
        } else {
            self.reload();
        }
        // That of the last change, which is the decision that was just made.
        outcome
    }

    /// Writes what waits. Says when to try again, if something is left.
    fn write_batch(&mut self) -> Option<Instant> {
        let arrived = self.shared.take_records();
        self.unwritten.extend(arrived);
        if self.unwritten.is_empty() && self.unsaved.is_empty() {
            return None;
        }
        // What could not be saved stays in `unsaved`, and `health` tells of it.
        self.save_all().ok();
        let records = std::mem::take(&mut self.unwritten);
        if !records.is_empty() {
            self.written = Instant::now();
            let options = self.shared.options();
            let written = self.write("NORMAL", |transaction| {
                records.iter().try_for_each(|call| super::calls::insert(transaction, &options, call, true).map(drop))
            });
            if written.is_err() {
                self.keep(records);
            }
        }
        if Instant::now() >= self.next_sweep {
            self.next_sweep = Instant::now() + SWEEP;
            self.forget_old();
        }
        self.next_try()
    }

    /// Records that could not be written wait for a better time, up to a limit; the oldest go first.
    fn keep(&mut self, mut records: Vec<FinishedCall>) {
        let over = records.len().saturating_sub(WAITING_RECORDS);
        if over > 0 {
            records.drain(..over);
            self.shared.lose(over as u64);
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

    /// Does something in one transaction. A file that turns out to be broken is set aside, and a new one begun.
    pub(super) fn write<T>(
        &mut self,
        synchronous: &str,
        work: impl Fn(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, String> {
        self.mend_log();
        let done = self.connected(|connection| {
            connection.pragma_update(None, "synchronous", synchronous)?;
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let done = work(&transaction)?;
            transaction.commit()?;
            Ok(done)
        });
        if done.is_ok() {
            self.wrote = true;
            self.recovered();
        }
        done
    }

    /// Does something with the connection, opening it first where there is none.
    pub(super) fn connected<T>(
        &mut self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
    ) -> Result<T, String> {
        if self.connection.is_none() {
            self.open();
        }
        let Some(connection) = &mut self.connection else {
            let problem = self.shared.health.borrow().problem.clone();
            return Err(problem.unwrap_or_else(|| "the state database is not open".to_owned()));
        };
        work(connection).map_err(|error| {
            self.failed(&error);
            reason(&error)
        })
    }

    /// Somebody deleted the log under our feet: what it held is brought home, then the file is opened anew.
    fn mend_log(&mut self) {
        if !self.wrote || self.shared.files.wal.exists() {
            return;
        }
        tracing::warn!("the log of the state database was deleted while it was in use");
        if let Some(connection) = self.connection.take() {
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).ok();
        }
        self.open();
    }

    fn failed(&mut self, error: &rusqlite::Error) {
        self.fail(format!("the state database cannot be used: {}", reason(error)));
        if is_broken(error) {
            // Opening looks at the file, sets it aside when it is broken, and brings the decisions over.
            self.connection = None;
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
            tracing::error!(%problem, "decisions are kept in memory until this is mended");
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

    /// On a clean end the log is folded into the file.
    fn tidy_up(&mut self) {
        if let Some(connection) = &self.connection {
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).ok();
        }
    }
}
