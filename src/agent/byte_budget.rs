//! How much memory the pending requests of agents may take: each agent, and all together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Map, Value};

use crate::model::json_memory::{KEY_BYTES, VALUE_BYTES};
use crate::server::transport::ledger::size;
use crate::settings::Limits;

/// The budget of one agent, which is also part of the budget of all.
pub struct ByteBudget {
    own: AtomicUsize,
    own_limit: usize,
    all: Arc<AtomicUsize>,
    all_limit: usize,
}

/// A request does not fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} would take more than {} of memory (the limit is `{setting}`)", size(*.limit))]
pub struct OverBudget {
    what: &'static str,
    limit: usize,
    pub setting: &'static str,
}

impl ByteBudget {
    pub fn new(limits: &Limits, all: Arc<AtomicUsize>) -> Self {
        Self { own: AtomicUsize::new(0), own_limit: limits.pending_bytes, all, all_limit: limits.total_pending_bytes }
    }

    pub fn reserve(&self, bytes: usize) -> Result<(), OverBudget> {
        add(&self.own, bytes, self.own_limit).ok_or(self.over_own())?;
        add(&self.all, bytes, self.all_limit).ok_or_else(|| {
            self.own.fetch_sub(bytes, Ordering::AcqRel);
            OverBudget {
                what: "the pending requests of all agents",
                limit: self.all_limit,
                setting: "limits.total-pending-bytes",
            }
        })
    }

    /// Whether this much is left of the agent's own budget.
    pub fn fits(&self, bytes: usize) -> Result<(), OverBudget> {
        let left = self.own_limit.saturating_sub(self.own.load(Ordering::Acquire));
        if bytes <= left { Ok(()) } else { Err(self.over_own()) }
    }

    fn over_own(&self) -> OverBudget {
        OverBudget { what: "your pending requests", limit: self.own_limit, setting: "limits.pending-bytes" }
    }

    pub fn release(&self, bytes: usize) {
        self.own.fetch_sub(bytes, Ordering::AcqRel);
        self.all.fetch_sub(bytes, Ordering::AcqRel);
    }
}

impl Drop for ByteBudget {
    fn drop(&mut self) {
        self.all.fetch_sub(*self.own.get_mut(), Ordering::AcqRel);
    }
}

fn add(count: &AtomicUsize, bytes: usize, limit: usize) -> Option<()> {
    let more = |count: usize| count.checked_add(bytes).filter(|sum| *sum <= limit);
    count.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).ok().map(drop)
}

/// Memory that is reserved until this is dropped.
pub struct Reserved {
    budget: Arc<ByteBudget>,
    bytes: usize,
}

impl Reserved {
    pub fn new(budget: &Arc<ByteBudget>, bytes: usize) -> Result<Self, OverBudget> {
        budget.reserve(bytes)?;
        Ok(Self { budget: budget.clone(), bytes })
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.budget.release(self.bytes);
    }
}

/// How much memory arguments take.
pub fn memory_of_fields(fields: &Map<String, Value>) -> usize {
    fields.iter().map(|(key, value)| KEY_BYTES + key.len() + memory_of_value(value)).sum()
}

fn memory_of_value(value: &Value) -> usize {
    VALUE_BYTES
        + match value {
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(memory_of_value).sum(),
            Value::Object(fields) => memory_of_fields(fields),
            _ => 0,
        }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    #[test]
    fn agents_share_one_budget_and_return_what_they_took() {
        let mut limits = Settings::default().limits;
        (limits.pending_bytes, limits.total_pending_bytes) = (10, 15);
        let all = Arc::<AtomicUsize>::default();
        let (one, other) = (ByteBudget::new(&limits, all.clone()), ByteBudget::new(&limits, all.clone()));
        one.reserve(10).unwrap();
        assert_eq!(one.reserve(1).unwrap_err().setting, "limits.pending-bytes");
        let error = other.reserve(6).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the pending requests of all agents would take more than 15 bytes of memory (the limit is `limits.total-pending-bytes`)"
        );
        other.reserve(5).unwrap();
        other.release(5);
        drop(one);
        other.reserve(10).unwrap();
        assert_eq!(all.load(Ordering::Acquire), 10);
    }
}
