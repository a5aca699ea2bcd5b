//! How much memory a JSON text takes when it is parsed into a tree of values. Programs of others write these texts, and one of
//! many small values takes fifty times its size. So everything that parses a text of theirs asks here first.

use std::fmt;

use serde::Deserializer as _;
use serde::de::{SeqAccess, Visitor};
use serde_json::value::RawValue;

/// What each value takes in addition to its text, with the room that a growing list reserves.
pub const VALUE_BYTES: usize = 96;
/// What the key of a value takes in addition to its text.
pub const KEY_BYTES: usize = 96;
/// How much the values of a light text may take in addition to the text.
const MAX_LIGHT_BYTES: usize = 1 << 20;

/// How much memory a text takes when it is parsed.
pub fn memory_of(text: &[u8]) -> usize {
    text.len() + tree_bytes(text)
}

/// Whether parsing a text takes little more memory than the text itself.
pub fn is_light(text: &str) -> bool {
    tree_bytes(text.as_bytes()) <= MAX_LIGHT_BYTES
}

/// How much memory the values of a text take in addition to the text.
pub fn tree_bytes(text: &[u8]) -> usize {
    let (mut values, mut keys, mut in_string, mut escaped) = (1, 0, false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b',' | b'[' | b'{' if !in_string => values += 1,
            b':' if !in_string => keys += 1,
            _ => {}
        }
    }
    values * VALUE_BYTES + keys * KEY_BYTES
}

/// Calls `each` with the items of a list, one after the other, so that a long list is never in memory.
pub fn each_item<'a>(list: &'a str, each: impl FnMut(&'a RawValue)) -> serde_json::Result<()> {
    struct Items<F>(F);
    impl<'de, F: FnMut(&'de RawValue)> Visitor<'de> for Items<F> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
            while let Some(item) = list.next_element()? {
                (self.0)(item);
            }
            Ok(())
        }
    }
    let mut parser = serde_json::Deserializer::from_str(list);
    parser.deserialize_seq(Items(each))?;
    parser.end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_values_take_more_memory_than_their_text() {
        assert_eq!(memory_of(br#"{"a":"x,[{\",\\","b":[]}"#), 24 + 4 * VALUE_BYTES + 2 * KEY_BYTES);
        assert!(is_light(&format!("{:?}", "x,".repeat(1 << 20))));
        assert!(!is_light(&format!("[{}0]", "0,".repeat(1 << 20))));
    }

    #[test]
    fn the_items_of_a_list_are_read_one_by_one() {
        let mut items = Vec::new();
        each_item(r#" [1, {"a": []},"x"] "#, |item| items.push(item.get())).unwrap();
        assert_eq!(items, ["1", r#"{"a": []}"#, "\"x\""]);
        for other in ["{}", "[1", "[1] x", "[1,]"] {
            assert!(each_item(other, |_| {}).is_err(), "{other}");
        }
    }
}
