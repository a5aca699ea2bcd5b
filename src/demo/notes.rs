//! The notes that the demo server keeps, in memory only.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// The resource that holds every note.
pub const ALL: &str = "demo://notes";
/// The template for a single one.
pub const TEMPLATE: &str = "demo://note/{number}";
/// Limits the memory that notes can use.
const MAX_NOTES: usize = 100;

/// The resource of one note, counted from 1.
pub fn uri(number: usize) -> String {
    format!("demo://note/{number}")
}

/// The lock is held for a push or a copy, never across an await.
pub struct Notes {
    kept: Mutex<StoredNotes>,
    changes: watch::Sender<()>,
}

#[derive(Default)]
struct StoredNotes {
    notes: Vec<String>,
    subscribed: BTreeSet<String>,
}

impl Default for Notes {
    fn default() -> Self {
        Self { kept: Mutex::default(), changes: watch::Sender::new(()) }
    }
}

impl Notes {
    /// Adds a note and returns its number; `None` if there are too many notes.
    pub fn add(&self, text: String) -> Option<usize> {
        let number = {
            let mut kept = self.kept();
            if kept.notes.len() >= MAX_NOTES {
                return None;
            }
            kept.notes.push(text);
            kept.notes.len()
        };
        self.changes.send_replace(());
        Some(number)
    }

    /// Removes all notes and returns how many there were.
    pub fn clear(&self) -> usize {
        let forgotten = std::mem::take(&mut self.kept().notes).len();
        self.changes.send_replace(());
        forgotten
    }

    pub fn all(&self) -> Vec<String> {
        self.kept().notes.clone()
    }

    /// The text of a resource.
    pub fn read(&self, uri: &str) -> Option<String> {
        let kept = self.kept();
        if uri == ALL {
            return Some(kept.notes.join("\n"));
        }
        let number: usize = uri.strip_prefix("demo://note/")?.parse().ok()?;
        kept.notes.get(number.checked_sub(1)?).cloned()
    }

    pub fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    pub fn subscribe(&self, uri: String) {
        self.kept().subscribed.insert(uri);
    }

    pub fn unsubscribe(&self, uri: &str) {
        self.kept().subscribed.remove(uri);
    }

    pub fn is_subscribed(&self, uri: &str) -> bool {
        self.kept().subscribed.contains(uri)
    }

    fn kept(&self) -> MutexGuard<'_, StoredNotes> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
