//! The open requests of one agent, and their results as raw JSON.
//!
//! A handler stores its result here and returns an empty one to rmcp. The transport then sends the stored result instead.
//! The `std` lock is private to this file and held for a lookup, never across an await.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::RequestId;
use serde_json::value::RawValue;

#[derive(Clone)]
pub struct PendingResponses {
    open: Arc<Mutex<HashMap<RequestId, Option<Arc<RawValue>>>>>,
    limit: usize,
}

/// Why a request is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rejection {
    /// A request with this id is still open.
    Duplicate,
    /// This many requests are open.
    Full(usize),
}

impl PendingResponses {
    pub fn new(limit: usize) -> Self {
        Self { open: Arc::default(), limit }
    }

    pub fn begin(&self, id: &RequestId) -> Result<(), Rejection> {
        let mut open = self.lock();
        if open.contains_key(id) {
            return Err(Rejection::Duplicate);
        }
        if open.len() >= self.limit {
            return Err(Rejection::Full(self.limit));
        }
        open.insert(id.clone(), None);
        Ok(())
    }

    /// Stores the result. Does nothing if the request is no longer open.
    pub fn set_result(&self, id: &RequestId, result: Arc<RawValue>) {
        if let Some(slot) = self.lock().get_mut(id) {
            *slot = Some(result);
        }
    }

    /// Closes the request and returns its stored result.
    pub fn take(&self, id: &RequestId) -> Option<Arc<RawValue>> {
        self.lock().remove(id).flatten()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RequestId, Option<Arc<RawValue>>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
