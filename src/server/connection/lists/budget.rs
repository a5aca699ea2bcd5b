//! The memory limit of all lists of one server together.

use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use serde_json::value::RawValue;

use crate::model::json_memory::{each_item, memory_of};

/// The memory used by the lists of one server. The lock is `std`, private to this file and held for a sum only.
pub struct ListBudget {
    limit: usize,
    taken: Mutex<[usize; 4]>,
}

impl ListBudget {
    pub fn new(limit: usize) -> Self {
        Self { limit, taken: Mutex::default() }
    }

    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Frees the memory of a list before it is reloaded.
    pub fn reset(&self, list: usize) {
        if let Some(taken) = self.taken.lock().unwrap_or_else(PoisonError::into_inner).get_mut(list) {
            *taken = 0;
        }
    }

    /// Returns false if it does not fit.
    fn take(&self, list: usize, bytes: usize) -> bool {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = taken.iter().sum();
        match taken.get_mut(list) {
            Some(own) if all.saturating_add(bytes) <= self.limit => {
                *own += bytes;
                true
            }
            _ => false,
        }
    }
}

/// The items of one page that fit.
pub struct Items {
    pub items: Vec<Value>,
    /// The remaining items did not fit.
    pub truncated: bool,
}

/// Parses a list item by item, so that items that do not fit are never allocated. `None` if it is not a list.
pub fn read(raw: &RawValue, list: usize, budget: &ListBudget) -> Option<Items> {
    let mut read = Items { items: Vec::new(), truncated: false };
    each_item(raw.get(), |item| {
        if read.truncated || !budget.take(list, memory_of(item.get().as_bytes())) {
            read.truncated = true;
            return;
        }
        // Invalid items count as items without a name.
        read.items.push(serde_json::from_str(item.get()).unwrap_or_default());
    })
    .ok()?;
    Some(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn items_that_do_not_fit_are_dropped_and_a_reload_frees_memory() {
        let budget = ListBudget::new(1_400);
        let count = |list| {
            read(&raw(r#"[{"name":"a"},{"name":"b"},{"name":"c"}]"#), list, &budget)
                .map(|read| (read.items.len(), read.truncated))
        };
        assert_eq!(count(0), Some((3, false)));
        assert_eq!(count(1), Some((1, true)), "the lists share the budget");
        budget.reset(0);
        assert_eq!(count(2), Some((3, false)));
        assert!(read(&raw(r#"{"a":1}"#), 0, &budget).is_none());
    }
}
