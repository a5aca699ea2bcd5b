//! How much of a server's lists is kept: all of them together may take no more memory than the limit says.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use serde::Deserializer as _;
use serde::de::{SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// What a value takes in memory beside its text, about: a key, a place in its map, the value itself.
const VALUE_OVERHEAD: usize = 64;

/// What the lists of one server take. The lock is `std`, private to this file and held for a sum only.
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

    /// A list is asked for anew: what the one before took is free again.
    pub fn reset(&self, list: usize) {
        if let Some(taken) = self.taken.lock().unwrap_or_else(PoisonError::into_inner).get_mut(list) {
            *taken = 0;
        }
    }

    /// False when it does not fit any more.
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

/// The items of one page, as far as there is budget for them.
pub struct Items {
    pub items: Vec<Value>,
    /// What followed did not fit.
    pub truncated: bool,
}

/// Reads a list item by item, so that what does not fit is never built. `None` for anything but a list.
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
            // What does not read is counted among those without a name.
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
    fn what_does_not_fit_is_left_out_and_a_new_list_begins_with_what_the_old_one_took() {
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
    fn many_small_values_weigh_more_than_their_text() {
        assert!(memory_size(&format!("[{}1]", "1,".repeat(1_000))) > 64_000);
    }
}
