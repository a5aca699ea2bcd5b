//! The memory limit of all lists of one server together.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use serde::Deserializer as _;
use serde::de::{SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// Estimated memory of a value in addition to its text: key, map entry, value.
const VALUE_OVERHEAD: usize = 64;

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
    serde_json::Deserializer::from_str(raw.get()).deserialize_seq(Reader { list, budget }).ok()
}

struct Reader<'a> {
    list: usize,
    budget: &'a ListBudget,
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Items;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Items, A::Error> {
        let mut read = Items { items: Vec::new(), truncated: false };
        while let Some(raw) = list.next_element::<&RawValue>()? {
            if read.truncated || !self.budget.take(self.list, memory_size(raw.get())) {
                read.truncated = true;
                continue;
            }
            // Invalid items count as items without a name.
            read.items.push(serde_json::from_str(raw.get()).unwrap_or_default());
        }
        Ok(read)
    }
}

fn memory_size(text: &str) -> usize {
    let parts = text.bytes().filter(|byte| matches!(byte, b',' | b':' | b'{' | b'[')).count();
    text.len() + VALUE_OVERHEAD * (parts + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn items_that_do_not_fit_are_dropped_and_a_reload_frees_memory() {
        let budget = ListBudget::new(1_000);
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

    #[test]
    fn many_small_values_need_more_memory_than_their_text() {
        assert!(memory_size(&format!("[{}1]", "1,".repeat(1_000))) > 64_000);
    }
}
