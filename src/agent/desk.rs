//! The requests of one agent that are being worked on, and the results that wait for their envelope.
//!
//! A handler lays the text of its result here and gives rmcp an empty one; on the way out the transport puts the text
//! in its place. Behind a `std` lock that is private to this file, held for a look-up, never over an await.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::RequestId;
use serde_json::value::RawValue;

#[derive(Clone)]
pub struct Desk {
    open: Arc<Mutex<HashMap<RequestId, Option<Arc<RawValue>>>>>,
    most: usize,
}

/// Why a request is not taken on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// One with this id is being worked on.
    Duplicate,
    /// So many are.
    Full(usize),
}

impl Desk {
    pub fn new(most: usize) -> Self {
        Self { open: Arc::default(), most }
    }

    pub fn begin(&self, id: &RequestId) -> Result<(), Refused> {
        let mut open = self.lock();
        if open.contains_key(id) {
            return Err(Refused::Duplicate);
        }
        if open.len() >= self.most {
            return Err(Refused::Full(self.most));
        }
        open.insert(id.clone(), None);
        Ok(())
    }

    /// Lays the result down. Nothing happens when nobody waits for it any more.
    pub fn lay(&self, id: &RequestId, result: Arc<RawValue>) {
        if let Some(place) = self.lock().get_mut(id) {
            *place = Some(result);
        }
    }

    /// The request is answered, or given up; the result that was laid down for it.
    pub fn end(&self, id: &RequestId) -> Option<Arc<RawValue>> {
        self.lock().remove(id).flatten()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RequestId, Option<Arc<RawValue>>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
