//! The open requests of one agent, and their results as raw JSON.
//!
//! A handler stores its result here and returns an empty one to rmcp. The transport then sends the stored result instead.
//! The `std` lock is private to this file and held for a lookup, never across an await.

use std::collections::HashMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::RequestId;
use tokio_util::sync::CancellationToken;

use super::byte_budget::{ByteBudget, OverBudget};
use crate::model::RawJson;
use crate::settings::Limits;

#[derive(Clone)]
pub struct PendingResponses {
    open: Arc<Mutex<HashMap<RequestId, Open>>>,
    limit: usize,
    budget: Arc<ByteBudget>,
}

#[derive(Default)]
struct Open {
    result: Option<RawJson>,
    /// The memory of the request.
    bytes: usize,
    /// Cancels a request that rmcp does not know.
    cancel: Option<CancellationToken>,
}

/// A request that is no longer open.
pub struct Closed {
    pub result: Option<RawJson>,
    pub cancel: Option<CancellationToken>,
    /// No other request is open.
    pub is_last: bool,
}

/// Why a request is rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rejection {
    /// A request with this id is still open.
    Duplicate,
    /// This many requests are open.
    Full(usize),
    /// The open requests would take too much memory.
    Memory(OverBudget),
}

impl PendingResponses {
    /// `all` counts the memory of the requests of all agents.
    pub fn new(limits: &Limits, all: Arc<AtomicUsize>) -> Self {
        let budget = Arc::new(ByteBudget::new(limits, all));
        Self { open: Arc::default(), limit: limits.agent_calls, budget }
    }

    pub fn budget(&self) -> &Arc<ByteBudget> {
        &self.budget
    }

    /// Whether a request that takes this much memory could be admitted at all.
    pub fn fits(&self, bytes: usize) -> Result<(), OverBudget> {
        self.budget.fits(bytes)
    }

    /// `bytes` is the memory that the request takes.
    pub fn begin(&self, id: &RequestId, bytes: usize) -> Result<(), Rejection> {
        let mut open = self.lock();
        if open.contains_key(id) {
            return Err(Rejection::Duplicate);
        }
        if open.len() >= self.limit {
            return Err(Rejection::Full(self.limit));
        }
        self.budget.reserve(bytes).map_err(Rejection::Memory)?;
        open.insert(id.clone(), Open { bytes, ..Open::default() });
        Ok(())
    }

    /// Stores the result. Does nothing if the request is no longer open.
    pub fn set_result(&self, id: &RequestId, result: RawJson) {
        if let Some(slot) = self.lock().get_mut(id) {
            slot.result = Some(result);
        }
    }

    /// A request that rmcp does not know can be cancelled with this.
    pub fn set_cancel(&self, id: &RequestId, cancel: CancellationToken) {
        if let Some(slot) = self.lock().get_mut(id) {
            slot.cancel = Some(cancel);
        }
    }

    /// Closes the request and returns its stored result. `None` if it is not open.
    pub fn take(&self, id: &RequestId) -> Option<Closed> {
        let mut open = self.lock();
        let Open { result, bytes, cancel } = open.remove(id)?;
        let is_last = open.is_empty();
        drop(open);
        self.budget.release(bytes);
        Some(Closed { result, cancel, is_last })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RequestId, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
