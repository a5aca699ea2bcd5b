//! How much of a server's lists is kept: all of them together may take no more memory than the limit says.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use serde::Deserializer as _;
use serde::de::{SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// What a value takes in memory beside its text, about: a key, a place in its map, the value itself.
const EACH: usize = 64;

/// What the lists of one server take. The lock is `std`, private to this file and held for a sum only.
pub struct Room {
    most: usize,
    taken: Mutex<[usize; 4]>,
}

impl Room {
    pub fn new(most: usize) -> Self {
        Self { most, taken: Mutex::default() }
    }

    pub fn most(&self) -> usize {
        self.most
    }

    /// A list is asked for anew: what the one before took is free again.
    pub fn begin(&self, list: usize) {
        if let Some(taken) = self.taken.lock().unwrap_or_else(PoisonError::into_inner).get_mut(list) {
            *taken = 0;
        }
    }

    /// False when it does not fit any more.
    fn take(&self, list: usize, bytes: usize) -> bool {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = taken.iter().sum();
        match taken.get_mut(list) {
            Some(own) if all.saturating_add(bytes) <= self.most => {
                *own += bytes;
                true
            }
            _ => false,
        }
    }
}

/// The items of one page, as far as there is room for them.
pub struct Items {
    pub items: Vec<Value>,
    /// What followed did not fit.
    pub cut: bool,
}

/// Reads a list item by item, so that what does not fit is never built. `None` for anything but a list.
pub fn read(raw: &RawValue, list: usize, room: &Room) -> Option<Items> {
    serde_json::Deserializer::from_str(raw.get()).deserialize_seq(Reader { list, room }).ok()
}

struct Reader<'a> {
    list: usize,
    room: &'a Room,
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Items;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Items, A::Error> {
        let mut read = Items { items: Vec::new(), cut: false };
        while let Some(raw) = list.next_element::<&RawValue>()? {
            if read.cut || !self.room.take(self.list, weight(raw.get())) {
                read.cut = true;
                continue;
            }
            // What does not read is counted among those without a name.
            read.items.push(serde_json::from_str(raw.get()).unwrap_or_default());
        }
        Ok(read)
    }
}

fn weight(text: &str) -> usize {
    let parts = text.bytes().filter(|byte| matches!(byte, b',' | b':' | b'{' | b'[')).count();
    text.len() + EACH * (parts + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn what_does_not_fit_is_left_out_and_a_new_list_begins_with_what_the_old_one_took() {
        let room = Room::new(1_000);
        let count = |list| {
            read(&raw(r#"[{"name":"a"},{"name":"b"},{"name":"c"}]"#), list, &room)
                .map(|read| (read.items.len(), read.cut))
        };
        assert_eq!(count(0), Some((3, false)));
        assert_eq!(count(1), Some((1, true)), "the lists share the room");
        room.begin(0);
        assert_eq!(count(2), Some((3, false)));
        assert!(read(&raw(r#"{"a":1}"#), 0, &room).is_none());
    }

    #[test]
    fn many_small_values_weigh_more_than_their_text() {
        assert!(weight(&format!("[{}1]", "1,".repeat(1_000))) > 64_000);
    }
}
