//! Counters of the requests that bypass the actor.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

#[derive(Debug, Default)]
pub struct Activity {
    in_flight: AtomicUsize,
    /// Requests started so far.
    request_count: AtomicU64,
    /// Microseconds that the last answered request took; 0 if there is none yet.
    latency: AtomicU64,
    /// Whether the actor wants to be notified of the next response.
    wants_notice: AtomicBool,
    answered: Notify,
    /// The subscribed resources. `std`, private to this file, held for a lookup.
    subscribed: Mutex<HashSet<String>>,
    /// When the last request ended. Locked like `subscribed`.
    last_use: Mutex<Option<Instant>>,
}

/// A request in flight; it ends when dropped.
#[derive(Debug)]
pub struct InFlight<'a>(&'a Activity);

impl Activity {
    pub fn begin(&self) -> InFlight<'_> {
        // Ordered with the link, which is read next: see `Actor::live`.
        self.in_flight.fetch_add(1, Ordering::SeqCst);
        self.request_count.fetch_add(1, Ordering::Relaxed);
        InFlight(self)
    }

    /// Whether no request is in flight: a server that works on one may be too busy to answer a ping.
    pub fn is_idle(&self) -> bool {
        self.in_flight.load(Ordering::SeqCst) == 0
    }

    pub fn last_use(&self) -> Option<Instant> {
        *lock(&self.last_use)
    }

    pub fn subscribed(&self, uri: &str) {
        lock(&self.subscribed).insert(uri.to_owned());
    }

    pub fn unsubscribed(&self, uri: &str) {
        lock(&self.subscribed).remove(uri);
    }

    pub fn has_subscriptions(&self) -> bool {
        !lock(&self.subscribed).is_empty()
    }

    /// The connection is closed, and its subscriptions with it.
    pub fn clear_subscriptions(&self) {
        lock(&self.subscribed).clear();
    }

    pub fn request_count(&self) -> u64 {
        self.request_count.load(Ordering::Relaxed)
    }

    pub fn latency(&self) -> Option<Duration> {
        match self.latency.load(Ordering::Relaxed) {
            0 => None,
            micros => Some(Duration::from_micros(micros)),
        }
    }

    pub fn record_latency(&self, took: Duration) {
        self.latency.store(u64::try_from(took.as_micros()).unwrap_or(u64::MAX).max(1), Ordering::Relaxed);
        if self.wants_notice.swap(false, Ordering::Relaxed) {
            self.answered.notify_one();
        }
    }

    /// Notifies the actor of the next response only, so that the state is not published with every call.
    pub fn notify_next(&self) {
        self.wants_notice.store(true, Ordering::Relaxed);
    }

    pub async fn answered(&self) {
        self.answered.notified().await;
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        *lock(&self.0.last_use) = Some(Instant::now());
        self.0.in_flight.fetch_sub(1, Ordering::SeqCst);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
